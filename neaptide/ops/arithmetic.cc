#include "neaptide/ops/arithmetic.hpp"

#include <algorithm>
#include <limits>

#include "neaptide/graph/builder.hpp"
#include "neaptide/ops/broadcast.hpp"
#include "neaptide/ops/elementwise.hpp"

namespace neaptide::ops {
namespace {

// Integers wrap around; a division by zero gives 0.
template <class T>
T add(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
  } else {
    return a + b;
  }
}

template <class T>
T subtract(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(a) - static_cast<U>(b));
  } else {
    return a - b;
  }
}

template <class T>
T multiply(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
  } else {
    return a * b;
  }
}

template <class T>
T divide(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) return 0;
    if (b == -1) return subtract(T{0}, a);
  }
  return a / b;
}

// ---- binary operators -----------------------------------------------------------------------------------------------

std::vector<TensorType> binary_infer(const NodeView& node) {
  require_number(node, 0);
  if (node.input(0).dtype != node.input(1).dtype)
    node.fail(fmt::format("the operands are {} and {}; they must have one element type",
                          graph::to_string(node.input(0).dtype), graph::to_string(node.input(1).dtype)));
  return {{node.input(0).dtype, broadcast(node, node.input(0).shape, node.input(1).shape)}};
}

/// y = f(a, b), plain and in place on each operand of the output's type.
template <class T, class F>
std::vector<Implementation> binary_implementations(const NodeView& node, F f) {
  const Shape& shape = node.output(0).shape;
  const Shape &a_shape = node.input(0).shape, &b_shape = node.input(1).shape;
  KernelFn kernel;
  if (a_shape == b_shape) {
    kernel = [n = node.output(0).elements(), f](const KernelArgs& args) {
      const T *a = in<T>(args, 0), *b = in<T>(args, 1);
      T* y = out<T>(args, 0);
      for (std::int64_t i = 0; i < n; ++i) y[i] = f(a[i], b[i]);
    };
  } else {
    const StridedLoop<2> loop(shape, {broadcast_strides(a_shape, shape), broadcast_strides(b_shape, shape)});
    kernel = [loop, f](const KernelArgs& args) {
      const T *a = in<T>(args, 0), *b = in<T>(args, 1);
      T* y = out<T>(args, 0);
      loop.run([&](const auto& at) { *y++ = f(a[at[0]], b[at[1]]); });
    };
  }
  std::vector<Implementation> list;
  list.push_back({{.name = "plain", .reads = {0, 1}, .writes = {0}}, kernel});
  if (a_shape == shape)
    list.push_back({{.name = "in-place", .reads = {0, 1}, .writes = {0}, .in_place = {{0, 0}}}, kernel});
  if (b_shape == shape && node.node().inputs[0] != node.node().inputs[1])
    list.push_back({{.name = "in-place-second", .reads = {0, 1}, .writes = {0}, .in_place = {{1, 0}}}, kernel});
  return list;
}

// ---- Add (activation = "" or "relu") --------------------------------------------------------------------------------

std::vector<TensorType> add_infer(const NodeView& node) {
  const std::string activation = node.string_or("activation", "");
  if (!activation.empty() && activation != "relu")
    node.fail(fmt::format("activation '{}' is unknown; '' and 'relu' are known", activation));
  return binary_infer(node);
}

void add_gradient(GradientContext& context) {
  ValueId dy = context.gradient();
  if (context.view().string_or("activation", "") == "relu")
    dy = context.emit("ReluGrad", {dy, ValueId(), context.output(0)}, {}, "relu_grad")[0];
  if (context.wants(0)) context.set(0, sum_to_input(context, dy, 0, "grad_a"));
  if (context.wants(1)) context.set(1, sum_to_input(context, dy, 1, "grad_b"));
}

std::vector<Implementation> add_implementations(const NodeView& node) {
  const bool relu = node.string_or("activation", "") == "relu";
  return with_number(node, node.input(0).dtype, [&](auto zero) {
    using T = decltype(zero);
    if (!relu) return binary_implementations<T>(node, add<T>);
    return binary_implementations<T>(node, [](T a, T b) {
      const T sum = add(a, b);
      return sum <= T{0} ? T{0} : sum;
    });
  });
}

// ---- Sub, Mul, Div
// ----------------------------------------------------------------------------------------------------

void sub_gradient(GradientContext& context) {
  const ValueId dy = context.gradient();
  if (context.wants(0)) context.set(0, sum_to_input(context, dy, 0, "grad_a"));
  if (context.wants(1)) context.set(1, scaled(context, sum_to_input(context, dy, 1, "grad_b_sum"), -1.0, "grad_b"));
}

std::vector<Implementation> sub_implementations(const NodeView& node) {
  return with_number(node, node.input(0).dtype,
                     [&](auto zero) { return binary_implementations<decltype(zero)>(node, subtract<decltype(zero)>); });
}

