#include "neaptide/ops/window.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace neaptide::ops {
namespace {

using graph::NodeView;
using graph::Shape;

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return -floor_div(-a, b); }

/// Sizes and settings up to this keep every product of two of them inside 64 bits.
constexpr std::int64_t kLimit = std::int64_t{1} << 31;

/// A list attribute with one entry per spatial axis (or two: begins, then ends).
Shape per_axis(const NodeView& node, const char* key, std::size_t n, std::int64_t otherwise, std::int64_t least) {
  Shape values = node.ints_or(key, {});
  if (values.empty()) return Shape(n, otherwise);
  if (values.size() != n) node.fail(fmt::format("attribute '{}' has {} entries; {} are needed", key, values.size(), n));
  for (const std::int64_t v : values) {
    if (v < least || v > kLimit)
      node.fail(fmt::format("attribute '{}' holds {}; {} to {} is legal", key, v, least, kLimit));
  }
  return values;
}

enum class AutoPad { kNotSet, kValid, kSameUpper, kSameLower };

AutoPad auto_pad_of(const NodeView& node) {
  const std::string word = node.string_or("auto_pad", "NOTSET");
  if (word == "NOTSET" || word.empty()) return AutoPad::kNotSet;
  if (word == "VALID") return AutoPad::kValid;
  if (word == "SAME_UPPER") return AutoPad::kSameUpper;
  if (word == "SAME_LOWER") return AutoPad::kSameLower;
  node.fail(fmt::format("auto_pad '{}' is unknown; NOTSET, VALID, SAME_UPPER or SAME_LOWER is needed", word));
}

void share_padding(Axis& axis, std::int64_t total, bool more_at_end) {
  axis.pad_begin = more_at_end ? total / 2 : total - total / 2;
  axis.pad_end = total - axis.pad_begin;
}

/// Kernel, strides, dilations and explicit pads; sizes not yet.
Window start(const NodeView& node, const Shape& input, const Shape& kernel, AutoPad auto_pad) {
  if (input.size() < 3 || input.size() > 5)
    node.fail(fmt::format("input 0 has the shape {}; batch, channels and one to three spatial axes are needed",
                          graph::to_string(input)));
  Window w;
  w.rank = input.size() - 2;
  if (kernel.size() != w.rank)
    node.fail(
        fmt::format("the kernel {} does not have the {} spatial axes of input 0", graph::to_string(kernel), w.rank));
  const Shape strides = per_axis(node, "strides", w.rank, 1, 1);
  const Shape dilations = per_axis(node, "dilations", w.rank, 1, 1);
  const Shape pads = per_axis(node, "pads", 2 * w.rank, 0, 0);
  for (std::size_t i = 0; i < w.rank; ++i) {
    Axis& a = w.axes[3 - w.rank + i];
    a.kernel = kernel[i];
    if (a.kernel < 1 || a.kernel > kLimit)
      node.fail(fmt::format("the kernel {} is illegal; 1 to {} per axis is needed", graph::to_string(kernel), kLimit));
    if (input[2 + i] < 1 || input[2 + i] > kLimit)
      node.fail(
          fmt::format("the input {} is illegal; 1 to {} per spatial axis is needed", graph::to_string(input), kLimit));
    a.stride = strides[i];
    a.dilation = dilations[i];
    if (auto_pad != AutoPad::kNotSet) continue;
    a.pad_begin = pads[i];
    a.pad_end = pads[w.rank + i];
  }
  return w;
}

void set_sizes(const NodeView& node, Axis& a, std::int64_t in, AutoPad auto_pad, bool ceil_mode) {
  a.in = in;
  if (auto_pad == AutoPad::kSameUpper || auto_pad == AutoPad::kSameLower) {
    a.out = ceil_div(in, a.stride);
    share_padding(a, std::max<std::int64_t>(0, (a.out - 1) * a.stride + a.extent() - in),
                  auto_pad == AutoPad::kSameUpper);
    return;
  }
  const std::int64_t room = in + a.pad_begin + a.pad_end - a.extent();
  if (room < 0)
    node.fail(
        fmt::format("the window spans {} but the padded input only {}", a.extent(), in + a.pad_begin + a.pad_end));
  a.out = (ceil_mode ? ceil_div(room, a.stride) : room / a.stride) + 1;
  // A window that would begin in the padding behind the input is dropped.
  if (ceil_mode && (a.out - 1) * a.stride >= in + a.pad_begin) --a.out;
}

