// Problems that a test writes down itself, on one device.
#pragma once

#include <optional>
#include <string>
#include <utility>
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

/// Buffers that ops make, no ops yet.
inline Problem problem_by_hand(std::optional<Bytes> budget, const std::vector<std::pair<std::string, Bytes>>& buffers) {
  Problem p;
  p.name = "by hand";
  p.devices.push_back({"d", budget, 1});
  for (const auto& [name, bytes] : buffers) p.buffers.push_back({name, bytes, std::nullopt, false, false});
  return p;
}

/// Last in the order so far.
inline OpId add_by_hand(Problem& p, const std::string& name, std::vector<Impl> impls, bool once = false) {
  p.order.push_back(p.ops.push_back({name, once, std::move(impls)}));
  return p.order.back();
}

}  // namespace neaptide::plan
