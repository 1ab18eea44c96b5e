// Resize by the nearest element, and ResizeGrad (see ops.hpp), in any number of dimensions. Attributes of Resize:
//
//   scales (numbers) or sizes (integers), one entry per dimension
//   coordinate_transformation_mode = "half_pixel" | "half_pixel_symmetric" | "pytorch_half_pixel" | "align_corners" |
//                                    "asymmetric"
//   nearest_mode = "round_prefer_floor" | "round_prefer_ceil" | "floor" | "ceil"
//
// as in ONNX; ResizeGrad(dy) has input_shape as well.
#pragma once

#include "neaptide/graph/op_def.hpp"

namespace neaptide::ops {

std::vector<graph::OpDef> resize_ops();

}  // namespace neaptide::ops
