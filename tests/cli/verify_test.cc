#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "neaptide/base/json.hpp"
#include "program.hpp"

namespace neaptide::testing_cli {
namespace {

using testing::HasSubstr;

std::vector<std::string> verify(std::vector<std::string> more) {
  std::vector<std::string> out = {"verify", lenet(), "--steps", "3"};
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

TEST(Verify, TheSameBitsUnderEveryBudget) {
  const Result r = run(verify({"--budgets", "100%,min,1kB", "--interrupt", "--optimizer", "adam", "--json"}));
  ASSERT_EQ(r.code, 0) << r.err;
  const Json root = parse_json(r.out, "verify");
  EXPECT_EQ(root.at("rows").size(), 6U);
  for (const Json& row : root.at("rows")) {
    if (!row.at("planned").get<bool>()) continue;
    EXPECT_TRUE(row.at("same_bits").get<bool>());
    EXPECT_EQ(row.at("planned_bytes"), row.at("measured_bytes"));
  }
}

TEST(Verify, AFlippedBitIsNamed) {
  const Result r = run(verify({"--budgets", "min", "--sabotage", "bits"}));
  EXPECT_EQ(r.code, 6);
  EXPECT_THAT(r.err, testing::MatchesRegex("(.|\n)*budget min: tensor '.*' differs from the unconstrained run\n"));
}

TEST(Verify, AShiftedPeakIsFoundOut) {
  const Result r = run(verify({"--budgets", "min", "--sabotage", "peak"}));
  EXPECT_EQ(r.code, 7);
  EXPECT_THAT(r.err, HasSubstr("the plan's peak is"));
}

TEST(Verify, ABudgetThatIsTooSmall) {
  const Result r = run(verify({"--budgets", "1kB"}));
  EXPECT_EQ(r.code, 4);
  EXPECT_THAT(r.err, HasSubstr("no plan fits any of the budgets, so nothing was verified"));
}

}  // namespace
}  // namespace neaptide::testing_cli
