#include "neaptide/runtime/allocations.hpp"

// Defined by the hooks; absent when they are not linked in.
extern "C" __attribute__((weak)) int neaptide_allocation_hooks_present;

namespace {

struct Counts {
  bool armed = false;
  int library_depth = 0;
  std::int64_t ours = 0, library = 0;
};
thread_local constinit Counts counts;

}  // namespace

extern "C" void neaptide_count_allocation(void) noexcept {
  if (!counts.armed) return;
  ++(counts.library_depth > 0 ? counts.library : counts.ours);
}

namespace neaptide::runtime {

bool allocations_are_counted() { return &neaptide_allocation_hooks_present != nullptr; }

AllocationProbe::AllocationProbe() { counts = {.armed = true, .library_depth = counts.library_depth}; }
AllocationProbe::~AllocationProbe() { counts.armed = false; }
std::int64_t AllocationProbe::ours() const { return counts.ours; }
std::int64_t AllocationProbe::library() const { return counts.library; }

LibraryScope::LibraryScope() { ++counts.library_depth; }
LibraryScope::~LibraryScope() { --counts.library_depth; }

}  // namespace neaptide::runtime
