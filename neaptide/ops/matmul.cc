#include "neaptide/ops/matmul.hpp"

#include <algorithm>
#include <array>

#include "neaptide/graph/builder.hpp"
#include "neaptide/ops/broadcast.hpp"

namespace neaptide::ops {
namespace {

/// op(a) [m, k] times op(b) [k, n], each with a stride per row and column.
struct Product {
  std::int64_t m, n, k;
  std::int64_t a_row, a_column, b_row, b_column;
};

/// store(i, j, sum over k of a_ik b_kj), for every element; columns are taken in blocks so that b is read along its
/// rows.
template <class T, class F>
void multiply(const Product& p, const T* a, const T* b, F&& store) {
  constexpr std::int64_t kBlock = 64;
  std::array<double, kBlock> sums;
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t first = 0; first < p.n; first += kBlock) {
      const std::int64_t width = std::min(kBlock, p.n - first);
      sums.fill(0);
      for (std::int64_t k = 0; k < p.k; ++k) {
        const auto factor = static_cast<double>(a[i * p.a_row + k * p.a_column]);
        const T* row = b + k * p.b_row + first * p.b_column;
        for (std::int64_t j = 0; j < width; ++j)
          sums[static_cast<std::size_t>(j)] += factor * static_cast<double>(row[j * p.b_column]);
      }
      for (std::int64_t j = 0; j < width; ++j) store(i, first + j, sums[static_cast<std::size_t>(j)]);
    }
  }
}

/// Of matrices whose last two dimensions are `a` and `b`; fails when the inner sizes differ.
Product product_of(const NodeView& node, std::int64_t a_rows, std::int64_t a_columns, bool trans_a, std::int64_t b_rows,
                   std::int64_t b_columns, bool trans_b) {
  const std::int64_t inner_a = trans_a ? a_rows : a_columns, inner_b = trans_b ? b_columns : b_rows;
  if (inner_a != inner_b)
    node.fail(fmt::format("the inner sizes of {} and {} are {} and {}; they must be equal",
                          graph::to_string(node.input(0).shape), graph::to_string(node.input(1).shape), inner_a,
                          inner_b));
  return {.m = trans_a ? a_columns : a_rows,
          .n = trans_b ? b_rows : b_columns,
          .k = inner_a,
          .a_row = trans_a ? 1 : a_columns,
          .a_column = trans_a ? a_columns : 1,
          .b_row = trans_b ? 1 : b_columns,
          .b_column = trans_b ? b_columns : 1};
}

void require_one_type(const NodeView& node) {
  require_float(node, 0);
  for (std::size_t i = 1; i < node.n_inputs(); ++i) {
    if (node.has_input(i) && node.input(i).dtype != node.input(0).dtype)
      node.fail(fmt::format("input {} is {}; input 0 is {}", i, graph::to_string(node.input(i)),
                            graph::to_string(node.input(0))));
  }
}

// ---- Gemm: y = alpha op(a) op(b) + beta c
// ------------------------------------------------------------------------------

bool trans(const NodeView& node, const char* key) { return node.int_or(key, 0) != 0; }

Product gemm_product(const NodeView& node) {
  const Shape &a = node.input(0).shape, &b = node.input(1).shape;
  if (a.size() != 2 || b.size() != 2)
    node.fail(fmt::format("the factors are {} and {}; matrices are needed", graph::to_string(node.input(0)),
                          graph::to_string(node.input(1))));
  return product_of(node, a[0], a[1], trans(node, "transA"), b[0], b[1], trans(node, "transB"));
}

std::vector<TensorType> gemm_infer(const NodeView& node) {
  require_one_type(node);
  const Product p = gemm_product(node);
  const Shape shape{p.m, p.n};
  if (node.has_input(2) && !broadcasts_to(node.input(2).shape, shape))
    node.fail(fmt::format("c is {}, which cannot be broadcast to {}", graph::to_string(node.input(2)),
                          graph::to_string(shape)));
  return {{node.input(0).dtype, shape}};
}

