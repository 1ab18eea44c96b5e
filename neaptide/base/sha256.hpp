#pragma once

#include <string>
#include <string_view>

namespace neaptide {

/// The SHA-256 digest as 64 lower-case hex digits.
std::string sha256_hex(std::string_view content);

}  // namespace neaptide
