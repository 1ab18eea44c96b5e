// Why a plan is as it is, in numbers that anyone can check: what lies on a device at its peak and what for, what is
// kept, what is made again and what that saves, which implementation runs and what the next faster one would need.
//
//   const plan::Explanation e = plan::explain(problem, plan);       // the summary
//   const plan::ValueStory v = plan::explain_value(problem, plan, buffer);
//   const plan::OpStory o = plan::explain_op(problem, plan, op);
//
// Steps are indices into plan.steps. Bytes count as rule 1 says (rounded to the device's alignment). All functions need
// a plan that plan::verify accepts, and read nothing but the problem and the plan.
#pragma once

#include <string>
#include <vector>

#include "neaptide/plan/compare.hpp"
#include "neaptide/plan/history.hpp"

namespace neaptide::plan {

/// A buffer that lies on a device while a step runs.
struct Held {
  BufferId buffer;
  Bytes bytes = 0;
  enum class Why { kHome, kRead, kWritten, kWaits, kEnd } why = Why::kWaits;
  int since = -1;     // the step that made it; -1: the beginning
  int next_use = -1;  // kWaits: the step that uses it next
  friend bool operator==(const Held&, const Held&) = default;
};

/// The most that a device holds.
struct PeakAt {
  DeviceId device;
  int step = -1;       // the first step that holds so much; -1: before the first
  std::string during;  // its op, or "copy of BUFFER", or "the start"
  Bytes bytes = 0;
  Bytes workspace = 0;     // part of it
  std::vector<Held> held;  // largest first
  int near = 0;            // steps that hold at least 99 % of it
  friend bool operator==(const PeakAt&, const PeakAt&) = default;
};

/// A value that was away from a device between two stays there.
struct Absence {
  DeviceId device;
  int from = 0, to = 0;  // away during the steps from .. to - 1; `to` brings it back
  Seconds seconds = 0;   // of the step that brings it back
  Bytes bytes = 0;
  int at = 0;            // had it stayed: the step that would then hold most,
  Bytes would_hold = 0;  // and how much that would be
  friend bool operator==(const Absence&, const Absence&) = default;
};

struct ValueStory {
  BufferId buffer;
  std::vector<Residence> stays;
  std::vector<OpId> makers;  // ops that write it in this plan
  int again = 0;             // runs of its makers beyond each one's first
  Seconds again_seconds = 0;
  std::vector<Absence> absences;
  int idle = 0;                   // steps at which it lies somewhere unused before a later use
  std::optional<Seconds> remake;  // the cheapest single run that makes it again; none: nothing may
};

/// The next faster implementation of a run, and what it would take.
struct Faster {
  int impl = 0;
  Seconds saves = 0;
  Bytes would_hold = 0;           // its device at that step
  std::vector<BufferId> missing;  // read by it and not there then
};

struct RunStory {
  int step = 0;
  int impl = 0;
  Bytes holds = 0;  // its device while it runs
  std::optional<Faster> faster;
};

struct OpStory {
  OpId op;
  std::vector<RunStory> runs;
  Seconds again_seconds = 0;  // of all runs beyond the first
};

/// What a bound falls by for each byte that the budget of `device` grows, near that budget: the dual price in its
/// certificate. No device: the bound has no budget in it, and 0 is exact.
struct Price {
  std::string device;
  Seconds seconds_per_byte = 0;
  friend bool operator==(const Price&, const Price&) = default;
};

/// None where the certificate states no price. Exact as long as the proof branches on nothing, and rounds nothing, that
/// more bytes change; then no plan in n bytes more is faster than bound.seconds - n x seconds_per_byte.
std::optional<Price> price_of(const LowerBound& bound);

struct Explanation {
  Totals totals;
  std::vector<PeakAt> peaks;        // by device
  std::vector<ValueStory> kept;     // made once and idle in between, by bytes x idle steps, largest first
  std::vector<OpStory> recomputed;  // by seconds of the further runs, largest first
  std::optional<Price> price;       // of the plan's bound
};

Explanation explain(const Problem& problem, const Plan& plan);
ValueStory explain_value(const Problem& problem, const Plan& plan, BufferId buffer);
OpStory explain_op(const Problem& problem, const Plan& plan, OpId op);

/// Why nothing fits, for plan.infeasible.
struct Refusal {
  struct Need {
    int impl = 0;
    Bytes bytes = 0;  // fixed homes, what it reads and writes, workspace
  };
  Infeasible why;
  std::optional<Bytes> budget;
  Bytes homes = 0;              // fixed: no batch makes them smaller
  std::vector<Held> held;       // what why.buffers names
  OpId op;                      // of why.step; invalid when that is no op
  std::vector<Need> impls;      // of that op on that device, least bytes first
  std::optional<double> batch;  // the share of the batch at which that step fits if all but homes shrinks with it
};
Refusal explain_infeasible(const Problem& problem, const Plan& plan);

std::string to_json(const Problem& problem, const Plan& plan, const Explanation& explanation);
std::string to_json(const Problem& problem, const ValueStory& story);
std::string to_json(const Problem& problem, const OpStory& story);
std::string to_json(const Problem& problem, const Refusal& refusal);

}  // namespace neaptide::plan
