#include "neaptide/backends/cpu/bits.hpp"

#include <cstddef>

#include "neaptide/backends/cpu/loops.hpp"

namespace neaptide::backends::cpu {
namespace {

/// Bit i of a byte, spread over the lanes of eight elements.
constexpr std::int32_t kLane[8] = {1, 2, 4, 8, 16, 32, 64, 128};

std::uint8_t tail_byte(const float* x, std::int64_t n) {
  unsigned byte = 0;
  for (std::int64_t j = 0; j < n; ++j) byte |= (x[j] <= 0.F ? 0U : 1U) << j;
  return static_cast<std::uint8_t>(byte);
}

NEAPTIDE_CLONES void sign_range(const float* x, std::uint8_t* bits, std::int64_t begin, std::int64_t end) {
  std::int64_t i = begin;
  for (; i + 8 <= end; i += 8) {
    std::int32_t byte = 0;
    for (int j = 0; j < 8; ++j) byte |= x[i + j] <= 0.F ? 0 : kLane[j];
    bits[i / 8] = static_cast<std::uint8_t>(byte);
  }
  if (i < end) bits[i / 8] = tail_byte(x + i, end - i);
}

NEAPTIDE_CLONES void relu_range(const float* x, float* y, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) y[i] = x[i] <= 0.F ? 0.F : x[i];
}

NEAPTIDE_CLONES void select_range(const float* x, const std::uint8_t* bits, float scale, float* y, std::int64_t begin,
                                  std::int64_t end) {
  std::int64_t i = begin;
  for (; i + 8 <= end; i += 8) {
    const std::int32_t byte = bits[i / 8];
    for (int j = 0; j < 8; ++j) y[i + j] = (byte & kLane[j]) != 0 ? x[i + j] * scale : 0.F;
  }
  for (; i < end; ++i) y[i] = (bits[i / 8] >> (i % 8) & 1) != 0 ? x[i] * scale : 0.F;
}

constexpr std::int64_t kBlock = 1024;  // elements whose bits are taken while they are in the first-level cache

}  // namespace

void sign_bits(int threads, const float* x, std::uint8_t* bits, std::int64_t n) {
  parallel_ranges(threads, n, 512, [=](std::int64_t begin, std::int64_t end) { sign_range(x, bits, begin, end); });
}

void relu_with_bits(int threads, const float* x, float* y, std::uint8_t* bits, std::int64_t n) {
  parallel_ranges(threads, n, kBlock, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; i += kBlock) {
      const std::int64_t stop = std::min(end, i + kBlock);
      sign_range(x, bits, i, stop);
      relu_range(x, y, i, stop);
    }
  });
}

void select_by_bits(int threads, const float* x, const std::uint8_t* bits, float scale, float* y, std::int64_t n) {
  parallel_ranges(threads, n, 512,
                  [=](std::int64_t begin, std::int64_t end) { select_range(x, bits, scale, y, begin, end); });
}

}  // namespace neaptide::backends::cpu
