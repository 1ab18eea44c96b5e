// What no plan can avoid: the ops that must run, their cheapest time, and the memory that some instant takes: what one
// op needs by itself, and what runs once and must be kept across it (once_peak.hpp).
//
//   for (const Device& d : ...) Bytes least = smallest_peak(problem, d).bytes;   // no plan has a smaller peak on d
#pragma once

#include <optional>
#include <vector>

#include "neaptide/plan/plan.hpp"

namespace neaptide::plan {

/// Ops that every plan runs at least once: the once ops, and whoever alone can write what these must read or what is
/// kept.
IdVector<OpTag, bool> necessary_ops(const Problem& problem);

/// Every necessary op once with its fastest implementation: a lower bound of the serial cost, valid for any order.
Seconds cheapest_seconds(const Problem& problem);

/// Bytes of the homes that never leave the device.
Bytes fixed_bytes(const Problem& problem, DeviceId device);
/// Bytes that the implementation needs beside these: reads, writes that take over no block, workspace.
Bytes own_bytes(const Problem& problem, const Impl& impl);

/// The working set of an implementation: the fixed homes of its device, its reads and writes, its workspace.
struct Forced {
  Bytes bytes = 0;
  OpId op;                        // invalid: the homed buffers alone
  std::vector<BufferId> buffers;  // largest first
};
Forced working_set(const Problem& problem, OpId op, const Impl& impl);

/// The most that an instant which no plan avoids takes on this device: no plan has a smaller peak there.
Forced smallest_peak(const Problem& problem, DeviceId device);

/// When some necessary op fits in no implementation: where, how much, and why. Otherwise nothing is proved.
std::optional<Infeasible> prove_infeasible(const Problem& problem);

}  // namespace neaptide::plan
