// The three kinds of broken promise (DESIGN.md section 12). Expected outcomes (infeasible, unsupported, time limit) are
// values, never exceptions. A message is one lower-case sentence that names the thing, its place and what would be
// right, without a full stop.
//
//   throw UserError("{}: node '{}' has no input 1; Conv needs a weight", path, node);
#pragma once

#include <fmt/core.h>

#include <source_location>
#include <stdexcept>
#include <string>

namespace neaptide {

class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message) {}
};

/// The input (model, file, flag, data) is wrong; the user can mend it.
class UserError : public Error {
 public:
  template <class... A>
  explicit UserError(fmt::format_string<A...> f, A&&... a) : Error(fmt::format(f, std::forward<A>(a)...)) {}
};

/// A device, a driver or the operating system refused.
class DeviceError : public Error {
 public:
  template <class... A>
  explicit DeviceError(fmt::format_string<A...> f, A&&... a) : Error(fmt::format(f, std::forward<A>(a)...)) {}
};

/// Our own promise is broken; never the user's fault.
class InternalError : public Error {
 public:
  template <class... A>
  explicit InternalError(fmt::format_string<A...> f, A&&... a) : Error(fmt::format(f, std::forward<A>(a)...)) {}
};

/// Throws InternalError with file, line and `what` unless `condition` holds. For invariants, never for input checks.
void ensure(bool condition, const char* what, std::source_location where = std::source_location::current());

}  // namespace neaptide