void gemm_gradient(GradientContext& context) {
  const NodeView node = context.view();
  const std::int64_t ta = node.int_or("transA", 0) != 0 ? 1 : 0, tb = node.int_or("transB", 0) != 0 ? 1 : 0;
  const double alpha = node.float_or("alpha", 1), beta = node.float_or("beta", 1);
  const bool has_c = node.has_input(2);
  const ValueId dy = context.gradient(), a = context.input(0), b = context.input(1);
  const auto product = [&](ValueId left, std::int64_t trans_left, ValueId right, std::int64_t trans_right,
                           const char* suffix) {
    graph::Attrs attrs{{"transA", trans_left}, {"transB", trans_right}};
    if (alpha != 1) attrs["alpha"] = alpha;
    return context.emit("Gemm", {left, right}, attrs, suffix)[0];
  };
  if (context.wants(0)) context.set(0, ta == 0 ? product(dy, 0, b, 1 - tb, "grad_a") : product(b, tb, dy, 1, "grad_a"));
  if (context.wants(1)) context.set(1, tb == 0 ? product(a, 1 - ta, dy, 0, "grad_b") : product(dy, 1, a, ta, "grad_b"));
  if (has_c && context.wants(2))
    context.set(2, scaled(context, sum_to_input(context, dy, 2, "grad_c"), beta, "grad_c_scaled"));
}

Work gemm_work(const NodeView& node) {
  const Product p = gemm_product(node);
  const double elements = static_cast<double>(p.m) * static_cast<double>(p.n);
  return work_of(node, elements * (2.0 * static_cast<double>(p.k) + (node.has_input(2) ? 1 : 0)));
}

std::vector<Implementation> gemm_implementations(const NodeView& node) {
  return with_float(node, node.input(0).dtype, [&](auto zero) -> std::vector<Implementation> {
    using T = decltype(zero);
    const Product p = gemm_product(node);
    const bool has_c = node.has_input(2);
    const Strides c = has_c ? broadcast_strides(node.input(2).shape, {p.m, p.n}) : Strides{0, 0};
    return {{{.name = "plain", .reads = present_inputs(node), .writes = {0}},
             [p, has_c, c_row = c[0], c_column = c[1], alpha = node.float_or("alpha", 1),
              beta = node.float_or("beta", 1)](const KernelArgs& args) {
               const T* added = has_c ? in<T>(args, 2) : nullptr;
               T* y = out<T>(args, 0);
               multiply(p, in<T>(args, 0), in<T>(args, 1), [&](std::int64_t i, std::int64_t j, double sum) {
                 const double c_ij = has_c ? beta * static_cast<double>(added[i * c_row + j * c_column]) : 0.0;
                 y[i * p.n + j] = static_cast<T>(alpha * sum + c_ij);
               });
             }}};
  });
}

// ---- MatMul
// ----------------------------------------------------------------------------------------------------------------

/// The operands seen as stacks of matrices: a vector is a row on the left, a column on the right.
struct Stacks {
  Shape a, b;  // at least two dimensions
  bool trans_a, trans_b;
  Shape batch;  // common leading dimensions
  Product product;
  Shape full() const {  // of the result, before dimensions that came from vectors are dropped
    Shape shape = batch;
    shape.push_back(product.m);
    shape.push_back(product.n);
    return shape;
  }
};

Shape leading(const Shape& shape) { return {shape.begin(), shape.end() - 2}; }

Stacks stacks_of(const NodeView& node) {
  Stacks s{.a = node.input(0).shape,
           .b = node.input(1).shape,
           .trans_a = trans(node, "trans_a"),
           .trans_b = trans(node, "trans_b"),
           .batch = {},
           .product = {}};
  if (s.a.empty() || s.b.empty()) node.fail("a factor is a scalar; use Mul");
  if ((s.a.size() == 1 && s.trans_a) || (s.b.size() == 1 && s.trans_b)) node.fail("a vector cannot be transposed");
  if (s.a.size() == 1) s.a.insert(s.a.begin(), 1);
  if (s.b.size() == 1) s.b.push_back(1);
  s.batch = broadcast(node, leading(s.a), leading(s.b));
  s.product = product_of(node, s.a[s.a.size() - 2], s.a.back(), s.trans_a, s.b[s.b.size() - 2], s.b.back(), s.trans_b);
  return s;
}

std::vector<TensorType> matmul_infer(const NodeView& node) {
  require_one_type(node);
  const Stacks s = stacks_of(node);
  Shape shape = s.batch;
  if (node.input(0).shape.size() > 1) shape.push_back(s.product.m);
  if (node.input(1).shape.size() > 1) shape.push_back(s.product.n);
  return {{node.input(0).dtype, shape}};
}

ValueId matmul(GradientContext& context, ValueId left, bool trans_left, ValueId right, bool trans_right,
               const char* suffix) {
  graph::Attrs attrs;
  if (trans_left) attrs["trans_a"] = std::int64_t{1};
  if (trans_right) attrs["trans_b"] = std::int64_t{1};
  return context.emit("MatMul", {left, right}, attrs, suffix)[0];
}

