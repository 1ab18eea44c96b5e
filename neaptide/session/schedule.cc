#include "neaptide/session/schedule.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <vector>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/text.hpp"
#include "neaptide/base/units.hpp"

namespace neaptide::session {

float Schedule::at(std::int64_t step) const {
  if (step < warmup) return static_cast<float>(rate * static_cast<double>(step + 1) / static_cast<double>(warmup));
  switch (curve) {
    case Curve::kConstant:
      return static_cast<float>(rate);
    case Curve::kStep: {
      const std::int64_t n_periods = step / period;
      return static_cast<float>(rate * std::pow(factor, static_cast<double>(n_periods)));
    }
    case Curve::kCosine: {
      const auto length = static_cast<double>(std::max<std::int64_t>(1, total - warmup));
      const double done = std::min(1.0, static_cast<double>(step - warmup) / length);
      return static_cast<float>(rate * (1 + std::cos(std::numbers::pi * done)) / 2);
    }
  }
  throw InternalError("a schedule has an unknown curve");
}

namespace {

template <class T>
bool parse(const std::string& text, T& out) {
  const char* end = text.data() + text.size();
  const auto [rest, ec] = std::from_chars(text.data(), end, out);
  return ec == std::errc() && rest == end;
}

}  // namespace

Schedule parse_schedule(const std::string& text, const ScheduleContext& context) {
  if (!(context.rate > 0) || !std::isfinite(context.rate)) {
    throw UserError("the learning rate {} is not a positive number", context.rate);
  }
  if (context.warmup < 0) throw UserError("a warm-up of {} steps is negative", context.warmup);
  Schedule out;
  out.rate = context.rate;
  out.warmup = context.warmup;
  out.total = context.total;
  const std::vector<std::string> parts = split(text, ':');
  if (text == "constant") return out;
  if (text == "cosine") {
    out.curve = Curve::kCosine;
    return out;
  }
  std::int64_t epochs = 0;
  if (parts.size() == 3 && parts[0] == "step" && parse(parts[1], epochs) && parse(parts[2], out.factor) &&
      epochs >= 1 && out.factor > 0 && std::isfinite(out.factor)) {
    out.curve = Curve::kStep;
    out.period = checked_mul(epochs, context.steps_per_epoch, "the period of a schedule");
    return out;
  }
  throw UserError("no schedule '{}'; write constant, cosine, or step:EPOCHS:FACTOR such as step:10:0.1", text);
}

}  // namespace neaptide::session
