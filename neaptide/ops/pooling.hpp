// MaxPool, AveragePool, GlobalAveragePool and their gradients (see ops.hpp): one to three spatial axes, dilation, ONNX
// padding, ceil_mode, count_include_pad.
//
// MaxPool's index is the position of the (first) maximum in its window, row-major over the kernel, padding included:
// u8 while the window has at most 256 positions, i32 beyond. A NaN in the window is its maximum.
#pragma once

#include "neaptide/graph/op_def.hpp"

namespace neaptide::ops {

std::vector<graph::OpDef> pooling_ops();

}  // namespace neaptide::ops
