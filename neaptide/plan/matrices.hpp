// A plan as the matrices of Checkmate (Jain et al. 2020, section 4): stage t ends with the first run of the t-th op.
//
//   R[t,i]    how often op i runs in stage t
//   S[t,i]    a value that op i made is held when stage t begins (on some device)
//   F[t,i,k]  the last of op i's values is given up in stage t, after a run of op k
//
//   const plan::Matrices m = plan::matrices_of(problem, plan.steps);   // of any legal steps
//   write(plan::to_json(problem, m));                                  // "neaptide.matrices" version 1
//   for (const auto& row : plan::picture(m, 80)) ...                   // at most 80 columns of cells
//
// Rows and columns are ops by first run; ops that never run are in neither. What runs after the last first run is one
// more stage. A buffer's value is that of its last writer.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "neaptide/plan/plan.hpp"

namespace neaptide::plan {

struct Matrices {
  std::vector<OpId> ops;                                       // column i is ops[i]
  std::vector<std::vector<int>> runs;                          // [stage]: columns, in the order of the runs
  std::vector<std::vector<int>> held;                          // [stage]: columns, ascending
  std::vector<IdVector<DeviceTag, std::vector<int>>> held_on;  // [stage][device]: columns, ascending
  std::vector<std::vector<std::pair<int, int>>> freed;         // [stage]: (column of the value, column of the run)
  friend bool operator==(const Matrices&, const Matrices&) = default;
};

Matrices matrices_of(const Problem& problem, const std::vector<Step>& steps);

/// Sparse rows: "R": [stage][columns], "S": [stage][columns], "F": [stage][[column, after]]; with several devices
/// "S_on" by device name.
std::string to_json(const Problem& problem, const Matrices& matrices);

enum class Cell { kNothing, kHeld, kFreed, kFirst, kAgain };

/// One row per stage and one cell per op, or, where that is more than `most` columns, one cell for a square of them:
/// again before first before freed before held, and held where half of the square is.
std::vector<std::vector<Cell>> picture(const Matrices& matrices, int most);

}  // namespace neaptide::plan
