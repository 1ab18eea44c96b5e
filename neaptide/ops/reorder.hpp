// Reorder: the same tensor in another storage format, which the output value names. Between plain formats it is a copy;
// backends convert.
#pragma once

#include "neaptide/graph/op_def.hpp"

namespace neaptide::ops {

std::vector<graph::OpDef> reorder_ops();

}  // namespace neaptide::ops
