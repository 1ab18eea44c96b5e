// The sliding window of convolutions and pools, from ONNX attributes: kernel_shape, strides, dilations, pads, auto_pad,
// ceil_mode, output_padding and output_shape.
//
//   const Window w = conv_window(node, x.shape, kernel);
//   Shape y = {n, m}; append w.out_shape()
//
// Output o of an axis reads the inputs o * stride - pad_begin + k * dilation, k in [0, kernel); those outside [0, in)
// are padding.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "neaptide/graph/op_def.hpp"

namespace neaptide::ops {

struct Axis {
  std::int64_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, pad_begin = 0, pad_end = 0;
  std::int64_t extent() const { return (kernel - 1) * dilation + 1; }
  std::int64_t input(std::int64_t o, std::int64_t k) const { return o * stride - pad_begin + k * dilation; }
  friend bool operator==(const Axis&, const Axis&) = default;
};

struct Span {
  std::int64_t begin = 0, end = 0;
  friend bool operator==(const Span&, const Span&) = default;
};

/// The outputs for which tap k of the axis lies inside the input.
Span outputs_of_tap(const Axis& axis, std::int64_t k);
/// The taps of output o that lie inside the input.
Span taps_of_output(const Axis& axis, std::int64_t o);

/// Depth, height and width; an axis that the tensor lacks is trivial (all sizes 1). `rank`: those that it has.
struct Window {
  std::size_t rank = 2;
  std::array<Axis, 3> axes;

  std::int64_t in_elements() const { return axes[0].in * axes[1].in * axes[2].in; }
  std::int64_t out_elements() const { return axes[0].out * axes[1].out * axes[2].out; }
  std::int64_t kernel_elements() const { return axes[0].kernel * axes[1].kernel * axes[2].kernel; }
  graph::Shape out_shape() const;  // spatial axes only, as many as `rank`
  graph::Shape in_shape() const;
  friend bool operator==(const Window&, const Window&) = default;
};

/// For an input {n, c, spatial...} of one to three spatial axes. UserError when an attribute does not fit, or when the
/// window is larger than the padded input.
Window conv_window(const graph::NodeView& node, const graph::Shape& input, const graph::Shape& kernel);
/// Takes kernel_shape and ceil_mode from the attributes as well; refuses windows that hold nothing but padding.
Window pool_window(const graph::NodeView& node, const graph::Shape& input);
/// The window of the convolution of which this ConvTranspose is the adjoint: `out` is the transposed input's size, `in`
/// the transposed output's.
Window transposed_window(const graph::NodeView& node, const graph::Shape& input, const graph::Shape& kernel);

}  // namespace neaptide::ops
