#include "neaptide/cli/cli.hpp"

#include <algorithm>
#include <array>
#include <memory>

#include "neaptide/cli/verb.hpp"

namespace neaptide::cli {

namespace {

// Sorted by name.
const std::array kVerbs = {&kCertifyVerb, &kDoctorVerb,  &kEvalVerb,  &kExplainVerb, &kExportVerb,
                           &kInferVerb,   &kInspectVerb, &kPackVerb,  &kPlanVerb,    &kProfileVerb,
                           &kSweepVerb,   &kTraceVerb,   &kTrainVerb, &kVerifyVerb,  &kZooVerb};

constexpr const char* kWhat =
    "Trains neural networks under a memory line drawn in bytes: the peak is known to the byte before the first step.";

std::vector<std::string> verb_names() {
  std::vector<std::string> out;
  for (const Verb* v : kVerbs) out.emplace_back(v->name);
  return out;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> out;
  for (const CLI::Option* o : app.get_options()) {
    for (const std::string& name : o->get_lnames()) out.push_back("--" + name);
  }
  return out;
}

/// What is wrong with the command line, as a sentence.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error) {
  for (const std::string& word : app.remaining()) {
    if (word.starts_with("-")) {
      const std::string name = word.substr(0, word.find('='));
      return fmt::format("'{}' has no option '{}'{}", app.get_name(), name, did_you_mean(name, option_names(app)));
    }
    if (!word.empty()) return fmt::format("'{}' takes no further argument '{}'", app.get_name(), word);
  }
  return fmt::format("{}: {}; see 'neaptide {} --help'", app.get_name(), error.what(), app.get_name());
}

/// Runs `action`; what it throws becomes a sentence and an exit code.
int guarded(Console& console, const std::function<int()>& action) {
  const auto fail = [&](int code, const std::exception& e) {
    console.error(e.what());
    if (console.json) console.value(Json{{"error", e.what()}, {"exit", code}});
    return code;
  };
  try {
    return action();
  } catch (const session::ModelError& e) {
    return fail(kBadModel, e);
  } catch (const UserError& e) {
    return fail(kUsage, e);
  } catch (const runtime::PeakMismatch& e) {
    return fail(kPeakDiffers, e);
  } catch (const DeviceError& e) {
    return fail(kInternal, e);
  } catch (const std::bad_alloc& e) {
    return fail(kInternal, e);
  } catch (const std::exception& e) {
    return fail(kInternal, e);
  }
}

}  // namespace

int run(const std::vector<std::string>& arguments, std::FILE* out, std::FILE* err) {
  Console console(out, err);
  CLI::App app{kWhat, "neaptide"};
  app.set_version_flag("--version", kVersion);
  app.require_subcommand(1);
  std::vector<std::pair<CLI::App*, std::function<int()>>> actions;
  for (const Verb* v : kVerbs) {
    CLI::App* sub = app.add_subcommand(std::string(v->name), std::string(v->what));
    sub->add_flag("--json", console.json, "data as JSON");
    sub->add_flag("-q,--quiet", console.quiet, "no commentary and no progress");
    actions.emplace_back(sub, v->declare(*sub, console));
  }
  if (arguments.empty()) {
    console.data(app.help());
    return kUsage;
  }
  const std::vector<std::string> names = verb_names();
  const std::string& first = arguments.front();
  if (!first.starts_with("-") && std::find(names.begin(), names.end(), first) == names.end()) {
    console.error(fmt::format("there is no verb '{}'{}; see 'neaptide --help'", first, did_you_mean(first, names)));
    return kUsage;
  }
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // as CLI11 wants them
    app.parse(reversed);
  } catch (const CLI::Success& e) {  // help and version
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    const auto used =
        std::find_if(actions.begin(), actions.end(), [&](const auto& a) { return a.first->get_name() == first; });
    console.error(used == actions.end() ? fmt::format("{}; see 'neaptide --help'", e.what())
                                        : usage_error(*used->first, e));
    return kUsage;
  }
  for (const auto& [sub, action] : actions) {
    if (sub->parsed()) return guarded(console, action);
  }
  return kUsage;
}

}  // namespace neaptide::cli
