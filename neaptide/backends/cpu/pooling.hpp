// Max and average pools by oneDNN; global average pooling by own loops.
#pragma once

#include "neaptide/backends/cpu/kernels.hpp"

namespace neaptide::backends::cpu {

graph::FormatChoice pool_formats(const Context& context, const graph::NodeView& node);  // MaxPool, AveragePool
Candidates max_pool_candidates(const Context& context, const graph::NodeView& node);
Candidates average_pool_candidates(const Context& context, const graph::NodeView& node);

graph::FormatChoice pool_grad_formats(const Context& context, const graph::NodeView& node);
Candidates max_pool_grad_candidates(const Context& context, const graph::NodeView& node);
Candidates average_pool_grad_candidates(const Context& context, const graph::NodeView& node);

graph::FormatChoice global_pool_formats(const Context& context, const graph::NodeView& node);
Candidates global_pool_candidates(const Context& context, const graph::NodeView& node);
graph::FormatChoice global_pool_grad_formats(const Context& context, const graph::NodeView& node);
Candidates global_pool_grad_candidates(const Context& context, const graph::NodeView& node);

}  // namespace neaptide::backends::cpu
