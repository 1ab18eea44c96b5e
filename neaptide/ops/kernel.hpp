// What reference kernels and type rules of all families share: typed access to the arguments, dispatch on the element
// type, and the traffic of a node. Reference kernels see plain tensors only, whatever formats the values have.
//
//   return with_float(node, node.input(0).dtype, [&](auto zero) -> KernelFn {
//     using T = decltype(zero);
//     return [n](const KernelArgs& args) { const T* x = in<T>(args, 0); T* y = out<T>(args, 0); ... };
//   });
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "neaptide/graph/op_def.hpp"

namespace neaptide::ops {

using graph::DType;
using graph::GradientContext;
using graph::Implementation;
using graph::ImplSpec;
using graph::KernelArgs;
using graph::KernelFn;
using graph::NodeView;
using graph::OpDef;
using graph::Shape;
using graph::Tensor;
using graph::TensorType;
using graph::ValueId;
using graph::Work;

/// The type in which sums of T are accumulated: double for floating point, 64-bit integers otherwise.
template <class T>
using Accumulator = std::conditional_t<std::is_floating_point_v<T>, double, std::int64_t>;

template <class T>
const T* in(const KernelArgs& args, std::size_t i) {
  return static_cast<const T*>(args.inputs[i]);
}

template <class T>
T* out(const KernelArgs& args, std::size_t i) {
  return static_cast<T*>(args.outputs[i]);
}

template <class F>
auto with_float(const NodeView& node, DType dtype, F&& f) {
  if (dtype == DType::kF32) return f(float{});
  if (dtype == DType::kF64) return f(double{});
  node.fail(fmt::format("computes on f32 and f64, not on {}", graph::to_string(dtype)));
}

/// f32, f64, i64, i32.
template <class F>
auto with_number(const NodeView& node, DType dtype, F&& f) {
  if (dtype == DType::kI64) return f(std::int64_t{});
  if (dtype == DType::kI32) return f(std::int32_t{});
  if (dtype == DType::kF32) return f(float{});
  if (dtype == DType::kF64) return f(double{});
  node.fail(fmt::format("computes on f32, f64, i64 and i32, not on {}", graph::to_string(dtype)));
}

/// Fails unless the element type is f32 or f64.
inline void require_float(const NodeView& node, std::size_t input) {
  with_float(node, node.input(input).dtype, [](auto) {});
}

inline void require_number(const NodeView& node, std::size_t input) {
  with_number(node, node.input(input).dtype, [](auto) {});
}

/// Fails unless inputs `a` and `b` have the same type.
inline void require_same(const NodeView& node, std::size_t a, std::size_t b) {
  if (node.input(a) != node.input(b))
    node.fail(fmt::format("input {} is {} and input {} is {}; they must be alike", a, graph::to_string(node.input(a)),
                          b, graph::to_string(node.input(b))));
}

/// Fails unless the input has exactly this type.
inline void require_type(const NodeView& node, std::size_t input, const TensorType& type) {
  if (node.input(input) != type)
    node.fail(fmt::format("input {} is {}; {} is needed", input, graph::to_string(node.input(input)),
                          graph::to_string(type)));
}

/// The value of a list attribute that must be there.
inline Shape required_ints(const NodeView& node, const char* key) {
  if (!node.has_attr(key)) node.fail(fmt::format("attribute '{}' is missing", key));
  return node.ints_or(key, {});
}

/// ONNX axis in [-rank, rank) to [0, rank).
inline std::size_t axis_of(const NodeView& node, std::int64_t axis, std::size_t rank) {
  const auto r = static_cast<std::int64_t>(rank);
  if (axis < -r || axis >= r) node.fail(fmt::format("axis {} is outside a tensor of {} dimensions", axis, rank));
  return static_cast<std::size_t>(axis < 0 ? axis + r : axis);
}

/// Bytes of the values that `spec` names, each once.
inline double traffic(const NodeView& node, const std::vector<int>& reads, const std::vector<int>& writes) {
  double bytes = 0;
  for (const int i : reads) bytes += static_cast<double>(node.input_value(static_cast<std::size_t>(i)).bytes());
  for (const int k : writes) bytes += static_cast<double>(node.output_value(static_cast<std::size_t>(k)).bytes());
  return bytes;
}

/// Positions of the inputs (outputs) that the node has.
inline std::vector<int> present_inputs(const NodeView& node) {
  std::vector<int> positions;
  for (std::size_t i = 0; i < node.n_inputs(); ++i) {
    if (node.has_input(i)) positions.push_back(static_cast<int>(i));
  }
  return positions;
}

inline std::vector<int> present_outputs(const NodeView& node) {
  std::vector<int> positions;
  for (std::size_t k = 0; k < node.n_outputs(); ++k) {
    if (node.has_output(k)) positions.push_back(static_cast<int>(k));
  }
  return positions;
}

/// The work of a node that does `flops` and moves every value that it has once.
inline Work work_of(const NodeView& node, double flops) {
  return {flops, traffic(node, present_inputs(node), present_outputs(node))};
}

}  // namespace neaptide::ops
