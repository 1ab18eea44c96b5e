#include "neaptide/base/errors.hpp"

namespace neaptide {

void ensure(bool condition, const char* what, std::source_location where) {
  if (!condition) throw InternalError("{}:{}: broken invariant: {}", where.file_name(), where.line(), what);
}

}  // namespace neaptide
