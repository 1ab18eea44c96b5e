// Weight updates: one pass over weights, gradient and moments, on any layout (padding stays zero).
#pragma once

#include "neaptide/backends/cpu/kernels.hpp"

namespace neaptide::backends::cpu {

graph::FormatChoice update_formats(const Context& context, const graph::NodeView& node);
Candidates sgd_candidates(const Context& context, const graph::NodeView& node);
Candidates momentum_candidates(const Context& context, const graph::NodeView& node);
Candidates adam_candidates(const Context& context, const graph::NodeView& node);

}  // namespace neaptide::backends::cpu
