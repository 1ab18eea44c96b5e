// What proves a bound by several instants to certify_cuts.cc: the instants, the columns and rows that are referred to
// (by key, or an inequality with what derives it; rows come before those made from them), and for each leaf of the tree
// its branches and a multiplier per row.
//
//   {"kind": "cuts", "cuts": [op, ...], "columns": [key, ...], "rows": [key or inequality, ...],
//    "leaves": [{"fixed": [[column, 0 or 1], ...], "rows": [[row, multiplier], ...]}, ...], ...}
#pragma once

#include <string>

#include "neaptide/plan/cuts_tree.hpp"

namespace neaptide::plan {

std::string cuts_certificate(const CutsModel& model, const CutsTree& tree);

}  // namespace neaptide::plan
