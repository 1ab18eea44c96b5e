#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "neaptide/backends/reference/reference.hpp"
#include "neaptide/base/errors.hpp"
#include "neaptide/graph/builder.hpp"
#include "neaptide/memory/memory.hpp"
#include "neaptide/ops/ops.hpp"
#include "neaptide/plan/simulate.hpp"
#include "neaptide/runtime/allocations.hpp"
#include "neaptide/runtime/arena.hpp"
#include "neaptide/runtime/ledger.hpp"
#include "neaptide/runtime/measure.hpp"
#include "neaptide/runtime/program.hpp"

namespace neaptide::runtime {
namespace {

using graph::DType;
using graph::ValueId;

TEST(Ledger, MeasuresThePeakAndRefusesOverlaps) {
  Ledger ledger(4, true);
  ledger.bind(0, 64);
  ledger.bind(64, 128);
  ledger.release(0, 64);
  EXPECT_EQ(ledger.held(), 128);
  EXPECT_EQ(ledger.peak(), 192);
  EXPECT_THROW(ledger.bind(128, 64), InternalError);
  EXPECT_THROW(ledger.release(0, 64), InternalError);
}

TEST(Ledger, HandsABlockOver) {
  Ledger ledger(4, true);
  ledger.bind(64, 128);
  ledger.hand_over(64, 128, 64);
  ledger.bind(128, 64);
  EXPECT_EQ(ledger.held(), 128);
  EXPECT_EQ(ledger.peak(), 128);
}

TEST(Arena, PoisonIsNaN) {
  if (!allocations_are_counted()) GTEST_SKIP() << "a sanitizer build poisons by itself";
  Arena arena(256, true);
  arena.poison(0, 256);
  EXPECT_TRUE(std::isnan(*reinterpret_cast<float*>(arena.at(252))));
  EXPECT_TRUE(std::isnan(*reinterpret_cast<double*>(arena.at(0))));
}

TEST(ArenaDeathTest, ThePagePastTheEndIsUnmapped) {
  Arena arena(4096 + 64, true);
  *arena.at(4096 + 63) = std::byte{1};
  EXPECT_DEATH(*arena.at(4096 + 64) = std::byte{1}, "");
}

TEST(Allocations, AreCountedApart) {
  if (!allocations_are_counted()) GTEST_SKIP() << "no allocation hooks in a sanitizer build";
  std::vector<int> ours, theirs;
  AllocationProbe probe;
  ours.resize(100);
  ours.resize(10000);
  {
    LibraryScope inside;
    theirs.resize(100);
  }
  EXPECT_EQ(probe.ours(), 2);
  EXPECT_EQ(probe.library(), 1);
}

const cost::MachineDevice kDevice = {.name = "cpu:0",
                                     .backend = "reference",
                                     .threads = 1,
                                     .budget = {},
                                     .alignment = 64,
                                     .flops_per_second = 1e9,
                                     .bytes_per_second = 1e9};

/// w <- w - lr * relu(relu(x)): two values that may share memory, an effect, and a graph output.
struct Job {
  graph::Graph graph;
  cost::CostTable table;
  lower::Lowered lowered;
  plan::Plan plan;
  std::unique_ptr<Backend> backend = backends::reference::make(1);

  explicit Job(const std::string& planner = "keep-all", bool pinned = true) {
    graph::Builder b(ops::all());
    const ValueId x = b.input("x", {DType::kF32, {48}});
    const ValueId lr = b.input("lr", {DType::kF32, {}});
    const ValueId w = b.parameter("w", graph::zeros({DType::kF32, {48}}));
    const ValueId a = b.add("Relu", {x}, {}, "a");
    const ValueId c = b.add("Relu", {a}, {}, "c");
    const ValueId next = b.add("SgdUpdate", {w, c, lr}, {}, "update");
    graph = b.take({next, c});
    cost::CostCache cache;
    table = measure(graph, ops::all(), kDevice, *backend, cache, {});
    lowered = lower::lower(graph, ops::all(), {.devices = {kDevice}, .links = {}}, table, {.pinned = pinned});
    plan = memory::plan_and_pack(lowered.problem, planner, {});
  }

