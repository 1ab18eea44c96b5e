// The books of an arena: what is held, by binding and releasing. The measured peak comes from here and nowhere else.
#pragma once

#include <algorithm>
#include <vector>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/units.hpp"

namespace neaptide::runtime {

/// Counts held bytes. In strict mode it also keeps the live ranges sorted and refuses one that overlaps another.
/// Allocates only in its constructor.
class Ledger {
 public:
  Ledger(std::size_t most_ranges, bool strict) : strict_(strict) {
    if (strict) live_.reserve(most_ranges);
  }

  void bind(Bytes offset, Bytes bytes) {
    held_ += bytes;
    peak_ = std::max(peak_, held_);
    if (strict_ && bytes > 0) insert({offset, offset + bytes});
  }

  void release(Bytes offset, Bytes bytes) {
    held_ -= bytes;
    if (strict_ && bytes > 0) erase(offset);
  }

  /// In place: the block goes over to a value of `after` <= `before` bytes at the same offset.
  void hand_over(Bytes offset, Bytes before, Bytes after) {
    release(offset, before);
    bind(offset, after);
  }

  Bytes held() const { return held_; }
  Bytes peak() const { return peak_; }
  void start() { peak_ = held_; }

 private:
  struct Range {
    Bytes begin, end;
  };

  std::vector<Range>::iterator after(Bytes offset) {
    return std::lower_bound(live_.begin(), live_.end(), offset, [](const Range& r, Bytes o) { return r.begin < o; });
  }

  void insert(Range range) {
    const auto next = after(range.begin);
    const bool hits_next = next != live_.end() && next->begin < range.end;
    const bool hits_previous = next != live_.begin() && std::prev(next)->end > range.begin;
    if (hits_next || hits_previous)
      throw InternalError("bytes {} to {} of the arena are bound while others hold them", range.begin, range.end);
    ensure(live_.size() < live_.capacity(), "the ledger has room for every block of the plan");
    live_.insert(next, range);
  }

  void erase(Bytes offset) {
    const auto found = after(offset);
    ensure(found != live_.end() && found->begin == offset, "a released block was bound");
    live_.erase(found);
  }

  bool strict_;
  Bytes held_ = 0, peak_ = 0;
  std::vector<Range> live_;
};

}  // namespace neaptide::runtime
