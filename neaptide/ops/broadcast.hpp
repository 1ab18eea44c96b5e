// Numpy broadcasting: type rules, the adjoint in gradients, and reductions over dimensions.
#pragma once

#include "neaptide/ops/kernel.hpp"
#include "neaptide/ops/strided.hpp"

namespace neaptide::ops {

/// The common shape of two operands; fails when there is none.
Shape broadcast(const NodeView& node, const Shape& a, const Shape& b);

/// May `from` be broadcast to `to`?
bool broadcasts_to(const Shape& from, const Shape& to);

/// `gradient` summed to the shape of the node's input `i` (itself when it has that shape already). Emits SumTo.
ValueId sum_to_input(GradientContext& context, ValueId gradient, std::size_t i, const std::string& suffix);

/// `x` times `scale` (itself when that is one). Emits ExpandTo.
ValueId scaled(GradientContext& context, ValueId x, double scale, const std::string& suffix);

/// `x` with another shape (itself when it has that shape already). Emits Reshape.
ValueId reshaped(GradientContext& context, ValueId x, const Shape& shape, const std::string& suffix);

/// y[kept index] = f(sum of x over the reduced dimensions), in row-major order of x.
template <class T, class F>
KernelFn reduction(const Shape& shape, const std::vector<bool>& reduced, F f) {
  const Strides x_strides = strides_of(shape);
  Shape kept_shape, reduced_shape;
  Strides kept_strides, reduced_strides;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    (reduced[d] ? reduced_shape : kept_shape).push_back(shape[d]);
    (reduced[d] ? reduced_strides : kept_strides).push_back(x_strides[d]);
  }
  const StridedLoop<1> outer(kept_shape, {kept_strides}), inner(reduced_shape, {reduced_strides});
  return [outer, inner, f](const KernelArgs& args) {
    const T* x = in<T>(args, 0);
    T* y = out<T>(args, 0);
    outer.run([&](const auto& start) {
      Accumulator<T> sum = 0;
      inner.run([&](const auto& at) { sum += static_cast<Accumulator<T>>(x[start[0] + at[0]]); });
      *y++ = static_cast<T>(f(sum));
    });
  };
}

}  // namespace neaptide::ops
