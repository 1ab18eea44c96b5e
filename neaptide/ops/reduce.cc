#include "neaptide/ops/reduce.hpp"

#include <algorithm>

#include "neaptide/graph/builder.hpp"
#include "neaptide/ops/broadcast.hpp"

namespace neaptide::ops {
namespace {

std::vector<std::int64_t> axes_of(const NodeView& node) {
  if (!node.has_input(1)) return node.ints_or("axes", {});
  const std::optional<Tensor> axes = node.constant_input(1);
  if (!axes) node.fail("the axes are not a constant");
  if (axes->type.dtype != DType::kI64)
    node.fail(fmt::format("the axes are {}; i64 is needed", graph::to_string(axes->type)));
  const auto values = axes->as<std::int64_t>();
  return {values.begin(), values.end()};
}

/// Which dimensions of input 0 are reduced.
std::vector<bool> reduced_dims(const NodeView& node) {
  const std::size_t rank = node.input(0).shape.size();
  const std::vector<std::int64_t> axes = axes_of(node);
  if (axes.empty()) return std::vector<bool>(rank, node.int_or("noop_with_empty_axes", 0) == 0);
  std::vector<bool> reduced(rank, false);
  for (const std::int64_t axis : axes) reduced[axis_of(node, axis, rank)] = true;
  return reduced;
}

Shape reduced_shape(const Shape& shape, const std::vector<bool>& reduced, bool keep) {
  Shape result;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (!reduced[d])
      result.push_back(shape[d]);
    else if (keep)
      result.push_back(1);
  }
  return result;
}

std::int64_t n_reduced(const NodeView& node) {
  const std::vector<bool> reduced = reduced_dims(node);
  std::int64_t n = 1;
  for (std::size_t d = 0; d < reduced.size(); ++d) n *= reduced[d] ? node.input(0).shape[d] : 1;
  return n;
}

std::vector<TensorType> sum_infer(const NodeView& node) {
  require_number(node, 0);
  return {
      {node.input(0).dtype, reduced_shape(node.input(0).shape, reduced_dims(node), node.int_or("keepdims", 1) != 0)}};
}

std::vector<TensorType> mean_infer(const NodeView& node) {
  require_float(node, 0);
  return sum_infer(node);
}

void gradient(GradientContext& context, double scale) {
  const Shape shape = context.view().input(0).shape;
  const Shape kept = reduced_shape(shape, reduced_dims(context.view()), true);
  const ValueId dy = reshaped(context, context.gradient(), kept, "grad_kept");
  context.set(0, context.emit("ExpandTo", {dy}, {{"shape", shape}, {"scale", scale}}, "grad")[0]);
}

void sum_gradient(GradientContext& context) { gradient(context, 1.0); }
void mean_gradient(GradientContext& context) {
  gradient(context, 1.0 / static_cast<double>(n_reduced(context.view())));
}

Work reduce_work(const NodeView& node) {
  return {static_cast<double>(node.input(0).elements()), traffic(node, {0}, {0})};
}

std::vector<Implementation> sum_implementations(const NodeView& node) {
  return with_number(node, node.input(0).dtype, [&](auto zero) -> std::vector<Implementation> {
    using T = decltype(zero);
    return {{{.name = "plain", .reads = {0}, .writes = {0}},
             reduction<T>(node.input(0).shape, reduced_dims(node), [](Accumulator<T> sum) { return sum; })}};
  });
}

std::vector<Implementation> mean_implementations(const NodeView& node) {
  return with_float(node, node.input(0).dtype, [&](auto zero) -> std::vector<Implementation> {
    using T = decltype(zero);
    const auto n = static_cast<double>(n_reduced(node));
    return {{{.name = "plain", .reads = {0}, .writes = {0}},
             reduction<T>(node.input(0).shape, reduced_dims(node), [n](double sum) { return sum / n; })}};
  });
}

}  // namespace

std::vector<OpDef> reduce_ops() {
  return {
      OpDef{.name = "ReduceMean",
            .n_inputs = {1, 2},
            .n_outputs = {1, 1},
            .infer = mean_infer,
            .gradient = mean_gradient,
            .work = reduce_work,
            .implementations = mean_implementations},
      OpDef{.name = "ReduceSum",
            .n_inputs = {1, 2},
            .n_outputs = {1, 1},
            .infer = sum_infer,
            .gradient = sum_gradient,
            .work = reduce_work,
            .implementations = sum_implementations},
  };
}

}  // namespace neaptide::ops
