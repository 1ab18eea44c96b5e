// A lower bound of the serial seconds of any plan on several devices: where ops run, what is copied, and what a budget
// leaves room for at one instant. Any order, any number of runs and copies.
//
//   PlacementBound place(problem, device);
//   LowerBound b = place.best(effort, enough);       // certificate of kind "placement", checked by plan::certify
//   for (const auto& choice : place.choices()) ...   // what its cuts run where: suggestions for a search
//
// One device against all others together. For op o let x = 1 if it ever runs here, y = 1 if it ever runs elsewhere
// (both may be); for value v (one version of one buffer) let w = 1 if it is ever here, e = 1 if it is ever elsewhere.
// Every plan pays at least
//
//   a_o x_o            the fastest implementation here            b_o y_o            the fastest one elsewhere
//   in_v  (w_v - x_m)  a copy here, where its maker never runs    out_v (e_v - y_m)  a copy away
//
// because these are different steps, and it has
//
//   x_o <= w_v,  y_o <= e_v   for what every implementation on that side reads
//   x_o + y_o >= 1            necessary ops; = 1 for once ops
//   w_v = 1 or e_v = 1        at the home of what is kept there
//   sum of k_v (1 - e_v) <= K at one instant: what is never elsewhere, has been made and is needed later lies here
//
// The instant is the end, where kept values without a home count, or the first run of an op tau: then a value counts
// whose maker must have run before tau and which is kept or must be read after tau, at most at the price of making it
// again (so no maker of several values counts), and k_tau (1 - y_tau) is added for what tau itself reads and adds if it
// runs here. K is the room here, k_v the bytes, both divided by any step g and rounded down (which only drops fractions
// of values: 12.5 equal weights leave room for 12). Implementations that fit in no budget count as absent. A value of
// several makers costs nothing. With a price mu on a unit of K all this is a minimum cut, since every term pays for one
// variable being 1 while another is 0 once y and e are turned round (Stone 1977 has the two devices):
//
//   op here -> sink                     a_o          source -> op not elsewhere                       b_o
//   value here -> maker here            in_v         maker not elsewhere -> value not elsewhere       out_v
//   value not elsewhere -> sink         mu k_v       tau not elsewhere -> sink                        mu k_tau
//
//   every plan costs at least  (minimum cut) - mu K
//
// What other devices have as budgets is left out: with three devices or more take the best bound over the devices.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "neaptide/plan/plan.hpp"

namespace neaptide::plan {

class PlacementBound {
 public:
  /// The problem must be sound, have several devices, and outlive this.
  PlacementBound(const Problem& problem, DeviceId device);
  ~PlacementBound();
  PlacementBound(PlacementBound&&) noexcept;

  /// The best instant, step and price within `effort` arcs of flow work. Stops at `enough`.
  LowerBound best(std::int64_t effort, Seconds enough);

  /// Where a cut puts things: by op whether it runs here (an op that runs on both sides does), by buffer whether its
  /// last version is never elsewhere.
  struct Choice {
    std::vector<char> op_here, stays;
    friend bool operator==(const Choice&, const Choice&) = default;
  };
  /// Of the cuts around the best price, without repetition.
  const std::vector<Choice>& choices() const;

  std::function<bool()> stop = [] { return false; };  // asked between cuts

 private:
  struct Network;
  std::unique_ptr<Network> n_;
};

}  // namespace neaptide::plan
