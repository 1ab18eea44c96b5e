// ReduceMean and ReduceSum over the axes in the attribute `axes` or a constant input 1; all axes when there are none
// (none when noop_with_empty_axes), keepdims = 1 by default.
#pragma once

#include "neaptide/graph/op_def.hpp"

namespace neaptide::ops {

std::vector<graph::OpDef> reduce_ops();

}  // namespace neaptide::ops
