#include "neaptide/ops/dropout.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "case.hpp"
#include "neaptide/ops/ops.hpp"

namespace neaptide::ops {
namespace {

using testing::ElementsAre;

// The known answers that come with the authors' Random123 library.
TEST(Philox, GivesTheKnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (PhiloxWords{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0U, ~0U, ~0U, ~0U}, {~0U, ~0U}), (PhiloxWords{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxWords{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

Case train_case(const graph::Shape& shape, double ratio, std::int64_t seed = 7, std::int64_t step = 3,
                std::int64_t stream = 1) {
  return {.op = "DropoutTrain",
          .attrs = {{"ratio", ratio}, {"stream", stream}},
          .inputs = {random_tensor(shape, 1, 1, 2), integers({2}, {seed, step})}};
}

std::vector<double> outputs(const Case& c) {
  const Built built = build(c, false);
  return to_doubles(evaluate(built, c)[built.y]);
}

std::vector<bool> survivors(const Case& c) {
  std::vector<bool> alive;
  for (const double y : outputs(c)) alive.push_back(y != 0);
  return alive;
}

TEST(DropoutTrain, GradientsMatchFiniteDifferences) {
  for (const double ratio : {0.0, 0.25, 0.5, 0.9}) {
    for (const graph::Shape& shape : {graph::Shape{3, 5}, graph::Shape{1}, graph::Shape{2, 4, 3}})
      check_case(train_case(shape, ratio));
  }
  EXPECT_THAT(
      implementation_names(train_case({9}, 0.5)),
      ElementsAre("DropoutTrain.plain", "DropoutTrain.in-place", "DropoutTrain.mask", "DropoutTrain.mask-in-place",
                  "DropoutTrainGrad.from-seed", "DropoutTrainGrad.from-seed-in-place", "DropoutTrainGrad.from-mask",
                  "DropoutTrainGrad.from-mask-in-place"));
}

TEST(DropoutTrain, TheMaskIsAFunctionOfSeedStepStreamAndElement) {
  const std::vector<bool> first = survivors(train_case({1000}, 0.5));
  EXPECT_EQ(survivors(train_case({1000}, 0.5)), first);
  EXPECT_EQ(survivors(train_case({10, 100}, 0.5)), first);
  EXPECT_NE(survivors(train_case({1000}, 0.5, 8)), first);
  EXPECT_NE(survivors(train_case({1000}, 0.5, 7 + (std::int64_t{1} << 32))), first);
  EXPECT_NE(survivors(train_case({1000}, 0.5, 7, 4)), first);
  EXPECT_NE(survivors(train_case({1000}, 0.5, 7, 3 + (std::int64_t{1} << 32))), first);
  EXPECT_NE(survivors(train_case({1000}, 0.5, 7, 3, 2)), first);
  for (std::size_t i = 0; i < first.size(); ++i) {
    const auto block = static_cast<std::uint32_t>(i / 4);
    EXPECT_EQ(first[i], philox({block, 1, 3, 0}, {7, 0})[i % 4] >= 0x80000000U) << i;
  }
}

TEST(DropoutTrain, DropsTheShareAskedForAndKeepsTheMean) {
  const std::int64_t n = 100000;
  for (const double ratio : {0.1, 0.5, 0.8}) {
    Case c = train_case({n}, ratio);
    c.inputs[0] = reals({n}, std::vector<double>(static_cast<std::size_t>(n), 1.0));
    double kept = 0, sum = 0;
    for (const double y : outputs(c)) {
      kept += y != 0;
      sum += y;
    }
    const double deviation = std::sqrt(ratio * (1 - ratio) / static_cast<double>(n));
    EXPECT_NEAR(kept / static_cast<double>(n), 1 - ratio, 5 * deviation);
    EXPECT_NEAR(sum / static_cast<double>(n), 1, 5 * deviation / (1 - ratio));
  }
}

TEST(DropoutTrain, RefusalsSayWhatWouldBeRight) {
  EXPECT_EQ(refusal(train_case({4}, 1.0)), "node 'dropouttrain' (DropoutTrain): ratio 1 is outside [0, 1)");
  EXPECT_EQ(refusal(train_case({4}, 0.5, 0, 0, -1)),
            "node 'dropouttrain' (DropoutTrain): stream -1 is not a 32-bit number");
  Case c = train_case({4}, 0.5);
  c.inputs[1] = integers({3}, {1, 2, 3});
  EXPECT_EQ(refusal(c), "node 'dropouttrain' (DropoutTrain): input 1 is i64[3]; i64[2] is needed");
}

TEST(Dropout, IsTheIdentityAndSharesTheBytes) {
  check_case({.op = "Dropout", .attrs = {{"ratio", 0.5}}, .inputs = {random_tensor({3, 4}, 1)}});
  EXPECT_THAT(all().at("Dropout").renames, ElementsAre(std::pair(0, 0)));
}

}  // namespace
}  // namespace neaptide::ops
