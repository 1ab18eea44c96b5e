// Operators that move elements without computing on them: Reshape, Flatten, Squeeze, Unsqueeze and Identity, which only
// rename; Transpose, Concat, Slice, SliceGrad and Cast, which copy (see ops.hpp).
#pragma once

#include "neaptide/graph/op_def.hpp"

namespace neaptide::ops {

std::vector<graph::OpDef> shape_ops();

}  // namespace neaptide::ops
