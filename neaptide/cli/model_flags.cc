#include "neaptide/cli/model_flags.hpp"

#include <charconv>

namespace neaptide::cli {

void declare_model_flags(CLI::App& app, ModelFlags& f) {
  app.add_option("--weights", f.weights, "a checkpoint or safetensors file whose tensors replace the model's");
  app.add_option("--batch", f.batch, "samples per step; default: the model's own")->check(CLI::PositiveNumber);
  app.add_option("--backend", f.backend, "which device runs it")->capture_default_str();
  app.add_option("--threads", f.threads, "threads; default: all")->check(CLI::Range(1, 1024));
  app.add_option("--costs", f.costs, "file of measured costs; default: the user's cache");
  app.add_flag("--estimate", f.estimate, "costs from the roofline instead of measuring");
}

void declare_training_flags(CLI::App& app, ModelFlags& f) {
  app.add_option("--optimizer", f.optimizer, "sgd, momentum, nesterov, adam or adamw")->capture_default_str();
  app.add_option("--loss", f.loss, "auto, cross-entropy or mean-squared-error")->capture_default_str();
  app.add_option("--momentum", f.momentum, "of momentum and nesterov")->capture_default_str();
  app.add_option("--weight-decay", f.weight_decay, "added to the gradient; decoupled for adamw");
  app.add_option("--beta1", f.beta1, "of adam and adamw")->capture_default_str();
  app.add_option("--beta2", f.beta2, "of adam and adamw")->capture_default_str();
  app.add_option("--epsilon", f.epsilon, "of adam and adamw")->capture_default_str();
  app.add_option("--freeze", f.frozen, "a parameter that is not trained")->allow_extra_args(false);
}

namespace {

autodiff::Optimizer optimizer_of(const std::string& word) {
  if (word == "sgd") return autodiff::Optimizer::kSgd;
  if (word == "momentum") return autodiff::Optimizer::kMomentum;
  if (word == "nesterov") return autodiff::Optimizer::kNesterov;
  if (word == "adam") return autodiff::Optimizer::kAdam;
  if (word == "adamw") return autodiff::Optimizer::kAdamW;
  const std::vector<std::string> known = {"sgd", "momentum", "nesterov", "adam", "adamw"};
  throw UserError("there is no optimizer '{}'{}; there are {}", word, did_you_mean(word, known), join(known, ", "));
}

void set_loss(const std::string& word, session::ModelOptions& o) {
  const std::vector<std::string> known = {"auto", "cross-entropy", "mean-squared-error"};
  o.loss_by_output = word == "auto";
  if (word == "mean-squared-error") o.training.loss = autodiff::Loss::kMeanSquaredError;
  if (std::find(known.begin(), known.end(), word) == known.end()) {
    throw UserError("there is no loss '{}'{}; there are {}", word, did_you_mean(word, known), join(known, ", "));
  }
}

}  // namespace

session::ModelOptions options_of(const ModelFlags& f, const PlanFlags& plan, Console& console) {
  session::ModelOptions o;
  if (f.batch > 0) o.batch = f.batch;
  o.backend = f.backend;
  o.threads = f.threads;
  o.costs = f.costs;
  o.estimate = f.estimate;
  o.training.optimizer = optimizer_of(f.optimizer);
  set_loss(f.loss, o);
  o.training.momentum = f.momentum;
  o.training.weight_decay = f.weight_decay;
  o.training.beta1 = f.beta1;
  o.training.beta2 = f.beta2;
  o.training.epsilon = f.epsilon;
  o.training.frozen = f.frozen;
  o.pinned = plan.pinned;
  o.planner = plan.planner;
  o.plan = options_of(plan, console);
  o.plan.pinned_implementations = false;  // the problem holds the first ones only
  o.note = [&console](std::string_view sentence) { console.note(sentence); };
  o.measuring = [&console](int done, int total) {
    console.progress(
        fmt::format("measuring {} {} of {} operators", bar(static_cast<double>(done) / total), done, total), false);
    if (done == total) console.end_progress();
  };
  return o;
}

graph::Graph load(const ModelFlags& flags, const session::ModelOptions& options) {
  graph::Graph g = session::load_model(flags.path, options);
  if (!flags.weights.empty()) g = session::with_weights(std::move(g), read_weights(flags.weights));
  return g;
}

std::vector<std::pair<std::string, graph::Tensor>> read_weights(const std::string& path) {
  return session::read_tensors(path).tensors;
}

session::DataSet open_training_data(const std::string& what, const session::TrainingModel& model, std::uint64_t seed) {
  if (!what.starts_with("synthetic")) return session::open_data(what, session::Part::kTrain);
  std::int64_t n = 16 * model.batch;
  const std::string rest = what.substr(std::string("synthetic").size());
  if (rest.empty()) return session::synthetic_for(model, n, seed);
  const char* end = rest.data() + rest.size();
  const auto [stop, ec] = std::from_chars(rest.data() + 1, end, n);
  if (rest[0] != ':' || ec != std::errc() || stop != end || n < 1) {
    throw UserError("data '{}' is not synthetic:N with a number of samples", what);
  }
  return session::synthetic_for(model, n, seed);
}

}  // namespace neaptide::cli
