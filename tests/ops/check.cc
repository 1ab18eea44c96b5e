#include "check.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "neaptide/autodiff/autodiff.hpp"
#include "neaptide/base/errors.hpp"
#include "neaptide/graph/verify.hpp"
#include "neaptide/ops/ops.hpp"

namespace neaptide::ops {
namespace {

using graph::Builder;
using graph::DType;
using graph::Graph;
using graph::Implementation;
using graph::Node;
using graph::NodeView;
using graph::OpDef;
using graph::Tensor;
using graph::tensor_of;
using graph::ValueId;

bool real(DType dtype) { return dtype == DType::kF32 || dtype == DType::kF64; }

std::vector<ValueId> declare(Builder& b, const std::vector<Tensor>& inputs) {
  std::vector<ValueId> ids;
  for (std::size_t i = 0; i < inputs.size(); ++i) ids.push_back(b.input(fmt::format("in{}", i), inputs[i].type));
  return ids;
}

Feeds feeds_of(const std::vector<ValueId>& ids, const std::vector<Tensor>& tensors) {
  Feeds feeds;
  for (std::size_t i = 0; i < ids.size(); ++i) feeds[ids[i]] = tensors[i];
  return feeds;
}

std::vector<Tensor> all_to(const std::vector<Tensor>& tensors, DType dtype) {
  std::vector<Tensor> result;
  for (const Tensor& t : tensors) result.push_back(to_dtype(t, dtype));
  return result;
}

/// Forward and backward in one graph, with the seeds of the real outputs as further inputs.
struct Problem {
  Graph graph;
  std::vector<ValueId> inputs, outputs, seeds, gradients;
  std::vector<ValueId> seeded;  // outputs with a seed
};

Problem with_gradients(const std::vector<Tensor>& inputs, const MakeOp& make,
                       const std::vector<std::size_t>& constant) {
  Builder b(all());
  Problem p;
  p.inputs = declare(b, inputs);
  p.outputs = make(b, p.inputs);
  for (const ValueId y : p.outputs) {
    const graph::TensorType type = b.graph().values[y].type;
    if (!real(type.dtype)) continue;
    p.seeded.push_back(y);
    p.seeds.push_back(b.input(fmt::format("seed{}", p.seeds.size()), type));
  }
  std::vector<ValueId> wrt;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool skip = std::find(constant.begin(), constant.end(), i) != constant.end();
    if (real(inputs[i].type.dtype) && !skip) wrt.push_back(p.inputs[i]);
  }
  const std::vector<ValueId> found =
      wrt.empty() ? std::vector<ValueId>() : autodiff::append_backward(b, p.seeded, p.seeds, wrt);
  p.gradients.resize(inputs.size());
  for (std::size_t w = 0; w < wrt.size(); ++w) p.gradients[static_cast<std::size_t>(wrt[w].value)] = found[w];
  std::vector<ValueId> outputs = p.outputs;
  for (const ValueId g : found) {
    if (g.valid()) outputs.push_back(g);
  }
  p.graph = b.take(outputs);
  return p;
}

double projection(const Values& values, const Problem& p, const std::vector<Tensor>& seeds) {
  double sum = 0;
  for (std::size_t k = 0; k < p.seeded.size(); ++k) {
    const auto y = values[p.seeded[k]].as<double>(), s = seeds[k].as<double>();
    for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * s[i];
  }
  return sum;
}

Tensor nudged(const Tensor& tensor, std::size_t at, double by) {
  std::vector<double> values = to_doubles(tensor);
  values[at] += by;
  return tensor_of(DType::kF64, tensor.type.shape, values);
}

void expect_finite_differences(const std::vector<Tensor>& inputs, const MakeOp& make, const Problem& p,
                               const Values& values, const std::vector<Tensor>& seeds, const CheckOptions& options) {
  Builder b(all());
  const std::vector<ValueId> ids = declare(b, inputs);
  Problem forward{.graph = {}, .inputs = ids, .outputs = make(b, ids), .seeds = {}, .gradients = {}, .seeded = {}};
  for (const ValueId y : forward.outputs) {
    if (real(b.graph().values[y].type.dtype)) forward.seeded.push_back(y);
  }
  forward.graph = b.take(forward.outputs);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!p.gradients[i].valid()) continue;
    const auto gradient = values[p.gradients[i]].as<double>();
    for (std::size_t e = 0; e < gradient.size(); ++e) {
      std::vector<Tensor> more = inputs, less = inputs;
      more[i] = nudged(inputs[i], e, options.step);
      less[i] = nudged(inputs[i], e, -options.step);
      const double up = projection(interpret(forward.graph, all(), feeds_of(ids, more)), forward, seeds);
      const double down = projection(interpret(forward.graph, all(), feeds_of(ids, less)), forward, seeds);
      const double difference = (up - down) / (2 * options.step);
      EXPECT_NEAR(gradient[e], difference, options.tolerance * (1 + std::abs(difference)))
          << "gradient of input " << i << ", element " << e;
    }
  }
}

