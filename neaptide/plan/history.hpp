// What happens to every buffer and every op in a plan: the residences with what made them, what used them and what
// ended them. compare.hpp and explain.hpp read plans through it.
//
//   const plan::History h = plan::history(problem, plan.steps);
//   for (int step : h.runs[op]) ...;                     // an op's runs
//   for (const plan::Residence& r : h.residences) ...;   // by first step
#pragma once

#include <vector>

#include "neaptide/plan/plan.hpp"

namespace neaptide::plan {

/// One stay of a buffer on a device, from `begin` (the step that made it; -1: a home, before the first step) until
/// before `end` (the step that ended it; the number of steps: it lasts). A new version of the value in the same block
/// belongs to the same stay.
struct Residence {
  enum class Made { kHome, kRun, kCopy } made = Made::kRun;
  enum class Ended { kLasts, kFreed, kTakenOver, kOverwritten } ended = Ended::kLasts;  // the last: elsewhere
  BufferId buffer;
  DeviceId device;
  int begin = -1, end = 0;
  std::vector<int> reads;   // steps, ascending: computes that read it, copies from it
  std::vector<int> writes;  // steps that write it again
  bool in_place = false;    // made in the block of another buffer
  friend bool operator==(const Residence&, const Residence&) = default;

  int last_use() const;  // the last step that reads or writes it; `begin` when none does
};

struct History {
  std::vector<Residence> residences;         // by begin, then buffer, then device
  IdVector<BufferTag, std::vector<int>> of;  // by buffer: indices into residences, in the same order
  IdVector<OpTag, std::vector<int>> runs;    // by op: steps
  std::vector<int> copies;                   // steps
  int n_steps = 0;
};

/// For legal steps (plan::verify); InternalError where a step touches what is not there.
History history(const Problem& problem, const std::vector<Step>& steps);

}  // namespace neaptide::plan
