#include "neaptide/session/schedule.hpp"

#include <gtest/gtest.h>

#include "neaptide/base/errors.hpp"

namespace neaptide::session {
namespace {

std::string message_of(const std::string& text, const ScheduleContext& context = {}) {
  try {
    parse_schedule(text, context);
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

TEST(Schedule, Constant) {
  const Schedule s = parse_schedule("constant", {.rate = 0.5});
  EXPECT_EQ(s.at(0), 0.5F);
  EXPECT_EQ(s.at(1000000), 0.5F);
}

TEST(Schedule, Step) {
  const Schedule s = parse_schedule("step:2:0.5", {.rate = 1, .steps_per_epoch = 10});
  EXPECT_EQ(s.at(19), 1.0F);
  EXPECT_EQ(s.at(20), 0.5F);
  EXPECT_EQ(s.at(40), 0.25F);
}

TEST(Schedule, CosineFallsFromRateToZero) {
  const Schedule s = parse_schedule("cosine", {.rate = 1, .total = 100});
  EXPECT_EQ(s.at(0), 1.0F);
  EXPECT_NEAR(s.at(50), 0.5, 1e-7);
  EXPECT_NEAR(s.at(100), 0, 1e-7);
  EXPECT_NEAR(s.at(5000), 0, 1e-7);
}

TEST(Schedule, WarmUpRisesLinearly) {
  const Schedule s = parse_schedule("cosine", {.rate = 1, .warmup = 4, .total = 104});
  EXPECT_EQ(s.at(0), 0.25F);
  EXPECT_EQ(s.at(3), 1.0F);
  EXPECT_EQ(s.at(4), 1.0F);
  EXPECT_NEAR(s.at(54), 0.5, 1e-7);
}

TEST(Schedule, SaysWhatWouldBeRight) {
  EXPECT_EQ(message_of("linear"),
            "no schedule 'linear'; write constant, cosine, or step:EPOCHS:FACTOR such as step:10:0.1");
  EXPECT_EQ(message_of("step:0:0.1"),
            "no schedule 'step:0:0.1'; write constant, cosine, or step:EPOCHS:FACTOR such as step:10:0.1");
  EXPECT_EQ(message_of("constant", {.rate = -1}), "the learning rate -1 is not a positive number");
  EXPECT_EQ(message_of("constant", {.warmup = -3}), "a warm-up of -3 steps is negative");
}

}  // namespace
}  // namespace neaptide::session
