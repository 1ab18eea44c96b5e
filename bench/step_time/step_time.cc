// Times the training step of a well-known network, with everything kept in memory or at a share of that peak, and says
// by operator class where the time goes: the step beside the sum of what its primitives take alone.
//
//   bench_step_time resnet50 [batch 8] [threads 2] [steps 7] [per cent of the keep-all peak 100]
//
// One JSON object on stdout.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "neaptide/autodiff/autodiff.hpp"
#include "neaptide/backends/cpu/cpu.hpp"
#include "neaptide/base/errors.hpp"
#include "neaptide/memory/memory.hpp"
#include "neaptide/onnx/zoo.hpp"
#include "neaptide/ops/ops.hpp"
#include "neaptide/passes/passes.hpp"
#include "neaptide/runtime/measure.hpp"
#include "neaptide/runtime/program.hpp"

namespace neaptide {
namespace {

using graph::Graph;
using graph::ValueId;

/// A figure of /proc/self/status ("VmRSS", "VmHWM"), in bytes.
Bytes status(const std::string& key) {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    if (word != key + ":") continue;
    Bytes kib = 0;
    file >> kib;
    return kib * 1024;
  }
  return 0;
}

/// Starts the peak figure anew, at what is resident now.
void forget_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

struct Network {
  Graph graph;
  autodiff::Training training;  // ids of its own graph; names are the same
  ValueId find(ValueId in_training) const { return graph::find_value(graph, training.graph.values[in_training].name); }
};

Network build(const std::string& name, std::int64_t batch, const graph::FormatRules& rules) {
  const graph::OpSet& ops = ops::all();
  Graph g = passes::promote_to_training(onnx::make(name, batch), ops);
  g = passes::fuse_activations(g, ops);
  Network network{.graph = {}, .training = autodiff::make_training(g, ops, {})};
  network.graph = passes::assign_formats(passes::remove_dead(network.training.graph, ops), ops, rules);
  return network;
}

void feed(runtime::Program& program, const Network& network) {
  const auto write = [&](ValueId in_training, const auto& fill) {
    const ValueId v = network.find(in_training);
    if (!v.valid()) return;
    std::vector<std::byte> bytes(static_cast<std::size_t>(network.graph.values[v].type.bytes()));
    fill(bytes);
    program.write(v, bytes);
  };
  for (const ValueId x : network.training.inputs) {
    write(x, [](std::vector<std::byte>& bytes) {
      auto* values = reinterpret_cast<float*>(bytes.data());
      for (std::size_t i = 0; i < bytes.size() / sizeof(float); ++i)
        values[i] = static_cast<float>((i * 2654435761U >> 16) % 2000) / 1000.F - 1.F;
    });
  }
  const auto zeros = [](std::vector<std::byte>&) {};
  write(network.training.labels, zeros);
  write(network.training.rng, zeros);
  write(network.training.lr, [](std::vector<std::byte>& bytes) {
    const float lr = 1e-4F;
    std::memcpy(bytes.data(), &lr, sizeof lr);
  });
}

/// "Conv", "Conv*" for its gradients and so on: seconds in the step and alone, and how many.
struct Class {
  int count = 0;
  Seconds in_step = 0, alone = 0;
};

/// The keep-all plan, or the default planner's within `percent` of its peak.
plan::Plan plan_at(const plan::Problem& problem, int percent) {
  plan::Plan keep_all = memory::plan_and_pack(problem, "keep-all", {});
  if (percent >= 100) return keep_all;
  plan::Options options;
  options.budgets["cpu:0"] = keep_all.peak[plan::DeviceId(std::size_t{0})] * percent / 100;
  plan::Plan plan = memory::plan_and_pack(problem, "neaptide", options);
  if (plan.infeasible)
    throw UserError("no plan fits {} per cent; {} bytes would be enough", percent, plan.infeasible->smallest);
  return plan;
}

int run(const std::string& name, std::int64_t batch, int threads, int steps, int percent) {
  const Bytes idle = status("VmRSS");
  nlohmann::json resident;
  const auto backend = backends::cpu::make(threads);
  Network network = build(name, batch, *backend->format_rules());
  const graph::OpSet& ops = ops::all();
  resident["network built"] = status("VmRSS");
  cost::Machine machine;
  machine.devices.push_back({.name = "cpu:0", .backend = "cpu", .threads = threads, .budget = {}});
  cost::CostCache cache;
  const cost::CostTable table = runtime::measure(network.graph, ops, machine.devices[0], *backend, cache, {});
  resident["operators measured"] = status("VmHWM");
  const lower::Lowered lowered = lower::lower(network.graph, ops, machine, table);
  const plan::Plan plan = plan_at(lowered.problem, percent);
  runtime::Program program =
      runtime::Program::compile(network.graph, ops, lowered, table, plan, *backend, {.strict = false, .trace = true});
  network.graph.data.clear();  // the arena holds the weights now
  network.training.graph.data.clear();
  resident["compiled"] = status("VmHWM");
  forget_peak();
  feed(program, network);
  program.run();
  std::vector<Seconds> times;
  std::map<std::string, Class> classes;
  Seconds primitives = 0;
  for (int s = 0; s < steps; ++s) {
    times.push_back(program.run().seconds);
    for (const runtime::StepEvent& e : program.trace()) {
      const auto* step = std::get_if<plan::Compute>(&plan.steps[static_cast<std::size_t>(e.step)]);
      if (step == nullptr) continue;
      const graph::Node& node = network.graph.nodes[lowered.node_of_op[step->op]];
      classes[node.op].in_step += (e.end - e.begin) / steps;
    }
  }
  for (const plan::Step& step : plan.steps) {
    const auto* compute = std::get_if<plan::Compute>(&step);
    if (compute == nullptr) continue;
    const plan::Op& op = lowered.problem.ops[compute->op];
    Class& c = classes[network.graph.nodes[lowered.node_of_op[compute->op]].op];
    const Seconds alone = op.impls[static_cast<std::size_t>(compute->impl)].seconds;
    ++c.count;
    c.alone += alone;
    primitives += alone;
  }
  std::sort(times.begin(), times.end());
  nlohmann::json out = {{"network", name},
                        {"batch", batch},
                        {"threads", threads},
                        {"percent", percent},
                        {"planning_seconds", plan.seconds_spent},
                        {"seconds", times[times.size() / 2]},
                        {"fastest", times.front()},
                        {"primitives", primitives},
                        {"planned_peak", program.planned_peak()},
                        {"arena", program.arena_bytes()},
                        {"peak_resident", std::max(resident["compiled"].get<Bytes>(), status("VmHWM"))},
                        {"resident_in_steps", status("VmHWM")},
                        {"resident", resident},
                        {"idle_resident", idle},
                        {"version", backend->version()}};
  for (const auto& [op, c] : classes)
    out["classes"][op] = {{"count", c.count}, {"seconds", c.in_step}, {"alone", c.alone}};
  std::cout << out.dump(1) << "\n";
  return 0;
}

}  // namespace
}  // namespace neaptide

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: bench_step_time NETWORK [BATCH] [THREADS] [STEPS] [PERCENT]\n";
    return 2;
  }
  const auto number = [&](int i, int otherwise) { return argc > i ? std::atoi(argv[i]) : otherwise; };
  try {
    return neaptide::run(argv[1], number(2, 8), number(3, 2), number(4, 7), number(5, 100));
  } catch (const neaptide::Error& e) {
    std::cerr << e.what() << "\n";
    return 1;
  }
}
