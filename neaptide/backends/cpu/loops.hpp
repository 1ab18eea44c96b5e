// Own loops: ranges split over the threads in a fixed way, and the mark that compiles a function for several
// instruction sets.
#pragma once

#include <algorithm>
#include <cstdint>

#include "neaptide/runtime/allocations.hpp"

// Compiled for AVX-512, AVX2 and the base instruction set; the loader picks one. Off under sanitizers, which do not get
// on with the loader's choice. All give the same bits: no contraction, no reassociation (neaptide_flags).
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define NEAPTIDE_CLONES __attribute__((target_clones("arch=skylake-avx512", "arch=haswell", "default")))
#else
#define NEAPTIDE_CLONES
#endif

namespace neaptide::backends::cpu {

/// Calls body(begin, end) for consecutive ranges that cover [0, n), one per thread; every `begin` is a multiple of
/// `grain`. Small n runs on the calling thread. What the OpenMP runtime allocates for its team counts as the library's.
template <class Body>
void parallel_ranges(int threads, std::int64_t n, std::int64_t grain, Body body) {
  constexpr std::int64_t least = 1 << 14;  // below this, waking threads costs more than it brings
  if (n < least || threads == 1) {
    if (n > 0) body(std::int64_t{0}, n);
    return;
  }
  const runtime::LibraryScope scope;
  const std::int64_t units = (n + grain - 1) / grain, pieces = threads;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (std::int64_t p = 0; p < pieces; ++p) {
    const std::int64_t begin = std::min(n, units * p / pieces * grain);
    const std::int64_t end = std::min(n, units * (p + 1) / pieces * grain);
    if (begin < end) body(begin, end);
  }
}

/// Calls body(i) for each i in [0, n), split over the threads.
template <class Body>
void parallel_for(int threads, std::int64_t n, Body body) {
  if (n < 2 || threads == 1) {
    for (std::int64_t i = 0; i < n; ++i) body(i);
    return;
  }
  const runtime::LibraryScope scope;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (std::int64_t i = 0; i < n; ++i) body(i);
}

}  // namespace neaptide::backends::cpu
