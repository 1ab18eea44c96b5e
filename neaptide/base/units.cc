#include "neaptide/base/units.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "neaptide/base/errors.hpp"

namespace neaptide {

std::int64_t checked_add(std::int64_t a, std::int64_t b, std::string_view what) {
  std::int64_t r = 0;
  if (__builtin_add_overflow(a, b, &r)) throw UserError("{} overflows 63 bits: {} + {}", what, a, b);
  return r;
}

std::int64_t checked_mul(std::int64_t a, std::int64_t b, std::string_view what) {
  std::int64_t r = 0;
  if (__builtin_mul_overflow(a, b, &r)) throw UserError("{} overflows 63 bits: {} * {}", what, a, b);
  return r;
}

Bytes round_up(Bytes bytes, Bytes alignment) {
  const Bytes rest = bytes % alignment;
  return rest == 0 ? bytes : checked_add(bytes, alignment - rest);
}

Bytes parse_bytes(std::string_view text, std::string_view what) {
  static constexpr std::array<std::pair<std::string_view, double>, 11> kSuffixes = {{{"", 1},
                                                                                     {"B", 1},
                                                                                     {"kB", 1e3},
                                                                                     {"MB", 1e6},
                                                                                     {"GB", 1e9},
                                                                                     {"KiB", 1024},
                                                                                     {"kiB", 1024},
                                                                                     {"MiB", 1048576},
                                                                                     {"GiB", 1073741824},
                                                                                     {"TB", 1e12},
                                                                                     {"TiB", 1099511627776}}};
  double number = 0;
  const char* begin = text.data();
  const char* end = begin + text.size();
  std::int64_t whole = 0;
  const auto as_int = std::from_chars(begin, end, whole);
  if (as_int.ec == std::errc() && as_int.ptr == end && whole >= 0) return whole;
  const auto [rest, ec] = std::from_chars(begin, end, number);
  if (ec == std::errc() && number >= 0 && std::isfinite(number)) {
    std::string_view suffix(rest, static_cast<std::size_t>(end - rest));
    while (!suffix.empty() && suffix.front() == ' ') suffix.remove_prefix(1);
    for (const auto& [name, factor] : kSuffixes) {
      if (suffix != name) continue;
      const double bytes = number * factor;
      if (bytes >= 9.2e18) throw UserError("{} '{}' is larger than 63 bits hold", what, text);
      return static_cast<Bytes>(std::floor(bytes));
    }
  }
  throw UserError("{} '{}' is not a number of bytes; write 838860800, 800MiB or 0.8GB", what, text);
}

std::string format_bytes(Bytes bytes) {
  static constexpr std::array<const char*, 6> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double v = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (std::fabs(v) >= 1023.995 && unit + 1 < kUnits.size()) {
    v /= 1024;
    ++unit;
  }
  if (unit == 0) return fmt::format("{} B", bytes);
  return fmt::format("{:.{}f} {}", v, v < 10 ? 2 : v < 100 ? 1 : 0, kUnits[unit]);
}

std::string format_seconds(Seconds seconds) {
  const double a = std::fabs(seconds);
  if (a >= 100) return fmt::format("{:.0f} s", seconds);
  if (a >= 1 || a == 0) return fmt::format("{:.3g} s", seconds);
  if (a >= 1e-3) return fmt::format("{:.3g} ms", seconds * 1e3);
  if (a >= 1e-6) return fmt::format("{:.3g} us", seconds * 1e6);
  return fmt::format("{:.3g} ns", seconds * 1e9);
}

}  // namespace neaptide
