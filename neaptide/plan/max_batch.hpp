// The largest batch whose plan fits: a plan as evidence from below, a proof that no larger batch has one from above.
//
//   plan::BatchQuestion q;
//   q.problem = [&](std::int64_t batch) { return plan::at_batch(family, batch); };   // budgets set
//   q.most = [](const plan::Problem& p) { return 2 * plan::keep_all_seconds(p); };   // none: any cost
//   plan::MaxBatch m = plan::max_batch(q);    // m.batch, m.plan; no batch of m.impossible or more has a plan
//
// What is assumed: a plan for a batch is one for every smaller batch. So it is where all sizes grow with the batch and
// seconds grow together (twice the batch, twice the seconds of every op) or no cost is asked; `assumption` says what
// was seen of that at the batches that were built. The proof for a batch is a working set that cannot be avoided, or a
// single cut (bounds.hpp) above the cost asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "neaptide/plan/planner.hpp"

namespace neaptide::plan {

/// One batch that was planned.
struct BatchProbe {
  std::int64_t batch = 0;
  enum class Found { kPlan, kNone, kImpossible } found = Found::kNone;  // kNone: nothing found, nothing proved
  Seconds cost = 0;                                                     // of the plan
  Seconds seconds = 0;                                                  // spent
  friend bool operator==(const BatchProbe&, const BatchProbe&) = default;
};

struct BatchQuestion {
  std::function<Problem(std::int64_t batch)> problem;             // with budgets
  std::function<Seconds(const Problem&)> most = {};               // what a plan may cost; empty: anything
  std::function<Plan(const Problem&, const Options&)> make = {};  // empty: make_plan by "neaptide"
  std::function<void(const BatchProbe&)> told = {};               // after each batch that was planned
  Options options;  // of each plan; the time limit is for the whole answer
  std::int64_t first = 1, last = 1 << 20;
};

struct MaxBatch {
  std::int64_t batch = 0;                  // 0: no plan found for any
  std::optional<std::int64_t> impossible;  // this batch and every larger one: proved to have no plan
  std::string proof;                       // what proves it, a sentence
  std::string assumption;                  // what the proof takes for granted, and whether it was seen
  Problem problem;                         // of that batch
  Plan plan;                               // of that batch; without steps where batch is 0
  std::vector<BatchProbe> probes;          // in the order in which they were planned
  bool out_of_time = false, interrupted = false;
  Seconds seconds_spent = 0;
  /// No larger batch than the one found has a plan.
  bool proved() const { return batch > 0 && impossible == batch + 1; }
};

/// UserError when no device of the problem has a budget, or when `first` is not in 1..last.
MaxBatch max_batch(const BatchQuestion& question);

/// JSON "neaptide.max_batch" version 1, the plan inside.
std::string to_json(const MaxBatch& answer);

/// Serial seconds of the keep-all reference.
Seconds keep_all_seconds(const Problem& problem);

/// Problems on a line: bytes, workspaces and seconds are those of `one` at batch `one_batch` and those of `two` at
/// `two_batch`, and on the straight line through both elsewhere (bytes rounded up).
struct BatchFamily {
  Problem one, two;
  std::int64_t one_batch = 1, two_batch = 2;
};

/// A family from one problem: homed buffers (weights, state) stay as they are, everything else grows with the batch.
BatchFamily growing_from(const Problem& problem, std::int64_t batch);

/// UserError when the two differ in more than bytes and seconds, when the batches are equal or not positive, or when a
/// size would be negative or beyond 2^60.
Problem at_batch(const BatchFamily& family, std::int64_t batch);

}  // namespace neaptide::plan
