#include "neaptide/ops/resize.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "neaptide/graph/builder.hpp"
#include "neaptide/ops/kernel.hpp"
#include "neaptide/ops/window.hpp"

namespace neaptide::ops {
namespace {

/// Where one dimension's outputs come from.
struct Dimension {
  std::int64_t in = 1, out = 1;
  double scale = 1;
};

using Transform = double (*)(const Dimension&, double o);

double half_pixel(const Dimension& d, double o) { return (o + 0.5) / d.scale - 0.5; }

double half_pixel_symmetric(const Dimension& d, double o) {
  const double exact = static_cast<double>(d.in) * d.scale;  // the output's length before it was rounded down
  const double shift = static_cast<double>(d.in) / 2 * (1 - static_cast<double>(d.out) / exact);
  return shift + (o + 0.5) / d.scale - 0.5;
}

double pytorch_half_pixel(const Dimension& d, double o) { return d.out > 1 ? half_pixel(d, o) : 0; }

double align_corners(const Dimension& d, double o) {
  return d.out > 1 ? o * static_cast<double>(d.in - 1) / static_cast<double>(d.out - 1) : 0;
}

double asymmetric(const Dimension& d, double o) { return o / d.scale; }

using Round = double (*)(double);

double prefer_floor(double v) { return std::ceil(v - 0.5); }
double prefer_ceil(double v) { return std::floor(v + 0.5); }
double floor(double v) { return std::floor(v); }
double ceil(double v) { return std::ceil(v); }

/// The entry of a list by the word that an attribute holds.
template <class F, std::size_t N>
F choose(const NodeView& node, const char* key, const char* otherwise,
         const std::array<std::pair<const char*, F>, N>& list) {
  const std::string word = node.string_or(key, otherwise);
  std::string known;
  for (const auto& [name, f] : list) {
    if (word == name) return f;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", name);
  }
  node.fail(fmt::format("{} '{}' is not supported; {} are", key, word, known));
}

Transform transform_of(const NodeView& node) {
  constexpr std::array<std::pair<const char*, Transform>, 5> kList = {{{"align_corners", align_corners},
                                                                       {"asymmetric", asymmetric},
                                                                       {"half_pixel", half_pixel},
                                                                       {"half_pixel_symmetric", half_pixel_symmetric},
                                                                       {"pytorch_half_pixel", pytorch_half_pixel}}};
  return choose(node, "coordinate_transformation_mode", "half_pixel", kList);
}

Round round_of(const NodeView& node) {
  constexpr std::array<std::pair<const char*, Round>, 4> kList = {
      {{"ceil", ceil}, {"floor", floor}, {"round_prefer_ceil", prefer_ceil}, {"round_prefer_floor", prefer_floor}}};
  return choose(node, "nearest_mode", "round_prefer_floor", kList);
}

/// Attribute 'scales', given as numbers or integers; empty when it is absent.
std::vector<double> scales_of(const NodeView& node) {
  const auto found = node.node().attrs.find("scales");
  if (found == node.node().attrs.end()) return {};
  if (const auto* numbers = std::get_if<std::vector<double>>(&found->second)) return *numbers;
  const Shape integers = node.ints_or("scales", {});
  return {integers.begin(), integers.end()};
}

std::vector<Dimension> dimensions_of(const NodeView& node, const Shape& x) {
  const std::vector<double> scales = scales_of(node);
  const Shape sizes = node.ints_or("sizes", {});
  if (scales.empty() == sizes.empty()) node.fail("needs the attribute 'scales' or 'sizes', and not both");
  if (scales.size() + sizes.size() != x.size())
    node.fail(fmt::format("scales or sizes have {} entries; the input {} needs {}", scales.size() + sizes.size(),
                          graph::to_string(x), x.size()));
  std::vector<Dimension> dimensions;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] < 1) node.fail(fmt::format("the input {} is empty", graph::to_string(x)));
    const auto in = static_cast<double>(x[i]);
    Dimension d{.in = x[i], .out = 0, .scale = scales.empty() ? static_cast<double>(sizes[i]) / in : scales[i]};
    const double out = scales.empty() ? static_cast<double>(sizes[i]) : std::floor(in * d.scale);
    if (!(out >= 1 && out <= 0x1p40)) node.fail(fmt::format("dimension {} of {} would become {}", i, x[i], out));
    d.out = static_cast<std::int64_t>(out);
    dimensions.push_back(d);
  }
  return dimensions;
}

Shape out_shape(const std::vector<Dimension>& dimensions) {
  Shape y;
  for (const Dimension& d : dimensions) y.push_back(d.out);
  return y;
}

/// For every output index of every dimension the input index that it copies.
struct Sources {
  Shape in, out;
  std::vector<std::vector<std::int64_t>> of;

  Sources(const NodeView& node, const Shape& x) : in(x) {
    const std::vector<Dimension> dimensions = dimensions_of(node, x);
    out = out_shape(dimensions);
    const Transform transform = transform_of(node);
    const Round round = round_of(node);
    for (const Dimension& d : dimensions) {
      of.emplace_back();
      for (std::int64_t o = 0; o < d.out; ++o) {
        const double at = round(transform(d, static_cast<double>(o)));
        of.back().push_back(static_cast<std::int64_t>(std::clamp(at, 0.0, static_cast<double>(d.in - 1))));
      }
    }
  }
};

