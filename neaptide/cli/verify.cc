// neaptide verify: same bits under every budget, planned == measured peak; or a plan against its problem.
#include "neaptide/cli/model_flags.hpp"
#include "neaptide/cli/plan_text.hpp"

namespace neaptide::cli {

namespace {

struct Flags {
  ModelFlags model;
  PlanFlags plan;
  std::string plan_path, budgets = "100%,60%,40%,min", data, sabotage;
  session::VerifyOptions verify;
};

int verify_plan(const Flags& flags, Console& console) {
  const plan::Problem problem = session::load_problem(flags.model.path);
  if (flags.plan_path.empty())
    throw UserError("'{}' is a problem; give the plan to verify as a second file", flags.model.path);
  const plan::Plan plan = session::load_plan(problem, flags.plan_path);
  const plan::Report report = plan::verify(problem, plan);
  std::vector<std::string> wrong;
  for (const plan::Violation& v : report.violations) {
    wrong.push_back(fmt::format("rule {}, step {}: {}", v.rule, v.step, v.reason));
  }
  if (plan.layout && report.ok()) {
    for (const std::string& w : memory::verify(problem, plan, *plan.layout)) wrong.push_back("layout: " + w);
  }
  if (console.json) {
    console.value({{"ok", wrong.empty()}, {"violations", wrong}, {"seconds", report.cost.seconds}});
  } else {
    for (const std::string& w : wrong) console.data(w + "\n");
    if (wrong.empty()) {
      console.data(
          fmt::format("{}: {} steps keep every rule\n", console.painted("verified", Paint::kGood), plan.steps.size()));
      show_plan(console, problem, plan);
    }
  }
  if (!wrong.empty())
    console.error(fmt::format("'{}' breaks {} rules of its problem: {}", flags.plan_path, wrong.size(), wrong.front()));
  return wrong.empty() ? kOk : kNotVerified;
}

Json row_json(const session::VerifyRow& r) {
  return {{"budget", r.budget},
          {"interrupted", r.interrupted},
          {"budget_bytes", r.bytes ? Json(*r.bytes) : Json()},
          {"planned", r.planned},
          {"planned_bytes", r.planned_peak},
          {"measured_bytes", r.measured_peak},
          {"arena_bytes", r.arena},
          {"seconds", r.cost},
          {"recomputed", r.recomputed},
          {"same_bits", r.planned ? Json(r.difference.empty()) : Json()},
          {"difference", r.difference},
          {"peak_mismatch", r.peak_mismatch}};
}

void show(Console& console, const session::Verification& v) {
  std::vector<std::vector<std::string>> table = {
      {"budget", "bytes", "planned", "measured", "arena", "again", "step time", "bits", "peak"}};
  for (const session::VerifyRow& r : v.rows) {
    const std::string name = r.interrupted ? r.budget + ", interrupted" : r.budget;
    if (!r.planned) {
      table.push_back({name, r.bytes ? std::to_string(*r.bytes) : "-", "-", "-", "-", "-", "-", "no plan fits", "-"});
      continue;
    }
    table.push_back({name, r.bytes ? std::to_string(*r.bytes) : "-", std::to_string(r.planned_peak),
                     std::to_string(r.measured_peak), std::to_string(r.arena), std::to_string(r.recomputed),
                     format_seconds(r.cost), r.difference.empty() ? "equal" : "differ",
                     r.peak_mismatch.empty() ? "equal" : "differ"});
  }
  console.table(table);
}

session::VerifyOptions::Sabotage sabotage_of(const std::string& word) {
  using Sabotage = session::VerifyOptions::Sabotage;
  if (word.empty()) return Sabotage::kNone;
  if (word == "bits") return Sabotage::kFlipBit;
  if (word == "peak") return Sabotage::kShiftPeak;
  throw UserError("there is no sabotage '{}'; it is bits or peak", word);
}

/// A budget that is too small breaks no promise; but something must have been verified.
int exit_without_difference(const session::Verification& v, Console& console) {
  int planned = 0;
  for (const session::VerifyRow& r : v.rows) {
    if (r.budget != "none" && r.planned) ++planned;
    if (!r.planned) console.note(fmt::format("budget {}: no plan fits {} bytes", r.budget, r.bytes.value_or(0)));
  }
  if (planned > 0) return kOk;
  console.error("no plan fits any of the budgets, so nothing was verified");
  return kNoPlan;
}

int verify_model(Flags& flags, Console& console) {
  const session::ModelOptions options = options_of(flags.model, flags.plan, console);
  flags.verify.budgets = split(flags.budgets, ',');
  flags.verify.sabotage = sabotage_of(flags.sabotage);
  if (!flags.data.empty()) flags.verify.data = session::open_data(flags.data, session::Part::kTrain);
  flags.verify.progress = [&](const std::string& what) { console.progress("verifying: " + what, false); };
  const session::Verification v = session::verify_budgets(load(flags.model, options), options, flags.verify);
  console.end_progress();
  if (console.json) {
    Json root{{"keep_all_bytes", v.keep_all},
              {"same_bits", v.same_bits()},
              {"same_peaks", v.same_peaks()},
              {"rows", Json::array()}};
    for (const session::VerifyRow& r : v.rows) root["rows"].push_back(row_json(r));
    console.value(root);
  } else {
    show(console, v);
  }
  for (const session::VerifyRow& r : v.rows) {
    if (!r.peak_mismatch.empty()) {
      console.error(fmt::format("budget {}: {}", r.budget, r.peak_mismatch));
      return kPeakDiffers;
    }
  }
  for (const session::VerifyRow& r : v.rows) {
    if (!r.difference.empty()) {
      console.error(fmt::format("budget {}: {} differs from the unconstrained run", r.budget, r.difference));
      return kNotVerified;
    }
  }
  return exit_without_difference(v, console);
}

std::function<int()> declare(CLI::App& app, Console& console) {
  auto flags = std::make_shared<Flags>();
  app.add_option("FILE", flags->model.path, "an ONNX model, or a problem file")->required();
  app.add_option("PLAN", flags->plan_path, "the plan of a problem file");
  app.add_option("--budgets", flags->budgets, "list, with commas")->capture_default_str();
  app.add_option("--steps", flags->verify.steps, "training steps per budget")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--lr", flags->verify.rate, "learning rate")->capture_default_str();
  app.add_option("--data", flags->data, "default: synthetic");
  app.add_flag("--interrupt", flags->verify.interrupt, "also interrupt and resume under every budget");
  app.add_option("--sabotage", flags->sabotage)->group("");
  declare_plan_flags(app, flags->plan);
  app.remove_option(app.get_option("--budget"));
  declare_model_flags(app, flags->model);
  declare_training_flags(app, flags->model);
  return [flags, &console] {
    flags->verify.seed = flags->plan.seed;
    const bool problem = session::kind_of(flags->model.path) == session::InputKind::kJson;
    return problem ? verify_plan(*flags, console) : verify_model(*flags, console);
  };
}

}  // namespace

const Verb kVerifyVerb = {
    "verify",
    "Checks the promises: same bits under every budget, measured peak == planned peak; or a plan against its problem.",
    declare};

}  // namespace neaptide::cli
