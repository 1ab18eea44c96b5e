// The devices' SDKs by name: one line each, sorted; what is not built says why.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "neaptide/runtime/backend.hpp"

namespace neaptide::session {

std::span<const runtime::BackendEntry> backends();

/// `threads` 0: as many as this process may use. UserError for a name that is unknown or not built.
std::unique_ptr<runtime::Backend> make_backend(const std::string& name, int threads);

}  // namespace neaptide::session
