// Implementations of problems that a test writes down itself, on the first device.
#pragma once

#include <string>
#include <vector>

#include "neaptide/plan/problem.hpp"

namespace neaptide::plan {

/// `reads`, `writes`: numbers of buffers.
inline Impl by_hand(const std::string& name, Seconds seconds, Bytes workspace, const std::vector<int>& reads,
                    const std::vector<int>& writes) {
  Impl i;
  i.name = name;
  i.device = DeviceId(0);
  i.seconds = seconds;
  i.workspace = workspace;
  for (const int r : reads) i.reads.emplace_back(r);
  for (const int w : writes) i.writes.emplace_back(w);
  return i;
}

}  // namespace neaptide::plan
