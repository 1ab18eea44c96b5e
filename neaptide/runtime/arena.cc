#include "neaptide/runtime/arena.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "neaptide/base/errors.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace neaptide::runtime {
namespace {

constexpr Bytes kHugePage = 2 << 20;

}  // namespace

Arena::Arena(Bytes bytes, bool guard) : bytes_(bytes) {
  const Bytes page = ::sysconf(_SC_PAGESIZE);
  const bool want_huge = !guard && bytes >= kHugePage;
  const Bytes body = round_up(bytes, page);
  mapped_ = static_cast<std::size_t>(body + page + (want_huge ? kHugePage : 0));
  void* mapping = ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED)
    throw DeviceError("the system gives no {} bytes for the arena: {}", bytes, std::strerror(errno));
  mapping_ = static_cast<std::byte*>(mapping);
  begin_ = mapping_;
  if (want_huge) {
    const auto address = reinterpret_cast<std::uintptr_t>(mapping_);
    begin_ = mapping_ + (round_up(static_cast<Bytes>(address), kHugePage) - static_cast<Bytes>(address));
    huge_pages_ = ::madvise(begin_, static_cast<std::size_t>(body), MADV_HUGEPAGE) == 0;
  }
  if (guard) {
    ::mprotect(mapping_ + body, static_cast<std::size_t>(page), PROT_NONE);
    begin_ = mapping_ + (body - bytes);
  }
  std::memset(begin_, 0, static_cast<std::size_t>(bytes));
}

Arena::~Arena() {
  restore(0, bytes_);
  ::munmap(mapping_, mapped_);
}

void Arena::poison(Bytes offset, Bytes bytes) {
  // All bits set is a quiet NaN in f32 and f64 alike.
  std::memset(at(offset), 0xff, static_cast<std::size_t>(bytes));
#if defined(__SANITIZE_ADDRESS__)
  ASAN_POISON_MEMORY_REGION(at(offset), static_cast<std::size_t>(bytes));
#endif
}

void Arena::restore([[maybe_unused]] Bytes offset, [[maybe_unused]] Bytes bytes) {
#if defined(__SANITIZE_ADDRESS__)
  ASAN_UNPOISON_MEMORY_REGION(at(offset), static_cast<std::size_t>(bytes));
#endif
}

}  // namespace neaptide::runtime
