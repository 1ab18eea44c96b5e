#include "neaptide/ops/activation.hpp"

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

std::vector<TensorType> relu_grad_infer(const NodeView& node) {
  require_float(node, 0);
  bool any = false;
  for (std::size_t i = 1; i < 3; ++i) {
    if (node.has_input(i)) require_same(node, 0, i);
    any = any || node.has_input(i);
  }
  if (node.has_input(3) && node.input(3) != bits_type(node.input(0).shape))
    node.fail(fmt::format("sign is {}; {} is needed", graph::to_string(node.input(3)),
                          graph::to_string(bits_type(node.input(0).shape))));
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

}  // namespace

std::vector<OpDef> activation_ops() {
  return {
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
  };
}

}  // namespace neaptide::ops
