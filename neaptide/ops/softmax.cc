#include "neaptide/ops/softmax.hpp"

#include <algorithm>
#include <cmath>

#include "neaptide/graph/builder.hpp"
#include "neaptide/ops/elementwise.hpp"

namespace neaptide::ops {
namespace {

/// The tensor as [outer, n, inner], n the axis.
struct Lines {
  std::int64_t outer = 1, n = 1, inner = 1;
};

Lines lines_of(const NodeView& node) {
  const Shape& shape = node.input(0).shape;
  const std::size_t axis = axis_of(node, node.int_or("axis", -1), shape.size());
  Lines lines;
  for (std::size_t d = 0; d < shape.size(); ++d)
    (d < axis ? lines.outer : d > axis ? lines.inner : lines.n) *= shape[d];
  return lines;
}

/// f(first element, stride) for every line.
template <class F>
void each_line(const Lines& lines, F&& f) {
  for (std::int64_t o = 0; o < lines.outer; ++o) {
    for (std::int64_t i = 0; i < lines.inner; ++i) f(o * lines.n * lines.inner + i);
  }
}

std::vector<TensorType> softmax_infer(const NodeView& node) {
  require_float(node, 0);
  lines_of(node);
  return {node.input(0)};
}

std::vector<TensorType> softmax_grad_infer(const NodeView& node) {
  require_float(node, 0);
  require_same(node, 0, 1);
  lines_of(node);
  return {node.input(0)};
}

void softmax_gradient(GradientContext& context) {
  context.set(
      0, context.emit("SoftmaxGrad", {context.gradient(), context.output(0)}, context.view().node().attrs, "grad")[0]);
}

void log_softmax_gradient(GradientContext& context) {
  context.set(0, context.emit("LogSoftmaxGrad", {context.gradient(), context.output(0)}, context.view().node().attrs,
                              "grad")[0]);
}

/// y = exp(x - max) / sum, or its logarithm x - max - log(sum). Each line is read before it is overwritten.
template <class T>
void softmax(const Lines& lines, bool logarithm, const T* x, T* y) {
  each_line(lines, [&](std::int64_t first) {
    const auto at = [&](std::int64_t k) { return first + k * lines.inner; };
    double most = static_cast<double>(x[at(0)]);
    for (std::int64_t k = 1; k < lines.n; ++k) most = std::max(most, static_cast<double>(x[at(k)]));
    double sum = 0;
    for (std::int64_t k = 0; k < lines.n; ++k) sum += std::exp(static_cast<double>(x[at(k)]) - most);
    const double log_sum = std::log(sum);
    for (std::int64_t k = 0; k < lines.n; ++k) {
      const double shifted = static_cast<double>(x[at(k)]) - most;
      y[at(k)] = static_cast<T>(logarithm ? shifted - log_sum : std::exp(shifted) / sum);
    }
  });
}

/// dx = y (dy - sum(dy y)), or for the logarithm dx = dy - exp(y) sum(dy).
template <class T>
void softmax_grad(const Lines& lines, bool logarithm, const T* dy, const T* y, T* dx) {
  each_line(lines, [&](std::int64_t first) {
    const auto at = [&](std::int64_t k) { return first + k * lines.inner; };
    double sum = 0;
    for (std::int64_t k = 0; k < lines.n; ++k)
      sum += static_cast<double>(dy[at(k)]) * (logarithm ? 1.0 : static_cast<double>(y[at(k)]));
    for (std::int64_t k = 0; k < lines.n; ++k) {
      const auto g = static_cast<double>(dy[at(k)]), v = static_cast<double>(y[at(k)]);
      dx[at(k)] = static_cast<T>(logarithm ? g - std::exp(v) * sum : v * (g - sum));
    }
  });
}

std::vector<Implementation> forward(const NodeView& node, bool logarithm) {
  return with_float(node, node.input(0).dtype, [&](auto zero) {
    using T = decltype(zero);
    std::vector<Implementation> list;
    add_with_in_place(list,
                      {{.name = "plain", .reads = {0}, .writes = {0}},
                       [lines = lines_of(node), logarithm](const KernelArgs& args) {
                         softmax<T>(lines, logarithm, in<T>(args, 0), out<T>(args, 0));
                       }},
                      0, 0);
    return list;
  });
}

std::vector<Implementation> backward(const NodeView& node, bool logarithm) {
  return with_float(node, node.input(0).dtype, [&](auto zero) {
    using T = decltype(zero);
    std::vector<Implementation> list;
    add_with_in_place(list,
                      {{.name = "plain", .reads = {0, 1}, .writes = {0}},
                       [lines = lines_of(node), logarithm](const KernelArgs& args) {
                         softmax_grad<T>(lines, logarithm, in<T>(args, 0), in<T>(args, 1), out<T>(args, 0));
                       }},
                      0, 0);
    return list;
  });
}

std::vector<Implementation> softmax_implementations(const NodeView& node) { return forward(node, false); }
std::vector<Implementation> log_softmax_implementations(const NodeView& node) { return forward(node, true); }
std::vector<Implementation> softmax_grad_implementations(const NodeView& node) { return backward(node, false); }
std::vector<Implementation> log_softmax_grad_implementations(const NodeView& node) { return backward(node, true); }

/// Maximum, two exponentials of about 10 flops each, sum, division.
Work softmax_work(const NodeView& node) { return work_of(node, 23.0 * static_cast<double>(node.output(0).elements())); }

Work softmax_grad_work(const NodeView& node) {
  return work_of(node, 4.0 * static_cast<double>(node.output(0).elements()));
}

}  // namespace

std::vector<OpDef> softmax_ops() {
  return {
      OpDef{.name = "LogSoftmax",
            .n_inputs = {1, 1},
            .n_outputs = {1, 1},
            .infer = softmax_infer,
            .gradient = log_softmax_gradient,
            .work = softmax_work,
            .implementations = log_softmax_implementations},
      OpDef{.name = "LogSoftmaxGrad",
            .n_inputs = {2, 2},
            .n_outputs = {1, 1},
            .infer = softmax_grad_infer,
            .work = softmax_grad_work,
            .implementations = log_softmax_grad_implementations},
      OpDef{.name = "Softmax",
            .n_inputs = {1, 1},
            .n_outputs = {1, 1},
            .infer = softmax_infer,
            .gradient = softmax_gradient,
            .work = softmax_work,
            .implementations = softmax_implementations},
      OpDef{.name = "SoftmaxGrad",
            .n_inputs = {2, 2},
            .n_outputs = {1, 1},
            .infer = softmax_grad_infer,
            .work = softmax_grad_work,
            .implementations = softmax_grad_implementations},
  };
}

}  // namespace neaptide::ops
