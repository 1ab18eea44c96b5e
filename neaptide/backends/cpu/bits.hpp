// Bit masks in storage order: bit i of byte i / 8 belongs to stored element i.
#pragma once

#include <cstdint>

namespace neaptide::backends::cpu {

/// bits[i] = !(x[i] <= 0)
void sign_bits(int threads, const float* x, std::uint8_t* bits, std::int64_t n);
/// y[i] = max(x[i], 0) and its sign bits; y may be x.
void relu_with_bits(int threads, const float* x, float* y, std::uint8_t* bits, std::int64_t n);
/// y[i] = bits[i] ? x[i] * scale : 0; y may be x.
void select_by_bits(int threads, const float* x, const std::uint8_t* bits, float scale, float* y, std::int64_t n);

}  // namespace neaptide::backends::cpu
