// Convolutions and their gradients by oneDNN. Weights lie in the layout of the forward primitive; the gradient of the
// weights is produced in it, and the backward-data primitive may ask for a Reorder of the weights.
//
// A transposed convolution is the adjoint of a convolution: ConvTranspose runs as backward-data,
// ConvTransposeGradInput as forward, and ConvTransposeGradWeight as backward-weights with its inputs swapped. Each
// function below serves both.
#pragma once

#include "neaptide/backends/cpu/kernels.hpp"

namespace neaptide::backends::cpu {

graph::FormatChoice conv_formats(const Context& context, const graph::NodeView& node);
Candidates conv_candidates(const Context& context, const graph::NodeView& node);

graph::FormatChoice conv_grad_input_formats(const Context& context, const graph::NodeView& node);
Candidates conv_grad_input_candidates(const Context& context, const graph::NodeView& node);

graph::FormatChoice conv_grad_weight_formats(const Context& context, const graph::NodeView& node);
Candidates conv_grad_weight_candidates(const Context& context, const graph::NodeView& node);

}  // namespace neaptide::backends::cpu
