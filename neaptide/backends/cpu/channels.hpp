// Loops per channel over plain tensors {n, c, s...} and over such tensors in blocks of channels, as wide as the
// processor's vectors are: 4, 8 or 16.
#pragma once

#include <optional>

#include "neaptide/graph/types.hpp"

namespace neaptide::backends::cpu {

struct Channels {
  std::int64_t batch = 0, channels = 0, spatial = 0;
  std::int64_t lanes = 1;  // channels beside each other in a block; 1: plain
};

/// None for another layout or fewer than three dimensions.
std::optional<Channels> channels_of(const graph::TensorType& type, const graph::Format& format);

/// x[n, c, s] += bias[c]; padding stays as it is.
void add_to_channels(const Channels& c, int threads, const float* bias, float* x);
/// sum[c] = the sum of x[n, c, s] over n and s, in a fixed order.
void sum_channels(const Channels& c, int threads, const float* x, float* sum);

}  // namespace neaptide::backends::cpu
