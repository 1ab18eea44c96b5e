#include <set>

#include "neaptide/memory/packers/packers.hpp"
#include "neaptide/memory/placement.hpp"

namespace neaptide::memory {

namespace {

/// Each block on top of everything that is live when it begins. For nested lifetimes (any two disjoint or one within
/// the other) that is the sum of the enclosing sizes, so the top equals the load.
Offsets stack_up(std::span<const Block> blocks) {
  Offsets out;
  out.offset.assign(blocks.size(), 0);
  std::set<std::pair<int, int>> by_end_time;  // (end, block) of the live blocks
  std::multiset<Bytes> tops;
  const auto top_of_block = [&](int i) {
    return out.offset[static_cast<std::size_t>(i)] + blocks[static_cast<std::size_t>(i)].bytes;
  };
  for (int i : by_begin(blocks)) {
    const Block& b = blocks[static_cast<std::size_t>(i)];
    if (b.bytes == 0 || b.begin >= b.end) continue;
    while (!by_end_time.empty() && by_end_time.begin()->first <= b.begin) {
      tops.erase(tops.find(top_of_block(by_end_time.begin()->second)));
      by_end_time.erase(by_end_time.begin());
    }
    out.offset[static_cast<std::size_t>(i)] = tops.empty() ? 0 : *tops.rbegin();
    by_end_time.insert({b.end, i});
    tops.insert(top_of_block(i));
  }
  out.top = top_of(blocks, out.offset);
  return out;
}

}  // namespace

Offsets pack_stack(std::span<const Block> blocks, const PackOptions&) {
  Offsets forward = stack_up(blocks);
  std::vector<Block> mirrored(blocks.begin(), blocks.end());
  for (Block& b : mirrored) b = {.begin = -b.end, .end = -b.begin, .bytes = b.bytes};
  Offsets backward = stack_up(mirrored);
  return backward.top < forward.top ? backward : forward;
}

}  // namespace neaptide::memory
