// Activations and their gradients on any layout in which zero padding stays zero: own loops, Sigmoid and Tanh by
// oneDNN.
#pragma once

#include "neaptide/backends/cpu/kernels.hpp"

namespace neaptide::backends::cpu {

graph::FormatChoice relu_formats(const Context& context, const graph::NodeView& node);
Candidates relu_candidates(const Context& context, const graph::NodeView& node);

graph::FormatChoice relu_grad_formats(const Context& context, const graph::NodeView& node);
Candidates relu_grad_candidates(const Context& context, const graph::NodeView& node);

graph::FormatChoice clip_formats(const Context& context, const graph::NodeView& node);
Candidates clip_candidates(const Context& context, const graph::NodeView& node);
graph::FormatChoice clip_grad_formats(const Context& context, const graph::NodeView& node);
Candidates clip_grad_candidates(const Context& context, const graph::NodeView& node);

/// Sigmoid, Tanh, SigmoidGrad, TanhGrad.
graph::FormatChoice smooth_formats(const Context& context, const graph::NodeView& node);
Candidates smooth_candidates(const Context& context, const graph::NodeView& node);
graph::FormatChoice smooth_grad_formats(const Context& context, const graph::NodeView& node);
Candidates smooth_grad_candidates(const Context& context, const graph::NodeView& node);

}  // namespace neaptide::backends::cpu
