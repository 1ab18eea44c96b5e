// An operator's own loops (OpDef::implementations) as kernels of a backend: what the reference backend offers, and how
// a fast backend runs an operator that it has no kernel for. Plain tensors only.
#pragma once

#include <memory>

#include "neaptide/runtime/backend.hpp"

namespace neaptide::runtime {

Offer reference_offer(const graph::NodeView& node);
/// InternalError when `spec` is none of the offer's.
std::unique_ptr<Kernel> reference_kernel(const graph::NodeView& node, const graph::ImplSpec& spec);

}  // namespace neaptide::runtime
