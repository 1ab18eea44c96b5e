#include <algorithm>

#include "neaptide/memory/packers/packers.hpp"
#include "neaptide/memory/placement.hpp"

namespace neaptide::memory {

/// Enough for every order up to some 7000 blocks.
static constexpr std::int64_t kDefaultEffort = 300'000'000;

Offsets pack_best_fit(std::span<const Block> blocks, const PackOptions& options) {
  const Bytes enough = std::max(load(blocks), options.capacity.value_or(0));
  const std::int64_t effort = options.effort > 0 ? options.effort : kDefaultEffort;
  Offsets best;
  std::int64_t ticks = 0;
  for (Order (*order)(std::span<const Block>) : {by_size, by_area, by_duration, by_begin, by_end}) {
    for (Fit fit : {Fit::kBest, Fit::kFirst}) {
      Offsets next = place(blocks, order(blocks), fit, &ticks);
      if (best.offset.empty() || next.top < best.top) best = std::move(next);
      if (best.top <= enough || ticks > effort) return best;
    }
  }
  return best;
}

}  // namespace neaptide::memory
