// What every lower bound needs of a problem: values (one version of one buffer), who can make them, what no
// implementation avoids reading, which ops no plan avoids, and a unit of time in which costs are exact integers.
//
//   const Facts f(problem);                       // problem must be sound and outlive it
//   for (const int v : f.reads[op]) ... f.values[v].buffer ...
//
// Seconds become multiples of 2^unit_log2, rounded down, so that sums of costs stay below 2^59 and a bound stays valid.
#pragma once

#include <cstdint>
#include <vector>

#include "neaptide/plan/problem.hpp"

namespace neaptide::plan {

using Units = std::int64_t;  // of time: 2^unit_log2 seconds
__extension__ using Wide = __int128;

inline constexpr Units kNoLimit = Units{1} << 61;

struct ValueInfo {
  BufferId buffer;
  int version = 0;
  std::vector<OpId> makers;
  bool at_end = false;
};

/// Largest double that is at most units x 2^log2.
Seconds seconds_down(Wide units, int log2);

struct Facts {
  explicit Facts(const Problem& p);
  Units units(Seconds s) const;

  const Problem& problem;
  Versions versions_;
  std::vector<std::vector<int>> value_of;  // [buffer][version]
  std::vector<ValueInfo> values;
  std::vector<std::vector<int>> reads;   // by op: values that every implementation reads
  std::vector<std::vector<int>> writes;  // by op: values that some implementation writes
  std::vector<char> necessary;
  std::vector<Seconds> least;  // by op
  /// [op][impl]: not where it reads what only the op itself makes (as saved statistics): such a run is a second one.
  std::vector<std::vector<char>> may_be_first;
  std::vector<Seconds> least_first;  // by op: of a first run
  std::vector<int> position;         // by op, in the order
  int unit_log2 = 0;
  Wide floor_units = 0;  // the first runs of all necessary ops

 private:
  bool only_maker(std::size_t op, BufferId buffer) const;
  void find_first_runs(std::size_t op);
};

}  // namespace neaptide::plan
