// One function per packer, each in the file of its name; packers.cc lists them. Sizes are at least 0 and their sum fits
// 63 bits (memory::pack checks). Offsets are sums of sizes, so sizes rounded to an alignment give aligned offsets.
#pragma once

#include "neaptide/memory/memory.hpp"

namespace neaptide::memory {

/// pack_exact stores the neighbours of every block; above this many it is best-fit.
constexpr std::size_t kMostExactBlocks = 2000;

Offsets pack_best(std::span<const Block> blocks, const PackOptions& options);
Offsets pack_best_fit(std::span<const Block> blocks, const PackOptions& options);
Offsets pack_exact(std::span<const Block> blocks, const PackOptions& options);
Offsets pack_first_fit(std::span<const Block> blocks, const PackOptions& options);
Offsets pack_hill_climb(std::span<const Block> blocks, const PackOptions& options);
Offsets pack_stack(std::span<const Block> blocks, const PackOptions& options);

}  // namespace neaptide::memory
