#include "tests/cpu/harness.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>

#include "neaptide/autodiff/autodiff.hpp"
#include "neaptide/autodiff/backward.hpp"
#include "neaptide/base/errors.hpp"
#include "neaptide/ops/ops.hpp"
#include "neaptide/passes/passes.hpp"

namespace neaptide {
namespace {

using graph::Builder;
using graph::DType;
using graph::Graph;
using graph::ImplSpec;
using graph::Node;
using graph::NodeView;
using graph::Tensor;
using graph::ValueId;

constexpr std::size_t kGuard = 64;

/// A buffer at a given distance from a page, NaN everywhere, with a guard behind it.
class Block {
 public:
  Block(Bytes bytes, std::size_t offset) : bytes_(static_cast<std::size_t>(bytes)), offset_(offset) {
    const std::size_t total = (offset + bytes_ + kGuard + 4095) / 4096 * 4096;
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(4096, total)));
    std::memset(memory_.get(), 0xFF, total);
  }
  std::byte* data() const { return memory_.get() + offset_; }
  bool guard_is_whole() const {
    return std::all_of(data() + bytes_, data() + bytes_ + kGuard, [](std::byte b) { return b == std::byte{0xFF}; });
  }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::size_t bytes_, offset_;
  std::unique_ptr<std::byte[], Free> memory_;
};

class Runner {
 public:
  Runner(runtime::Backend& backend, const Graph& graph, const RunOptions& options)
      : backend_(backend), graph_(graph), options_(options), blocks_(graph.values.size()) {}

  std::vector<Tensor> run(const ops::Feeds& feeds) {
    for (std::size_t v = 0; v < graph_.values.size(); ++v) load(ValueId(v), feeds);
    for (const Node& node : graph_.nodes) run_node(node);
    std::vector<Tensor> out;
    for (const ValueId v : graph_.outputs) out.push_back(read(v));
    return out;
  }

 private:
  void load(ValueId v, const ops::Feeds& feeds) {
    const graph::Value& value = graph_.values[v];
    if (value.kind == graph::ValueKind::kTemp) return;
    const auto fed = feeds.find(v);
    const Tensor& tensor = fed != feeds.end() ? fed->second : graph_.data.at(v);
    backend_.from_plain(value, tensor.data->data(), make(v));
  }

  std::byte* make(ValueId v) {
    blocks_[v] = std::make_shared<Block>(graph_.values[v].bytes(), options_.offset);
    return blocks_[v]->data();
  }

  Tensor read(ValueId v) const {
    const graph::Value& value = graph_.values[v];
    std::vector<std::byte> plain(static_cast<std::size_t>(value.type.bytes()));
    backend_.to_plain(value, blocks_[v]->data(), plain.data());
    return graph::make_tensor(value.type, plain);
  }

  bool readable(const Node& node, const ImplSpec& spec) const {
    return std::all_of(spec.reads.begin(), spec.reads.end(),
                       [&](int i) { return blocks_[node.inputs[static_cast<std::size_t>(i)]] != nullptr; });
  }

  void run_node(const Node& node) {
    const NodeView view(graph_, node);
    const graph::OpDef& op = ops::all().at(node.op);
    for (const auto& [output, input] : op.renames)
      blocks_[node.outputs[static_cast<std::size_t>(output)]] = blocks_[node.inputs[static_cast<std::size_t>(input)]];
    if (!op.renames.empty()) return;
    const runtime::Offer offer = backend_.offer(view);
    if (offer.impls.empty()) throw InternalError("{} ({}): {}", node.name, node.op, offer.why_not);
    const ImplSpec* spec = &offer.impls[std::min(options_.implementation, offer.impls.size() - 1)];
    for (std::size_t i = 0; !readable(node, *spec) && i < offer.impls.size(); ++i) spec = &offer.impls[i];
    if (!readable(node, *spec)) throw InternalError("{} ({}) reads a value that nothing wrote", node.name, node.op);
    execute(view, *spec);
  }

  void execute(const NodeView& view, const ImplSpec& spec) {
    const Node& node = view.node();
    std::vector<const void*> inputs(node.inputs.size(), nullptr);
    std::vector<void*> outputs(node.outputs.size(), nullptr);
    for (const int i : spec.reads)
      inputs[static_cast<std::size_t>(i)] = blocks_[node.inputs[static_cast<std::size_t>(i)]]->data();
    for (const int k : spec.writes)
      outputs[static_cast<std::size_t>(k)] = make(node.outputs[static_cast<std::size_t>(k)]);
    for (const auto& [i, k] : spec.in_place) copy_over(node, i, k, inputs, outputs);
    for (const auto& [k, i] : ops::all().at(node.op).overwrites) copy_over(node, i, k, inputs, outputs);
    const Block workspace(spec.workspace, options_.offset);
    backend_.make_kernel(view, spec)->run({.inputs = inputs, .outputs = outputs, .workspace = workspace.data()});
    EXPECT_TRUE(workspace.guard_is_whole()) << node.name << " (" << spec.name << ") writes past its workspace";
    for (const int k : spec.writes) {
      const auto& block = blocks_[node.outputs[static_cast<std::size_t>(k)]];
      EXPECT_TRUE(block->guard_is_whole()) << node.name << " (" << spec.name << ") writes past output " << k;
    }
  }

