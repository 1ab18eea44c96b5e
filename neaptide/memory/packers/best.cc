#include "neaptide/memory/packers/packers.hpp"

namespace neaptide::memory {

Offsets pack_best(std::span<const Block> blocks, const PackOptions& options) {
  const Bytes enough = std::max(load(blocks), options.capacity.value_or(0));
  Offsets best = pack_stack(blocks, options);
  for (auto* packer : {pack_first_fit, pack_best_fit}) {
    if (best.top <= enough) break;
    Offsets next = packer(blocks, options);
    if (next.top < best.top) best = std::move(next);
  }
  return best;
}

}  // namespace neaptide::memory
