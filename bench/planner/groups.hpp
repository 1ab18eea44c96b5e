// The groups of the planner benchmark, each with what it must show. A group prints a table and a verdict.
#pragma once

#include <span>

#include "bench/planner/table.hpp"

namespace neaptide::bench {

struct Group {
  const char* name;
  void (*run)(const Settings& settings);
};

std::span<const Group> groups();

}  // namespace neaptide::bench