void expect_work(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    const OpDef& op = all().at(node.op);
    ASSERT_NE(op.work, nullptr) << node.op;
    const graph::Work work = op.work(NodeView(graph, node));
    EXPECT_GE(work.flops, 0) << node.op;
    if (op.renames.empty()) {
      EXPECT_GT(work.bytes, 0) << node.op;
    }
  }
}

}  // namespace

Tensor random_tensor(const graph::Shape& shape, unsigned seed, double low, double high) {
  std::mt19937 generator(seed);
  std::vector<double> values(static_cast<std::size_t>(graph::n_elements(shape)));
  for (double& v : values) v = low + (high - low) * (static_cast<double>(generator()) / 4294967296.0);
  return reals(shape, values);
}

Tensor integers(const graph::Shape& shape, const std::vector<std::int64_t>& values) {
  return tensor_of(DType::kI64, shape, values);
}

Tensor reals(const graph::Shape& shape, const std::vector<double>& values) {
  return tensor_of(DType::kF64, shape, values);
}

std::vector<double> to_doubles(const Tensor& tensor) {
  const auto convert = [](auto values) {
    std::vector<double> result;
    for (const auto v : values) result.push_back(static_cast<double>(v));
    return result;
  };
  switch (tensor.type.dtype) {
    case DType::kF32:
      return convert(tensor.as<float>());
    case DType::kF64:
      return convert(tensor.as<double>());
    case DType::kI64:
      return convert(tensor.as<std::int64_t>());
    case DType::kI32:
      return convert(tensor.as<std::int32_t>());
    case DType::kBool:
    case DType::kU8:
      return convert(tensor.as<std::uint8_t>());
  }
  return {};
}

Tensor to_dtype(const Tensor& tensor, DType dtype) {
  if (!real(tensor.type.dtype)) return tensor;
  const std::vector<double> values = to_doubles(tensor);
  if (dtype == DType::kF64) return reals(tensor.type.shape, values);
  return tensor_of(DType::kF32, tensor.type.shape, std::vector<float>(values.begin(), values.end()));
}

void expect_close(const Tensor& actual, const Tensor& expected, double tolerance, const std::string& what) {
  ASSERT_EQ(to_string(actual.type), to_string(expected.type)) << what;
  ASSERT_NE(actual.data, nullptr) << what;
  const std::vector<double> a = to_doubles(actual), e = to_doubles(expected);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(e[i])) continue;
    ASSERT_LE(std::abs(a[i] - e[i]), tolerance * (1 + std::abs(e[i])))
        << what << ", element " << i << ": " << a[i] << " against " << e[i];
  }
}

