#include "neaptide/cli/any_problem.hpp"

namespace neaptide::cli {

AnyProblem load_any_problem(ModelFlags& model, PlanFlags& plan, bool inference, Console& console) {
  if (model.threads > 0) plan.threads = model.threads;
  AnyProblem out;
  if (session::kind_of(model.path) == session::InputKind::kJson) {
    out.problem = session::load_problem(model.path, &out.sha256);
    out.options = options_of(plan, console);
    return out;
  }
  const session::ModelOptions options = options_of(model, plan, console);
  graph::Graph g = load(model, options);
  out.problem = inference ? session::make_inference_model(g, options).prepared.lowered.problem
                          : session::make_training_model(std::move(g), options).prepared.lowered.problem;
  out.options = options.plan;
  return out;
}

}  // namespace neaptide::cli
