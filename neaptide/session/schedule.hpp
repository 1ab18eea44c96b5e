// Learning rates as a pure function of the step.
//
//   session::Schedule s = session::parse_schedule("cosine", {.rate = 0.1, .warmup = 100, .total = 5000});
//   float lr = s.at(step);
#pragma once

#include <cstdint>
#include <string>

namespace neaptide::session {

enum class Curve { kConstant, kStep, kCosine };

struct Schedule {
  Curve curve = Curve::kConstant;
  double rate = 0.1;        // the highest rate
  std::int64_t warmup = 0;  // steps of linear rise: rate * (step + 1) / warmup
  std::int64_t period = 1;  // step curve: steps between two drops
  double factor = 0.1;      // step curve: what each drop multiplies with
  std::int64_t total = 1;   // cosine: steps until zero, warm-up included
  friend bool operator==(const Schedule&, const Schedule&) = default;

  float at(std::int64_t step) const;
};

struct ScheduleContext {
  double rate = 0.1;
  std::int64_t warmup = 0;
  std::int64_t total = 1;
  std::int64_t steps_per_epoch = 1;
};

/// "constant", "cosine", or "step:EPOCHS:FACTOR". UserError otherwise.
Schedule parse_schedule(const std::string& text, const ScheduleContext& context);

}  // namespace neaptide::session
