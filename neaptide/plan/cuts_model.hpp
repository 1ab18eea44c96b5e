// Several instants at once, as a linear model in integers whose optimum no plan undercuts.
//
// Instants are the first runs of tau_0 .. tau_K-1, in the order in which every plan of the scope reaches them. They cut
// time into intervals 0 .. K; tau_k is the last first run of interval k. Columns, all 0 or 1:
//
//   s[v,k]    value v is on the device while tau_k first runs
//   x[o,j,i]  op o runs in interval j by implementation i (at least once)
//   z[k,i]    tau_k first runs by implementation i
//   p[v,j]    value v comes back from another device in interval j;  q[v]: it went there
//   c[v,j]    value v lies there all through interval j (only where asked for)
//   y[o,j,i]  some run of o in interval j is by implementation i itself (there too, and where it may take over a value)
//   a[o,j]    some implementation of o runs once more in interval j
//
// Rows, all "at least": a run needs every input held at the last instant or made since; what is held at an instant was
// held at the last one or made since; what first runs in an interval reads its inputs there; what must be there at the
// end is; and what is held at an instant fits. Runs in different intervals are different runs, so their seconds add up:
// with the first run of every necessary op in the floor, the optimum is a lower bound on any sequence of steps. The
// model grows with the number of instants only; a handful of well chosen ones close most gaps.
//
// Runs inside an interval need room as well: what is held at both of its instants and not made in between lies there
// during every one of them. Such rows come with the c columns, for the intervals that end at the ops asked for; with
// the y columns where a faster implementation stands for one that needs less room.
//
// A run that takes over the block of what it reads ends that value. So where the value is still wanted, it was made
// once more than it was taken over, or some run left it alone: cuts_in_place.cc (where asked for).
//
// Implementations that another one dominates (no dearer, reads no more, writes no less) are left to it: `stands_for`.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "neaptide/milp/model.hpp"
#include "neaptide/plan/cuts_frame.hpp"

namespace neaptide::plan {

/// A column or a row by kind and indices; what the certificate names. Unused indices are -1.
struct CutsKey {
  enum Kind : char {
    kHeld,
    kRun,
    kFirst,
    kBack,
    kAway,
    kCarried,
    kBy,
    kAgain,  // columns
    kMust,
    kRead,
    kUse,
    kHold,
    kEnd,
    kRoom,
    kOne,
    kNeeds,
    kDoes,
    kOnly,
    kCarry,
    kInside,
    kOutlive  // rows; kAway and kBy are both
  };
  Kind kind;
  int a = -1, b = -1, c = -1, d = -1, e = -1, f = -1, g = -1, h = -1;
  friend auto operator<=>(const CutsKey&, const CutsKey&) = default;
};

struct CutsRow {
  CutsKey key;
  std::int64_t least = 0;
  std::vector<std::pair<int, std::int64_t>> terms;  // column, factor
  bool in_bytes() const { return key.kind == CutsKey::kRoom || key.kind == CutsKey::kInside; }
};

struct CutsModel {
  /// `inside`: instants among the cuts that end an interval whose runs need room as well. `in_place`: ops about
  /// which there are the rows of cuts_in_place.cc.
  CutsModel(const CutsFrame& frame, std::vector<OpId> cuts, const std::set<OpId>& inside, std::set<OpId> in_place);

  const CutsFrame& frame;
  std::vector<OpId> cuts;
  std::set<OpId> in_place;
  std::vector<std::array<int, 2>> first;
  std::vector<CutsKey> columns;
  std::vector<Units> cost;
  std::vector<CutsRow> rows;
  std::vector<Bytes> room;  // by instant: for everything that is not read by every implementation of tau
  Wide floor_units = 0;

  int column(const CutsKey& key) const;  // -1: there is none
  int n_intervals() const { return static_cast<int>(cuts.size()) + 1; }
  /// For a solver: seconds in percent of the floor, bytes in parts of the budget; rows in the same sequence.
  milp::Model relaxation() const;
  double cost_scale = 1, byte_scale = 1;  // units and bytes per unit of the relaxation

 private:
  using Terms = std::vector<std::pair<int, std::int64_t>>;  // column, factor
  int add(const CutsKey& key, Units units);
  void add_row(CutsRow row);
  Terms made(int value, int interval) const;
  bool made_anyway(int value, int interval) const;
  bool written_by_all(OpId tau, int value) const;
  bool taken_by_some(OpId op, int value) const;
  bool definite(int op, int interval) const;
  bool surely_before(int a, int b) const;
  Terms after(int value, int k, bool* certain) const;
  bool first_made_in(int value, int interval) const;
  void find_needed();
  void add_columns();
  void add_run_rows(int op, int interval);
  void add_instant(int k);
  void add_inside(int k);
  void add_inside_row(int op, int k, int impl, int column, const std::vector<std::pair<int, int>>& carried);
  std::vector<std::pair<int, int>> ways(int op, int interval, int impl);
  void add_in_place(int op, int interval);
  struct Taken;
  void add_outlive(const Taken& t, const CutsKey& key, Terms more, std::int64_t least);
  struct Through;
  void add_readers(const Taken& t);
  void add_reader(const Taken& t, int reader, CutsKey key, const Terms& more, std::int64_t least);
  std::vector<Through> find_through(const Taken& t) const;
  bool spare(int op, int interval, int impl, int value, Terms* terms);

  std::map<CutsKey, int> index_;
  std::set<std::pair<int, int>> used_;
  std::vector<std::vector<int>> readers_;  // by value; only with in_place
  std::vector<std::vector<char>> needed_;  // [interval][value]: may be read in it or later
};

}  // namespace neaptide::plan
