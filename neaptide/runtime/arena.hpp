// The one allocation of a device: exactly `bytes` of page-backed memory, taken once, touched at once.
#pragma once

#include <cstddef>

#include "neaptide/base/units.hpp"

namespace neaptide::runtime {

class Arena {
 public:
  /// Asks the system for huge pages. `guard`: the page right past the end is unmapped, and the start is 64-byte aligned
  /// only; otherwise the start is page aligned. DeviceError when the system refuses.
  Arena(Bytes bytes, bool guard);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  std::byte* at(Bytes offset) const { return begin_ + offset; }
  Bytes bytes() const { return bytes_; }
  bool huge_pages() const { return huge_pages_; }

  /// Makes [offset, offset + bytes) unusable: AddressSanitizer poisons it in that build, elsewhere it is filled with
  /// quiet NaNs. restore() takes the poison off (contents are unspecified).
  void poison(Bytes offset, Bytes bytes);
  void restore(Bytes offset, Bytes bytes);

 private:
  std::byte* mapping_ = nullptr;
  std::size_t mapped_ = 0;
  std::byte* begin_ = nullptr;
  Bytes bytes_ = 0;
  bool huge_pages_ = false;
};

}  // namespace neaptide::runtime
