// Whole training runs against PyTorch (tests/fixtures/make_math_fixtures.py): two models, five optimizers, 20 steps.
#include <gtest/gtest.h>

#include "../ops/check.hpp"
#include "neaptide/autodiff/autodiff.hpp"
#include "neaptide/base/files.hpp"
#include "neaptide/base/json.hpp"
#include "neaptide/ops/ops.hpp"

namespace neaptide::autodiff {
namespace {

using graph::Builder;
using graph::DType;
using graph::Graph;
using graph::Shape;
using graph::Tensor;
using graph::ValueId;
using Ints = std::vector<std::int64_t>;

Tensor tensor_from(const Json& j, DType dtype) {
  const auto shape = j["shape"].get<Shape>();
  if (j.contains("dtype")) return ops::integers(shape, j["values"].get<Ints>());
  return ops::to_dtype(ops::reals(shape, j["values"].get<std::vector<double>>()), dtype);
}

/// Samples first .. first + n of a tensor.
Tensor rows(const Tensor& tensor, std::int64_t first, std::int64_t n) {
  graph::TensorType type = tensor.type;
  const std::int64_t row = type.bytes() / type.shape[0];
  type.shape[0] = n;
  return make_tensor(
      type, std::span(*tensor.data).subspan(static_cast<std::size_t>(first * row), static_cast<std::size_t>(n * row)));
}

using Parameters = std::map<std::string, ValueId>;

ValueId mlp(Builder& b, const Parameters& p, ValueId x) {
  const graph::Attrs transposed{{"transB", std::int64_t{1}}};
  const ValueId h = b.add("Relu", {b.add("Gemm", {x, p.at("w1"), p.at("b1")}, transposed)});
  const ValueId gate = b.add("Sigmoid", {b.add("Gemm", {h, p.at("w2"), p.at("b2")}, transposed)});
  const ValueId sum = b.add("Add", {b.add("Mul", {h, gate}), h});
  return b.add("Gemm", {b.add("Tanh", {sum}), p.at("w3"), p.at("b3")}, transposed);
}

ValueId convnet(Builder& b, const Parameters& p, ValueId x) {
  const graph::Attrs padded{{"pads", Ints{1, 1, 1, 1}}};
  ValueId h = b.add("Conv", {x, p.at("conv1")}, padded);
  h = b.add("BatchNormTrain", {h, p.at("scale"), p.at("shift")}, {{"epsilon", 1e-5}, {"activation", "relu"}});
  h = b.add("MaxPool", {h}, {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}});
  h = b.add("Add", {h, b.add("Conv", {h, p.at("conv2"), p.at("bias2")}, padded)}, {{"activation", "relu"}});
  h = b.add("Flatten", {b.add("GlobalAveragePool", {h})});
  return b.add("Gemm", {h, p.at("w"), p.at("b")}, {{"transB", std::int64_t{1}}});
}

Graph forward(const Json& run, DType dtype) {
  Builder b(ops::all());
  Parameters p;
  for (const auto& [name, tensor] : run["start"].items()) p[name] = b.parameter(name, tensor_from(tensor, dtype));
  graph::TensorType type{dtype, run["x"]["shape"].get<Shape>()};
  type.shape[0] = run["batch"].get<std::int64_t>();
  const ValueId x = b.input("x", type);
  return b.take({run["model"] == "mlp" ? mlp(b, p, x) : convnet(b, p, x)});
}

TrainingOptions options_of(const Json& run) {
  const std::map<std::string, Optimizer> optimizers = {{"sgd", Optimizer::kSgd},
                                                       {"momentum", Optimizer::kMomentum},
                                                       {"nesterov", Optimizer::kNesterov},
                                                       {"adam", Optimizer::kAdam},
                                                       {"adamw", Optimizer::kAdamW}};
  TrainingOptions options;
  options.loss = run["loss"] == "cross_entropy" ? Loss::kSoftmaxCrossEntropy : Loss::kMeanSquaredError;
  options.optimizer = optimizers.at(run["optimizer"].get<std::string>());
  options.weight_decay = run["weight_decay"].get<double>();
  return options;
}

/// One run by the interpreter. `choose`: which implementations.
void expect_run(const Json& run, DType dtype, double tolerance, const ops::Choose& choose = {}) {
  const Training t = make_training(forward(run, dtype), ops::all(), options_of(run));
  const Tensor x = tensor_from(run["x"], dtype), target = tensor_from(run["target"], dtype);
  const auto batch = run["batch"].get<std::int64_t>();
  ops::Feeds feeds{{t.lr, tensor_of(DType::kF32, {}, std::vector<float>{run["lr"].get<float>()})}};
  std::vector<double> losses;
  for (std::int64_t step = 0; step < static_cast<std::int64_t>(run["losses"].size()); ++step) {
    const std::int64_t first = step * batch % x.type.shape[0];
    feeds[t.inputs[0]] = rows(x, first, batch);
    feeds[t.labels] = rows(target, first, batch);
    feeds[t.rng] = ops::integers({2}, {0, step});
    const ops::Values values = ops::interpret(t.graph, ops::all(), feeds, choose);
    losses.push_back(ops::to_doubles(values[t.loss])[0]);
    for (auto& [id, tensor] : ops::next_versions(t.graph, ops::all(), values)) feeds[id] = tensor;
  }
  const auto n = static_cast<std::int64_t>(losses.size());
  ops::expect_close(ops::reals({n}, losses), ops::reals({n}, run["losses"].get<std::vector<double>>()), tolerance,
                    "losses");
  for (const auto& [name, tensor] : run["end"].items())
    ops::expect_close(feeds.at(find_value(t.graph, name)), tensor_from(tensor, dtype), tolerance, name);
}

Json runs() {
  const std::string path = NEAPTIDE_SOURCE_DIR "/tests/fixtures/training.json";
  return parse_json(read_file(path), path)["runs"];
}

TEST(TrainingRun, AgreesWithPyTorchInDouble) {
  const Json all = runs();
  ASSERT_GE(all.size(), 9U);
  for (const Json& run : all) {
    SCOPED_TRACE(run["name"].get<std::string>());
    expect_run(run, DType::kF64, 1e-10);
  }
}

TEST(TrainingRun, AgreesWithPyTorchInSinglePrecision) {
  for (const Json& run : runs()) {
    SCOPED_TRACE(run["name"].get<std::string>());
    expect_run(run, DType::kF32, 2e-4);
  }
}

TEST(TrainingRun, AgreesWithTheLastImplementationThatCanRun) {
  // Forward nodes: the last implementation, which writes masks and statistics; backward nodes: the last one, which
  // reads them where there are any.
  const ops::Choose last = [](const graph::NodeView&, const std::vector<graph::Implementation>& list) {
    return static_cast<int>(list.size()) - 1;
  };
  for (const Json& run : runs()) {
    SCOPED_TRACE(run["name"].get<std::string>());
    expect_run(run, DType::kF64, 1e-10, last);
  }
}

}  // namespace
}  // namespace neaptide::autodiff
