#include "neaptide/backends/cpu/channels.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "neaptide/backends/cpu/loops.hpp"

namespace neaptide::backends::cpu {
namespace {

constexpr std::int64_t kMostLanes = 16;

/// Channels beside each other: where they begin for a sample, and how many.
struct Group {
  std::int64_t first = 0, lanes = 1, stride = 1;
};

std::int64_t n_groups(const Channels& c) { return (c.channels + c.lanes - 1) / c.lanes; }

Group group_of(const Channels& c, std::int64_t g) {
  return {.first = g * c.lanes, .lanes = std::min(c.lanes, c.channels - g * c.lanes), .stride = c.lanes};
}

/// Of "aBcd8b" and its like; 0 for other layouts.
std::int64_t lanes_of(const graph::Format& format, std::size_t dims) {
  if (format.plain()) return 1;
  std::string begin = "aBcdefghijkl";
  begin.resize(dims);
  for (const std::int64_t lanes : {4, 8, 16}) {
    if (format.tag == fmt::format("{}{}b", begin, lanes)) return lanes;
  }
  return 0;
}

NEAPTIDE_CLONES void add_lanes(float* x, std::int64_t n, std::int64_t stride, std::int64_t lanes, const float* bias) {
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t l = 0; l < lanes; ++l) x[i * stride + l] += bias[l];
  }
}

NEAPTIDE_CLONES void sum_lanes(const float* x, std::int64_t n, std::int64_t stride, std::int64_t lanes, double* sum) {
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t l = 0; l < lanes; ++l) sum[l] += static_cast<double>(x[i * stride + l]);
  }
}

}  // namespace

std::optional<Channels> channels_of(const graph::TensorType& type, const graph::Format& format) {
  if (type.dtype != graph::DType::kF32 || type.shape.size() < 3 || type.elements() == 0) return std::nullopt;
  const std::int64_t lanes = lanes_of(format, type.shape.size());
  if (lanes == 0) return std::nullopt;
  const std::int64_t batch = type.shape[0], channels = type.shape[1];
  return Channels{
      .batch = batch, .channels = channels, .spatial = type.elements() / (batch * channels), .lanes = lanes};
}

void add_to_channels(const Channels& c, int threads, const float* bias, float* x) {
  const std::int64_t groups = n_groups(c);
  parallel_for(threads, c.batch * groups, [=](std::int64_t i) {
    const Group g = group_of(c, i % groups);
    add_lanes(x + i * c.spatial * g.stride, c.spatial, g.stride, g.lanes, bias + g.first);
  });
}

void sum_channels(const Channels& c, int threads, const float* x, float* sum) {
  const std::int64_t groups = n_groups(c);
  parallel_for(threads, groups, [=](std::int64_t i) {
    const Group g = group_of(c, i);
    double total[kMostLanes] = {};
    for (std::int64_t n = 0; n < c.batch; ++n)
      sum_lanes(x + (n * groups + i) * c.spatial * g.stride, c.spatial, g.stride, g.lanes, total);
    for (std::int64_t l = 0; l < g.lanes; ++l) sum[g.first + l] = static_cast<float>(total[l]);
  });
}

}  // namespace neaptide::backends::cpu
