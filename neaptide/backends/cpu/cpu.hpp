// The CPU backend: oneDNN primitives where oneDNN is fast, own vectorised loops where memory bandwidth decides, the
// operator's reference loops for the rest, so that every operator runs. f32 in blocked layouts
// (graph/format_rules.hpp); other element types fall back to the reference.
//
//   std::unique_ptr<runtime::Backend> backend = backends::cpu::make(2);
//
// Deterministic: the same bits run after run for the same thread count, wherever (64-byte aligned) buffers lie.
// Primitives are made in make_kernel; run() only binds pointers. What oneDNN allocates inside a call is counted apart.
#pragma once

#include <memory>

#include "neaptide/runtime/backend.hpp"

namespace neaptide::backends::cpu {

/// `threads` >= 1 OpenMP threads; UserError otherwise.
std::unique_ptr<runtime::Backend> make(int threads);

}  // namespace neaptide::backends::cpu