void mul_gradient(GradientContext& context) {
  const ValueId dy = context.gradient();
  if (context.wants(0)) {
    const ValueId full = context.emit("Mul", {dy, context.input(1)}, {}, "grad_a")[0];
    context.set(0, sum_to_input(context, full, 0, "grad_a_sum"));
  }
  if (context.wants(1)) {
    const ValueId full = context.emit("Mul", {dy, context.input(0)}, {}, "grad_b")[0];
    context.set(1, sum_to_input(context, full, 1, "grad_b_sum"));
  }
}

std::vector<Implementation> mul_implementations(const NodeView& node) {
  return with_number(node, node.input(0).dtype,
                     [&](auto zero) { return binary_implementations<decltype(zero)>(node, multiply<decltype(zero)>); });
}

void div_gradient(GradientContext& context) {
  const ValueId dy = context.gradient();
  if (context.wants(0)) {
    const ValueId full = context.emit("Div", {dy, context.input(1)}, {}, "grad_a")[0];
    context.set(0, sum_to_input(context, full, 0, "grad_a_sum"));
  }
  if (context.wants(1)) {
    const ValueId full = context.emit("DivGradB", {dy, context.output(0), context.input(1)}, {}, "grad_b")[0];
    context.set(1, sum_to_input(context, full, 1, "grad_b_sum"));
  }
}

std::vector<Implementation> div_implementations(const NodeView& node) {
  return with_number(node, node.input(0).dtype,
                     [&](auto zero) { return binary_implementations<decltype(zero)>(node, divide<decltype(zero)>); });
}

// ---- DivGradB(dy, y, b) = -dy y / b, of the shape of y
// ----------------------------------------------------------------

std::vector<TensorType> div_grad_b_infer(const NodeView& node) {
  require_float(node, 0);
  require_same(node, 0, 1);
  if (node.input(2).dtype != node.input(0).dtype || !broadcasts_to(node.input(2).shape, node.input(0).shape))
    node.fail(fmt::format("the divisor is {}, which does not fit the quotient {}", graph::to_string(node.input(2)),
                          graph::to_string(node.input(0))));
  return {node.input(0)};
}

std::vector<Implementation> div_grad_b_implementations(const NodeView& node) {
  return with_float(node, node.input(0).dtype, [&](auto zero) {
    using T = decltype(zero);
    const Shape& shape = node.input(0).shape;
    const StridedLoop<1> loop(shape, {broadcast_strides(node.input(2).shape, shape)});
    std::vector<Implementation> list;
    add_with_in_place(list,
                      {{.name = "plain", .reads = {0, 1, 2}, .writes = {0}},
                       [loop](const KernelArgs& args) {
                         const T *dy = in<T>(args, 0), *y = in<T>(args, 1), *b = in<T>(args, 2);
                         T* d = out<T>(args, 0);
                         std::int64_t i = 0;
                         loop.run([&](const auto& at) {
                           d[i] = -dy[i] * y[i] / b[at[0]];
                           ++i;
                         });
                       }},
                      0, 0);
    return list;
  });
}

Work two_flops_work(const NodeView& node) {
  return work_of(node, 2.0 * static_cast<double>(node.output(0).elements()));
}

// ---- Sum(x...)
// ----------------------------------------------------------------------------------------------------------

std::vector<TensorType> sum_infer(const NodeView& node) {
  require_number(node, 0);
  TensorType type = node.input(0);
  for (std::size_t i = 1; i < node.n_inputs(); ++i) {
    if (node.input(i).dtype != type.dtype)
      node.fail(fmt::format("input {} is {}; the others are {}", i, graph::to_string(node.input(i).dtype),
                            graph::to_string(type.dtype)));
    type.shape = broadcast(node, type.shape, node.input(i).shape);
  }
  return {type};
}

void sum_gradient(GradientContext& context) {
  const std::size_t n = context.view().n_inputs();
  for (std::size_t i = 0; i < n; ++i) {
    if (context.wants(i)) context.set(i, sum_to_input(context, context.gradient(), i, fmt::format("grad_{}", i)));
  }
}

Work sum_work(const NodeView& node) {
  return work_of(node, static_cast<double>(node.output(0).elements()) * static_cast<double>(node.n_inputs() - 1));
}

std::vector<Implementation> sum_implementations(const NodeView& node) {
  return with_number(node, node.input(0).dtype, [&](auto zero) -> std::vector<Implementation> {
    using T = decltype(zero);
    const Shape& shape = node.output(0).shape;
    std::vector<StridedLoop<1>> loops;
    for (std::size_t i = 0; i < node.n_inputs(); ++i)
      loops.emplace_back(shape, std::array<Strides, 1>{broadcast_strides(node.input(i).shape, shape)});
    const auto kernel = [loops](const KernelArgs& args) {
      for (std::size_t i = 0; i < loops.size(); ++i) {
        const T* x = in<T>(args, i);
        T* y = out<T>(args, 0);
        loops[i].run([&](const auto& at) {
          *y = i == 0 ? x[at[0]] : add(*y, x[at[0]]);
          ++y;
        });
      }
    };
    return {{{.name = "plain", .reads = present_inputs(node), .writes = {0}}, kernel}};
  });
}

// ---- SumTo(x), ExpandTo(x)
// ----------------------------------------------------------------------------------------------

