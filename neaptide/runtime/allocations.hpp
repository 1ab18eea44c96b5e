// Counts heap allocations on the step path. The counting hooks (neaptide_allocation_hooks, linked into programs that
// want strict mode to see allocations; not into sanitizer builds) replace malloc; everything here works without them
// and then counts nothing.
#pragma once

#include <cstdint>

namespace neaptide::runtime {

/// True when the hooks are linked in.
bool allocations_are_counted();

/// Counts what the calling thread allocates between construction and destruction. Not nested.
class AllocationProbe {
 public:
  AllocationProbe();
  ~AllocationProbe();
  AllocationProbe(const AllocationProbe&) = delete;
  AllocationProbe& operator=(const AllocationProbe&) = delete;
  std::int64_t ours() const;     // outside any LibraryScope
  std::int64_t library() const;  // inside one
};

/// Put around a call into an SDK: what it allocates there is counted apart.
class LibraryScope {
 public:
  LibraryScope();
  ~LibraryScope();
  LibraryScope(const LibraryScope&) = delete;
  LibraryScope& operator=(const LibraryScope&) = delete;
};

}  // namespace neaptide::runtime

/// Called by the hooks for every allocation.
extern "C" void neaptide_count_allocation(void) noexcept;
