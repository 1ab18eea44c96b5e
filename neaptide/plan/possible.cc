#include "neaptide/plan/possible.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

#include "neaptide/plan/forced.hpp"

namespace neaptide::plan {
namespace {

/// By buffer: whether an implementation that is left writes it, or it has a home.
std::vector<char> available(const Possible& can) {
  std::vector<char> out(can.problem.buffers.size(), 0);
  for (std::size_t b = 0; b < out.size(); ++b) out[b] = can.problem.buffers[BufferId(b)].home.has_value();
  for (const OpId op : can.problem.order) {
    for (const Impl& i : can.problem.ops[op].impls) {
      for (const BufferId b : i.writes) out[b.index()] = 1;
    }
  }
  return out;
}

/// Every implementation.
Possible all_of(const Problem& problem) {
  Possible out{problem, {}};
  for (const Op& op : problem.ops) {
    out.kept.emplace_back(op.impls.size());
    std::iota(out.kept.back().begin(), out.kept.back().end(), 0);
  }
  return out;
}

}  // namespace

std::vector<Compute> Possible::original(std::vector<Compute> runs) const {
  for (Compute& c : runs) c.impl = kept[c.op.index()][static_cast<std::size_t>(c.impl)];
  return runs;
}

Possible possible_implementations(const Problem& problem) {
  Possible can = all_of(problem);
  std::vector<std::optional<Bytes>> room;  // by device
  for (std::size_t d = 0; d < problem.devices.size(); ++d) {
    room.push_back(problem.devices[DeviceId(d)].budget);
    if (room[d]) *room[d] -= fixed_bytes(problem, DeviceId(d));
  }
  for (bool grew = true; grew;) {
    grew = false;
    const std::vector<char> there = available(can);
    for (std::size_t o = 0; o < problem.ops.size(); ++o) {
      Op& op = can.problem.ops[OpId(o)];
      for (std::size_t i = op.impls.size(); i-- > 0;) {
        const Impl& impl = op.impls[i];
        const auto& left = room[impl.device.index()];
        const bool fits = !left || own_bytes(problem, impl) <= *left;
        if (fits &&
            std::all_of(impl.reads.begin(), impl.reads.end(), [&](BufferId b) { return there[b.index()] != 0; }))
          continue;
        op.impls.erase(op.impls.begin() + static_cast<std::ptrdiff_t>(i));
        can.kept[o].erase(can.kept[o].begin() + static_cast<std::ptrdiff_t>(i));
        grew = true;
      }
      if (op.impls.empty()) return all_of(problem);
    }
  }
  const std::vector<char> there = available(can);
  for (std::size_t b = 0; b < there.size(); ++b) {
    if (problem.buffers[BufferId(b)].keep && !there[b]) return all_of(problem);
  }
  return can;
}

}  // namespace neaptide::plan
