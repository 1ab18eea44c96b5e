#include "neaptide/cli/recorded.hpp"

#include <charconv>

namespace neaptide::cli {

namespace {

std::string text_of(const std::string& v) { return v; }
std::string text_of(const std::vector<std::string>& v) { return join(v, "\n"); }
std::string text_of(bool v) { return v ? "true" : "false"; }
template <class T>
std::string text_of(T v) {
  return fmt::format("{}", v);
}

bool set(std::string& to, const std::string& text) {
  to = text;
  return true;
}
bool set(std::vector<std::string>& to, const std::string& text) {
  to = text.empty() ? std::vector<std::string>{} : split(text, '\n');
  return true;
}
bool set(bool& to, const std::string& text) {
  to = text == "true";
  return text == "true" || text == "false";
}
template <class T>
bool set(T& to, const std::string& text) {
  const auto [rest, ec] = std::from_chars(text.data(), text.data() + text.size(), to);
  return ec == std::errc() && rest == text.data() + text.size();
}

}  // namespace

std::map<std::string, std::string> Recorded::texts() const {
  std::map<std::string, std::string> out;
  for (const auto& [name, target] : options_) {
    out[name] = std::visit([](const auto* value) { return text_of(*value); }, target);
  }
  return out;
}

void Recorded::take_over(const std::map<std::string, std::string>& texts, const CLI::App& app) const {
  for (const auto& [name, target] : options_) {
    const auto found = texts.find(name);
    if (found == texts.end() || app.get_option(name)->count() > 0) continue;
    const bool legal = std::visit([&](auto* value) { return set(*value, found->second); }, target);
    if (!legal) throw UserError("the checkpoint has option {} '{}', which is no value of it", name, found->second);
  }
}

}  // namespace neaptide::cli
