#include "neaptide/backends/cpu/matmul.hpp"

#include <utility>

namespace neaptide::backends::cpu {
namespace {

using graph::ImplSpec;
using graph::NodeView;
using graph::Shape;

/// A matrix (with batch dimensions of 1 in front up to `rank`), read with its last two dimensions swapped if
/// `transposed`.
Desc matrix(const Shape& shape, std::size_t rank, bool transposed) {
  Dims dims(rank - shape.size(), 1);
  dims.insert(dims.end(), shape.begin(), shape.end());
  Dims strides(rank, 1);
  for (std::size_t d = rank - 1; d > 0; --d) strides[d - 1] = strides[d] * std::max<std::int64_t>(1, dims[d]);
  if (transposed) {
    std::swap(dims[rank - 1], dims[rank - 2]);
    std::swap(strides[rank - 1], strides[rank - 2]);
  }
  return Desc(dims, dnnl::memory::data_type::f32, strides);
}

Candidates candidates(const Context& context, const Desc& a, const Desc& b, const Desc& bias, const Desc& y) {
  Candidates out;
  dnnl::matmul::primitive_desc pd(context.engine, a, b, bias, y, user_scratchpad(), true);
  for_each_impl(pd, [&](const std::string& name) {
    ImplSpec spec{.name = name, .reads = {0, 1}, .writes = {0}};
    spec.workspace = static_cast<Bytes>(pd.scratchpad_desc().get_size());
    std::vector<Slot> slots = {{DNNL_ARG_SRC, a, Place::kInput, 0},
                               {DNNL_ARG_WEIGHTS, b, Place::kInput, 1},
                               {DNNL_ARG_DST, y, Place::kOutput, 0}};
    if (!bias.is_zero()) {
      spec.reads.push_back(2);
      slots.push_back({DNNL_ARG_BIAS, bias, Place::kInput, 2});
    }
    const auto copy = clone(pd);
    out.push_back({std::move(spec), [context, copy, slots] {
                     return primitive_kernel(context, dnnl::matmul(copy), slots, copy.scratchpad_desc(), 0);
                   }});
  });
  return out;
}

bool computable(const NodeView& node) {
  return all_f32(node) && all_plain(node) && node.output(0).elements() > 0 && node.input(0).elements() > 0;
}

}  // namespace

Candidates gemm_candidates(const Context& context, const NodeView& node) {
  if (!computable(node) || node.float_or("alpha", 1) != 1) return {};
  const Shape y = node.output(0).shape;
  Desc bias;
  if (node.has_input(2)) {
    const Shape& c = node.input(2).shape;
    const bool per_column = (c.size() == 1 || (c.size() == 2 && c[0] == 1)) && c.back() == y[1];
    if (!per_column || node.float_or("beta", 1) != 1) return {};
    bias = plain_desc({1, y[1]});
  }
  return candidates(context, matrix(node.input(0).shape, 2, node.int_or("transA", 0) != 0),
                    matrix(node.input(1).shape, 2, node.int_or("transB", 0) != 0), bias, matrix(y, 2, false));
}

Candidates matmul_candidates(const Context& context, const NodeView& node) {
  if (!computable(node)) return {};
  const Shape &a = node.input(0).shape, &b = node.input(1).shape;
  const std::size_t rank = std::max(a.size(), b.size());
  if (a.size() < 2 || b.size() < 2 || rank > 6 || node.output(0).shape.size() != rank) return {};
  return candidates(context, matrix(a, rank, node.int_or("trans_a", 0) != 0),
                    matrix(b, rank, node.int_or("trans_b", 0) != 0), Desc(), matrix(node.output(0).shape, rank, false));
}

}  // namespace neaptide::backends::cpu