  /// The kernel gets the output's buffer as its input as well.
  void copy_over(const Node& node, int i, int k, std::vector<const void*>& inputs, const std::vector<void*>& outputs) {
    const auto from = static_cast<std::size_t>(i), to = static_cast<std::size_t>(k);
    if (to >= outputs.size() || outputs[to] == nullptr) return;
    std::memcpy(outputs[to], inputs[from], static_cast<std::size_t>(graph_.values[node.inputs[from]].bytes()));
    inputs[from] = outputs[to];
  }

  runtime::Backend& backend_;
  const Graph& graph_;
  RunOptions options_;
  IdVector<struct graph::ValueTag, std::shared_ptr<Block>> blocks_;
};

bool real(DType dtype) { return dtype == DType::kF64 || dtype == DType::kF32; }

struct Problem {
  Graph graph;
  ops::Feeds feeds;  // by the ids of `graph`
};

ValueId blocked(Builder& b, ValueId x) {
  const graph::TensorType type = b.graph().values[x].type;
  const std::size_t rank = type.shape.size();
  if (rank < 3 || rank > 5 || type.dtype != DType::kF32) return x;
  static constexpr const char* kTags[] = {"aBc16b", "aBcd16b", "aBcde16b"};
  const ValueId y = b.add("Reorder", {x});
  const std::int64_t channels = (type.shape[1] + 15) / 16 * 16;
  b.graph().values[y].format = {kTags[rank - 3], type.bytes() / type.shape[1] * channels};
  return y;
}

Problem build(DType dtype, const std::vector<Tensor>& inputs, const ops::MakeOp& make, const ConformOptions& options) {
  Builder b(ops::all());
  ops::Feeds feeds;
  std::vector<ValueId> ids, wrt;
  const auto feed = [&](const std::string& name, const Tensor& tensor) {
    const ValueId id = b.input(name, tensor.type);
    feeds.emplace(id, tensor);
    return id;
  };
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool is_real = real(inputs[i].type.dtype);
    const Tensor tensor = is_real ? ops::to_dtype(inputs[i], dtype) : inputs[i];
    const std::string name = fmt::format("x{}", i);
    ids.push_back(i == 0 || !is_real ? feed(name, tensor) : b.parameter(name, tensor));
    if (is_real) wrt.push_back(ids.back());
    if (i == 0 && options.blocked && dtype == DType::kF32) ids[0] = blocked(b, ids[0]);
  }
  std::vector<ValueId> outputs = make(b, ids);
  if (options.fused) {
    ensure(!options.gradients, "fusing comes before the gradients");
    return {passes::fuse_activations(b.take(outputs), ops::all()), feeds};
  }
  if (options.gradients) {
    const ValueId y = outputs.front();
    const Tensor seed = ops::to_dtype(ops::random_tensor(b.graph().values[y].type.shape, 77), dtype);
    const std::vector<ValueId> gradients = autodiff::append_backward(b, {y}, {feed("seed", seed)}, wrt);
    for (const ValueId g : gradients) {
      if (g.valid()) outputs.push_back(g);
    }
  }
  return {b.take(outputs), feeds};
}

}  // namespace

std::vector<Tensor> run_on(runtime::Backend& backend, const Graph& graph, const ops::Feeds& feeds,
                           const RunOptions& options) {
  return Runner(backend, graph, options).run(feeds);
}

std::size_t most_implementations(runtime::Backend& backend, const Graph& graph) {
  std::size_t most = 1;
  for (const Node& node : graph.nodes) most = std::max(most, backend.offer(NodeView(graph, node)).impls.size());
  return most;
}

void conform(runtime::Backend& backend, const std::vector<Tensor>& inputs, const ops::MakeOp& make,
             const ConformOptions& options) {
  const Problem exact = build(DType::kF64, inputs, make, options), fast = build(DType::kF32, inputs, make, options);
  const ops::Values expected = ops::interpret(exact.graph, ops::all(), exact.feeds);
  Graph graph = fast.graph;
  if (backend.format_rules() != nullptr) graph = passes::assign_formats(graph, ops::all(), *backend.format_rules());
  ops::Feeds feeds;  // by the ids of the formatted graph
  for (const auto& [old, tensor] : fast.feeds)
    feeds.emplace(graph::find_value(graph, fast.graph.values[old].name), tensor);
  const std::size_t most = most_implementations(backend, graph);
  for (std::size_t k = 0; k < most; ++k) {
    const std::vector<Tensor> actual = run_on(backend, graph, feeds, {.implementation = k, .offset = 0});
    ASSERT_EQ(actual.size(), exact.graph.outputs.size());
    for (std::size_t i = 0; i < actual.size(); ++i) {
      const std::string what =
          fmt::format("output '{}' of implementation {}", exact.graph.values[exact.graph.outputs[i]].name, k);
      ops::expect_close(ops::to_dtype(actual[i], DType::kF64),
                        ops::to_dtype(expected[exact.graph.outputs[i]], DType::kF64), options.tolerance, what);
    }
    const std::vector<Tensor> again = run_on(backend, graph, feeds, {.implementation = k, .offset = 64 * (2 * k + 3)});
    EXPECT_EQ(actual, again) << "implementation " << k << " gives other bits at another address";
  }
}

}  // namespace neaptide
