// The promise of DESIGN.md section 5 on the CPU backend: in strict mode a whole training step allocates nothing of
// ours, its peak is the planned one, and a second run of the same step from the same state gives the same bits.
#include <gtest/gtest.h>

#include "neaptide/autodiff/autodiff.hpp"
#include "neaptide/backends/cpu/cpu.hpp"
#include "neaptide/memory/memory.hpp"
#include "neaptide/onnx/zoo.hpp"
#include "neaptide/ops/ops.hpp"
#include "neaptide/passes/passes.hpp"
#include "neaptide/runtime/allocations.hpp"
#include "neaptide/runtime/measure.hpp"
#include "neaptide/runtime/program.hpp"
#include "tests/ops/check.hpp"

namespace neaptide {
namespace {

using graph::DType;
using graph::Graph;
using graph::Tensor;
using graph::ValueId;

struct Step {
  runtime::StepResult result;
  Bytes planned = 0;
  std::vector<Tensor> parameters;
};

Graph training_graph(const std::string& name, const graph::FormatRules& rules) {
  const graph::OpSet& ops = ops::all();
  const Graph forward = passes::fuse_activations(passes::promote_to_training(onnx::make(name, 4), ops), ops);
  return passes::assign_formats(passes::remove_dead(autodiff::make_training(forward, ops, {}).graph, ops), ops, rules);
}

Step second_step(const std::string& name) {
  const auto backend = backends::cpu::make(2);
  const Graph graph = training_graph(name, *backend->format_rules());
  cost::Machine machine;
  machine.devices.push_back({.name = "cpu:0", .backend = "cpu", .threads = 2, .budget = {}});
  cost::CostCache cache;
  const cost::CostTable table = runtime::measure(graph, ops::all(), machine.devices[0], *backend, cache,
                                                 {.repeats = 1, .least_seconds = 0, .estimate = true, .progress = {}});
  const lower::Lowered lowered = lower::lower(graph, ops::all(), machine, table, {.pinned = true});
  const plan::Plan plan = memory::plan_and_pack(lowered.problem, "keep-all", {});
  runtime::Program program =
      runtime::Program::compile(graph, ops::all(), lowered, table, plan, *backend, {.strict = true, .trace = false});
  for (const ValueId v : graph::values_of_kind(graph, graph::ValueKind::kInput)) {
    const graph::TensorType& type = graph.values[v].type;
    Tensor tensor = graph::zeros(type);
    if (type.dtype == DType::kF32)
      tensor =
          ops::to_dtype(type.shape.empty() ? ops::reals({}, {0.01}) : ops::random_tensor(type.shape, 3), type.dtype);
    program.write(v, *tensor.data);
  }
  program.run();  // the OpenMP runtime starts its threads
  Step step{.result = program.run(), .planned = program.planned_peak(), .parameters = {}};
  for (const ValueId v : graph::values_of_kind(graph, graph::ValueKind::kParameter))
    step.parameters.push_back(program.read(v));
  return step;
}

TEST(Program, KeepsItsPromisesOnTheCpu) {
  for (const char* name : {"resnet8", "mobilenet_v2"}) {
    SCOPED_TRACE(name);
    const Step step = second_step(name);
    EXPECT_EQ(step.result.measured_peak, step.planned);
    if (runtime::allocations_are_counted()) {
      EXPECT_EQ(step.result.allocations, 0);
      EXPECT_GT(step.result.library_allocations, 0);
    }
    EXPECT_EQ(second_step(name).parameters, step.parameters);
  }
}

}  // namespace
}  // namespace neaptide
