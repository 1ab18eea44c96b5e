// neaptide train: the main job.
#include <chrono>
#include <filesystem>

#include "neaptide/cli/interrupt.hpp"
#include "neaptide/cli/model_flags.hpp"
#include "neaptide/cli/plan_text.hpp"
#include "neaptide/cli/recorded.hpp"

namespace neaptide::cli {

namespace {

using Clock = std::chrono::steady_clock;

struct Flags {
  ModelFlags model;
  PlanFlags plan;
  std::string data = "fashion-mnist", test, save, resume, trace, trained, schedule = "constant";
  double rate = 0.01;
  std::int64_t epochs = 1, steps = 0, warmup = 0, save_every = 0, eval_every = 0;
  bool strict = false, no_eval = false;
  Recorded recorded;
};

/// What decides the bits of the result, and so must be the same after a resume.
Recorded recorded_options(Flags& f) {
  Recorded r;
  r.add("--data", f.data);
  r.add("--batch", f.model.batch);
  r.add("--backend", f.model.backend);
  r.add("--threads", f.model.threads);
  r.add("--optimizer", f.model.optimizer);
  r.add("--loss", f.model.loss);
  r.add("--momentum", f.model.momentum);
  r.add("--weight-decay", f.model.weight_decay);
  r.add("--beta1", f.model.beta1);
  r.add("--beta2", f.model.beta2);
  r.add("--epsilon", f.model.epsilon);
  r.add("--freeze", f.model.frozen);
  r.add("--lr", f.rate);
  r.add("--schedule", f.schedule);
  r.add("--warmup", f.warmup);
  r.add("--epochs", f.epochs);
  r.add("--seed", f.plan.seed);
  r.add("--budget", f.plan.budgets);
  r.add("--planner", f.plan.planner);
  r.add("--pinned", f.plan.pinned);
  return r;
}

std::string default_checkpoint(const std::string& model) {
  return std::filesystem::path(model).stem().string() + ".checkpoint.safetensors";
}

/// One training job, from flags to result.
class Job {
 public:
  Job(Flags& flags, const CLI::App& app, Console& console) : f_(flags), console_(console) {
    idle_ = session::resident_bytes();
    if (!f_.resume.empty()) {
      start_ = session::load_checkpoint(f_.resume);
      f_.recorded.take_over(start_->options, app);
    }
    if (f_.save.empty()) f_.save = f_.resume.empty() ? default_checkpoint(f_.model.path) : f_.resume;
  }

  int run();

 private:
  bool prepare();
  void open_data();
  session::TrainerOptions trainer_options();
  bool on_progress(const session::TrainProgress& p);
  void evaluate(const graph::Graph& trained);
  void finish();
  Json result() const;

