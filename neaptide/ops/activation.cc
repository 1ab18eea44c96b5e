#include "neaptide/ops/activation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "neaptide/graph/builder.hpp"
#include "neaptide/ops/bits.hpp"
#include "neaptide/ops/elementwise.hpp"

namespace neaptide::ops {
namespace {

// ---- Relu: y = max(x, 0); a NaN stays one, and its gradient passes -------------------------------------------------

std::vector<TensorType> relu_infer(const NodeView& node) {
  require_number(node, 0);
  return {node.input(0), bits_type(node.input(0).shape)};
}

void relu_gradient(GradientContext& context) {
  const ValueId sign = context.auxiliary(1, "sign");
  context.set(0,
              context.emit("ReluGrad", {context.gradient(), context.input(0), context.output(0), sign}, {}, "grad")[0]);
}

template <class T>
std::vector<Implementation> relu_implementations_of(const NodeView& node) {
  const auto relu = [](T x) { return x <= T{0} ? T{0} : x; };
  std::vector<Implementation> list = unary_implementations<T>(node, relu);
  if (!node.has_output(1)) return list;
  const std::int64_t n = node.input(0).elements();
  add_with_in_place(list,
                    {{.name = "sign", .reads = {0}, .writes = {0, 1}},
                     [n, relu](const KernelArgs& args) {
                       const T* x = in<T>(args, 0);
                       T* y = out<T>(args, 0);
                       fill_bits(out<std::uint8_t>(args, 1), n, [&](std::int64_t i) {
                         const bool pass = !(x[i] <= T{0});
                         y[i] = relu(x[i]);
                         return pass;
                       });
                     }},
                    0, 0);
  return list;
}

std::vector<Implementation> relu_implementations(const NodeView& node) {
  return with_number(node, node.input(0).dtype,
                     [&](auto zero) { return relu_implementations_of<decltype(zero)>(node); });
}

// ---- ReluGrad(dy, x?, y?, sign?) -----------------------------------------------------------------------------------

/// Fails unless input `i` is a mask of input 0.
void require_bits(const NodeView& node, std::size_t i) {
  const TensorType needed = bits_type(node.input(0).shape);
  if (node.input(i) != needed)
    node.fail(fmt::format("the mask is {}; {} is needed", graph::to_string(node.input(i)), graph::to_string(needed)));
}

std::vector<TensorType> relu_grad_infer(const NodeView& node) {
  require_float(node, 0);
  bool any = false;
  for (std::size_t i = 1; i < 3; ++i) {
    if (node.has_input(i)) require_same(node, 0, i);
    any = any || node.has_input(i);
  }
  if (node.has_input(3)) require_bits(node, 3);
  if (!any && !node.has_input(3)) node.fail("needs one of x, y and sign");
  return {node.input(0)};
}

/// dx[i] = dy[i] where bit i of input `at` is set, else 0.
template <class T>
void add_gradient_from_bits(std::vector<Implementation>& list, const NodeView& node, const std::string& name, int at) {
  const std::int64_t n = node.input(0).elements();
  const auto from = static_cast<std::size_t>(at);
  add_with_in_place(list,
                    {{.name = name, .reads = {0, at}, .writes = {0}},
                     [n, from](const KernelArgs& args) {
                       const T* dy = in<T>(args, 0);
                       const auto* bits = in<std::uint8_t>(args, from);
                       T* dx = out<T>(args, 0);
                       for (std::int64_t i = 0; i < n; ++i) dx[i] = bit(bits, i) ? dy[i] : T{0};
                     }},
                    0, 0);
}

template <class T>
std::vector<Implementation> relu_grad_implementations_of(const NodeView& node) {
  const auto gate = [](T dy, T x) { return x <= T{0} ? T{0} : dy; };
  std::vector<Implementation> list;
  if (node.has_input(2)) add_gradient_from<T>(list, node, "from-output", 2, gate);
  if (node.has_input(1)) add_gradient_from<T>(list, node, "from-input", 1, gate);
  if (node.has_input(3)) add_gradient_from_bits<T>(list, node, "from-sign", 3);
  return list;
}

std::vector<Implementation> relu_grad_implementations(const NodeView& node) {
  return with_float(node, node.input(0).dtype,
                    [&](auto zero) { return relu_grad_implementations_of<decltype(zero)>(node); });
}

/// Least traffic: dy, the cheapest of the rest, dx.
Work gate_work(const NodeView& node) {
  double least = 0;
  for (std::size_t i = 1; i < node.n_inputs(); ++i) {
    if (!node.has_input(i)) continue;
    const auto bytes = static_cast<double>(node.input_value(i).bytes());
    least = least == 0 ? bytes : std::min(least, bytes);
  }
  return {static_cast<double>(node.output(0).elements()), traffic(node, {0}, {0}) + least};
}

// ---- Clip(x, min?, max?): bounds from attributes or constant inputs ------------------------------------------------

struct Bounds {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
};

double scalar_of(const NodeView& node, std::size_t i, const char* what) {
  const std::optional<Tensor> tensor = node.constant_input(i);
  if (!tensor) node.fail(fmt::format("'{}' is not a constant", what));
  if (tensor->type.elements() != 1)
    node.fail(fmt::format("'{}' is {}; a scalar is needed", what, graph::to_string(tensor->type)));
  return with_number(node, tensor->type.dtype,
                     [&](auto zero) { return static_cast<double>(tensor->as<decltype(zero)>()[0]); });
}

Bounds bounds_of(const NodeView& node, bool from_inputs) {
  Bounds bounds;
  bounds.low = node.float_or("min", bounds.low);
  bounds.high = node.float_or("max", bounds.high);
  if (from_inputs && node.has_input(1)) bounds.low = scalar_of(node, 1, "min");
  if (from_inputs && node.has_input(2)) bounds.high = scalar_of(node, 2, "max");
  return bounds;
}

/// A bound in the element type; integers saturate.
template <class T>
T bound(double value) {
  if constexpr (std::is_integral_v<T>) {
    if (value <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
    if (value >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  }
  return static_cast<T>(value);
}

std::vector<TensorType> clip_infer(const NodeView& node) {
  require_number(node, 0);
  bounds_of(node, true);
  return {node.input(0), bits_type(node.input(0).shape)};
}

void clip_gradient(GradientContext& context) {
  const Bounds bounds = bounds_of(context.view(), true);
  graph::Attrs attrs;
  if (std::isfinite(bounds.low)) attrs["min"] = bounds.low;
  if (std::isfinite(bounds.high)) attrs["max"] = bounds.high;
  const ValueId mask = context.auxiliary(1, "mask");
  context.set(
      0, context.emit("ClipGrad", {context.gradient(), context.input(0), mask, context.output(0)}, attrs, "grad")[0]);
}

template <class T>
std::vector<Implementation> clip_implementations_of(const NodeView& node) {
  const Bounds bounds = bounds_of(node, true);
  const T low = bound<T>(bounds.low), high = bound<T>(bounds.high);
  const auto clip = [low, high](T x) { return x < low ? std::min(low, high) : x > high ? high : x; };
  std::vector<Implementation> list = unary_implementations<T>(node, clip);
  if (!node.has_output(1)) return list;
  const std::int64_t n = node.input(0).elements();
  add_with_in_place(list,
                    {{.name = "mask", .reads = {0}, .writes = {0, 1}},
                     [n, low, high, clip](const KernelArgs& args) {
                       const T* x = in<T>(args, 0);
                       T* y = out<T>(args, 0);
                       fill_bits(out<std::uint8_t>(args, 1), n, [&](std::int64_t i) {
                         const bool pass = x[i] > low && x[i] < high;
                         y[i] = clip(x[i]);
                         return pass;
                       });
                     }},
                    0, 0);
  return list;
}

std::vector<Implementation> clip_implementations(const NodeView& node) {
  return with_number(node, node.input(0).dtype,
                     [&](auto zero) { return clip_implementations_of<decltype(zero)>(node); });
}

// ---- ClipGrad(dy, x?, mask?, y?): passes where min < x < max, which is where min < y < max ------------------------

std::vector<TensorType> clip_grad_infer(const NodeView& node) {
  require_float(node, 0);
  for (const std::size_t i : {1, 3}) {
    if (node.has_input(i)) require_same(node, 0, i);
  }
  if (node.has_input(2)) require_bits(node, 2);
  if (!node.has_input(1) && !node.has_input(2) && !node.has_input(3)) node.fail("needs one of x, mask and y");
  return {node.input(0)};
}

template <class T>
std::vector<Implementation> clip_grad_implementations_of(const NodeView& node) {
  const Bounds bounds = bounds_of(node, false);
  const T low = bound<T>(bounds.low), high = bound<T>(bounds.high);
  const auto gate = [low, high](T dy, T x) { return x > low && x < high ? dy : T{0}; };
  std::vector<Implementation> list;
  if (node.has_input(3)) add_gradient_from<T>(list, node, "from-output", 3, gate);
  if (node.has_input(1)) add_gradient_from<T>(list, node, "from-input", 1, gate);
  if (node.has_input(2)) add_gradient_from_bits<T>(list, node, "from-mask", 2);
  return list;
}

std::vector<Implementation> clip_grad_implementations(const NodeView& node) {
  return with_float(node, node.input(0).dtype,
                    [&](auto zero) { return clip_grad_implementations_of<decltype(zero)>(node); });
}

// ---- Sigmoid, Tanh, and their gradients from the output
// --------------------------------------------------------------

std::vector<TensorType> smooth_infer(const NodeView& node) {
  require_float(node, 0);
  return {node.input(0)};
}

std::vector<TensorType> smooth_grad_infer(const NodeView& node) {
  require_float(node, 0);
  require_same(node, 0, 1);
  return {node.input(0)};
}

void sigmoid_gradient(GradientContext& context) {
  context.set(0, context.emit("SigmoidGrad", {context.gradient(), context.output(0)}, {}, "grad")[0]);
}

void tanh_gradient(GradientContext& context) {
  context.set(0, context.emit("TanhGrad", {context.gradient(), context.output(0)}, {}, "grad")[0]);
}

/// exp of a negative number only: no overflow.
template <class T>
T sigmoid(T x) {
  const T e = std::exp(-std::abs(x));
  return (x >= T{0} ? T{1} : e) / (T{1} + e);
}

std::vector<Implementation> sigmoid_implementations(const NodeView& node) {
  return with_float(node, node.input(0).dtype,
                    [&](auto zero) { return unary_implementations<decltype(zero)>(node, sigmoid<decltype(zero)>); });
}

std::vector<Implementation> tanh_implementations(const NodeView& node) {
  return with_float(node, node.input(0).dtype, [&](auto zero) {
    using T = decltype(zero);
    return unary_implementations<T>(node, [](T x) { return std::tanh(x); });
  });
}

std::vector<Implementation> sigmoid_grad_implementations(const NodeView& node) {
  return with_float(node, node.input(0).dtype, [&](auto zero) {
    using T = decltype(zero);
    std::vector<Implementation> list;
    add_gradient_from<T>(list, node, "plain", 1, [](T dy, T y) { return dy * y * (T{1} - y); });
    return list;
  });
}

std::vector<Implementation> tanh_grad_implementations(const NodeView& node) {
  return with_float(node, node.input(0).dtype, [&](auto zero) {
    using T = decltype(zero);
    std::vector<Implementation> list;
    add_gradient_from<T>(list, node, "plain", 1, [](T dy, T y) { return dy * (T{1} - y * y); });
    return list;
  });
}

/// An exponential and a division count about 20 flops.
Work smooth_work(const NodeView& node) { return work_of(node, 20.0 * static_cast<double>(node.output(0).elements())); }

Work smooth_grad_work(const NodeView& node) {
  return work_of(node, 3.0 * static_cast<double>(node.output(0).elements()));
}

}  // namespace

std::vector<OpDef> activation_ops() {
  return {
      OpDef{.name = "Clip",
            .n_inputs = {1, 3},
            .n_outputs = {1, 2},
            .infer = clip_infer,
            .gradient = clip_gradient,
            .work = elementwise_work,
            .implementations = clip_implementations},
      OpDef{.name = "ClipGrad",
            .n_inputs = {2, 4},
            .n_outputs = {1, 1},
            .infer = clip_grad_infer,
            .work = gate_work,
            .implementations = clip_grad_implementations},
      OpDef{.name = "Relu",
            .n_inputs = {1, 1},
            .n_outputs = {1, 2},
            .infer = relu_infer,
            .gradient = relu_gradient,
            .work = elementwise_work,
            .implementations = relu_implementations},
      OpDef{.name = "ReluGrad",
            .n_inputs = {2, 4},
            .n_outputs = {1, 1},
            .infer = relu_grad_infer,
            .work = gate_work,
            .implementations = relu_grad_implementations},
      OpDef{.name = "Sigmoid",
            .n_inputs = {1, 1},
            .n_outputs = {1, 1},
            .infer = smooth_infer,
            .gradient = sigmoid_gradient,
            .work = smooth_work,
            .implementations = sigmoid_implementations},
      OpDef{.name = "SigmoidGrad",
            .n_inputs = {2, 2},
            .n_outputs = {1, 1},
            .infer = smooth_grad_infer,
            .work = smooth_grad_work,
            .implementations = sigmoid_grad_implementations},
      OpDef{.name = "Tanh",
            .n_inputs = {1, 1},
            .n_outputs = {1, 1},
            .infer = smooth_infer,
            .gradient = tanh_gradient,
            .work = smooth_work,
            .implementations = tanh_implementations},
      OpDef{.name = "TanhGrad",
            .n_inputs = {2, 2},
            .n_outputs = {1, 1},
            .infer = smooth_grad_infer,
            .work = smooth_grad_work,
            .implementations = tanh_grad_implementations},
  };
}

}  // namespace neaptide::ops
