// Reorder between layouts by oneDNN; also what the backend converts host tensors with.
#pragma once

#include "neaptide/backends/cpu/kernels.hpp"

namespace neaptide::backends::cpu {

/// The value's own formats, whatever they are.
graph::FormatChoice reorder_formats(const Context& context, const graph::NodeView& node);
Candidates reorder_candidates(const Context& context, const graph::NodeView& node);

/// Copies `from` to `to` now. Both describe the same tensor.
void convert(const Context& context, const Desc& from_desc, const void* from, const Desc& to_desc, void* to);

}  // namespace neaptide::backends::cpu
