// Ruin and recreate on the sequence of steps. Where a step's load is above the budget, something idle is dropped and
// made again just before its next use (or its user is run by an implementation that does not need it, or it is copied
// away and back); then some of those decisions are taken back and made anew. Acceptance is record-to-record or
// annealed.
//
//   Search search(model, starting_actions(model), seed, switches);
//   if (search.make_feasible(ticks)) search.improve(ticks);
//   search.best();            // actions of the best schedule that fits
//
// Every heuristic is a named switch, on by default:
//   chain-recompute   chains that make missing inputs again instead of keeping them longer
//   implementations   another implementation instead of dropping something
//   paging            copies to another device and back
//   spare             what was taken over in place is kept instead, where another step can read it then
//   merge             a run that is made for one reader serves the readers of the next run as well, where that fits
//   prune             steps that a change made needless are removed at once
//   contiguous        half of the ruins are neighbours in time
//   anneal            half of the calls that improve accept what is a little worse than the current plan by chance, the
//                     others what is a little worse than the best one (record-to-record)
//   order             steps move to where they hold less
//   blocks            what is decided for one of the repeated blocks is tried in others
//   shake             now and then goes on from what a tighter budget forces, or from the start again
//   bound             lower bounds, and the plans that they suggest
//   multi-cut         of several instants at once as well
//   portfolio         the plans of the cheap published methods are starting points
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "neaptide/plan/planners/neaptide_blocks.hpp"
#include "neaptide/plan/planners/neaptide_schedule.hpp"

namespace neaptide::plan::tide {

struct Switches {
  bool chain_recompute = true;
  bool implementations = true;
  bool paging = true;
  bool spare = true;
  bool merge = true;
  bool prune = true;
  bool contiguous = true;
  bool anneal = true;
  bool order = true;
  bool portfolio = true;
  bool shake = true;
  bool blocks = true;
  bool bound = true;
  bool multi_cut = true;
};

/// Small, fast and the same everywhere (xorshift*).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ULL + 0x1234567ULL) { (*this)(); }
  std::uint32_t operator()() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return static_cast<std::uint32_t>((state_ * 0x2545F4914F6CDD1DULL) >> 32);
  }
  int below(int n) {
    return static_cast<int>((static_cast<std::uint64_t>((*this)()) * static_cast<std::uint64_t>(n)) >> 32);
  }
  double unit() { return (*this)() * (1.0 / 4294967296.0); }
  double between(double low, double high) { return low + (high - low) * unit(); }

 private:
  std::uint64_t state_;
};

/// Every needed op once, in the given order, by the fastest implementations that find what they read; memory aside.
Sequence starting_actions(const Model& model);

class Search {
 public:
  Search(const Model& model, const Sequence& start, std::uint64_t seed, const Switches& switches);

  /// Reduces the load until everything fits. False when it gives up.
  bool make_feasible(std::int64_t ticks);
  /// Looks for less time, from the current schedule on, until `ticks` of work are spent or `stop` says so.
  void improve(std::int64_t ticks, double warmth);
  /// Other decisions to go on from: what a tighter budget forces is kept where the real one allows it.
  void shake(std::int64_t ticks);
  /// From now on first runs stay where they are, or may move again. For a search whose switches leave the order free.
  void keep_order(bool keep) { switches_.order = !keep; }
  /// From the start again, by other decisions. False when nothing that fits was found.
  bool restart(std::int64_t ticks);
  /// Makes a schedule that fits the current one.
  void adopt(const Sequence& sequence);
  /// Makes it the best one when it fits and is better; the current one stays.
  void offer(const Sequence& sequence);

  bool has_best() const { return best_seconds_ < 1e300; }
  const Sequence& best() const { return best_; }
  double best_seconds() const { return best_seconds_; }
  std::int64_t ticks() const { return ticks_; }
  const Schedule& current() const { return s_; }
  /// Whether to end early; asked every few moves.
  std::function<bool()> stop = [] { return false; };
  double floor = 0;  // a proved bound: reaching it ends the search