Window forward_window(const NodeView& node, const Shape& input, const Shape& kernel, bool ceil_mode) {
  const AutoPad auto_pad = auto_pad_of(node);
  Window w = start(node, input, kernel, auto_pad);
  for (std::size_t i = 0; i < w.rank; ++i) set_sizes(node, w.axes[3 - w.rank + i], input[2 + i], auto_pad, ceil_mode);
  return w;
}

Shape last_axes(const Window& w, std::int64_t Axis::*size) {
  Shape shape;
  for (std::size_t i = 3 - w.rank; i < 3; ++i) shape.push_back(w.axes[i].*size);
  return shape;
}

}  // namespace

Span outputs_of_tap(const Axis& a, std::int64_t k) {
  const std::int64_t shift = a.pad_begin - k * a.dilation;
  const std::int64_t begin = std::max<std::int64_t>(0, ceil_div(shift, a.stride));
  const std::int64_t end = std::min(a.out, floor_div(a.in - 1 + shift, a.stride) + 1);
  return {begin, std::max(begin, end)};
}

Span taps_of_output(const Axis& a, std::int64_t o) {
  const std::int64_t first = a.input(o, 0);
  const std::int64_t begin = std::max<std::int64_t>(0, ceil_div(-first, a.dilation));
  const std::int64_t end = std::min(a.kernel, floor_div(a.in - 1 - first, a.dilation) + 1);
  return {begin, std::max(begin, end)};
}

Shape Window::out_shape() const { return last_axes(*this, &Axis::out); }
Shape Window::in_shape() const { return last_axes(*this, &Axis::in); }

Window conv_window(const NodeView& node, const Shape& input, const Shape& kernel) {
  return forward_window(node, input, kernel, false);
}

Window pool_window(const NodeView& node, const Shape& input) {
  if (!node.has_attr("kernel_shape")) node.fail("attribute 'kernel_shape' is missing");
  const Window w = forward_window(node, input, node.ints_or("kernel_shape", {}), node.int_or("ceil_mode", 0) != 0);
  for (const Axis& a : w.axes) {
    for (std::int64_t o = 0; o < a.out; ++o) {
      const Span taps = taps_of_output(a, o);
      if (taps.begin == taps.end)
        node.fail(
            fmt::format("window {} of an axis of {} holds nothing but padding; smaller pads are needed", o, a.in));
    }
  }
  return w;
}

Window transposed_window(const NodeView& node, const Shape& input, const Shape& kernel) {
  const AutoPad auto_pad = auto_pad_of(node);
  Window w = start(node, input, kernel, auto_pad);
  const Shape extra = per_axis(node, "output_padding", w.rank, 0, 0);
  Shape wanted = node.ints_or("output_shape", {});
  if (wanted.size() == w.rank + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (!wanted.empty() && wanted.size() != w.rank)
    node.fail(fmt::format("attribute 'output_shape' has {} entries; {} are needed", wanted.size(), w.rank));
  for (std::size_t i = 0; i < w.rank; ++i) {
    Axis& a = w.axes[3 - w.rank + i];
    a.out = input[2 + i];
    const std::int64_t full = (a.out - 1) * a.stride + a.extent() + extra[i];
    const bool same = auto_pad == AutoPad::kSameUpper || auto_pad == AutoPad::kSameLower;
    if (same || !wanted.empty()) {
      a.in = wanted.empty() ? a.out * a.stride : wanted[i];
      share_padding(a, std::max<std::int64_t>(0, full - a.in), auto_pad == AutoPad::kSameUpper);
    } else {
      a.in = full - a.pad_begin - a.pad_end;
    }
    if (a.in < 1)
      node.fail(fmt::format("the pads {} and {} leave nothing of an output axis of {}", a.pad_begin, a.pad_end, full));
  }
  return w;
}

}  // namespace neaptide::ops
