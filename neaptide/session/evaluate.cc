#include "neaptide/session/evaluate.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "neaptide/base/errors.hpp"

namespace neaptide::session {

namespace {

/// -log of the probability that `scores` give to `label`.
double cross_entropy(std::span<const float> scores, std::size_t label, bool probabilities) {
  if (probabilities) return -std::log(std::max(static_cast<double>(scores[label]), 1e-45));
  const auto highest = static_cast<double>(*std::max_element(scores.begin(), scores.end()));
  double sum = 0;
  for (const float s : scores) sum += std::exp(static_cast<double>(s) - highest);
  return std::log(sum) + highest - static_cast<double>(scores[label]);
}

double mean_squared_error(std::span<const float> output, std::span<const float> target) {
  double sum = 0;
  for (std::size_t i = 0; i < output.size(); ++i) {
    const double d = static_cast<double>(output[i]) - static_cast<double>(target[i]);
    sum += d * d;
  }
  return sum / static_cast<double>(output.size());
}

bool ends_in_softmax(const graph::Graph& graph, graph::ValueId output) {
  while (graph.values[output].producer.valid()) {
    const graph::Node& node = graph.nodes[graph.values[output].producer];
    if (node.op == "Softmax") return true;
    if (node.op != "Reorder") return false;
    output = node.inputs.front();
  }
  return false;
}

}  // namespace

Evaluator::Evaluator(InferenceModel model, const runtime::ProgramOptions& options)
    : model_(std::move(model)), program_(model_.prepared.compile(options)) {
  graph::Graph& g = model_.prepared.graph;
  probabilities_ = ends_in_softmax(g, model_.output);
  if (model_.inputs.size() != 1) throw UserError("the model has {} inputs; only one can be fed", model_.inputs.size());
  const graph::Value& input = g.values[model_.inputs.front()];
  const graph::Value& output = g.values[model_.output];
  for (const graph::Value* v : {&input, &output}) {
    if (v->type.dtype != graph::DType::kF32) throw UserError("'{}' is {}; it must be f32", v->name, to_string(v->type));
  }
  g.data.clear();
}

void Evaluator::check(const DataSet& data) const {
  const graph::Graph& g = model_.prepared.graph;
  const graph::Value& input = g.values[model_.inputs.front()];
  const graph::Value& output = g.values[model_.output];
  if (input.type.elements() != checked_mul(model_.batch, data.sample_elements())) {
    throw UserError("the samples of '{}' are {}, but input '{}' is {} (batch {})", data.name,
                    graph::to_string(data.sample), input.name, graph::to_string(input.type.shape), model_.batch);
  }
  const std::int64_t width = output.type.elements() / model_.batch;
  if (!data.labels.empty() && data.classes > width) {
    throw UserError("the data set '{}' has {} classes, but the model scores {}", data.name, data.classes, width);
  }
  if (data.labels.empty() && data.n_target != width) {
    throw UserError("the targets of '{}' have {} elements, but the model's output has {}", data.name, data.n_target,
                    width);
  }
}

std::vector<float> Evaluator::infer(std::span<const float> batch) {
  program_.write(model_.inputs.front(), std::as_bytes(batch));
  measured_peak_ = std::max(measured_peak_, program_.run().measured_peak);
  std::vector<float> out(static_cast<std::size_t>(model_.prepared.graph.values[model_.output].type.elements()));
  program_.read(model_.output, std::as_writable_bytes(std::span(out)));
  return out;
}

Evaluation Evaluator::evaluate(const DataSet& data, const std::function<bool(std::int64_t, std::int64_t)>& progress) {
  check(data);
  const auto begin = std::chrono::steady_clock::now();
  StreamOptions s;
  s.batch = model_.batch;
  s.shuffle = false;
  s.drop_last = false;
  BatchStream stream(data, s);
  Evaluation r;
  double loss = 0;
  while (const Batch* batch = stream.next()) {
    const std::vector<float> out = infer(batch->samples);
    const std::size_t width = out.size() / static_cast<std::size_t>(model_.batch);
    for (std::size_t i = 0; i < static_cast<std::size_t>(batch->n_real); ++i) {
      const std::span<const float> row = std::span(out).subspan(i * width, width);
      if (batch->labels.empty()) {
        loss += mean_squared_error(row, std::span(batch->targets).subspan(i * width, width));
        continue;
      }
      const auto label = static_cast<std::size_t>(batch->labels[i]);
      loss += cross_entropy(row, label, probabilities_);
      r.correct += std::max_element(row.begin(), row.end()) - row.begin() == batch->labels[i] ? 1 : 0;
    }
    r.samples += batch->n_real;
    if (progress && !progress(r.samples, data.n)) break;
  }
  r.loss = loss / static_cast<double>(r.samples);
  r.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  r.planned_peak = program_.planned_peak();
  r.measured_peak = measured_peak_;
  r.arena = program_.arena_bytes();
  return r;
}

}  // namespace neaptide::session
