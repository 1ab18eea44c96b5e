#include "neaptide/runtime/measure.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>

#include "neaptide/base/errors.hpp"
#include "neaptide/graph/builder.hpp"
#include "neaptide/ops/ops.hpp"
#include "neaptide/runtime/arena.hpp"

namespace neaptide::runtime {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Bytes kAlign = 64;
constexpr Bytes kColdBytes = 8 << 20;  // written between two runs: twice the second-level caches of two cores

Seconds since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Contents that keep kernels at ordinary speed: small varied floats, zeros for integers and masks.
void fill(const graph::Value& value, std::byte* to) {
  std::memset(to, 0, static_cast<std::size_t>(value.bytes()));
  const auto fill_as = [&]<class T>(T) {
    T* x = reinterpret_cast<T*>(to);
    const Bytes n = value.bytes() / static_cast<Bytes>(sizeof(T));
    for (Bytes i = 0; i < n; ++i) x[i] = static_cast<T>(0.001) * static_cast<T>(i % 1009 - 300);
  };
  if (value.type.dtype == graph::DType::kF32) fill_as(float{});
  if (value.type.dtype == graph::DType::kF64) fill_as(double{});
}

/// Memory for one node's inputs, outputs and workspace, reused from node to node.
class Bench {
 public:
  Bench() : cold_(kColdBytes, false) {}

  Seconds time(const graph::NodeView& node, const graph::ImplSpec& spec, Kernel& kernel,
               const MeasureOptions& options) {
    const graph::KernelArgs args = bind(node, spec);
    kernel.run(args);
    std::vector<Seconds> samples;
    Seconds spent = 0;
    for (int i = 0; i < options.repeats && (i < 2 || spent < options.least_seconds); ++i) {
      std::memset(cold_.at(0), i, kColdBytes);
      const auto start = Clock::now();
      kernel.run(args);
      samples.push_back(since(start));
      spent += samples.back();
    }
    const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
    std::nth_element(samples.begin(), middle, samples.end());
    return *middle;
  }

 private:
  graph::KernelArgs bind(const graph::NodeView& node, const graph::ImplSpec& spec) {
    Bytes total = round_up(spec.workspace, kAlign);
    for (std::size_t i = 0; i < node.n_inputs(); ++i)
      if (node.has_input(i)) total += round_up(node.input_value(i).bytes(), kAlign);
    for (std::size_t o = 0; o < node.n_outputs(); ++o)
      if (node.has_output(o)) total += round_up(node.output_value(o).bytes(), kAlign);
    if (!arena_ || arena_->bytes() < total) {
      arena_.reset();  // not both at once
      arena_ = std::make_unique<Arena>(total, false);
    }

    Bytes at = 0;
    const auto take = [&](Bytes bytes) {
      std::byte* block = arena_->at(at);
      at += round_up(bytes, kAlign);
      return block;
    };
    inputs_.assign(node.n_inputs(), nullptr);
    outputs_.assign(node.n_outputs(), nullptr);
    for (const int i : spec.reads) {
      const graph::Value& value = node.input_value(static_cast<std::size_t>(i));
      std::byte* block = take(value.bytes());
      fill(value, block);
      inputs_[static_cast<std::size_t>(i)] = block;
    }
    for (const int o : spec.writes) outputs_[static_cast<std::size_t>(o)] = target(node, spec, o, take);
    return {.inputs = inputs_, .outputs = outputs_, .workspace = take(spec.workspace)};
  }

  /// In place and for overwritten values an output lies where its input lies.
  template <class Take>
  void* target(const graph::NodeView& node, const graph::ImplSpec& spec, int output, const Take& take) {
    const auto shared = [&](const std::vector<std::pair<int, int>>& pairs, bool input_first) -> void* {
      for (const auto& [a, b] : pairs) {
        if ((input_first ? b : a) == output)
          return const_cast<void*>(inputs_[static_cast<std::size_t>(input_first ? a : b)]);
      }
      return nullptr;
    };
    if (void* p = shared(spec.in_place, true)) return p;
    if (void* p = shared(ops::all().at(node.node().op).overwrites, false)) return p;
    std::byte* block = take(node.output_value(static_cast<std::size_t>(output)).bytes());
    return block;
  }

