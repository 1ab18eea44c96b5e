// Repeated blocks of a problem: stretches of its order in which the same ops come again and again with the same period
// (layers of a transformer, blocks of a residual stage; forward and backward halves are stretches of their own). What
// has been decided for one block can then be tried in another.
//
//   const tide::Blocks blocks(model);
//   for (int op : blocks.ops(b)) other = blocks.shifted(op, +2);      // the same op, two blocks further; -1: none
#pragma once

#include <vector>

#include "neaptide/plan/planners/neaptide_model.hpp"

namespace neaptide::plan::tide {

class Blocks {
 public:
  explicit Blocks(const Model& model);

  /// Of the first stretch; 0 when nothing repeats at least three times.
  int count() const { return stretches_.empty() ? 0 : stretches_[0].count; }
  /// The ops of a block of the first stretch, in order.
  std::vector<int> ops(int block) const;
  /// The op at the same place `shift` blocks further in the first stretch. Ops of other stretches, which may run the
  /// other way round, move along with the blocks that they read from.
  int shifted(int op, int shift) const;

 private:
  struct Stretch {
    int begin = 0, period = 1, count = 0;
    int direction = 1;  // against the first stretch; 0: unrelated
  };
  void find(const std::vector<std::uint64_t>& shape);
  void relate(const Model& model);

  std::vector<Stretch> stretches_;
  std::vector<int> op_at_, position_of_;
  std::vector<int> stretch_of_;  // by position; -1: none
};

}  // namespace neaptide::plan::tide
