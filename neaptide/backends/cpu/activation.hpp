// Relu and its gradient in own loops, on any layout (zero padding stays zero).
#pragma once

#include "neaptide/backends/cpu/kernels.hpp"

namespace neaptide::backends::cpu {

graph::FormatChoice relu_formats(const Context& context, const graph::NodeView& node);
Candidates relu_candidates(const Context& context, const graph::NodeView& node);

graph::FormatChoice relu_grad_formats(const Context& context, const graph::NodeView& node);
Candidates relu_grad_candidates(const Context& context, const graph::NodeView& node);

}  // namespace neaptide::backends::cpu
