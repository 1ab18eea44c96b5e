// Gemm and MatMul by oneDNN, on plain tensors; transposition is a matter of strides.
#pragma once

#include "neaptide/backends/cpu/kernels.hpp"

namespace neaptide::backends::cpu {

Candidates gemm_candidates(const Context& context, const graph::NodeView& node);
Candidates matmul_candidates(const Context& context, const graph::NodeView& node);

}  // namespace neaptide::backends::cpu
