// ConvTranspose, ConvTransposeGradInput and ConvTransposeGradWeight (see ops.hpp). A transposed convolution is the
// adjoint of a convolution: x takes the place of that convolution's output gradient, y of its input.
#pragma once

#include "neaptide/graph/op_def.hpp"
#include "neaptide/ops/conv_kernels.hpp"

namespace neaptide::ops {

/// The sizes of the convolution whose adjoint a ConvTranspose* node is. `in_channels` are those of y.
ConvGeometry transposed_geometry(const graph::NodeView& node);

std::vector<graph::OpDef> transposed_ops();

}  // namespace neaptide::ops