std::vector<TensorType> sum_to_infer(const NodeView& node) {
  require_number(node, 0);
  const Shape shape = node.ints_or("shape", {});
  if (!broadcasts_to(shape, node.input(0).shape))
    node.fail(fmt::format("shape {} cannot be broadcast to the input's {}", graph::to_string(shape),
                          graph::to_string(node.input(0).shape)));
  return {{node.input(0).dtype, shape}};
}

void sum_to_gradient(GradientContext& context) {
  const Shape shape = context.view().input(0).shape;
  context.set(0, context.emit("ExpandTo", {context.gradient()}, {{"shape", shape}}, "grad")[0]);
}

Work sum_to_work(const NodeView& node) { return work_of(node, static_cast<double>(node.input(0).elements())); }

std::vector<Implementation> sum_to_implementations(const NodeView& node) {
  return with_number(node, node.input(0).dtype, [&](auto zero) -> std::vector<Implementation> {
    using T = decltype(zero);
    const Shape &from = node.input(0).shape, &to = node.output(0).shape;
    std::vector<bool> reduced(from.size(), true);
    for (std::size_t d = 0; d < to.size(); ++d) {
      const std::size_t at = d + from.size() - to.size();
      reduced[at] = to[d] != from[at];
    }
    return {{{.name = "plain", .reads = {0}, .writes = {0}},
             reduction<T>(from, reduced, [](Accumulator<T> sum) { return sum; })}};
  });
}

std::vector<TensorType> expand_to_infer(const NodeView& node) {
  require_number(node, 0);
  const Shape shape = node.ints_or("shape", {});
  if (!broadcasts_to(node.input(0).shape, shape))
    node.fail(fmt::format("the input's shape {} cannot be broadcast to {}", graph::to_string(node.input(0).shape),
                          graph::to_string(shape)));
  if (node.float_or("scale", 1.0) != 1.0) require_float(node, 0);
  return {{node.input(0).dtype, shape}};
}

void expand_to_gradient(GradientContext& context) {
  const double scale = context.view().float_or("scale", 1.0);
  const ValueId sum = sum_to_input(context, context.gradient(), 0, "grad_sum");
  context.set(0, scaled(context, sum, scale, "grad"));
}

std::vector<Implementation> expand_to_implementations(const NodeView& node) {
  return with_number(node, node.input(0).dtype, [&](auto zero) {
    using T = decltype(zero);
    const Shape& shape = node.output(0).shape;
    const StridedLoop<1> loop(shape, {broadcast_strides(node.input(0).shape, shape)});
    Implementation plain{{.name = "plain", .reads = {0}, .writes = {0}},
                         [loop, scale = static_cast<T>(node.float_or("scale", 1.0))](const KernelArgs& args) {
                           const T* x = in<T>(args, 0);
                           T* y = out<T>(args, 0);
                           loop.run([&](const auto& at) { *y++ = multiply(x[at[0]], scale); });
                         }};
    std::vector<Implementation> list;
    if (node.input(0).shape == shape)
      add_with_in_place(list, std::move(plain), 0, 0);
    else
      list.push_back(std::move(plain));
    return list;
  });
}

}  // namespace

std::vector<OpDef> arithmetic_ops() {
  return {
      OpDef{.name = "Add",
            .n_inputs = {2, 2},
            .n_outputs = {1, 1},
            .infer = add_infer,
            .gradient = add_gradient,
            .work = elementwise_work,
            .implementations = add_implementations},
      OpDef{.name = "Div",
            .n_inputs = {2, 2},
            .n_outputs = {1, 1},
            .infer = binary_infer,
            .gradient = div_gradient,
            .work = elementwise_work,
            .implementations = div_implementations},
      OpDef{.name = "DivGradB",
            .n_inputs = {3, 3},
            .n_outputs = {1, 1},
            .infer = div_grad_b_infer,
            .work = two_flops_work,
            .implementations = div_grad_b_implementations},
      OpDef{.name = "ExpandTo",
            .n_inputs = {1, 1},
            .n_outputs = {1, 1},
            .infer = expand_to_infer,
            .gradient = expand_to_gradient,
            .work = elementwise_work,
            .implementations = expand_to_implementations},
      OpDef{.name = "Mul",
            .n_inputs = {2, 2},
            .n_outputs = {1, 1},
            .infer = binary_infer,
            .gradient = mul_gradient,
            .work = elementwise_work,
            .implementations = mul_implementations},
      OpDef{.name = "Sub",
            .n_inputs = {2, 2},
            .n_outputs = {1, 1},
            .infer = binary_infer,
            .gradient = sub_gradient,
            .work = elementwise_work,
            .implementations = sub_implementations},
      OpDef{.name = "Sum",
            .n_inputs = {1, -1},
            .n_outputs = {1, 1},
            .infer = sum_infer,
            .gradient = sum_gradient,
            .work = sum_work,
            .implementations = sum_implementations},
      OpDef{.name = "SumTo",
            .n_inputs = {1, 1},
            .n_outputs = {1, 1},
            .infer = sum_to_infer,
            .gradient = sum_to_gradient,
            .work = sum_to_work,
            .implementations = sum_to_implementations},
  };
}

}  // namespace neaptide::ops
