#include "neaptide/session/input.hpp"

#include "neaptide/base/files.hpp"

namespace neaptide::session {

namespace {

template <class Action>
auto as_model_error(Action action) {
  try {
    return action();
  } catch (const ModelError&) {
    throw;
  } catch (const UserError& e) {
    throw ModelError("{}", e.what());
  }
}

}  // namespace

InputKind kind_of(const std::string& path) {
  return as_model_error([&] {
    const std::string content = read_file(path);
    const bool gzip = content.starts_with("\x1f\x8b");
    const std::size_t first = content.find_first_not_of(" \t\r\n");
    if (gzip || (first != std::string::npos && content[first] == '{')) return InputKind::kJson;
    if (content.size() > 9 && content[8] == '{' && content.compare(4, 4, std::string(4, '\0')) == 0) {
      return InputKind::kTensors;
    }
    return InputKind::kOnnx;
  });
}

plan::Problem load_problem(const std::string& path, std::string* sha256) {
  return as_model_error([&] { return plan::read_problem(path, sha256); });
}

plan::Plan load_plan(const plan::Problem& problem, const std::string& path) {
  return as_model_error([&] { return plan::plan_from_json(problem, read_maybe_gzip(path), path); });
}

}  // namespace neaptide::session
