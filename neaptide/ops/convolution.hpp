// Conv, ConvGradInput and ConvGradWeight (see ops.hpp): one to three spatial axes, groups, dilation, ONNX padding. The
// attribute activation = "relu" fuses a Relu into the forward operator.
#pragma once

#include "neaptide/graph/op_def.hpp"
#include "neaptide/ops/conv_kernels.hpp"

namespace neaptide::ops {

/// The sizes of a Conv, ConvGradInput or ConvGradWeight node, whose types must be legal.
ConvGeometry conv_geometry(const graph::NodeView& node);

std::vector<graph::OpDef> convolution_ops();

}  // namespace neaptide::ops
