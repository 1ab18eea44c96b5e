#include "neaptide/memory/placement.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace neaptide::memory {

namespace {

const Block& at(std::span<const Block> blocks, int i) { return blocks[static_cast<std::size_t>(i)]; }

/// The permutation that sorts by ascending key(i), ties by index.
template <class Key>
Order sorted_by(std::span<const Block> blocks, Key key) {
  Order order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return key(at(blocks, a)) < key(at(blocks, b)); });
  return order;
}

int duration(const Block& b) { return b.end - b.begin; }
double area(const Block& b) { return static_cast<double>(b.bytes) * duration(b); }

/// The blocks placed so far, by ascending offset, in arrays that a scan reads front to back.
class Placed {
 public:
  explicit Placed(std::size_t n) { begin_.reserve(n), end_.reserve(n), low_.reserve(n), high_.reserve(n); }
  void insert(const Block& b, Bytes offset);
  Bytes first_fit(const Block& b, std::int64_t& ticks) const;
  Bytes best_fit(const Block& b, std::int64_t& ticks) const;

 private:
  bool meets(std::size_t i, const Block& b) const { return begin_[i] < b.end && b.begin < end_[i]; }

  std::vector<int> begin_, end_;
  std::vector<Bytes> low_, high_;
};

void Placed::insert(const Block& b, Bytes offset) {
  const auto i = std::upper_bound(low_.begin(), low_.end(), offset) - low_.begin();
  begin_.insert(begin_.begin() + i, b.begin);
  end_.insert(end_.begin() + i, b.end);
  low_.insert(low_.begin() + i, offset);
  high_.insert(high_.begin() + i, offset + b.bytes);
}

Bytes Placed::first_fit(const Block& b, std::int64_t& ticks) const {
  Bytes floor = 0;
  std::size_t i = 0;
  for (; i < low_.size(); ++i) {
    if (!meets(i, b)) continue;
    if (low_[i] - floor >= b.bytes) break;
    floor = std::max(floor, high_[i]);
  }
  ticks += static_cast<std::int64_t>(i) + 1;
  return floor;
}

Bytes Placed::best_fit(const Block& b, std::int64_t& ticks) const {
  Bytes floor = 0, best = -1, least = 0;
  for (std::size_t i = 0; i < low_.size(); ++i) {
    if (!meets(i, b)) continue;
    const Bytes gap = low_[i] - floor;
    if (gap >= b.bytes && (best < 0 || gap < least)) best = floor, least = gap;
    floor = std::max(floor, high_[i]);
  }
  ticks += static_cast<std::int64_t>(low_.size()) + 1;
  return best < 0 ? floor : best;
}

}  // namespace

Order by_size(std::span<const Block> blocks) {
  return sorted_by(blocks, [](const Block& b) { return std::tuple(-b.bytes, -duration(b)); });
}
Order by_area(std::span<const Block> blocks) {
  return sorted_by(blocks, [](const Block& b) { return std::tuple(-area(b), -b.bytes); });
}
Order by_duration(std::span<const Block> blocks) {
  return sorted_by(blocks, [](const Block& b) { return std::tuple(-duration(b), -b.bytes); });
}
Order by_begin(std::span<const Block> blocks) {
  return sorted_by(blocks, [](const Block& b) { return std::tuple(b.begin, -b.end, -b.bytes); });
}
Order by_end(std::span<const Block> blocks) {
  return sorted_by(blocks, [](const Block& b) { return std::tuple(-b.end, b.begin, -b.bytes); });
}

Bytes top_of(std::span<const Block> blocks, std::span<const Bytes> offset) {
  Bytes top = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) top = std::max(top, offset[i] + blocks[i].bytes);
  return top;
}

Offsets place(std::span<const Block> blocks, std::span<const int> order, Fit fit, std::int64_t* ticks) {
  Offsets out;
  out.offset.assign(blocks.size(), 0);
  Placed placed(blocks.size());
  std::int64_t seen = 0;
  for (int i : order) {
    const Block& b = at(blocks, i);
    if (b.bytes == 0 || b.begin >= b.end) continue;
    const Bytes offset = fit == Fit::kFirst ? placed.first_fit(b, seen) : placed.best_fit(b, seen);
    placed.insert(b, offset);
    out.offset[static_cast<std::size_t>(i)] = offset;
  }
  out.top = top_of(blocks, out.offset);
  if (ticks != nullptr) *ticks += seen;
  return out;
}

}  // namespace neaptide::memory
