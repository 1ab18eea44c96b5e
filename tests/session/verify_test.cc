#include "neaptide/session/verify.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "neaptide/onnx/zoo.hpp"

namespace neaptide::session {
namespace {

using Sabotage = VerifyOptions::Sabotage;

ModelOptions reference_options() {
  ModelOptions o;
  o.backend = "reference";
  o.costs = testing::TempDir() + "verify-costs.json";  // measured once
  return o;
}

VerifyOptions small(std::vector<std::string> budgets) {
  VerifyOptions v;
  v.budgets = std::move(budgets);
  v.steps = 3;
  return v;
}

TEST(Verify, TheSameBitsUnderEveryBudgetAndAfterAnInterruption) {
  VerifyOptions v = small({"100%", "min"});
  v.interrupt = true;
  const Verification r = verify_budgets(onnx::make("lenet", 2), reference_options(), v);
  ASSERT_EQ(r.rows.size(), 5U);
  for (const VerifyRow& row : r.rows) {
    EXPECT_TRUE(row.planned) << row.budget;
    EXPECT_EQ(row.difference, "") << row.budget;
    EXPECT_EQ(row.peak_mismatch, "") << row.budget;
    EXPECT_EQ(row.planned_peak, row.measured_peak) << row.budget;
    EXPECT_LE(row.arena, row.bytes.value_or(row.arena));
  }
  EXPECT_TRUE(r.same_bits() && r.same_peaks());
  EXPECT_LT(r.rows.back().arena, r.rows.front().arena);
}

TEST(Verify, SabotageIsNoticed) {
  VerifyOptions v = small({"100%"});
  v.sabotage = Sabotage::kFlipBit;
  const Verification bits = verify_budgets(onnx::make("mlp", 2), reference_options(), v);
  EXPECT_FALSE(bits.same_bits());
  EXPECT_TRUE(bits.same_peaks());
  EXPECT_THAT(bits.rows.back().difference, testing::StartsWith("tensor '"));
  v.sabotage = Sabotage::kShiftPeak;
  const Verification peaks = verify_budgets(onnx::make("mlp", 2), reference_options(), v);
  EXPECT_FALSE(peaks.same_peaks());
  EXPECT_THAT(peaks.rows.back().peak_mismatch, testing::HasSubstr("the plan's peak is"));
}

TEST(Verify, ABudgetThatIsTooSmallIsARowWithoutAPlan) {
  const Verification r = verify_budgets(onnx::make("mlp", 2), reference_options(), small({"1kB"}));
  EXPECT_FALSE(r.rows.back().planned);
}

}  // namespace
}  // namespace neaptide::session
