#include "neaptide/ops/convolution.hpp"

#include "neaptide/graph/builder.hpp"
#include "neaptide/ops/kernel.hpp"

namespace neaptide::ops {
namespace {

/// The sizes of the convolution of x and w; checks that they fit together.
ConvGeometry geometry_of(const NodeView& node, const Shape& x, const Shape& w) {
  const std::int64_t groups = node.int_or("group", 1);
  if (w.size() != x.size() || x.size() < 3)
    node.fail(fmt::format("input {} and weight {} do not have the same number of axes, at least 3", graph::to_string(x),
                          graph::to_string(w)));
  if (groups < 1 || x[1] % groups != 0 || w[0] % groups != 0)
    node.fail(fmt::format("group {} does not divide the {} input and {} output channels", groups, x[1], w[0]));
  if (w[1] * groups != x[1])
    node.fail(fmt::format("weight {} takes {} input channels in {} groups, but the input {} has {}",
                          graph::to_string(w), w[1] * groups, groups, graph::to_string(x), x[1]));
  if (graph::n_elements(w) == 0) node.fail(fmt::format("the weight {} is empty", graph::to_string(w)));
  const Shape kernel(w.begin() + 2, w.end());
  if (node.has_attr("kernel_shape") && node.ints_or("kernel_shape", {}) != kernel)
    node.fail(fmt::format("kernel_shape {} differs from the weight's {}",
                          graph::to_string(node.ints_or("kernel_shape", {})), graph::to_string(kernel)));
  return {x[0], groups, w[1], w[0] / groups, conv_window(node, x, kernel)};
}

Shape output_shape(const ConvGeometry& c) {
  Shape y = {c.batch, c.groups * c.out_channels};
  for (const std::int64_t size : c.window.out_shape()) y.push_back(size);
  return y;
}

bool has_relu(const NodeView& node) {
  const std::string activation = node.string_or("activation", "");
  if (!activation.empty() && activation != "relu")
    node.fail(fmt::format("activation '{}' is unknown; 'relu' or none is needed", activation));
  return activation == "relu";
}

/// The attributes that a gradient shares with its convolution, and one more.
graph::Attrs gradient_attrs(const NodeView& node, const char* key, const Shape& shape) {
  graph::Attrs attrs = node.node().attrs;
  attrs.erase("activation");
  attrs[key] = shape;
  return attrs;
}

Work conv_work(const NodeView& node) { return work_of(node, conv_geometry(node).flops()); }

// ---- Conv(x, w, b?) -> y -------------------------------------------------------------------------------------------

std::vector<TensorType> conv_infer(const NodeView& node) {
  require_float(node, 0);
  const TensorType &x = node.input(0), &w = node.input(1);
  require_type(node, 1, {x.dtype, w.shape});
  const ConvGeometry c = geometry_of(node, x.shape, w.shape);
  if (node.has_input(2)) require_type(node, 2, {x.dtype, {w.shape[0]}});
  has_relu(node);
  return {{x.dtype, output_shape(c)}};
}

void conv_gradient(GradientContext& context) {
  const NodeView node = context.view();
  const Shape x = node.input(0).shape, w = node.input(1).shape;
  const graph::Attrs for_input = gradient_attrs(node, "input_shape", x);
  const graph::Attrs for_weight = gradient_attrs(node, "weight_shape", w);
  ValueId dy = context.gradient();
  if (has_relu(node)) dy = context.emit("ReluGrad", {dy, {}, context.output(0)}, {}, "relu_grad")[0];
  if (context.wants(0))
    context.set(0, context.emit("ConvGradInput", {dy, context.input(1)}, for_input, "grad_input")[0]);
  if (!context.wants(1) && !context.wants(2)) return;
  const std::vector<ValueId> grads = context.emit("ConvGradWeight", {dy, context.input(0)}, for_weight, "grad_weight",
                                                  {context.wants(1), context.wants(2)});
  if (context.wants(1)) context.set(1, grads[0]);
  if (context.wants(2)) context.set(2, grads[1]);
}

template <class T>
KernelFn conv_kernel(const NodeView& node) {
  const bool relu = has_relu(node), bias = node.has_input(2);
  return [c = conv_geometry(node), relu, bias](const KernelArgs& args) {
    const T* b = bias ? in<T>(args, 2) : nullptr;
    if (relu)
      conv_forward(c, in<T>(args, 0), in<T>(args, 1), b, out<T>(args, 0), [](double v) { return v <= 0 ? 0 : v; });
    else
      conv_forward(c, in<T>(args, 0), in<T>(args, 1), b, out<T>(args, 0), [](double v) { return v; });
  };
}

std::vector<Implementation> conv_implementations(const NodeView& node) {
  return with_float(node, node.input(0).dtype, [&](auto zero) {
    return std::vector<Implementation>{
        {{.name = "direct", .reads = present_inputs(node), .writes = {0}}, conv_kernel<decltype(zero)>(node)}};
  });
}

// ---- ConvGradInput(dy, w) -> dx ------------------------------------------------------------------------------------

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
        {{.name = "direct", .reads = {0, 1}, .writes = {0}}, [c = conv_geometry(node)](const KernelArgs& args) {
           conv_backward_input<T>(c, in<T>(args, 0), in<T>(args, 1), nullptr, out<T>(args, 0));
         }}};
  });
}

// ---- ConvGradWeight(dy, x) -> dw, [1] db ---------------------------------------------------------------------------

std::vector<TensorType> grad_weight_infer(const NodeView& node) {
  require_float(node, 0);
  const DType dtype = node.input(0).dtype;
  require_type(node, 1, {dtype, node.input(1).shape});
  const Shape w = required_ints(node, "weight_shape");
  require_type(node, 0, {dtype, output_shape(geometry_of(node, node.input(1).shape, w))});
  return {{dtype, w}, {dtype, {w[0]}}};
}

template <class T>
KernelFn grad_weight_kernel(const NodeView& node) {
  const bool weight = node.has_output(0), bias = node.has_output(1);
  return [c = conv_geometry(node), weight, bias](const KernelArgs& args) {
    if (weight) conv_backward_weight(c, in<T>(args, 0), in<T>(args, 1), out<T>(args, 0));
    if (bias)
      channel_sums(c.batch, c.groups * c.out_channels, c.window.out_elements(), in<T>(args, 0), out<T>(args, 1));
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

ConvGeometry conv_geometry(const NodeView& node) {
  if (node.has_attr("input_shape")) return geometry_of(node, node.ints_or("input_shape", {}), node.input(1).shape);
  if (node.has_attr("weight_shape")) return geometry_of(node, node.input(1).shape, node.ints_or("weight_shape", {}));
  return geometry_of(node, node.input(0).shape, node.input(1).shape);
}

std::vector<OpDef> convolution_ops() {
  return {
      OpDef{.name = "Conv",
            .n_inputs = {2, 3},
            .n_outputs = {1, 1},
            .infer = conv_infer,
            .gradient = conv_gradient,
            .work = conv_work,
            .implementations = conv_implementations},
      OpDef{.name = "ConvGradInput",
            .n_inputs = {2, 2},
            .n_outputs = {1, 1},
            .infer = grad_input_infer,
            .work = conv_work,
            .implementations = grad_input_implementations},
      OpDef{.name = "ConvGradWeight",
            .n_inputs = {2, 2},
            .n_outputs = {1, 2},
            .infer = grad_weight_infer,
            .work = conv_work,
            .implementations = grad_weight_implementations},
  };
}

}  // namespace neaptide::ops
