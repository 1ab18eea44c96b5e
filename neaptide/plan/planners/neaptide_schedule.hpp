// A schedule under change: a sequence of actions whose frees are implied (everything ends right after its last use),
// its seconds, and the load of every budgeted device at every step. Changes are journalled, so a move that does not pay
// is taken back.
//
//   Schedule s(model, actions);
//   const auto mark = s.mark();
//   s.insert(action, before_node);
//   if (!s.sound_since(mark) || s.seconds() > limit) s.undo(mark);
//
// A cell's life is derived from its events: each write begins a residence that ends with the last read before the next
// write. `source` and `sink`, the first and last node, write the homes and read what must be there at the end.
#pragma once

#include <cstdint>
#include <vector>

#include "neaptide/plan/planners/neaptide_model.hpp"
#include "neaptide/plan/planners/neaptide_timeline.hpp"

namespace neaptide::plan::tide {

struct Event {
  int node;
  bool write;
};

/// A stretch in which nothing touches `cell`. Idle: it is held for `to`, which reads it.
struct Gap {
  int cell, from, to;
};

/// A schedule as data: what runs, and on which device the values end that may end anywhere (by value; -1 or absent: the
/// last device that has them).
struct Sequence {
  std::vector<int> actions;
  std::vector<int> ends;
};

class Schedule {
 public:
  Schedule(const Model& model, const Sequence& sequence);

  const Model& model() const { return *model_; }
  double seconds() const { return seconds_; }
  const Timeline& time() const { return time_; }
  int source() const { return 0; }
  int sink() const { return 1; }
  int n_nodes() const { return static_cast<int>(action_.size()); }  // ids below this; some are not alive
  bool alive(int node) const { return alive_[node] != 0; }
  int action(int node) const { return action_[node]; }  // -1: source, sink
  const std::vector<Event>& events(int cell) const { return events_[cell]; }
  Sequence sequence() const;
  /// The nodes that run op (or the copy action).
  const std::vector<int>& runs(int op) const { return runs_[op]; }

  int insert(int action, int before);
  void remove(int node);
  void swap(int node, int action);
  void move(int node, int before);
  /// Lets the final read of a value that may end anywhere happen on another device.
  void end_on(int value, int device);
  int end_device(int value) const { return end_device_[value]; }

  std::size_t mark() const { return journal_.size(); }
  void undo(std::size_t mark);
  void commit();
  /// The nodes inserted or swapped since `mark` that are still there.
  std::vector<int> changed_since(std::size_t mark) const;
  /// Whether every cell touched since `mark` still has a write before each read, no read after it was consumed in
  /// place, and no event after its version was overwritten.
  bool sound_since(std::size_t mark);
  bool sound();  // the same for all cells

  /// The write that supplies a read of `cell` just before `node`; -1: none.
  int supplier(int cell, int node) const;
  /// Whether the cell stays resident across the point just before `node` whatever is inserted there.
  bool live_before(int cell, int node) const;
  /// The last event of the residence that a read just before `node` would extend; -1: no earlier write, or consumed.
  int extendable_from(int cell, int node) const;
  /// Both at once: `live`, and where an extension would begin.
  struct Presence {
    bool live = false;
    int from = -1;
    int consumer = -1;  // which ended the earlier residence by taking the cell over in place
  };
  Presence presence(int cell, int node) const;
  bool idle_at(int cell, int node, Gap* gap) const;
  /// The last node that reads what `node` writes into `cell`; -1: none.
  int last_read(int cell, int node) const;
  /// From the last event of the residence at `node` to the write that follows it; `to` is -1 when none does.
  Gap until_written(int cell, int node) const;
  bool consumes(int node, int cell) const;
  Bytes load_before(int track, int node) const;
  /// Bytes above the limits, largest over the tracks; at most 0: fits.
  Bytes excess() const;
  std::int64_t work() const { return work_; }

 private:
  enum class Kind : std::uint8_t { kInsert, kRemove, kSwap, kEnd };
  struct Change {
    Kind kind;
    int node, action, next;
    double seconds;
  };
  int new_node(int action);
  int find(int cell, int node) const;  // index of the first event at or after node
  void link(int node);
  void unlink(int node);
  void add_event(int cell, int node, bool write);
  void remove_event(int cell, int node, bool write);
  void adjust(int cell, int node, bool write, bool adding);
  void place(int node, int before);
  void drop(int node);
  bool cell_sound(int cell) const;

  const Model* model_;
  Timeline time_;
  std::vector<int> action_;
  std::vector<char> alive_;
  std::vector<int> free_nodes_;
  std::vector<std::vector<Event>> events_;
  std::vector<std::vector<int>> runs_;
  std::vector<int> end_device_;
  std::vector<Change> journal_;
  double seconds_ = 0;
  mutable std::int64_t work_ = 0;
  std::vector<Bytes> scratch_;
};

}  // namespace neaptide::plan::tide