 private:
  struct Upgrade {
    int node, action;
  };
  struct Candidate {
    double score = -1;
    double seconds = 0;
    int cell = -1, before = -1;
    int replace_node = -1, replace_action = -1;  // swapped after the chain is in
    int moved = -1;                              // put before `before`
    int page_out = -1, page_after = -1;          // a copy inserted after this node
    std::vector<int> chain;                      // inserted before `before`
    std::vector<Upgrade> upgrades;               // earlier runs that now write more
  };
  struct Rated {
    double worth;
    Gap gap;
  };
  enum class Mode { kExtend, kRecompute, kFitting };

  bool repair(double cutoff, int max_moves, bool earliest);
  bool pick_overflow(bool earliest, int* track, int* node);
  void collect_gaps(int track, int node);
  void consider_gap(int track, int node, const Gap& gap);
  void consider_eviction(int track, int node, const Gap& gap, Mode mode, double relief);
  void consider_other_user(int track, int node, const Gap& gap);
  void consider_paging(int track, int node, const Gap& gap);
  void consider_replacement(int track, int node);
  void offer(Candidate&& c);
  Candidate replacement(int node, int action) const;
  bool apply(const Candidate& c);
  void begin_chain();
  bool need(int cell, int target, int before, Mode mode, int depth);
  bool make(int action, int target, int before, Mode mode, int depth);
  bool upgrade(int cell, int before);
  int sparing(int action, int cell) const;
  bool spare_at(int consumer, int cell);
  void spare(const std::vector<int>& cells);
  int needless_after(int cell, int node) const;
  double merged_seconds(int action, int before) const;
  void merge_later(int node);
  void merge_since(std::size_t mark);
  bool is_upgraded(int node) const;
  bool needed_after(int cell, int node) const;
  bool keeps_order(int op, int before) const;
  bool allowed(int action, int before) const;
  double chain_penalty(int track, const Gap& gap);
  void prune(std::size_t mark);
  void remove_with_inputs(int node);
  bool try_remove(int node);
  bool take_out(int node, bool must_fit);
  bool readers_give_way(int node, int action);
  bool swap_with_support(int node, int action, Mode mode);
  bool try_swap(int node, int action);
  bool move_step();
  bool copy_block();
  int first_run(int op) const;
  bool is_repeated(int node) const;
  bool relocate(int node, int action);
  bool relocate_stretch();
  bool move_end();
  void consider_moves(int node, const Gap& gap);
  double total_excess() const;
  Bytes excess() const;
  bool try_faster(int node);
  bool ruin();
  bool take_back(int node);
  bool is_extra(int node) const;
  bool has_faster(int node) const;
  int random_extra();
  int n_extras_estimate() const;
  void rate_prices();
  void rate(int cell, int node, Bytes over);
  bool removable(int node) const;
  bool fixed_in_order(int node) const;
  void note_best();

  const Model& m_;
  Switches switches_;
  std::vector<Bytes> limit_;  // per track; m_.limit except while shaking
  Sequence opening_;
  Blocks blocks_;
  Schedule s_;
  Random random_;
  Sequence best_;
  double best_seconds_ = 1e301;
  double base_seconds_ = 0;
  double reference_seconds_ = 0;  // the same ops by their fastest implementations
  double epsilon_ = 0;
  std::int64_t ticks_ = 0;
  std::int64_t last_tick_ = 0;  // repairs end there
  std::vector<std::vector<int>> track_cells_;
  std::vector<Gap> gaps_;
  std::vector<Rated> rated_;
  std::vector<int> recent_;    // cells that the present ruin gave back
  std::vector<double> price_;  // per cell: about the seconds of making it again, as last seen
  std::vector<int> by_price_;  // cells that can be made again, cheapest per byte first
  std::vector<Candidate> candidates_;
  // scratch of one chain
  std::vector<int> chain_;
  std::vector<std::pair<int, int>> extended_;  // cell, from
  std::vector<Upgrade> upgrades_;
  double chain_seconds_ = 0;
  double chain_limit_ = 1e300;  // a dearer chain cannot win
  double best_score_ = 0;       // among the candidates so far
  std::vector<int> made_stamp_;
  std::vector<int> busy_stamp_;
  int stamp_ = 0;
  int n_needs_ = 0;
  std::size_t n_looked_at_ = 20;  // of the rated ones
  double cheapest_ = 0;           // chain for the gap at hand
};

}  // namespace neaptide::plan::tide
