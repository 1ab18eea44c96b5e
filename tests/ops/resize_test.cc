#include <gmock/gmock.h>

#include "case.hpp"

namespace neaptide::ops {
namespace {

using graph::Shape;
using testing::ElementsAre;
using Ints = std::vector<std::int64_t>;
using Reals = std::vector<double>;

Case resize_case(const Shape& x, graph::Attrs attrs) {
  return {.op = "Resize", .attrs = std::move(attrs), .inputs = {random_tensor(x, 1)}};
}

/// 0, 1, 2, ... resized: which element each output copies.
std::vector<double> sources(std::int64_t in, graph::Attrs attrs) {
  Case c = resize_case({in}, std::move(attrs));
  std::vector<double> values;
  for (std::int64_t i = 0; i < in; ++i) values.push_back(static_cast<double>(i));
  c.inputs[0] = reals({in}, values);
  const Built built = build(c, false);
  return to_doubles(evaluate(built, c)[built.y]);
}

TEST(Resize, GradientsMatchFiniteDifferences) {
  check_case(resize_case({1, 2, 3, 4}, {{"scales", Ints{1, 1, 2, 3}}}));
  check_case(resize_case({2, 1, 5, 4}, {{"scales", Reals{1, 1, 0.6, 1.5}}}));
  check_case(resize_case({1, 2, 4, 4}, {{"sizes", Ints{1, 2, 7, 3}}}));
  check_case(resize_case({2, 7}, {{"sizes", Ints{2, 2}}}));
  check_case(resize_case({1, 1, 2, 3, 2}, {{"scales", Ints{1, 1, 2, 1, 3}}}));
  for (const std::string where :
       {"align_corners", "asymmetric", "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel"}) {
    for (const std::string round : {"ceil", "floor", "round_prefer_ceil", "round_prefer_floor"})
      check_case(resize_case(
          {1, 1, 4, 5},
          {{"scales", Reals{1, 1, 1.8, 0.7}}, {"coordinate_transformation_mode", where}, {"nearest_mode", round}}));
  }
}

TEST(Resize, WholeFactorsRepeatAndSkip) {
  EXPECT_THAT(sources(3, {{"scales", Ints{2}}}), ElementsAre(0, 0, 1, 1, 2, 2));
  EXPECT_THAT(sources(2, {{"scales", Ints{3}}}), ElementsAre(0, 0, 0, 1, 1, 1));
  EXPECT_THAT(sources(6, {{"sizes", Ints{2}}, {"coordinate_transformation_mode", std::string("asymmetric")}}),
              ElementsAre(0, 3));
  EXPECT_THAT(sources(4, {{"sizes", Ints{2}}, {"coordinate_transformation_mode", std::string("align_corners")}}),
              ElementsAre(0, 3));
}

TEST(Resize, RefusalsSayWhatWouldBeRight) {
  EXPECT_EQ(refusal(resize_case({2, 2}, {})),
            "node 'resize' (Resize): needs the attribute 'scales' or 'sizes', and not both");
  EXPECT_EQ(refusal(resize_case({2, 2}, {{"scales", Ints{2}}})),
            "node 'resize' (Resize): scales or sizes have 1 entries; the input 2x2 needs 2");
  EXPECT_EQ(refusal(resize_case({2, 2}, {{"scales", Reals{1, 0.1}}})),
            "node 'resize' (Resize): dimension 1 of 2 would become 0");
  EXPECT_EQ(refusal(resize_case({2}, {{"scales", Ints{2}}, {"mode", std::string("cubic")}})),
            "node 'resize' (Resize): mode 'cubic' is not supported; nearest is");
  EXPECT_EQ(refusal(resize_case({2}, {{"scales", Ints{2}}, {"nearest_mode", std::string("down")}})),
            "node 'resize' (Resize): nearest_mode 'down' is not supported; ceil, floor, round_prefer_ceil, "
            "round_prefer_floor are");
}

}  // namespace
}  // namespace neaptide::ops
