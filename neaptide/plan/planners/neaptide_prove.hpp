// The proving side of the default planner: lower bounds, and the plans that they suggest on the way. Works on its own
// copy of everything, beside the searches.
//
//   tide::Prover prover(problem, model, switches, seed);
//   prover.run(the_best_plan, seconds_of_it, ticks);
//   prover.bound();  if (prover.has_best()) use(prover.best());
#pragma once

#include <functional>
#include <optional>

#include "neaptide/plan/planners/neaptide_search.hpp"

namespace neaptide::plan::tide {

class Prover {
 public:
  /// All must outlive it.
  Prover(const Problem& problem, const Model& model, const Switches& switches, std::uint64_t seed);

  /// `plan`: the best so far, and its seconds; reaching these, or those of a better one of its own, ends the work.
  void run(const Sequence& plan, Seconds known, std::int64_t ticks);

  /// Certified.
  const LowerBound& bound() const { return bound_; }
  /// A plan cheaper than the known one.
  bool has_best() const { return !best_.actions.empty(); }
  const Sequence& best() const { return best_; }
  Seconds best_seconds() const { return best_seconds_; }
  /// Whether no plan is cheaper than the best of `known` and its own.
  bool closed() const;

  std::function<bool()> stop = [] { return false; };
  std::function<bool()> beside = [] { return false; };  // whether there is a thread for it to use as well

 private:
  void keep(LowerBound b);
  void place_on(DeviceId device, std::int64_t ticks);
  void try_other_orders(std::int64_t ticks);
  void prove_on(DeviceId device, std::int64_t ticks);
  Seconds try_out(const std::vector<Step>& steps);
  Seconds improve(const Sequence& plan, std::optional<Seconds> floor, std::int64_t ticks);

  const Problem& problem_;
  const Model& model_;
  const Switches& switches_;
  std::uint64_t seed_;
  LowerBound bound_;
  Sequence given_, best_;
  Seconds best_seconds_ = 0;  // of the known plan or a better one
  std::int64_t share_ = 0;    // ticks for a suggestion
};

}  // namespace neaptide::plan::tide
