// BatchNormalization (inference), BatchNormTrain, BatchNormTrainGrad and RunningStatistics (see ops.hpp). Channels are
// axis 1. The training operator is pure: the effect on the running statistics is a node of its own that runs once.
//
//   mean, var = statistics of x over all axes but 1 (var divides by the number of elements, as ONNX says)
//   y = (x - mean) / sqrt(var + epsilon) * scale + b; with activation = "relu" its positive part, and mask has a set
//   bit wherever the gradient passes
//   running' = running * momentum + batch * (1 - momentum)
#pragma once

#include "neaptide/graph/op_def.hpp"

namespace neaptide::ops {

std::vector<graph::OpDef> batch_norm_ops();

}  // namespace neaptide::ops
