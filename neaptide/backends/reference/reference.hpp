// The reference backend: every operator by its own plain loops (OpDef::implementations), on plain tensors, on one
// thread. Slow and simple; what every other backend is compared with.
//
//   std::unique_ptr<runtime::Backend> backend = backends::reference::make(1);
#pragma once

#include <memory>

#include "neaptide/runtime/backend.hpp"

namespace neaptide::backends::reference {

/// `threads` is ignored: the loops are serial.
std::unique_ptr<runtime::Backend> make(int threads);

}  // namespace neaptide::backends::reference
