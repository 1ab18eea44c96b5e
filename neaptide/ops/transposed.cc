#include "neaptide/ops/transposed.hpp"

#include "neaptide/graph/builder.hpp"
#include "neaptide/ops/kernel.hpp"

namespace neaptide::ops {
namespace {

/// x {n, c, spatial...} and w {c, m / groups, kernel...}; checks that they fit together.
ConvGeometry geometry_of(const NodeView& node, const Shape& x, const Shape& w) {
  const std::int64_t groups = node.int_or("group", 1);
  if (w.size() != x.size() || x.size() < 3)
    node.fail(fmt::format("input {} and weight {} do not have the same number of axes, at least 3", graph::to_string(x),
                          graph::to_string(w)));
  if (w[0] != x[1])
    node.fail(fmt::format("weight {} takes {} input channels, but the input {} has {}", graph::to_string(w), w[0],
                          graph::to_string(x), x[1]));
  if (groups < 1 || x[1] % groups != 0)
    node.fail(fmt::format("group {} does not divide the {} input channels", groups, x[1]));
  if (graph::n_elements(w) == 0) node.fail(fmt::format("the weight {} is empty", graph::to_string(w)));
  const Shape kernel(w.begin() + 2, w.end());
  if (node.has_attr("kernel_shape") && node.ints_or("kernel_shape", {}) != kernel)
    node.fail(fmt::format("kernel_shape {} differs from the weight's {}",
                          graph::to_string(node.ints_or("kernel_shape", {})), graph::to_string(kernel)));
  return {x[0], groups, w[1], w[0] / groups, transposed_window(node, x, kernel)};
}

Shape output_shape(const ConvGeometry& c) {
  Shape y = {c.batch, c.groups * c.in_channels};
  for (const std::int64_t size : c.window.in_shape()) y.push_back(size);
  return y;
}

graph::Attrs with_shape(const NodeView& node, const char* key, const Shape& shape) {
  graph::Attrs attrs = node.node().attrs;
  attrs[key] = shape;
  return attrs;
}

Work transposed_work(const NodeView& node) { return work_of(node, transposed_geometry(node).flops()); }

// ---- ConvTranspose(x, w, b?) -> y ----------------------------------------------------------------------------------

std::vector<TensorType> transposed_infer(const NodeView& node) {
  require_float(node, 0);
  const TensorType &x = node.input(0), &w = node.input(1);
  require_type(node, 1, {x.dtype, w.shape});
  const Shape y = output_shape(geometry_of(node, x.shape, w.shape));
  if (node.has_input(2)) require_type(node, 2, {x.dtype, {y[1]}});
  return {{x.dtype, y}};
}

void transposed_gradient(GradientContext& context) {
  const NodeView node = context.view();
  const graph::Attrs for_input = with_shape(node, "input_shape", node.input(0).shape);
  const graph::Attrs for_weight = with_shape(node, "weight_shape", node.input(1).shape);
  const ValueId dy = context.gradient();
  if (context.wants(0))
    context.set(0, context.emit("ConvTransposeGradInput", {dy, context.input(1)}, for_input, "grad_input")[0]);
  if (!context.wants(1) && !context.wants(2)) return;
  const std::vector<ValueId> grads = context.emit("ConvTransposeGradWeight", {dy, context.input(0)}, for_weight,
                                                  "grad_weight", {context.wants(1), context.wants(2)});
  if (context.wants(1)) context.set(1, grads[0]);
  if (context.wants(2)) context.set(2, grads[1]);
}

std::vector<Implementation> transposed_implementations(const NodeView& node) {
  return with_float(node, node.input(0).dtype, [&](auto zero) {
    using T = decltype(zero);
    return std::vector<Implementation>{
        {{.name = "direct", .reads = present_inputs(node), .writes = {0}},
         [c = transposed_geometry(node), bias = node.has_input(2)](const KernelArgs& args) {
           conv_backward_input(c, in<T>(args, 0), in<T>(args, 1), bias ? in<T>(args, 2) : nullptr, out<T>(args, 0));
         }}};
  });
}

// ---- ConvTransposeGradInput(dy, w) -> dx ---------------------------------------------------------------------------

std::vector<TensorType> grad_input_infer(const NodeView& node) {
  require_float(node, 0);
  const DType dtype = node.input(0).dtype;
  require_type(node, 1, {dtype, node.input(1).shape});
  const Shape x = required_ints(node, "input_shape");
  require_type(node, 0, {dtype, output_shape(geometry_of(node, x, node.input(1).shape))});
  return {{dtype, x}};
}

std::vector<Implementation> grad_input_implementations(const NodeView& node) {
  return with_float(node, node.input(0).dtype, [&](auto zero) {
    using T = decltype(zero);
    return std::vector<Implementation>{
        {{.name = "direct", .reads = {0, 1}, .writes = {0}}, [c = transposed_geometry(node)](const KernelArgs& args) {
           const T* no_bias = nullptr;
           conv_forward(c, in<T>(args, 0), in<T>(args, 1), no_bias, out<T>(args, 0), [](double v) { return v; });
         }}};
  });
}

// ---- ConvTransposeGradWeight(dy, x) -> dw, [1] db ------------------------------------------------------------------

std::vector<TensorType> grad_weight_infer(const NodeView& node) {
  require_float(node, 0);
  const DType dtype = node.input(0).dtype;
  require_type(node, 1, {dtype, node.input(1).shape});
  const Shape w = required_ints(node, "weight_shape");
  const Shape y = output_shape(geometry_of(node, node.input(1).shape, w));
  require_type(node, 0, {dtype, y});
  return {{dtype, w}, {dtype, {y[1]}}};
}

template <class T>
KernelFn grad_weight_kernel(const NodeView& node) {
  const bool weight = node.has_output(0), bias = node.has_output(1);
  return [c = transposed_geometry(node), weight, bias](const KernelArgs& args) {
    if (weight) conv_backward_weight(c, in<T>(args, 1), in<T>(args, 0), out<T>(args, 0));
    if (bias) channel_sums(c.batch, c.groups * c.in_channels, c.window.in_elements(), in<T>(args, 0), out<T>(args, 1));
  };
}

std::vector<Implementation> grad_weight_implementations(const NodeView& node) {
  return with_float(node, node.input(0).dtype, [&](auto zero) {
    const std::vector<int> reads = node.has_output(0) ? std::vector<int>{0, 1} : std::vector<int>{0};
    return std::vector<Implementation>{{{.name = "direct", .reads = reads, .writes = present_outputs(node)},
                                        grad_weight_kernel<decltype(zero)>(node)}};
  });
}

}  // namespace

ConvGeometry transposed_geometry(const NodeView& node) {
  if (node.has_attr("input_shape")) return geometry_of(node, node.ints_or("input_shape", {}), node.input(1).shape);
  if (node.has_attr("weight_shape")) return geometry_of(node, node.input(1).shape, node.ints_or("weight_shape", {}));
  return geometry_of(node, node.input(0).shape, node.input(1).shape);
}

std::vector<OpDef> transposed_ops() {
  return {
      OpDef{.name = "ConvTranspose",
            .n_inputs = {2, 3},
            .n_outputs = {1, 1},
            .infer = transposed_infer,
            .gradient = transposed_gradient,
            .work = transposed_work,
            .implementations = transposed_implementations},
      OpDef{.name = "ConvTransposeGradInput",
            .n_inputs = {2, 2},
            .n_outputs = {1, 1},
            .infer = grad_input_infer,
            .work = transposed_work,
            .implementations = grad_input_implementations},
      OpDef{.name = "ConvTransposeGradWeight",
            .n_inputs = {2, 2},
            .n_outputs = {1, 2},
            .infer = grad_weight_infer,
            .work = transposed_work,
            .implementations = grad_weight_implementations},
  };
}

}  // namespace neaptide::ops
