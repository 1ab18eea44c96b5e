// neaptide plan: the schedule of an ONNX model or a problem file under budgets.
#include "neaptide/cli/compare.hpp"
#include "neaptide/cli/interrupt.hpp"
#include "neaptide/cli/matrices_text.hpp"
#include "neaptide/cli/max_batch.hpp"
#include "neaptide/cli/model_flags.hpp"
#include "neaptide/cli/plan_text.hpp"
#include "neaptide/plan/staged.hpp"

namespace neaptide::cli {

namespace {

struct Flags {
  ModelFlags model;
  PlanFlags plan;
  MaxBatchFlags max_batch;
  std::string output, problem, mps;
  std::optional<std::string> matrices;  // a file, or "" for the picture alone
  bool inference = false;
};

int show(const Flags& flags, Console& console, const plan::Problem& problem, const plan::Plan& plan) {
  const std::string text = plan::to_json(problem, plan);
  if (!flags.output.empty()) write_file_atomically(flags.output, text);
  if (console.json) {
    console.data(text);
  } else {
    show_plan(console, problem, plan);
    if (flags.matrices && !plan.steps.empty()) show_matrices(console, problem, plan);
  }
  if (flags.matrices && !flags.matrices->empty())
    write_file_atomically(*flags.matrices, plan::to_json(problem, plan::matrices_of(problem, plan.steps)));
  return exit_of(plan);
}

int plan_problem(const Flags& flags, Console& console) {
  const InterruptFlag interrupt;
  std::string sha256;
  const plan::Problem problem = session::load_problem(flags.model.path, &sha256);
  if (!flags.mps.empty()) {
    plan::Options options = options_of(flags.plan, console);
    options.budgets = session::resolve_budgets(problem, flags.plan.budgets, flags.plan.planner, options);
    write_file_atomically(flags.mps, plan::programme_mps(problem, flags.plan.planner, options));
  }
  plan::Plan plan = make_plan(problem, flags.plan, console);
  plan.problem_sha256 = sha256;
  return show(flags, console, problem, plan);
}

session::Prepared prepared(const Flags& flags, const session::ModelOptions& options) {
  graph::Graph g = load(flags.model, options);
  if (flags.inference) return std::move(session::make_inference_model(g, options).prepared);
  return std::move(session::make_training_model(std::move(g), options).prepared);
}

int plan_model(const Flags& flags, Console& console) {
  const session::ModelOptions options = options_of(flags.model, flags.plan, console);
  session::Prepared p = prepared(flags, options);
  const plan::Problem& problem = p.lowered.problem;
  console.note(fmt::format("keep-all peak: {} bytes ({})", p.keep_all, format_bytes(p.keep_all)));
  const InterruptFlag interrupt;
  session::choose_plan(p, flags.plan.budgets, options);
  console.end_progress();
  if (!flags.problem.empty()) {
    const std::string text = plan::to_json(problem);
    write_file_atomically(flags.problem, text);
    p.plan.problem_sha256 = sha256_hex(text);
  }
  return show(flags, console, problem, p.plan);
}

std::function<int()> declare(CLI::App& app, Console& console) {
  auto flags = std::make_shared<Flags>();
  app.add_option("FILE", flags->model.path, "an ONNX model or a problem file");
  app.add_option("-o,--output", flags->output, "where the plan goes");
  app.add_option("--problem", flags->problem, "where the problem of a model goes");
  app.add_option("--mps", flags->mps, "where the integer programme of the planner goes (a problem file's only)");
  app.add_flag("--inference", flags->inference, "plan the model itself, not its training");
  app.add_option_function<std::string>(
         "--matrices", [flags](const std::string& file) { flags->matrices = file; },
         "show the plan as Checkmate's matrices, one row per stage; with a file, R, S and F as JSON")
      ->expected(0, 1)
      ->type_name("[FILE]");
  declare_max_batch_flags(app, flags->max_batch);
  declare_plan_flags(app, flags->plan);
  declare_model_flags(app, flags->model);
  declare_training_flags(app, flags->model);
  const Subcommand compare = declare_compare(app, console);
  return [flags, compare, &console] {
    if (compare.app->parsed()) return compare.run();
    if (flags->model.path.empty()) throw UserError("plan: FILE is required; see 'neaptide plan --help'");
    if (flags->model.threads > 0) flags->plan.threads = flags->model.threads;
    if (flags->max_batch.asked) {
      const MaxBatchOutputs outputs{flags->output, flags->problem, flags->inference};
      return plan_max_batch(flags->max_batch, flags->model, flags->plan, outputs, console);
    }
    const bool problem = session::kind_of(flags->model.path) == session::InputKind::kJson;
    if (!problem && !flags->mps.empty())
      throw UserError("plan: --mps takes a problem file; write one with --problem and plan that");
    return problem ? plan_problem(*flags, console) : plan_model(*flags, console);
  };
}

}  // namespace

const Verb kPlanVerb = {
    "plan", "Finds the fastest schedule within the budgets, and says how far from optimal it can be.", declare};

}  // namespace neaptide::cli