  Program compile(const ProgramOptions& options) {
    return Program::compile(graph, ops::all(), lowered, table, plan, *backend, options);
  }
  ValueId value(const char* name) const { return graph::find_value(graph, name); }
};

std::vector<float> ramp() {
  std::vector<float> x(48);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) - 20;
  return x;
}

void feed(Job& job, Program& program) {
  const float lr = 0.5F;
  const std::vector<float> x = ramp();
  program.write(job.value("x"), std::as_bytes(std::span(x)));
  program.write(job.value("lr"), std::as_bytes(std::span(&lr, 1)));
  program.write(job.value("w"), *job.graph.data.at(job.value("w")).data);
}

TEST(Program, RunsStepsAndMeasuresThePlannedPeak) {
  Job job;
  Program program = job.compile({.strict = true, .trace = true});
  feed(job, program);
  for (int step = 1; step <= 3; ++step) {
    const StepResult result = program.run();
    EXPECT_EQ(result.measured_peak, program.planned_peak());
    EXPECT_EQ(result.allocations, 0);
    const graph::Tensor w = program.read(job.value("w"));
    for (std::size_t i = 0; i < 48; ++i)
      EXPECT_EQ(w.as<float>()[i], -0.5F * static_cast<float>(step) * std::max(ramp()[i], 0.0F));
    EXPECT_EQ(program.read(job.value("c.out")).as<float>()[47], 27);
  }
  ASSERT_EQ(program.trace().size(), job.plan.steps.size());
  EXPECT_EQ(program.step_name(0), "a (" + job.table[graph::NodeId(std::size_t{0})].impls[0].spec.name + ")");
  EXPECT_GT(program.trace()[1].held, program.trace()[0].held - 1);
}

TEST(Program, RefusesToRunWithAnotherPeakThanPlanned) {
  Job job;
  job.plan.peak[plan::DeviceId(std::size_t{0})] += 64;
  Program program = job.compile({});
  feed(job, program);
  EXPECT_THROW(program.run(), PeakMismatch);
}

TEST(Program, StrictModeFindsALayoutThatOverlaps) {
  Job job;
  for (plan::Placement& p : job.plan.layout->blocks)
    if (p.name == "c.out") p.offset = 0;
  Program program = job.compile({.strict = true});
  EXPECT_THROW(program.run(), InternalError);
}

TEST(Program, RefusesContentsOfAnotherSize) {
  Job job;
  Program program = job.compile({});
  const std::vector<float> x(47);
  EXPECT_THROW(program.write(job.value("x"), std::as_bytes(std::span(x))), UserError);
  EXPECT_THROW((void)program.read(job.value("a.out")), InternalError) << "freed within the step";
}

TEST(Measure, UsesTheCacheAndEqualSignatures) {
  Job job;
  cost::CostCache cache;
  const cost::CostTable first = measure(job.graph, ops::all(), kDevice, *job.backend, cache, {});
  const std::size_t size = cache.size();
  EXPECT_GT(size, 0U);
  EXPECT_EQ(measure(job.graph, ops::all(), kDevice, *job.backend, cache, {}), first);
  EXPECT_EQ(cache.size(), size);
  EXPECT_EQ(first[graph::NodeId(std::size_t{0})], first[graph::NodeId(std::size_t{1})]);
}

TEST(Measure, EstimatesByTheRoofline) {
  Job job;
  cost::CostCache cache;
  const cost::CostTable table = measure(job.graph, ops::all(), kDevice, *job.backend, cache, {.estimate = true});
  EXPECT_EQ(cache.size(), 0U);
  EXPECT_NEAR(table[graph::NodeId(std::size_t{0})].impls[0].seconds, 2 * 48 * 4 / 1e9, 1e-12);
}

}  // namespace
}  // namespace neaptide::runtime