// ---- Resize(x) -> y ------------------------------------------------------------------------------------------------

std::vector<TensorType> resize_infer(const NodeView& node) {
  require_float(node, 0);
  transform_of(node);
  round_of(node);
  if (node.string_or("mode", "nearest") != "nearest")
    node.fail(fmt::format("mode '{}' is not supported; nearest is", node.string_or("mode", "")));
  return {{node.input(0).dtype, out_shape(dimensions_of(node, node.input(0).shape))}};
}

void resize_gradient(GradientContext& context) {
  graph::Attrs attrs = context.view().node().attrs;
  attrs["input_shape"] = context.view().input(0).shape;
  context.set(0, context.emit("ResizeGrad", {context.gradient()}, attrs, "grad")[0]);
}

/// Copies one output block of dimensions [axis, rank); returns where the next one begins.
template <class T>
T* copy_block(const Sources& s, std::size_t axis, const T* x, std::int64_t x_block, T* y) {
  if (axis == s.in.size()) {
    *y = *x;
    return y + 1;
  }
  const std::int64_t inner = x_block / s.in[axis];
  for (const std::int64_t i : s.of[axis]) y = copy_block(s, axis + 1, x + i * inner, inner, y);
  return y;
}

std::vector<Implementation> resize_implementations(const NodeView& node) {
  return with_float(node, node.input(0).dtype, [&](auto zero) {
    using T = decltype(zero);
    return std::vector<Implementation>{
        {{.name = "plain", .reads = {0}, .writes = {0}},
         [s = Sources(node, node.input(0).shape), n = node.input(0).elements()](const KernelArgs& args) {
           copy_block(s, 0, in<T>(args, 0), n, out<T>(args, 0));
         }}};
  });
}

Work resize_work(const NodeView& node) { return work_of(node, 0); }

// ---- ResizeGrad(dy) -> dx ------------------------------------------------------------------------------------------

std::vector<TensorType> grad_infer(const NodeView& node) {
  require_float(node, 0);
  const DType dtype = node.input(0).dtype;
  const Shape x = required_ints(node, "input_shape");
  require_type(node, 0, {dtype, out_shape(dimensions_of(node, x))});
  return {{dtype, x}};
}

/// Every input is copied by a box of outputs, since sources never decrease; this is the box's extent per dimension.
std::vector<std::vector<Span>> copies_of(const Sources& s) {
  std::vector<std::vector<Span>> copies;
  for (std::size_t axis = 0; axis < s.in.size(); ++axis) {
    const std::vector<std::int64_t>& of = s.of[axis];
    copies.emplace_back();
    for (std::int64_t i = 0; i < s.in[axis]; ++i) {
      const auto [begin, end] = std::equal_range(of.begin(), of.end(), i);
      copies.back().push_back({begin - of.begin(), end - of.begin()});
    }
  }
  return copies;
}

struct Boxes {
  Sources sources;
  std::vector<std::vector<Span>> copies;

  Boxes(const NodeView& node, const Shape& x) : sources(node, x), copies(copies_of(sources)) {}

  /// The sum of dy over the copies of input element `i`, of dimensions [axis, rank). Blocks: their sizes.
  template <class T>
  double sum(std::size_t axis, std::int64_t i, std::int64_t x_block, const T* dy, std::int64_t y_block) const {
    if (axis == copies.size()) return static_cast<double>(*dy);
    const std::int64_t x_inner = x_block / sources.in[axis], y_inner = y_block / sources.out[axis];
    const Span span = copies[axis][static_cast<std::size_t>(i / x_inner)];
    double total = 0;
    for (std::int64_t o = span.begin; o < span.end; ++o)
      total += sum(axis + 1, i % x_inner, x_inner, dy + o * y_inner, y_inner);
    return total;
  }
};

std::vector<Implementation> grad_implementations(const NodeView& node) {
  const Boxes boxes(node, node.ints_or("input_shape", {}));
  const std::int64_t n_out = node.input(0).elements(), n_in = node.output(0).elements();
  return with_float(node, node.input(0).dtype, [&](auto zero) {
    using T = decltype(zero);
    return std::vector<Implementation>{
        {{.name = "plain", .reads = {0}, .writes = {0}}, [boxes, n_in, n_out](const KernelArgs& args) {
           for (std::int64_t i = 0; i < n_in; ++i)
             out<T>(args, 0)[i] = static_cast<T>(boxes.sum(0, i, n_in, in<T>(args, 0), n_out));
         }}};
  });
}

Work grad_work(const NodeView& node) { return work_of(node, static_cast<double>(node.input(0).elements())); }

}  // namespace

std::vector<OpDef> resize_ops() {
  return {
      OpDef{.name = "Resize",
            .n_inputs = {1, 1},
            .n_outputs = {1, 1},
            .infer = resize_infer,
            .gradient = resize_gradient,
            .work = resize_work,
            .implementations = resize_implementations},
      OpDef{.name = "ResizeGrad",
            .n_inputs = {1, 1},
            .n_outputs = {1, 1},
            .infer = grad_infer,
            .work = grad_work,
            .implementations = grad_implementations},
  };
}

}  // namespace neaptide::ops
