// Evaluates nodes whose inputs are all known, so that the arithmetic on shapes that exporters write becomes constants.
// Internal to this folder.
#pragma once

#include <string>
#include <vector>

#include "neaptide/graph/graph.hpp"

namespace neaptide::onnx {

struct FoldArgs {
  const graph::Attrs& attrs;
  std::vector<const graph::Tensor*> inputs;  // null: optional input not given
  Bytes limit;                               // most bytes that the result may take
};

bool foldable(const std::string& op);

/// True when the operator only moves elements (Reshape, Transpose ...), so that its result is as trainable as its
/// input.
bool only_moves(const std::string& op);

/// UserError without a place when inputs or attributes are not legal, or the result is larger than `limit`.
graph::Tensor fold(const std::string& op, const FoldArgs& args);

/// `axes` of a tensor of rank `rank`: negative ones count from the end. UserError when out of range or repeated.
std::vector<std::int64_t> resolve_axes(const std::vector<std::int64_t>& axes, std::int64_t rank);

/// The shape that Reshape's target means for `from`; 0 copies (unless allow_zero), one -1 is inferred.
graph::Shape resolve_reshape(const graph::Shape& from, const std::vector<std::int64_t>& target, bool allow_zero);

/// Clamped bounds of Slice along a dimension, and how many elements lie between.
struct SliceRange {
  std::int64_t start, step, count;
};
SliceRange resolve_slice(std::int64_t dim, std::int64_t start, std::int64_t end, std::int64_t step);

}  // namespace neaptide::onnx
