#include <algorithm>
#include <chrono>
#include <random>

#include "neaptide/memory/packers/packers.hpp"
#include "neaptide/memory/placement.hpp"

namespace neaptide::memory {

namespace {

constexpr std::int64_t kDefaultEffort = 100'000'000;

/// Moves a block that reaches the top to a random earlier place of the order.
void promote(Order& order, std::span<const Block> blocks, const Offsets& now, std::mt19937_64& random) {
  std::vector<std::size_t> highest;
  for (std::size_t k = 1; k < order.size(); ++k) {
    const auto i = static_cast<std::size_t>(order[k]);
    if (now.offset[i] + blocks[i].bytes == now.top) highest.push_back(k);
  }
  if (highest.empty()) return;
  const std::size_t from = highest[random() % highest.size()], to = random() % from;
  std::rotate(order.begin() + static_cast<std::ptrdiff_t>(to), order.begin() + static_cast<std::ptrdiff_t>(from),
              order.begin() + static_cast<std::ptrdiff_t>(from) + 1);
}

}  // namespace

Offsets pack_hill_climb(std::span<const Block> blocks, const PackOptions& options) {
  const Bytes enough = std::max(load(blocks), options.capacity.value_or(0));
  const std::int64_t effort = options.effort > 0 ? options.effort : kDefaultEffort;
  const auto begin = std::chrono::steady_clock::now();
  std::int64_t ticks = 0;
  Order order;
  Offsets now;
  for (Order (*start)(std::span<const Block>) : {by_size, by_area, by_duration}) {
    Offsets next = place(blocks, start(blocks), Fit::kFirst, &ticks);
    if (!order.empty() && next.top >= now.top) continue;
    order = start(blocks);
    now = std::move(next);
  }
  std::mt19937_64 random(options.seed);
  while (now.top > enough && ticks < effort) {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    if (spent.count() > options.time_limit) break;
    Order changed = order;
    promote(changed, blocks, now, random);
    Offsets next = place(blocks, changed, Fit::kFirst, &ticks);
    ticks += static_cast<std::int64_t>(blocks.size());
    if (next.top > now.top) continue;
    order = std::move(changed);
    now = std::move(next);
  }
  return now;
}

}  // namespace neaptide::memory