  Arena cold_;
  std::unique_ptr<Arena> arena_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
};

struct Measurer {
  const cost::MachineDevice& device;
  Backend& backend;
  cost::CostCache& cache;
  const MeasureOptions& options;
  Bench bench = {};
  std::string version = fmt::format("{}, {} threads", backend.version(), backend.threads());

  Seconds seconds(const graph::NodeView& node, const graph::OpDef& op, const std::string& signature,
                  const graph::ImplSpec& spec) {
    if (options.estimate) return cost::roofline_seconds(op.work(node), device);
    const std::string key = cost::cache_key(signature, spec.name, device.name, version);
    if (const auto known = cache.find(key)) return *known;
    const std::unique_ptr<Kernel> kernel = backend.make_kernel(node, spec);
    const Seconds measured = bench.time(node, spec, *kernel, options);
    cache.put(key, measured);
    return measured;
  }
};

}  // namespace

cost::CostTable measure(const graph::Graph& graph, const graph::OpSet& ops, const cost::MachineDevice& device,
                        Backend& backend, cost::CostCache& cache, const MeasureOptions& options) {
  cost::CostTable table(graph.nodes.size());
  Measurer measurer{.device = device, .backend = backend, .cache = cache, .options = options};
  std::map<std::string, cost::NodeCosts> known;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const graph::NodeView node(graph, graph.nodes[graph::NodeId(n)]);
    const graph::OpDef& op = ops.at(node.node().op);
    if (options.progress) options.progress(static_cast<int>(n), static_cast<int>(graph.nodes.size()));
    if (!op.renames.empty()) continue;
    const std::string signature = cost::signature(node);
    const auto [found, fresh] = known.try_emplace(signature);
    if (fresh) {
      Offer offer = backend.offer(node);
      if (offer.impls.empty()) found->second.why_not[device.name] = offer.why_not;
      for (graph::ImplSpec& spec : offer.impls) {
        const Seconds s = measurer.seconds(node, op, signature, spec);
        found->second.impls.push_back({.device = device.name, .spec = std::move(spec), .seconds = s});
      }
    }
    table[graph::NodeId(n)] = found->second;
  }
  if (options.progress) options.progress(static_cast<int>(graph.nodes.size()), static_cast<int>(graph.nodes.size()));
  return table;
}

cost::MachineDevice measure_host(const std::string& name, Backend& backend) {
  const auto best = [&](const graph::Graph& g) {
    const graph::NodeView node(g, g.nodes[graph::NodeId(std::size_t{0})]);
    const Offer offer = backend.offer(node);
    if (offer.impls.empty()) throw InternalError("backend '{}' cannot run {}", backend.name(), node.node().op);
    const std::unique_ptr<Kernel> kernel = backend.make_kernel(node, offer.impls.front());
    return Bench().time(node, offer.impls.front(), *kernel,
                        {.repeats = 7, .least_seconds = 0.05, .estimate = false, .progress = {}});
  };
  cost::MachineDevice device{.name = name,
                             .backend = backend.name(),
                             .threads = backend.threads(),
                             .budget = {},
                             .alignment = backend.alignment(),
                             .flops_per_second = 0,
                             .bytes_per_second = 0};
  constexpr std::int64_t kSide = 768, kLength = 8 << 20;
  {
    graph::Builder b(ops::all());
    const graph::ValueId x = b.input("a", {graph::DType::kF32, {kSide, kSide}});
    const graph::ValueId y = b.input("b", {graph::DType::kF32, {kSide, kSide}});
    const graph::Graph g = b.take({b.add("MatMul", {x, y})});
    device.flops_per_second = 2.0 * kSide * kSide * kSide / best(g);
  }
  graph::Builder b(ops::all());
  const graph::ValueId x = b.input("a", {graph::DType::kF32, {kLength}});
  const graph::ValueId y = b.input("b", {graph::DType::kF32, {kLength}});
  const graph::Graph g = b.take({b.add("Add", {x, y})});
  device.bytes_per_second = 3.0 * 4 * kLength / best(g);
  return device;
}

}  // namespace neaptide::runtime
