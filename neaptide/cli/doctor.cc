// neaptide doctor: what is there, what is not, and why.
#include <thread>

#include "neaptide/cli/verb.hpp"

namespace neaptide::cli {

namespace {

struct Check {
  std::string what;
  bool good = false;
  std::string says;
};

std::vector<Check> backend_checks() {
  std::vector<Check> out;
  for (const runtime::BackendEntry& e : session::backends()) {
    const std::string what = fmt::format("backend {}", e.name);
    if (e.make == nullptr) {
      out.push_back({what, false, fmt::format("not built: {}", e.not_built_because)});
      continue;
    }
    try {
      out.push_back({what, true, session::make_backend(std::string(e.name), 0)->version()});
    } catch (const Error& error) {
      out.push_back({what, false, error.what()});
    }
  }
  return out;
}

Check data_check() {
  try {
    const session::DataSet data = session::open_data("fashion-mnist", session::Part::kTest);
    return {"data fashion-mnist", true, fmt::format("{} test images", data.n)};
  } catch (const UserError& e) {
    return {"data fashion-mnist", false, e.what()};
  }
}

std::vector<Check> checks() {
  std::vector<Check> out = {
      {"version", true, kVersion},
      {"processor", true, fmt::format("{}, {} threads", session::cpu_name(), std::thread::hardware_concurrency())},
      {"memory", true, format_bytes(session::machine_bytes())},
      {"huge pages", session::huge_page_mode() != "never", session::huge_page_mode()},
      {"measured costs", true,
       session::default_costs_path().empty() ? "not kept: neither XDG_CACHE_HOME nor HOME is set"
                                             : session::default_costs_path()}};
  for (Check& c : backend_checks()) out.push_back(std::move(c));
  out.push_back(data_check());
  std::vector<std::string> planners;
  for (const plan::Planner& p : plan::planners()) planners.emplace_back(p.name);
  out.push_back({"planners", !planners.empty(), join(planners, ", ")});
  return out;
}

int doctor(Console& console) {
  Json root = Json::object();
  for (const Check& c : checks()) {
    root[c.what] = {{"ok", c.good}, {"says", c.says}};
    if (!console.json) {
      console.data(fmt::format("{}  {:<18}  {}\n",
                               console.painted(c.good ? "ok" : "--", c.good ? Paint::kGood : Paint::kDim), c.what,
                               c.says));
    }
  }
  if (console.json) console.value(root);
  return kOk;
}

std::function<int()> declare(CLI::App&, Console& console) {
  return [&console] { return doctor(console); };
}

}  // namespace

const Verb kDoctorVerb = {
    "doctor", "Says what this installation and this machine offer, and why not where something is missing.", declare};

}  // namespace neaptide::cli
