#include "neaptide/ops/broadcast.hpp"

#include <algorithm>

#include "neaptide/graph/builder.hpp"

namespace neaptide::ops {

Shape broadcast(const NodeView& node, const Shape& a, const Shape& b) {
  const std::size_t rank = std::max(a.size(), b.size());
  Shape out(rank, 1);
  for (std::size_t d = 0; d < rank; ++d) {
    const std::int64_t da = d + a.size() < rank ? 1 : a[d + a.size() - rank];
    const std::int64_t db = d + b.size() < rank ? 1 : b[d + b.size() - rank];
    if (da != db && da != 1 && db != 1)
      node.fail(fmt::format("shapes {} and {} cannot be broadcast together", graph::to_string(a), graph::to_string(b)));
    out[d] = da == 1 ? db : da;
  }
  return out;
}

bool broadcasts_to(const Shape& from, const Shape& to) {
  if (from.size() > to.size()) return false;
  const std::size_t shift = to.size() - from.size();
  for (std::size_t d = 0; d < from.size(); ++d) {
    if (from[d] != to[d + shift] && from[d] != 1) return false;
  }
  return true;
}

namespace {

const Shape& shape_of(GradientContext& context, ValueId v) { return context.builder().graph().values[v].type.shape; }

}  // namespace

ValueId sum_to_input(GradientContext& context, ValueId gradient, std::size_t i, const std::string& suffix) {
  const Shape shape = shape_of(context, context.input(i));
  if (shape_of(context, gradient) == shape) return gradient;
  return context.emit("SumTo", {gradient}, {{"shape", shape}}, suffix)[0];
}

ValueId scaled(GradientContext& context, ValueId x, double scale, const std::string& suffix) {
  if (scale == 1.0) return x;
  return context.emit("ExpandTo", {x}, {{"shape", shape_of(context, x)}, {"scale", scale}}, suffix)[0];
}

ValueId reshaped(GradientContext& context, ValueId x, const Shape& shape, const std::string& suffix) {
  if (shape_of(context, x) == shape) return x;
  return context.emit("Reshape", {x}, {{"shape", shape}}, suffix)[0];
}

}  // namespace neaptide::ops
