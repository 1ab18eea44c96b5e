#include "neaptide/plan/problem.hpp"

namespace neaptide::plan {

std::optional<Seconds> copy_seconds(const Problem& problem, BufferId buffer, DeviceId from, DeviceId to) {
  for (const CopyCost& c : problem.copies) {
    if (c.buffer == buffer && c.from == from && c.to == to) return c.seconds;
  }
  for (const Link& l : problem.links) {
    if (l.from != from || l.to != to) continue;
    const Seconds transfer = static_cast<double>(problem.buffers[buffer].bytes) / l.bytes_per_second;
    return l.latency + transfer;
  }
  return std::nullopt;
}

}  // namespace neaptide::plan