Values expect_implementations_agree(const Graph& graph, const Feeds& feeds, double tolerance) {
  Values values(graph.values.size());
  for (const auto& [id, tensor] : graph.data) values[id] = tensor;
  for (const auto& [id, tensor] : feeds) values[id] = tensor;
  for (const Node& node : graph.nodes) {
    const NodeView view(graph, node);
    const OpDef& op = all().at(node.op);
    for (const auto& [k, i] : op.renames) {
      values[node.outputs[static_cast<std::size_t>(k)]] = {view.output(static_cast<std::size_t>(k)),
                                                           values[node.inputs[static_cast<std::size_t>(i)]].data};
    }
    if (!op.renames.empty()) continue;
    std::vector<Tensor> inputs(node.inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (node.inputs[i].valid()) inputs[i] = values[node.inputs[i]];
    }
    for (const Implementation& implementation : op.implementations(view)) {
      const std::string what = node.name + " (" + node.op + "), implementation " + implementation.spec.name;
      const std::vector<Tensor> outputs = run_node(view, op, implementation, inputs);
      for (std::size_t k = 0; k < outputs.size(); ++k) {
        if (!outputs[k].data) continue;
        Tensor& first = values[node.outputs[k]];
        if (!first.data)
          first = outputs[k];
        else if (tolerance == 0)
          EXPECT_EQ(outputs[k], first) << what << ", output " << k;
        else
          expect_close(outputs[k], first, tolerance, what + ", output " + std::to_string(k));
      }
    }
    for (const ValueId v : node.outputs) {
      if (!v.valid()) continue;
      EXPECT_NE(values[v].data, nullptr) << node.name << " has an output that no implementation writes";
    }
  }
  return values;
}

void check_op(const std::vector<Tensor>& inputs, const MakeOp& make, const CheckOptions& options) {
  const Problem p = with_gradients(inputs, make, options.constant);
  std::vector<Tensor> seeds;
  for (std::size_t k = 0; k < p.seeded.size(); ++k)
    seeds.push_back(random_tensor(p.graph.values[p.seeded[k]].type.shape, 1000 + static_cast<unsigned>(k)));
  Feeds feeds = feeds_of(p.inputs, inputs);
  feeds.merge(feeds_of(p.seeds, seeds));
  const Values values = expect_implementations_agree(p.graph, feeds, options.implementations);
  expect_work(p.graph);
  expect_finite_differences(inputs, make, p, values, seeds, options);

  const Problem q = with_gradients(all_to(inputs, DType::kF32), make, options.constant);
  Feeds feeds_f32 = feeds_of(q.inputs, all_to(inputs, DType::kF32));
  feeds_f32.merge(feeds_of(q.seeds, all_to(seeds, DType::kF32)));
  const Values values_f32 = expect_implementations_agree(q.graph, feeds_f32, options.f32_tolerance);
  for (std::size_t k = 0; k < p.outputs.size(); ++k) {
    const Tensor& expected = values[p.outputs[k]];
    expect_close(to_dtype(values_f32[q.outputs[k]], DType::kF64), expected, options.f32_tolerance,
                 fmt::format("output {} in f32", k));
  }
  for (std::size_t i = 0; i < p.gradients.size(); ++i) {
    ASSERT_EQ(p.gradients[i].valid(), q.gradients[i].valid());
    if (p.gradients[i].valid())
      expect_close(to_dtype(values_f32[q.gradients[i]], DType::kF64), values[p.gradients[i]], options.f32_tolerance,
                   fmt::format("gradient of input {} in f32", i));
  }
}

std::vector<Tensor> evaluate(const std::vector<Tensor>& inputs, const MakeOp& make) {
  Builder b(all());
  const std::vector<ValueId> ids = declare(b, inputs);
  const std::vector<ValueId> outputs = make(b, ids);
  const Graph graph = b.take(outputs);
  const Values values = interpret(graph, all(), feeds_of(ids, inputs));
  std::vector<Tensor> result;
  for (const ValueId v : outputs) result.push_back(values[v]);
  return result;
}

std::string refusal(const std::vector<Tensor>& inputs, const MakeOp& make) {
  try {
    Builder b(all());
    make(b, declare(b, inputs));
    return "";
  } catch (const UserError& e) {
    return e.what();
  }
}

}  // namespace neaptide::ops
