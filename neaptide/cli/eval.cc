// neaptide eval: accuracy and loss of a model on data.
#include "neaptide/cli/interrupt.hpp"
#include "neaptide/cli/model_flags.hpp"
#include "neaptide/cli/plan_text.hpp"

namespace neaptide::cli {

namespace {

struct Flags {
  ModelFlags model;
  PlanFlags plan;
  std::string data = "fashion-mnist", part = "test";
  bool strict = false;
};

session::Part part_of(const std::string& word) {
  if (word == "train") return session::Part::kTrain;
  if (word == "test") return session::Part::kTest;
  throw UserError("there is no part '{}' of a data set; it is train or test", word);
}

int evaluate(const Flags& flags, Console& console) {
  const session::DataSet data = session::open_data(flags.data, part_of(flags.part));
  const session::ModelOptions options = options_of(flags.model, flags.plan, console);
  session::InferenceModel model = session::make_inference_model(load(flags.model, options), options);
  session::choose_plan(model.prepared, flags.plan.budgets, options);
  console.end_progress();
  if (!model.prepared.feasible()) {
    show_plan(console, model.prepared.lowered.problem, model.prepared.plan);
    return exit_of(model.prepared.plan);
  }
  const InterruptFlag interrupt;
  session::Evaluator evaluator(std::move(model), {.strict = flags.strict, .trace = false});
  const session::Evaluation r = evaluator.evaluate(data, [&](std::int64_t done, std::int64_t total) {
    console.progress(
        fmt::format("evaluating {} {}/{}", bar(static_cast<double>(done) / static_cast<double>(total)), done, total),
        false);
    return !InterruptFlag::raised();
  });
  console.end_progress();
  const Json root{{"accuracy", r.accuracy()},
                  {"loss", r.loss},
                  {"samples", r.samples},
                  {"correct", r.correct},
                  {"seconds", r.seconds},
                  {"images_per_second", static_cast<double>(r.samples) / r.seconds},
                  {"planned_bytes", r.planned_peak},
                  {"measured_bytes", r.measured_peak},
                  {"arena_bytes", r.arena},
                  {"process_bytes", session::peak_resident_bytes()}};
  if (console.json) {
    console.value(root);
  } else {
    for (const auto& [key, value] : root.items()) console.data(fmt::format("{:<20}{}\n", key, value.dump()));
  }
  return InterruptFlag::raised() ? kInterrupted : kOk;
}

std::function<int()> declare(CLI::App& app, Console& console) {
  auto flags = std::make_shared<Flags>();
  app.add_option("MODEL", flags->model.path, "an ONNX model")->required();
  app.add_option("--data", flags->data, "fashion-mnist, a folder of IDX files, or IMAGES,LABELS")
      ->capture_default_str();
  app.add_option("--part", flags->part, "train or test")->capture_default_str();
  app.add_flag("--strict", flags->strict, "poison dead memory and count allocations on every step");
  declare_plan_flags(app, flags->plan);
  declare_model_flags(app, flags->model);
  return [flags, &console] { return evaluate(*flags, console); };
}

}  // namespace

const Verb kEvalVerb = {"eval", "Says how well a model does on data.", declare};

}  // namespace neaptide::cli
