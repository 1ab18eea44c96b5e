#include "neaptide/ops/loss.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "neaptide/graph/builder.hpp"
#include "neaptide/ops/broadcast.hpp"
#include "neaptide/ops/elementwise.hpp"

namespace neaptide::ops {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Rows {
  std::int64_t n, classes;
};

/// Input `logits` is [n, classes], input `labels` i64[n].
Rows rows_of(const NodeView& node, std::size_t logits, std::size_t labels) {
  const Shape& shape = node.input(logits).shape;
  if (shape.size() != 2 || shape[1] == 0)
    node.fail(fmt::format("the logits are {}; [samples, classes] is needed", graph::to_string(node.input(logits))));
  const TensorType needed{DType::kI64, {shape[0]}};
  if (node.input(labels) != needed)
    node.fail(
        fmt::format("the labels are {}; {} is needed", graph::to_string(node.input(labels)), graph::to_string(needed)));
  return {shape[0], shape[1]};
}

/// Maximum and logarithm of the sum of exp(x - max) of a row.
struct RowSum {
  double most, log_sum;
};

template <class T>
RowSum row_sum(const T* x, std::int64_t n) {
  double most = static_cast<double>(x[0]);
  for (std::int64_t k = 1; k < n; ++k) most = std::max(most, static_cast<double>(x[k]));
  double sum = 0;
  for (std::int64_t k = 0; k < n; ++k) sum += std::exp(static_cast<double>(x[k]) - most);
  return {most, std::log(sum)};
}

bool legal(std::int64_t label, const Rows& rows) { return label >= 0 && label < rows.classes; }

// ---- SoftmaxCrossEntropy(logits, labels) -> loss, [1] probabilities
// --------------------------------------------------

std::vector<TensorType> cross_entropy_infer(const NodeView& node) {
  require_float(node, 0);
  rows_of(node, 0, 1);
  return {{node.input(0).dtype, {}}, node.input(0)};
}

/// A gradient that reaches a loss scales what it sends back.
ValueId times_incoming(GradientContext& context, ValueId d) {
  if (!context.gradient().valid()) return d;
  return context.emit("Mul", {d, context.gradient()}, {}, "grad_scaled")[0];
}

void cross_entropy_gradient(GradientContext& context) {
  const ValueId probabilities = context.auxiliary(1, "probabilities");
  const ValueId d =
      context.emit("SoftmaxCrossEntropyGrad", {context.input(1), context.input(0), probabilities}, {}, "grad")[0];
  context.set(0, times_incoming(context, d));
}

template <class T>
void cross_entropy(const Rows& rows, const T* x, const std::int64_t* labels, T* loss, T* probabilities) {
  double total = 0;
  for (std::int64_t r = 0; r < rows.n; ++r) {
    const T* row = x + r * rows.classes;
    const RowSum sum = row_sum(row, rows.classes);
    total += legal(labels[r], rows) ? sum.log_sum - (static_cast<double>(row[labels[r]]) - sum.most) : kNaN;
    if (probabilities == nullptr) continue;
    for (std::int64_t k = 0; k < rows.classes; ++k)
      probabilities[r * rows.classes + k] =
          static_cast<T>(std::exp(static_cast<double>(row[k]) - sum.most - sum.log_sum));
  }
  *loss = static_cast<T>(total / static_cast<double>(rows.n));
}

std::vector<Implementation> cross_entropy_implementations(const NodeView& node) {
  return with_float(node, node.input(0).dtype, [&](auto zero) {
    using T = decltype(zero);
    const Rows rows = rows_of(node, 0, 1);
    std::vector<Implementation> list;
    list.push_back({{.name = "plain", .reads = {0, 1}, .writes = {0}}, [rows](const KernelArgs& args) {
                      cross_entropy<T>(rows, in<T>(args, 0), in<std::int64_t>(args, 1), out<T>(args, 0), nullptr);
                    }});
    if (node.has_output(1))
      add_with_in_place(list,
                        {{.name = "probabilities", .reads = {0, 1}, .writes = {0, 1}},
                         [rows](const KernelArgs& args) {
                           cross_entropy<T>(rows, in<T>(args, 0), in<std::int64_t>(args, 1), out<T>(args, 0),
                                            out<T>(args, 1));
                         }},
                        0, 1);
    return list;
  });
}

Work cross_entropy_work(const NodeView& node) {
  return {23.0 * static_cast<double>(node.input(0).elements()), traffic(node, {0, 1}, {0})};
}

// ---- SoftmaxCrossEntropyGrad(labels, logits?, probabilities?) -> dlogits
// ---------------------------------------------

std::size_t scores_input(const NodeView& node) {
  if (!node.has_input(1) && !node.has_input(2)) node.fail("needs logits or probabilities");
  return node.has_input(1) ? 1 : 2;
}

std::vector<TensorType> cross_entropy_grad_infer(const NodeView& node) {
  const std::size_t scores = scores_input(node);
  require_float(node, scores);
  rows_of(node, scores, 0);
  if (node.has_input(1) && node.has_input(2)) require_same(node, 1, 2);
  return {node.input(scores)};
}

/// dx = (probability - [k is the label]) / n. `scores`: logits or probabilities; a row is read before it is
/// overwritten.
template <class T>
void cross_entropy_grad(const Rows& rows, const std::int64_t* labels, const T* scores, bool logits, T* dx) {
  const double scale = 1.0 / static_cast<double>(rows.n);
  for (std::int64_t r = 0; r < rows.n; ++r) {
    const T* row = scores + r * rows.classes;
    const RowSum sum = logits ? row_sum(row, rows.classes) : RowSum{};
    const bool known = legal(labels[r], rows);
    for (std::int64_t k = 0; k < rows.classes; ++k) {
      // Rounded to T as the stored probabilities are, so that both ways give the same bits.
      const T p = logits ? static_cast<T>(std::exp(static_cast<double>(row[k]) - sum.most - sum.log_sum)) : row[k];
      const double d = (static_cast<double>(p) - (k == labels[r] ? 1.0 : 0.0)) * scale;
      dx[r * rows.classes + k] = static_cast<T>(known ? d : kNaN);
    }
  }
}

std::vector<Implementation> cross_entropy_grad_implementations(const NodeView& node) {
  return with_float(node, node.output(0).dtype, [&](auto zero) {
    using T = decltype(zero);
    const Rows rows = rows_of(node, scores_input(node), 0);
    std::vector<Implementation> list;
    for (const int from : {1, 2}) {
      const auto at = static_cast<std::size_t>(from);
      if (!node.has_input(at)) continue;
      add_with_in_place(list,
                        {{.name = from == 1 ? "from-logits" : "from-probabilities", .reads = {0, from}, .writes = {0}},
                         [rows, at](const KernelArgs& args) {
                           cross_entropy_grad<T>(rows, in<std::int64_t>(args, 0), in<T>(args, at), at == 1,
                                                 out<T>(args, 0));
                         }},
                        from, 0);
    }
    return list;
  });
}

/// From probabilities: a subtraction and a product, except for what recomputes them.
Work cross_entropy_grad_work(const NodeView& node) {
  const auto scores = static_cast<int>(scores_input(node));
  return {2.0 * static_cast<double>(node.output(0).elements()), traffic(node, {0, scores}, {0})};
}

// ---- MeanSquaredError(x, target) -> loss
// -----------------------------------------------------------------------------

std::vector<TensorType> squared_error_infer(const NodeView& node) {
  require_float(node, 0);
  require_same(node, 0, 1);
  return {{node.input(0).dtype, {}}};
}

void squared_error_gradient(GradientContext& context) {
  const ValueId d = times_incoming(
      context, context.emit("MeanSquaredErrorGrad", {context.input(0), context.input(1)}, {}, "grad")[0]);
  if (context.wants(0)) context.set(0, d);
  if (context.wants(1)) context.set(1, scaled(context, d, -1.0, "grad_target"));
}

std::vector<Implementation> squared_error_implementations(const NodeView& node) {
  return with_float(node, node.input(0).dtype, [&](auto zero) -> std::vector<Implementation> {
    using T = decltype(zero);
    const std::int64_t n = node.input(0).elements();
    return {{{.name = "plain", .reads = {0, 1}, .writes = {0}}, [n](const KernelArgs& args) {
               const T *x = in<T>(args, 0), *target = in<T>(args, 1);
               double sum = 0;
               for (std::int64_t i = 0; i < n; ++i) {
                 const double d = static_cast<double>(x[i]) - static_cast<double>(target[i]);
                 sum += d * d;
               }
               *out<T>(args, 0) = static_cast<T>(sum / static_cast<double>(n));
             }}};
  });
}

std::vector<TensorType> squared_error_grad_infer(const NodeView& node) {
  require_float(node, 0);
  require_same(node, 0, 1);
  return {node.input(0)};
}

std::vector<Implementation> squared_error_grad_implementations(const NodeView& node) {
  return with_float(node, node.input(0).dtype, [&](auto zero) {
    using T = decltype(zero);
    const std::int64_t n = node.input(0).elements();
    std::vector<Implementation> list;
    add_with_in_place(list,
                      {{.name = "plain", .reads = {0, 1}, .writes = {0}},
                       [n](const KernelArgs& args) {
                         const T *x = in<T>(args, 0), *target = in<T>(args, 1);
                         T* dx = out<T>(args, 0);
                         const T scale = static_cast<T>(2.0 / static_cast<double>(n));
                         for (std::int64_t i = 0; i < n; ++i) dx[i] = scale * (x[i] - target[i]);
                       }},
                      0, 0);
    return list;
  });
}

Work squared_error_work(const NodeView& node) {
  return work_of(node, 3.0 * static_cast<double>(node.input(0).elements()));
}

// ---- CountCorrect(logits, labels) -> i64: rows whose first largest score is the label's
// ------------------------------

std::vector<TensorType> count_infer(const NodeView& node) {
  require_float(node, 0);
  rows_of(node, 0, 1);
  return {{DType::kI64, {}}};
}

std::vector<Implementation> count_implementations(const NodeView& node) {
  return with_float(node, node.input(0).dtype, [&](auto zero) -> std::vector<Implementation> {
    using T = decltype(zero);
    return {{{.name = "plain", .reads = {0, 1}, .writes = {0}}, [rows = rows_of(node, 0, 1)](const KernelArgs& args) {
               const T* x = in<T>(args, 0);
               const auto* labels = in<std::int64_t>(args, 1);
               std::int64_t correct = 0;
               for (std::int64_t r = 0; r < rows.n; ++r) {
                 const T* row = x + r * rows.classes;
                 correct += std::max_element(row, row + rows.classes) - row == labels[r] ? 1 : 0;
               }
               *out<std::int64_t>(args, 0) = correct;
             }}};
  });
}

Work count_work(const NodeView& node) { return work_of(node, static_cast<double>(node.input(0).elements())); }

}  // namespace

