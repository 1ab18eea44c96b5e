// Small text helpers.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace neaptide {

std::vector<std::string> split(std::string_view text, char separator);
std::string join(std::span<const std::string> parts, std::string_view separator);

/// The candidate nearest to `word` by edit distance, or "" when none is near (distance > 1 + length / 3).
std::string nearest(std::string_view word, std::span<const std::string> candidates);

/// "; did you mean 'x'?" or "" - ready to be appended to a sentence.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

}  // namespace neaptide
