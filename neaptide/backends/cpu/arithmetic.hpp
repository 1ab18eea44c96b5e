// Add (with ReLU) and Sum of tensors in one layout by own loops; broadcasting arithmetic by oneDNN.
#pragma once

#include "neaptide/backends/cpu/kernels.hpp"

namespace neaptide::backends::cpu {

graph::FormatChoice add_formats(const Context& context, const graph::NodeView& node);
Candidates add_candidates(const Context& context, const graph::NodeView& node);

/// Sub, Mul, Div; and Add that broadcasts.
graph::FormatChoice binary_formats(const Context& context, const graph::NodeView& node);
Candidates binary_candidates(const Context& context, const graph::NodeView& node);

graph::FormatChoice sum_formats(const Context& context, const graph::NodeView& node);
Candidates sum_candidates(const Context& context, const graph::NodeView& node);

}  // namespace neaptide::backends::cpu