std::vector<OpDef> loss_ops() {
  return {
      OpDef{.name = "CountCorrect",
            .n_inputs = {2, 2},
            .n_outputs = {1, 1},
            .infer = count_infer,
            .work = count_work,
            .implementations = count_implementations},
      OpDef{.name = "MeanSquaredError",
            .n_inputs = {2, 2},
            .n_outputs = {1, 1},
            .infer = squared_error_infer,
            .gradient = squared_error_gradient,
            .work = squared_error_work,
            .implementations = squared_error_implementations},
      OpDef{.name = "MeanSquaredErrorGrad",
            .n_inputs = {2, 2},
            .n_outputs = {1, 1},
            .infer = squared_error_grad_infer,
            .work = squared_error_work,
            .implementations = squared_error_grad_implementations},
      OpDef{.name = "SoftmaxCrossEntropy",
            .n_inputs = {2, 2},
            .n_outputs = {1, 2},
            .infer = cross_entropy_infer,
            .gradient = cross_entropy_gradient,
            .work = cross_entropy_work,
            .implementations = cross_entropy_implementations},
      OpDef{.name = "SoftmaxCrossEntropyGrad",
            .n_inputs = {2, 3},
            .n_outputs = {1, 1},
            .infer = cross_entropy_grad_infer,
            .work = cross_entropy_grad_work,
            .implementations = cross_entropy_grad_implementations},
  };
}

}  // namespace neaptide::ops
