// Loops per channel against the definition, in every width of a block: a processor only ever asks for its own.
#include "neaptide/backends/cpu/channels.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <vector>

namespace neaptide::backends::cpu {
namespace {

TEST(Channels, OfEveryWidthOfABlock) {
  const graph::TensorType type{graph::DType::kF32, {2, 10, 3, 2}};
  const std::int64_t n = 2, c = 10, s = 6;
  for (const std::int64_t lanes : {1, 4, 8, 16}) {
    SCOPED_TRACE(lanes);
    const std::int64_t groups = (c + lanes - 1) / lanes;
    const auto at = [&](std::int64_t i, std::int64_t k, std::int64_t x) {
      return static_cast<std::size_t>(((i * groups + k / lanes) * s + x) * lanes + k % lanes);
    };
    graph::Format format;
    if (lanes > 1) format = {fmt::format("aBcd{}b", lanes), n * groups * lanes * s * 4};
    const auto channels = channels_of(type, format);
    ASSERT_TRUE(channels.has_value());

    std::vector<float> x(static_cast<std::size_t>(n * groups * lanes * s), 0.F), sum(static_cast<std::size_t>(c));
    std::vector<float> bias, wanted;
    float padding = 0;
    for (std::int64_t k = 0; k < c; ++k) {
      bias.push_back(static_cast<float>(k + 1));
      wanted.push_back(0);
      for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t p = 0; p < s; ++p) {
          x[at(i, k, p)] = static_cast<float>(100 * i + 10 * k + p);
          wanted.back() += x[at(i, k, p)] + bias.back();
        }
      }
    }
    add_to_channels(*channels, 2, bias.data(), x.data());
    sum_channels(*channels, 2, x.data(), sum.data());
    EXPECT_EQ(sum, wanted);
    for (std::int64_t k = c; k < groups * lanes; ++k) padding += x[at(1, k, 0)];
    EXPECT_EQ(padding, 0);
  }
  EXPECT_FALSE(channels_of(type, {"acdb", 480}).has_value());
  EXPECT_FALSE(channels_of(type, {"aBc8b", 480}).has_value());
}

}  // namespace
}  // namespace neaptide::backends::cpu
