// The planner's own view of a Problem: dense indices only. A *value* is one version of one buffer; a *cell* is a value
// on one device; an *action* is anything that makes cells out of cells: an implementation of an op, or a copy.
//
//   const tide::Model m(problem);            // problem must be sound (plan::check)
//   for (int cell : m.actions[a].reads) ...
//
// Bytes are rounded to the alignment of their device. Cells that never change the load (no budget on that device, or a
// home that cannot be left) have size 0; their bytes are in `fixed`.
#pragma once

#include <utility>
#include <vector>

#include "neaptide/plan/plan.hpp"

namespace neaptide::plan::tide {

struct Action {
  int op = -1;     // -1: a copy
  int impl = -1;   // index into ops[op].impls
  int device = 0;  // where it runs; of a copy: where it goes
  Seconds seconds = 0;
  Bytes extra = 0;  // what the step holds beside its cells: workspace, less the outputs that reuse a block
  bool once = false;
  bool closes = false;             // some value that it writes is overwritten later, and then it may not run again
  std::vector<int> reads, writes;  // cells
  std::vector<std::pair<int, int>> takes_over;  // in place: the first cell ends, the second reuses its block
};

struct Cell {
  int value = 0;
  int device = 0;
  int track = -1;  // index among the devices with a budget, -1: none
  Bytes size = 0;
  bool at_start = false;  // a home
  bool at_end = false;    // must be there at the end
};

struct Value {
  BufferId buffer;
  int version = 0;
  int overwritten_by = -1;     // the once op that starts the next version
  bool keep_anywhere = false;  // must exist at the end, on whichever device
  std::vector<int> makers;     // ops that write it
};

class Model {
 public:
  explicit Model(const Problem& problem);

  int cell(int value, int device) const { return value * n_devices + device; }
  /// The action that copies `value`, or -1 when there is no way between the devices.
  int copy(int value, int from, int to) const { return copies_.empty() ? -1 : copies_[copy_index(value, from, to)]; }
  /// A step of the plan.
  Step step(int action) const;

  const Problem* problem;
  int n_devices = 0;
  int n_tracks = 0;
  std::vector<int> track_device;  // the device of each track
  std::vector<Bytes> limit;       // per track: budget less the homes that never leave
  std::vector<Value> values;
  std::vector<Cell> cells;
  std::vector<Action> actions;
  std::vector<std::vector<int>> ways;        // per cell: the actions that write it, copies excluded
  std::vector<std::vector<int>> op_actions;  // per op: its implementations as actions, in the problem's order
  std::vector<int> fastest;                  // per op: its fastest action (first of equals)

 private:
  std::size_t copy_index(int value, int from, int to) const {
    const auto d = static_cast<std::size_t>(n_devices);
    return (static_cast<std::size_t>(value) * d + static_cast<std::size_t>(from)) * d + static_cast<std::size_t>(to);
  }
  void add_values(const Problem& p);
  void add_actions(const Problem& p);
  void add_copies(const Problem& p);

  std::vector<std::vector<int>> value_of_;  // [buffer][version]
  std::vector<int> copies_;
};

}  // namespace neaptide::plan::tide