  Flags& f_;
  Console& console_;
  InterruptFlag interrupt_;
  std::optional<session::Checkpoint> start_;
  session::ModelOptions options_;
  session::TrainingModel model_;
  session::DataSet data_;
  std::optional<session::DataSet> test_;
  std::optional<session::Trainer> trainer_;
  session::TrainProgress last_;
  std::optional<session::Evaluation> evaluation_;
  Bytes keep_all_ = 0, budget_ = 0, planned_ = 0, arena_ = 0, idle_ = 0;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point shown_;
  bool evaluation_due_ = false;
};

bool Job::prepare() {
  options_ = options_of(f_.model, f_.plan, console_);
  if (start_) options_.known_plan = start_->plan;
  graph::Graph g = load(f_.model, options_);
  model_ = session::make_training_model(std::move(g), options_);
  console_.end_progress();
  open_data();
  session::choose_plan(model_.prepared, f_.plan.budgets, options_);
  console_.end_progress();
  options_.known_plan.clear();
  keep_all_ = model_.prepared.keep_all;
  budget_ = model_.prepared.budget.value_or(0);
  if (!model_.prepared.feasible()) return false;
  // From here on the budget is bytes: a resumed run must get the same ones.
  if (model_.prepared.budget) f_.plan.budgets = {std::to_string(*model_.prepared.budget)};
  return true;
}

void Job::open_data() {
  data_ = open_training_data(f_.data, model_, f_.plan.seed);
  const bool parts = f_.data.find(',') == std::string::npos && !f_.data.starts_with("synthetic");
  if (f_.no_eval || (f_.test.empty() && !parts)) return;
  try {
    test_ = session::open_data(f_.test.empty() ? f_.data : f_.test, session::Part::kTest);
  } catch (const UserError& e) {
    if (!f_.test.empty()) throw;
    console_.note(fmt::format("no evaluation at the end: {}", e.what()));
  }
}

session::TrainerOptions Job::trainer_options() {
  session::TrainerOptions t;
  const std::int64_t per_epoch = session::batches_per_epoch(data_.n, model_.batch, true);
  const std::int64_t all = checked_mul(per_epoch, f_.epochs, "the number of steps");
  t.schedule = session::parse_schedule(
      f_.schedule,
      {.rate = f_.rate, .warmup = f_.warmup, .total = all, .steps_per_epoch = std::max<std::int64_t>(1, per_epoch)});
  t.seed = f_.plan.seed;
  t.n_epochs = f_.epochs;
  if (f_.steps > 0) t.most_steps = f_.steps;
  t.strict = f_.strict;
  t.trace = !f_.trace.empty();
  t.checkpoint = f_.save;
  t.checkpoint_every = f_.save_every;
  t.recorded = f_.recorded.texts();
  t.progress = [this](const session::TrainProgress& p) { return on_progress(p); };
  return t;
}

bool Job::on_progress(const session::TrainProgress& p) {
  last_ = p;
  const bool due = Clock::now() - shown_ > std::chrono::milliseconds(100);
  if (due || p.ends_epoch) {
    shown_ = Clock::now();
    const double share = static_cast<double>(p.step_of_epoch) / static_cast<double>(p.steps_per_epoch);
    const std::string accuracy = model_.classes > 0 || p.last.correct > 0 || p.means.correct > 0
                                     ? fmt::format("  accuracy {:.4f}", p.means.accuracy())
                                     : "";
    console_.progress(fmt::format("epoch {}/{} {} {}/{}  loss {:.4f}{}  {:.0f} images/s  peak {}", p.epoch + 1,
                                  p.n_epochs, bar(share), p.step_of_epoch, p.steps_per_epoch, p.means.loss(), accuracy,
                                  p.samples_per_second, format_bytes(p.last.measured_peak)),
                      p.ends_epoch);
  }
  evaluation_due_ = p.ends_epoch && f_.eval_every > 0 && (p.epoch + 1) % f_.eval_every == 0 && p.epoch + 1 < p.n_epochs;
  return !InterruptFlag::raised() && !evaluation_due_;
}

void Job::evaluate(const graph::Graph& trained) {
  session::InferenceModel m = session::make_inference_model(trained, options_);
  session::choose_plan(m.prepared, f_.plan.budgets, options_);
  console_.end_progress();
  if (!m.prepared.feasible()) {
    console_.note("no evaluation: no plan of the inference graph fits the budget");
    return;
  }
  session::Evaluator evaluator(std::move(m));
  evaluation_ = evaluator.evaluate(*test_, [this](std::int64_t done, std::int64_t total) {
    console_.progress(
        fmt::format("evaluating {} {}/{}", bar(static_cast<double>(done) / static_cast<double>(total)), done, total),
        false);
    return !InterruptFlag::raised();
  });
  console_.end_progress();
  console_.note(fmt::format("evaluation: accuracy {:.4f}, loss {:.4f} on {} samples", evaluation_->accuracy(),
                            evaluation_->loss, evaluation_->samples));
}

Json Job::result() const {
  Json r{{"epochs", last_.epoch + (last_.ends_epoch ? 1 : 0)},
         {"steps", trainer_->steps_done()},
         {"loss", last_.means.loss()},
         {"train_accuracy", last_.means.accuracy()},
         {"accuracy", evaluation_ ? Json(evaluation_->accuracy()) : Json()},
         {"test_loss", evaluation_ ? Json(evaluation_->loss) : Json()},
         {"budget_bytes", budget_ > 0 ? Json(budget_) : Json()},
         {"keep_all_bytes", keep_all_},
         {"planned_bytes", planned_},
         {"measured_bytes", trainer_->largest_measured_peak()},
         {"arena_bytes", arena_},
         {"evaluation_arena_bytes", evaluation_ ? Json(evaluation_->arena) : Json()},
         {"process_bytes", session::peak_resident_bytes()},
         {"idle_process_bytes", idle_},
         {"images_per_second", last_.samples_per_second},
         {"seconds", std::chrono::duration<double>(Clock::now() - begin_).count()},
         {"checkpoint", f_.save},
         {"trace", f_.trace.empty() ? Json() : Json(f_.trace)},
         {"model", f_.trained.empty() ? Json() : Json(f_.trained)}};
  return r;
}

void Job::finish() {
  if (!f_.trace.empty()) {
    write_file_atomically(f_.trace,
                          session::perfetto_json(trainer_->program(), model_.prepared.machine.devices.empty()
                                                                          ? f_.model.backend + ":0"
                                                                          : model_.prepared.machine.devices[0].name));
  }
  if (!f_.trained.empty()) onnx::save(trainer_->trained(), f_.trained);
  if (test_ && !InterruptFlag::raised()) trainer_->without_arena([this](const graph::Graph& g) { evaluate(g); });
}

int Job::run() {
  if (!prepare()) {
    if (console_.json) {
      console_.data(plan::to_json(model_.prepared.lowered.problem, model_.prepared.plan));
    } else {
      show_plan(console_, model_.prepared.lowered.problem, model_.prepared.plan);
    }
    return exit_of(model_.prepared.plan);
  }
  if (data_.n % model_.batch != 0) {
    console_.note(fmt::format("{} samples of each epoch are left out: {} is no multiple of the batch of {}",
                              data_.n % model_.batch, data_.n, model_.batch));
  }
  const session::TrainerOptions options = trainer_options();
  trainer_.emplace(std::move(model_), options);
  planned_ = trainer_->program().planned_peak();
  arena_ = trainer_->program().arena_bytes();
  console_.note(fmt::format("planned peak {} bytes ({}), arena {} bytes, keep-all {} bytes", planned_,
                            format_bytes(planned_), arena_, keep_all_));
  if (start_) {
    trainer_->restore(*start_);
    console_.note(fmt::format("resumed '{}' after step {}", f_.resume, start_->step));
    start_.reset();
  }
  session::Outcome outcome = trainer_->run(data_);
  while (outcome == session::Outcome::kInterrupted && evaluation_due_ && !InterruptFlag::raised()) {
    if (test_) trainer_->without_arena([this](const graph::Graph& g) { evaluate(g); });
    outcome = trainer_->run(data_);
  }
  if (outcome == session::Outcome::kInterrupted) {
    console_.note(fmt::format("interrupted after step {}; the state is in '{}': go on with --resume {}",
                              trainer_->steps_done(), f_.save, f_.save));
    return kInterrupted;
  }
  finish();
  const Json root = result();
  if (console_.json) {
    console_.value(root);
  } else {
    for (const auto& [key, value] : root.items()) {
      const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
      if (!value.is_null()) console_.data(fmt::format("{:<24}{}\n", key, text));
    }
  }
  return InterruptFlag::raised() ? kInterrupted : kOk;
}

std::function<int()> declare(CLI::App& app, Console& console) {
  auto flags = std::make_shared<Flags>();
  Flags& f = *flags;
  app.add_option("MODEL", f.model.path, "an ONNX model")->required();
  app.add_option("--data", f.data, "fashion-mnist, a folder of IDX files, IMAGES,LABELS, or synthetic[:N]")
      ->capture_default_str();
  app.add_option("--test", f.test, "data to evaluate on; default: the test part of --data");
  app.add_option("--epochs", f.epochs, "times through the data")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--steps", f.steps, "stop after that many steps, over all epochs")->check(CLI::PositiveNumber);
  app.add_option("--lr", f.rate, "learning rate")->capture_default_str();
  app.add_option("--schedule", f.schedule, "constant, cosine or step:EPOCHS:FACTOR")->capture_default_str();
  app.add_option("--warmup", f.warmup, "steps of linear rise")->check(CLI::NonNegativeNumber);
  app.add_option("--save", f.save, "the checkpoint; default: MODEL.checkpoint.safetensors here");
  app.add_option("--save-every", f.save_every, "steps between checkpoints; an epoch's end always")
      ->check(CLI::PositiveNumber);
  app.add_option("--resume", f.resume, "go on from a checkpoint; its options hold unless given anew");
  app.add_option("--eval-every", f.eval_every, "epochs between evaluations; the run's end always")
      ->check(CLI::PositiveNumber);
  app.add_flag("--no-eval", f.no_eval, "no evaluation");
  app.add_flag("--strict", f.strict, "poison dead memory and count allocations on every step");
  app.add_option("--trace", f.trace, "where a Perfetto trace of the last step goes");
  app.add_option("--export", f.trained, "where the trained ONNX model goes");
  declare_plan_flags(app, f.plan);
  declare_model_flags(app, f.model);
  declare_training_flags(app, f.model);
  f.recorded = recorded_options(f);
  return [flags, &app, &console] { return Job(*flags, app, console).run(); };
}

}  // namespace

const Verb kTrainVerb = {"train", "Trains an ONNX model within a budget of bytes.", declare};

}  // namespace neaptide::cli
