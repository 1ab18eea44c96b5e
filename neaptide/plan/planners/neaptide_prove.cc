#include "neaptide/plan/planners/neaptide_prove.hpp"

#include <algorithm>

#include "neaptide/base/errors.hpp"
#include "neaptide/milp/solve.hpp"
#include "neaptide/plan/bounds.hpp"
#include "neaptide/plan/multi_cut.hpp"
#include "neaptide/plan/placement_bound.hpp"
#include "neaptide/plan/planners/neaptide_order.hpp"
#include "neaptide/plan/planners/neaptide_placement.hpp"
#include "neaptide/plan/planners/neaptide_start.hpp"

namespace neaptide::plan::tide {
namespace {

constexpr double kSame = 1e-12;
constexpr std::int64_t kFlowPerTick = 2;         // arcs of flow work
constexpr std::int64_t kSimplexPerTick = 4;      // iterations times columns
constexpr std::int64_t kStatesPerTick = 4;       // sets of steps, and what they touch
constexpr std::int64_t kRepairTicksPerOp = 400;  // to make a suggestion fit
constexpr int kSuggestions = 30;                 // that share the ticks, about
constexpr std::int64_t kMostPerSuggestion = 3'000'000;
constexpr std::size_t kMostPlacements = 12;  // per device

}  // namespace

Prover::Prover(const Problem& problem, const Model& model, const Switches& switches, std::uint64_t seed)
    : problem_(problem), model_(model), switches_(switches), seed_(seed), bound_(floor_bound(problem)) {}

bool Prover::closed() const { return bound_.seconds >= best_seconds_ * (1 - kSame); }

void Prover::run(const Sequence& plan, Seconds known, std::int64_t ticks) {
  given_ = plan;
  best_seconds_ = known;
  share_ = std::min(ticks / kSuggestions, kMostPerSuggestion);
  for (std::size_t d = 0; d < problem_.devices.size() && problem_.devices.size() > 1 && !closed() && !stop(); ++d)
    place_on(DeviceId(d), ticks);
  for (std::size_t d = 0; d < problem_.devices.size() && !closed() && !stop(); ++d) {
    if (problem_.devices[DeviceId(d)].budget) prove_on(DeviceId(d), ticks);
  }
}

void Prover::keep(LowerBound b) {
  if (b.seconds > bound_.seconds) bound_ = std::move(b);
}

/// Where nothing says that anything must run twice: an order in which nothing does.
void Prover::try_other_orders(std::int64_t ticks) {
  const Sequence once = starting_actions(model_);
  if (Schedule(model_, once).seconds() > bound_.seconds * (1 + kSame)) return;
  const auto fits = order_that_fits(model_, once, ticks * kStatesPerTick, stop);
  if (fits) improve(*fits, bound_.seconds, 0);
}

/// Which ops belong on the device: the bound, and what its cuts suggest.
void Prover::place_on(DeviceId device, std::int64_t ticks) {
  PlacementBound place(problem_, device);
  place.stop = stop;
  keep(place.best(ticks * kFlowPerTick, best_seconds_));
  const auto& choices = place.choices();
  const std::size_t n = std::min(choices.size(), kMostPlacements);
  for (std::size_t i = 0; i < n && !closed() && !stop(); ++i) {  // the last ones are nearest to the best price
    try_out(placed_steps(problem_, device, choices[choices.size() - 1 - i], switches_.order));
  }
}

void Prover::prove_on(DeviceId device, std::int64_t ticks) {
  const BoundScope scope = switches_.order ? BoundScope::kAnyOrder : BoundScope::kThisOrder;
  CutBounds single(problem_, device, scope);
  single.stop = stop;
  keep(single.best(ticks * kFlowPerTick, best_seconds_));
  if (switches_.order && !closed()) try_other_orders(ticks);
  if (closed() || !switches_.multi_cut || !milp::why_not_built().empty()) return;
  OpId first = single.best_op();
  if (const std::vector<OpId> list = single.promising(); !first.valid() && !list.empty()) first = list[0];
  if (!first.valid()) return;
  // The nearer the best plan is, the more a tree decides.
  improve(has_best() ? best_ : given_, bound_.seconds, 2 * share_);
  if (closed()) return;
  MultiCut several(problem_, device, scope);
  MultiCut::Ways ways;
  ways.work = ticks * kSimplexPerTick;
  ways.stop = stop;
  ways.beside = beside;
  ways.improve = [&](const std::vector<Compute>& runs) { return try_out(std::vector<Step>(runs.begin(), runs.end())); };
  keep(several.prove(first, best_seconds_, ways));
  if (scope == BoundScope::kThisOrder || closed()) return;
  // In the given order the model says more. Its bound does not hold here, but the plans that it suggests do.
  MultiCut in_order(problem_, device, BoundScope::kThisOrder);
  ways.work /= 2;
  in_order.prove(first, best_seconds_, ways);
}

// Makes a relaxed solution fit, and searches on around it until it costs no more than the bound.
Seconds Prover::try_out(const std::vector<Step>& steps) {
  Sequence suggested;
  try {
    suggested = sequence_of(model_, steps);
  } catch (const UserError&) {
    return best_seconds_;  // a relaxed solution need not be a legal schedule
  }
  if (!switches_.order && !first_runs_in_order(model_, suggested)) return best_seconds_;
  return improve(suggested, std::nullopt, share_);
}

// `floor`: seconds that end it; none: those of the plan as it is given.
Seconds Prover::improve(const Sequence& plan, std::optional<Seconds> floor, std::int64_t ticks) {
  Search search(model_, plan, seed_, switches_);
  search.stop = stop;
  search.floor = floor.value_or(search.current().seconds()) * (1 + kSame);
  const auto n = static_cast<std::int64_t>(problem_.ops.size());
  if (!search.make_feasible(kRepairTicksPerOp * n)) return best_seconds_;
  search.improve(ticks, 0.05);
  if (search.best_seconds() < best_seconds_ * (1 - kSame)) {
    best_seconds_ = search.best_seconds();
    best_ = search.best();
  }
  return best_seconds_;
}

}  // namespace neaptide::plan::tide
