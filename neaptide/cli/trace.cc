// neaptide trace: one training step, step by step, for Perfetto.
#include "neaptide/cli/model_flags.hpp"
#include "neaptide/cli/plan_text.hpp"

namespace neaptide::cli {

namespace {

struct Flags {
  ModelFlags model;
  PlanFlags plan;
  std::string output;
  std::int64_t steps = 3;
};

int trace(const Flags& flags, Console& console) {
  const session::ModelOptions options = options_of(flags.model, flags.plan, console);
  session::TrainingModel model = session::make_training_model(load(flags.model, options), options);
  session::choose_plan(model.prepared, flags.plan.budgets, options);
  console.end_progress();
  if (!model.prepared.feasible()) {
    show_plan(console, model.prepared.lowered.problem, model.prepared.plan);
    return exit_of(model.prepared.plan);
  }
  const session::DataSet data = session::synthetic_for(model, checked_mul(flags.steps, model.batch), flags.plan.seed);
  const std::string device = model.prepared.machine.devices.front().name;
  session::TrainerOptions t;
  t.trace = true;
  session::Trainer trainer(std::move(model), t);
  trainer.run(data);
  const std::string text = session::perfetto_json(trainer.program(), device);
  if (flags.output.empty()) {
    console.data(text);
    return kOk;
  }
  write_file_atomically(flags.output, text);
  console.note(fmt::format("step {} is in '{}'; open it in https://ui.perfetto.dev", flags.steps, flags.output));
  return kOk;
}

std::function<int()> declare(CLI::App& app, Console& console) {
  auto flags = std::make_shared<Flags>();
  app.add_option("MODEL", flags->model.path, "an ONNX model")->required();
  app.add_option("-o,--output", flags->output, "default: stdout");
  app.add_option("--steps", flags->steps, "training steps on synthetic data; the last one is traced")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  declare_plan_flags(app, flags->plan);
  declare_model_flags(app, flags->model);
  declare_training_flags(app, flags->model);
  return [flags, &console] { return trace(*flags, console); };
}

}  // namespace

const Verb kTraceVerb = {
    "trace", "Runs training steps and writes what happened when, and the bytes held, for Perfetto.", declare};

}  // namespace neaptide::cli
