// Masks packed to one bit per element: bit i % 8 of byte i / 8; a set bit lets the gradient pass. Unused bits are zero.
#pragma once

#include <cstdint>

#include "neaptide/graph/types.hpp"

namespace neaptide::ops {

/// u8[ceil(n / 8)] for a tensor of n elements.
inline graph::TensorType bits_type(const graph::Shape& shape) {
  return {graph::DType::kU8, {(graph::n_elements(shape) + 7) / 8}};
}

inline bool bit(const std::uint8_t* bits, std::int64_t i) { return ((bits[i / 8] >> (i % 8)) & 1) != 0; }

/// Fills the mask of n elements from `pass(i)`, called once for each i in increasing order.
template <class F>
void fill_bits(std::uint8_t* bits, std::int64_t n, F&& pass) {
  for (std::int64_t start = 0; start < n; start += 8) {
    unsigned byte = 0;
    for (std::int64_t i = start; i < n && i < start + 8; ++i) byte |= (pass(i) ? 1U : 0U) << (i - start);
    bits[start / 8] = static_cast<std::uint8_t>(byte);
  }
}

}  // namespace neaptide::ops
