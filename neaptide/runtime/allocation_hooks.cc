// Replaces the C allocator's entry points by ones that count and forward to glibc. Linked as an object into programs
// (never into the library), so that it also sees what shared libraries allocate. See allocations.hpp.
#include <cerrno>
#include <cstddef>

#include "neaptide/runtime/allocations.hpp"

extern "C" {

int neaptide_allocation_hooks_present = 1;

// glibc gives these names to its own allocator.  NOLINTBEGIN(bugprone-reserved-identifier)
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
// NOLINTEND(bugprone-reserved-identifier)

void* malloc(std::size_t bytes) {
  neaptide_count_allocation();
  return __libc_malloc(bytes);
}

void* calloc(std::size_t n, std::size_t bytes) {
  neaptide_count_allocation();
  return __libc_calloc(n, bytes);
}

void* realloc(void* old, std::size_t bytes) {
  neaptide_count_allocation();
  return __libc_realloc(old, bytes);
}

void* memalign(std::size_t alignment, std::size_t bytes) {
  neaptide_count_allocation();
  return __libc_memalign(alignment, bytes);
}

void* aligned_alloc(std::size_t alignment, std::size_t bytes) { return memalign(alignment, bytes); }

int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) {
  void* block = memalign(alignment, bytes);
  if (block == nullptr) return ENOMEM;
  *out = block;
  return 0;
}

}  // extern "C"
