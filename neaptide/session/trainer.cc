#include "neaptide/session/trainer.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <utility>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/files.hpp"

namespace neaptide::session {

namespace {

using Clock = std::chrono::steady_clock;

template <class T>
T read_scalar(const runtime::Program& program, graph::ValueId value) {
  T out{};
  program.read(value, std::as_writable_bytes(std::span(&out, 1)));
  return out;
}

/// Constants stay: they are in no checkpoint.
void forget_weights(graph::Graph& graph) {
  std::erase_if(graph.data,
                [&](const auto& entry) { return graph.values[entry.first].kind != graph::ValueKind::kConstant; });
}

}  // namespace

DataSet synthetic_for(const TrainingModel& m, std::int64_t n, std::uint64_t seed) {
  const graph::Graph& g = m.prepared.graph;
  const graph::Shape& shape = g.values[m.inputs.front()].type.shape;
  SyntheticOptions s;
  s.n = n;
  s.sample.assign(shape.begin() + 1, shape.end());
  s.classes = m.classes;
  s.n_target = m.classes > 0 ? 0 : g.values[m.labels].type.elements() / m.batch;
  s.seed = seed;
  return synthetic(s);
}

Trainer::Trainer(TrainingModel model, TrainerOptions options) : model_(std::move(model)), options_(std::move(options)) {
  compile();
  forget_weights(model_.prepared.graph);
  forget_weights(model_.forward);
}

void Trainer::compile() {
  runtime::ProgramOptions o;
  o.strict = options_.strict;
  o.trace = options_.trace;
  program_.emplace(model_.prepared.compile(o));
}

StepReport Trainer::step(const Batch& batch) {
  StepReport r;
  r.rate = options_.schedule.at(step_);
  const std::array<std::int64_t, 2> rng = {static_cast<std::int64_t>(options_.seed), step_};
  program_->write(model_.inputs.front(), batch.sample_bytes());
  program_->write(model_.labels, batch.label_bytes());
  program_->write(model_.lr, std::as_bytes(std::span(&r.rate, 1)));
  if (model_.rng.valid()) program_->write(model_.rng, std::as_bytes(std::span(rng)));
  const runtime::StepResult result = program_->run();
  r.seconds = result.seconds;
  r.measured_peak = result.measured_peak;
  r.loss = read_scalar<float>(*program_, model_.loss);
  if (model_.correct.valid()) r.correct = read_scalar<std::int64_t>(*program_, model_.correct);
  largest_peak_ = std::max(largest_peak_, r.measured_peak);
  ++step_;
  return r;
}

void Trainer::check(const DataSet& data) const {
  const graph::Graph& g = model_.prepared.graph;
  if (model_.inputs.size() != 1) {
    throw UserError("the model has {} inputs; a data set feeds one", model_.inputs.size());
  }
  const graph::Value& input = g.values[model_.inputs.front()];
  if (input.type.dtype != graph::DType::kF32) {
    throw UserError("input '{}' is {}; a data set feeds f32", input.name, to_string(input.type));
  }
  if (input.type.elements() != checked_mul(model_.batch, data.sample_elements())) {
    throw UserError("the samples of '{}' are {}, but input '{}' is {} (batch {})", data.name,
                    graph::to_string(data.sample), input.name, graph::to_string(input.type.shape), model_.batch);
  }
  if (model_.classes > 0 && (data.labels.empty() || data.classes > model_.classes)) {
    throw UserError("the data set '{}' has {} classes, but the model scores {}", data.name, data.classes,
                    model_.classes);
  }
  const std::int64_t target = g.values[model_.labels].type.elements();
  if (model_.classes == 0 && target != checked_mul(model_.batch, data.n_target)) {
    throw UserError("the targets of '{}' have {} elements, but the model's output has {}", data.name, data.n_target,
                    target / model_.batch);
  }
}

void Trainer::account(const Batch& batch, const StepReport& r) {
  if (!std::isfinite(r.loss)) {
    const std::string kept = options_.checkpoint.empty()
                                 ? "nothing was saved"
                                 : fmt::format("the last checkpoint in '{}' is kept", options_.checkpoint);
    throw UserError("the loss is {} at step {} (epoch {}, learning rate {}); {}; a smaller --lr or a warm-up may help",
                    r.loss, step_ - 1, cursor_.epoch + 1, r.rate, kept);
  }
  means_.loss_sum += static_cast<double>(r.loss);
  means_.steps += 1;
  means_.correct += r.correct;
  means_.samples += batch.n_real;
}

Outcome Trainer::run(const DataSet& data) {
  check(data);
  StreamOptions s;
  s.batch = model_.batch;
  s.seed = options_.seed;
  s.begin = cursor_;
  s.n_epochs = options_.n_epochs;
  BatchStream stream(data, s);
  TrainProgress p;
  p.n_epochs = options_.n_epochs;
  p.steps_per_epoch = batches_per_epoch(data.n, model_.batch, true);
  Clock::time_point begin = Clock::now();
  std::int64_t since_begin = 0;
  while (step_ < options_.most_steps) {
    const Batch* batch = stream.next();
    if (batch == nullptr) break;
    p.last = step(*batch);
    account(*batch, p.last);
    p.epoch = cursor_.epoch;
    cursor_ = batch->after;
    p.step = step_;
    p.step_of_epoch = means_.steps;
    p.means = means_;
    p.ends_epoch = batch->ends_epoch;
    since_begin += batch->n_real;
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    p.samples_per_second = static_cast<double>(since_begin) / std::max(seconds, 1e-9);
    if (batch->ends_epoch) means_ = {};
    const bool due = options_.checkpoint_every > 0 && step_ % options_.checkpoint_every == 0;
    if (batch->ends_epoch || due) save();
    const bool go_on = !options_.progress || options_.progress(p);
    if (!go_on) {
      if (!batch->ends_epoch && !due) save();
      return Outcome::kInterrupted;
    }
    if (batch->ends_epoch) {
      begin = Clock::now();
      since_begin = 0;
    }
  }
  save();
  return Outcome::kFinished;
}

std::vector<std::pair<std::string, graph::Tensor>> Trainer::read_state() const {
  std::vector<std::pair<std::string, graph::Tensor>> out;
  for (const graph::ValueId v : model_.persistent) {
    out.emplace_back(model_.prepared.graph.values[v].name, program_->read(v));
  }
  return out;
}

void Trainer::write_state(const std::vector<std::pair<std::string, graph::Tensor>>& tensors) {
  std::map<std::string, const graph::Tensor*> by_name;
  for (const auto& [name, tensor] : tensors) by_name[name] = &tensor;
  for (const graph::ValueId v : model_.persistent) {
    const graph::Value& value = model_.prepared.graph.values[v];
    const auto found = by_name.find(value.name);
    if (found == by_name.end()) {
      throw UserError("the checkpoint has no tensor '{}'; is it of another model or optimizer?", value.name);
    }
    if (found->second->type != value.type) {
      throw UserError("tensor '{}' of the checkpoint is {}; the model has {}", value.name,
                      to_string(found->second->type), to_string(value.type));
    }
    program_->write(v, *found->second->data);
  }
}

void Trainer::restore(const Checkpoint& c) {
  write_state(c.tensors);
  options_.seed = c.seed;
  step_ = c.step;
  cursor_ = c.cursor;
  means_ = c.means;
}

Checkpoint Trainer::progress_only() const {
  Checkpoint c;
  c.seed = options_.seed;
  c.step = step_;
  c.cursor = cursor_;
  c.means = means_;
  c.options = options_.recorded;
  plan::Plan plan = model_.prepared.plan;
  plan.seconds_spent = 0;  // the same run gives the same file
  c.plan = plan::to_json(model_.prepared.lowered.problem, plan);
  return c;
}

Checkpoint Trainer::checkpoint() const {
  Checkpoint c = progress_only();
  c.tensors = read_state();
  return c;
}

void Trainer::save() const {
  if (options_.checkpoint.empty()) return;
  TensorWriter w;
  for (const graph::ValueId v : model_.persistent) {
    const graph::Value& value = model_.prepared.graph.values[v];
    w.tensors.emplace_back(value.name, value.type);
  }
  w.fill = [this](std::size_t i, std::span<std::byte> out) { program_->read(model_.persistent[i], out); };
  write_file_atomically(options_.checkpoint, to_safetensors(progress_only(), std::move(w)));
}

TrainingModel Trainer::release() && {
  program_.reset();
  return std::move(model_);
}

graph::Graph Trainer::trained() const { return with_weights(model_.forward, read_state()); }

void Trainer::without_arena(const std::function<void(const graph::Graph&)>& action) {
  const auto state = read_state();
  program_.reset();
  action(with_weights(model_.forward, state));
  compile();
  write_state(state);
}

}  // namespace neaptide::session