/// `gradient` of the shape of a stack, summed to the stack's own batch and given the input's shape.
void set_from_stack(GradientContext& context, std::size_t i, ValueId gradient, const Shape& stack,
                    const std::string& suffix) {
  if (context.builder().graph().values[gradient].type.shape != stack)
    gradient = context.emit("SumTo", {gradient}, {{"shape", stack}}, suffix + "_sum")[0];
  const Shape shape = context.view().input(i).shape;
  context.set(i, reshaped(context, gradient, shape, suffix + "_shape"));
}

/// A stack times one matrix is one product of the stacked rows: its gradient needs no sum over the batch.
void set_matrix_gradient(GradientContext& context, const Stacks& s, ValueId a, ValueId dy) {
  const std::int64_t rows = graph::n_elements(s.batch) * s.product.m;
  const ValueId stacked = reshaped(context, a, {rows, s.product.k}, "rows");
  const ValueId stacked_dy = reshaped(context, dy, {rows, s.product.n}, "grad_rows");
  const ValueId db = s.trans_b ? matmul(context, stacked_dy, true, stacked, false, "grad_b")
                               : matmul(context, stacked, true, stacked_dy, false, "grad_b");
  set_from_stack(context, 1, db, s.b, "grad_b");
}

void matmul_gradient(GradientContext& context) {
  const Stacks s = stacks_of(context.view());
  const ValueId dy = reshaped(context, context.gradient(), s.full(), "grad_full");
  const ValueId a = reshaped(context, context.input(0), s.a, "a"), b = reshaped(context, context.input(1), s.b, "b");
  if (context.wants(0)) {
    const ValueId da = s.trans_a ? matmul(context, b, s.trans_b, dy, true, "grad_a")
                                 : matmul(context, dy, false, b, !s.trans_b, "grad_a");
    set_from_stack(context, 0, da, s.a, "grad_a");
  }
  if (!context.wants(1)) return;
  if (s.b.size() == 2 && s.a.size() > 2 && !s.trans_a) return set_matrix_gradient(context, s, a, dy);
  const ValueId db = s.trans_b ? matmul(context, dy, true, a, s.trans_a, "grad_b")
                               : matmul(context, a, !s.trans_a, dy, false, "grad_b");
  set_from_stack(context, 1, db, s.b, "grad_b");
}

Work matmul_work(const NodeView& node) {
  return work_of(node,
                 2.0 * static_cast<double>(node.output(0).elements()) * static_cast<double>(stacks_of(node).product.k));
}

/// Elements from matrix to matrix of a stack, over the common batch.
Strides batch_strides(const Shape& stack, const Shape& batch) {
  Strides strides = broadcast_strides(leading(stack), batch);
  for (std::int64_t& stride : strides) stride *= stack[stack.size() - 2] * stack.back();
  return strides;
}

std::vector<Implementation> matmul_implementations(const NodeView& node) {
  return with_float(node, node.input(0).dtype, [&](auto zero) -> std::vector<Implementation> {
    using T = decltype(zero);
    const Stacks s = stacks_of(node);
    const StridedLoop<2> batches(s.batch, {batch_strides(s.a, s.batch), batch_strides(s.b, s.batch)});
    return {{{.name = "plain", .reads = {0, 1}, .writes = {0}}, [p = s.product, batches](const KernelArgs& args) {
               T* y = out<T>(args, 0);
               batches.run([&](const auto& at) {
                 multiply(p, in<T>(args, 0) + at[0], in<T>(args, 1) + at[1],
                          [&](std::int64_t i, std::int64_t j, double sum) { y[i * p.n + j] = static_cast<T>(sum); });
                 y += p.m * p.n;
               });
             }}};
  });
}

}  // namespace

std::vector<OpDef> matmul_ops() {
  return {
      OpDef{.name = "Gemm",
            .n_inputs = {2, 3},
            .n_outputs = {1, 1},
            .infer = gemm_infer,
            .gradient = gemm_gradient,
            .work = gemm_work,
            .implementations = gemm_implementations},
      OpDef{.name = "MatMul",
            .n_inputs = {2, 2},
            .n_outputs = {1, 1},
            .infer = matmul_infer,
            .gradient = matmul_gradient,
            .work = matmul_work,
            .implementations = matmul_implementations},
  };
}

}  // namespace neaptide::ops
