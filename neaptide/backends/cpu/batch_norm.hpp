// Batch normalisation in training by oneDNN, with the ReLU behind it in the same pass. Its mask is one bit per stored
// element, set where the output is positive.
#pragma once

#include "neaptide/backends/cpu/kernels.hpp"

namespace neaptide::backends::cpu {

graph::FormatChoice batch_norm_formats(const Context& context, const graph::NodeView& node);
Candidates batch_norm_candidates(const Context& context, const graph::NodeView& node);

graph::FormatChoice batch_norm_grad_formats(const Context& context, const graph::NodeView& node);
Candidates batch_norm_grad_candidates(const Context& context, const graph::NodeView& node);

}  // namespace neaptide::backends::cpu
