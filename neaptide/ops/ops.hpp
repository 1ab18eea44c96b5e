// The operators. One file per family; each says everything about its operators (type rule, gradient, work,
// implementations with reference kernels) and exports `std::vector<graph::OpDef> <family>_ops();`, listed in ops.cc.
//
// Names follow ONNX where ONNX has the operator; ours otherwise. `[k]` marks an optional output that a gradient or an
// effect may ask for; `?` an optional input of which an implementation reads a subset.
//
//   convolution   Conv(x, w, b?) -> y                     attrs as ONNX; activation = "" | "relu" (fused)
//                 ConvGradInput(dy, w) -> dx              attrs of Conv + input_shape
//                 ConvGradWeight(dy, x) -> dw, [1] db     attrs of Conv + weight_shape
//   transposed    ConvTranspose(x, w, b?) -> y; ConvTransposeGradInput(dy, w) -> dx
//                 ConvTransposeGradWeight(dy, x) -> dw, [1] db
//   pooling       MaxPool(x) -> y, [1] index (u8 position in the window, i32 when it has more than 256)
//                 MaxPoolGrad(dy, x?, y?, index?) -> dx   attrs of MaxPool + input_shape; "from-input", "from-index"
//                 AveragePool(x) -> y; AveragePoolGrad(dy) -> dx (attrs of AveragePool + input_shape)
//                 GlobalAveragePool(x) -> y; GlobalAveragePoolGrad(dy) -> dx (input_shape)
//   batch_norm    BatchNormalization(x, scale, b, mean, var) -> y                inference
//                 BatchNormTrain(x, scale, b) -> y, [1] mean, [2] var, [3] mask (u8 bits)   epsilon, activation
//                 BatchNormTrainGrad(dy, x, scale, mean, var, b?, y?, mask?) -> dx, dscale, db
//                 RunningStatistics(running, batch) -> running'                  once; momentum
//   activation    Relu(x) -> y, [1] sign (u8 bits); ReluGrad(dy, x?, y?, sign?) -> dx; Clip(x, min?, max?) -> y, [1]
//   mask;
//                 ClipGrad(dy, x?, mask?, y?); Sigmoid, SigmoidGrad(dy, y); Tanh, TanhGrad(dy, y)
//   softmax       Softmax(x) -> y, SoftmaxGrad(dy, y); LogSoftmax, LogSoftmaxGrad (axis)
//   dropout       Dropout(x) -> y (inference: renames); DropoutTrain(x, rng) -> y, [1] mask (u8 bits)
//                 DropoutTrainGrad(dy, rng?, mask?) -> dx
//                 ratio, stream; rng is the i64[2] input {seed, step}
//   matmul        Gemm(a, b, c?); MatMul(a, b) with our attrs trans_a, trans_b
//   arithmetic    Add, Sub, Mul, Div (broadcasting; Add has activation = "relu"), Sum(x...), SumTo(x) (shape: the
//   adjoint of
//                 broadcasting), ExpandTo(x) (shape, scale: broadcasting and scaling), DivGradB and others as needed
//   reduce        ReduceMean, ReduceSum (axes attribute or constant input, keepdims)
//   shape         Reshape, Flatten, Squeeze, Unsqueeze, Identity (renames; Reshape takes its shape from input 1 or from
//   the
//                 attribute shape), Transpose, Concat, Slice (axis, start, end), SliceGrad, Cast
//   resize        Resize(x) -> y                          nearest; scales or sizes, modes as in ONNX (resize.hpp)
//                 ResizeGrad(dy) -> dx                    attrs of Resize + input_shape
//   loss          SoftmaxCrossEntropy(logits, labels i64[n]) -> mean loss (scalar), [1] probabilities
//                 SoftmaxCrossEntropyGrad(labels, logits?, probabilities?) -> dlogits
//                 MeanSquaredError(x, target) -> mean loss (scalar); MeanSquaredErrorGrad(x, target) -> dx
//                 CountCorrect(logits, labels) -> i64 scalar
//   update        SgdUpdate(w, dw, lr) -> w'; MomentumUpdate(w, dw, m, lr) -> w', m' (momentum, nesterov);
//                 AdamUpdate(w, dw, m, v, lr, rng) -> w', m', v' (beta1, beta2, epsilon, decoupled); all: weight_decay;
//                 once. lr is the f32 scalar input; t = rng[1] + 1
//   reorder       Reorder(x) -> y     same type, other format (the output value's)
#pragma once

#include "neaptide/graph/op_def.hpp"

namespace neaptide::ops {

/// Every operator. Built once, on first use; immutable.
const graph::OpSet& all();

}  // namespace neaptide::ops
