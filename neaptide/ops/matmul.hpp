// Gemm (ONNX) and MatMul (numpy, with the attributes trans_a and trans_b for operands of two and more dimensions).
// Sums run over k in order, in double.
#pragma once

#include "neaptide/graph/op_def.hpp"

namespace neaptide::ops {

std::vector<graph::OpDef> matmul_ops();

}  // namespace neaptide::ops
