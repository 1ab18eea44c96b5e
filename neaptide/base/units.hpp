// Sizes and times. Sizes are int64_t and every product or sum that input can influence is checked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace neaptide {

using Bytes = std::int64_t;
using Seconds = double;

/// a + b, a * b; throw UserError("<what> overflows 63 bits") when the result does not fit.
std::int64_t checked_add(std::int64_t a, std::int64_t b, std::string_view what = "a size");
std::int64_t checked_mul(std::int64_t a, std::int64_t b, std::string_view what = "a size");

/// The smallest multiple of `alignment` (>= 1) that is >= bytes.
Bytes round_up(Bytes bytes, Bytes alignment);

/// "800MiB", "1.5GiB", "262144", "10kB" -> bytes. Throws UserError naming `what` when the text is not a size.
Bytes parse_bytes(std::string_view text, std::string_view what = "size");

/// 838860800 -> "800 MiB"; three significant digits.
std::string format_bytes(Bytes bytes);

/// 0.00123 -> "1.23 ms".
std::string format_seconds(Seconds seconds);

}  // namespace neaptide
