// What the order-based packers share: orders of blocks, and the rule that puts one block after another into the first
// or the tightest gap among those placed before.
//
//   Offsets o = place(blocks, by_size(blocks), Fit::kFirst, ticks);
//
// Times are half-open; blocks without duration or without bytes meet nothing and lie at offset 0.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "neaptide/memory/memory.hpp"

namespace neaptide::memory {

/// A permutation of the blocks.
using Order = std::vector<int>;

/// Ties are broken by the other measures and the index, so every order is total.
Order by_size(std::span<const Block> blocks);      // bytes, largest first
Order by_area(std::span<const Block> blocks);      // bytes x duration, largest first
Order by_duration(std::span<const Block> blocks);  // longest first
Order by_begin(std::span<const Block> blocks);     // earliest first, the longer first among equals
Order by_end(std::span<const Block> blocks);       // latest first, the longer first among equals

/// First: the lowest gap that is large enough. Best: the smallest such gap; where none is, on top.
enum class Fit { kFirst, kBest };

/// Places the blocks in this order. `ticks`, when given, grows by the number of placed blocks looked at.
Offsets place(std::span<const Block> blocks, std::span<const int> order, Fit fit, std::int64_t* ticks = nullptr);

inline bool meet(const Block& a, const Block& b) { return a.begin < b.end && b.begin < a.end; }

/// Highest end of a block.
Bytes top_of(std::span<const Block> blocks, std::span<const Bytes> offset);

}  // namespace neaptide::memory
