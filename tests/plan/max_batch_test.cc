// The largest batch: against every batch tried one by one by the oracle, and on the published networks.
#include "neaptide/plan/max_batch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/planner/keras_networks.hpp"
#include "neaptide/base/errors.hpp"
#include "neaptide/base/json.hpp"
#include "neaptide/plan/simulate.hpp"
#include "tests/plan/random_problem.hpp"

namespace neaptide::plan {
namespace {

using testing::HasSubstr;

/// A budget that some small batches keep and larger ones do not.
BatchFamily family_of(std::uint64_t seed) {
  Problem p = random_problem(seed, {.n_ops = 5, .homes = false});
  const Bytes peak = simulate(p, keep_all_steps(p)).peak[DeviceId(0)];
  p.devices[DeviceId(0)].budget = 5 * peak + static_cast<Bytes>(seed % 7);
  return growing_from(p, 1);
}

/// By trying: the largest batch with a plan that costs at most `factor` times the keep-all run.
std::int64_t by_trying(const BatchFamily& family, double factor) {
  std::int64_t best = 0;
  for (std::int64_t batch = 1; batch <= 40; ++batch) {
    const Problem p = at_batch(family, batch);
    const Plan plan = make_plan(p, "exhaustive", {});
    if (!plan.infeasible && plan.cost.seconds <= factor * keep_all_seconds(p) * (1 + 1e-12)) best = batch;
  }
  return best;
}

TEST(MaxBatch, LiesBetweenThePlanFoundAndTheProof) {
  int n_equal = 0, n_proved = 0;
  constexpr int kProblems = 12;
  for (std::uint64_t seed = 0; seed < kProblems; ++seed) {
    const double factor = seed % 2 == 0 ? 1.0 : 1.4;
    const BatchFamily family = family_of(seed);
    BatchQuestion q;
    q.problem = [&](std::int64_t batch) { return at_batch(family, batch); };
    q.most = [&](const Problem& p) { return factor * keep_all_seconds(p); };
    q.last = 40;
    const MaxBatch m = max_batch(q);
    const std::int64_t truth = by_trying(family, factor);
    EXPECT_LE(m.batch, truth) << "seed " << seed;
    EXPECT_GT(m.impossible.value_or(truth + 1), truth) << "seed " << seed << ": " << m.proof;
    n_equal += m.batch == truth;
    n_proved += m.proved();
    if (m.batch == 0) continue;
    EXPECT_EQ(m.problem, at_batch(family, m.batch));
    EXPECT_LE(m.plan.cost.seconds, factor * keep_all_seconds(m.problem) * (1 + 1e-9));
    EXPECT_LE(m.plan.peak[DeviceId(0)], *m.problem.devices[DeviceId(0)].budget);
  }
  EXPECT_GT(n_equal, kProblems * 3 / 4);
  EXPECT_GT(n_proved, 0);
}

TEST(MaxBatch, VggReachesItsCeilingWithTheLeastOverhead) {
  const bench::Network n = bench::vgg19();
  BatchQuestion q;
  q.problem = [&](std::int64_t batch) { return bench::training_problem(n, batch); };
  q.most = [&](const Problem&) { return static_cast<double>(bench::cost_cap(n)); };
  q.options.switches["order"] = "off";
  const MaxBatch m = max_batch(q);
  EXPECT_EQ(m.batch, 289);
  EXPECT_TRUE(m.proved());
  EXPECT_THAT(m.proof, HasSubstr("alone are beyond the budget"));
  EXPECT_THAT(m.assumption, HasSubstr("sizes grow with the batch, seconds in proportion"));
  EXPECT_NEAR(100 * (m.plan.cost.seconds / static_cast<double>(n.total()) - 1), 0.1472, 5e-5);
  const Json j = parse_json(to_json(m), "answer");
  EXPECT_EQ(j.at("format"), "neaptide.max_batch");
  EXPECT_EQ(j.at("impossible_from"), 290);
  EXPECT_EQ(plan_from_json(m.problem, j.at("plan").dump(), "plan").steps, m.plan.steps);
}

TEST(MaxBatch, SaysWhenNothingFitsAndWhenTheTimeIsUp) {
  const bench::Network n = bench::vgg16();
  BatchQuestion q;
  q.problem = [&](std::int64_t batch) {
    Problem p = bench::training_problem(n, batch);
    p.devices[DeviceId(0)].budget = 1000;
    return p;
  };
  const MaxBatch none = max_batch(q);
  EXPECT_EQ(none.batch, 0);
  EXPECT_EQ(none.impossible, 1);
  q.problem = [&](std::int64_t batch) { return bench::training_problem(n, batch); };
  q.options.time_limit = 0;
  const MaxBatch late = max_batch(q);
  EXPECT_EQ(late.batch, 0);
  EXPECT_TRUE(late.out_of_time);
}

TEST(MaxBatch, ASizeThatShrinksTakesTheProofAway) {
  const bench::Network n = bench::vgg16();
  BatchQuestion q;
  q.problem = [&](std::int64_t batch) {
    Problem p = bench::training_problem(n, batch);
    p.buffers[BufferId(0)].bytes = 1'000'000 - batch;
    return p;
  };
  const MaxBatch m = max_batch(q);
  EXPECT_GT(m.batch, 0);
  EXPECT_FALSE(m.impossible);
  EXPECT_THAT(m.assumption, HasSubstr("do not grow"));
}

TEST(MaxBatch, FamiliesLieOnALine) {
  Problem one = bench::training_problem(bench::vgg16(), 4), two = bench::training_problem(bench::vgg16(), 6);
  EXPECT_EQ(at_batch({one, two, 4, 6}, 9).buffers, bench::training_problem(bench::vgg16(), 9).buffers);
  EXPECT_EQ(at_batch({one, two, 4, 6}, 1).buffers, bench::training_problem(bench::vgg16(), 1).buffers);
  two.buffers[BufferId(0)].bytes = one.buffers[BufferId(0)].bytes + 1;  // half a byte for a batch, rounded up
  EXPECT_EQ(at_batch({one, two, 4, 6}, 5).buffers[BufferId(0)].bytes, one.buffers[BufferId(0)].bytes + 1);
  EXPECT_THROW(at_batch({one, two, 4, 4}, 5), UserError);
  two.ops[OpId(3)].name = "other";
  EXPECT_THROW(at_batch({one, two, 4, 6}, 5), UserError);
  EXPECT_THROW(at_batch(growing_from(one, 1), std::int64_t{1} << 50), UserError);
}

TEST(MaxBatch, NeedsABudgetAndARange) {
  BatchQuestion q;
  q.problem = [&](std::int64_t batch) {
    Problem p = bench::training_problem(bench::vgg16(), batch);
    p.devices[DeviceId(0)].budget.reset();
    return p;
  };
  EXPECT_THROW(max_batch(q), UserError);
  q.first = 0;
  EXPECT_THROW(max_batch(q), UserError);
}

}  // namespace
}  // namespace neaptide::plan
