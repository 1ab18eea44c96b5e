#include <algorithm>
#include <chrono>

#include "neaptide/memory/packers/packers.hpp"

namespace neaptide::memory {

namespace {

constexpr std::int64_t kPolish = 100'000'000;    // to come nearer to the load, where nothing depends on it
constexpr std::int64_t kRescue = 1'000'000'000;  // to come below a capacity that the load allows

}  // namespace

Offsets pack_best(std::span<const Block> blocks, const PackOptions& options) {
  const Bytes least = load(blocks);
  const Bytes enough = std::max(least, options.capacity.value_or(0));
  const auto begin = std::chrono::steady_clock::now();
  Offsets best = pack_stack(blocks, options);
  for (auto* packer : {pack_best_fit, blocks.size() > kMostExactBlocks ? pack_hill_climb : pack_exact}) {
    if (best.top <= enough || best.optimal) break;
    PackOptions here = options;
    const bool rescue = options.capacity && best.top > *options.capacity && least <= *options.capacity;
    if (options.effort == 0) here.effort = rescue ? kRescue : kPolish;
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    here.time_limit = std::max(0.0, options.time_limit - spent.count());
    Offsets next = packer(blocks, here);
    if (next.top < best.top || (next.optimal && next.top == best.top)) best = std::move(next);
  }
  return best;
}

}  // namespace neaptide::memory
