#include "neaptide/memory/packers/packers.hpp"
#include "neaptide/memory/placement.hpp"

namespace neaptide::memory {

Offsets pack_first_fit(std::span<const Block> blocks, const PackOptions&) {
  return place(blocks, by_size(blocks), Fit::kFirst);
}

}  // namespace neaptide::memory
