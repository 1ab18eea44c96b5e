// An order in which nothing need run twice: where no bound says that a recomputation is needed, or nothing else fits,
// the steps of a schedule without any are put into another order.
//
//   if (const auto fits = tide::order_that_fits(model, starting_actions(model), work, stop)) search.offer(*fits);
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "neaptide/plan/planners/neaptide_schedule.hpp"

namespace neaptide::plan::tide {

/// The steps of `sequence`, in which no op runs twice, in an order in which they fit one device; some may take over
/// blocks in place that did not. A dynamic programme over the sets of steps that may have run, as Serenity's (Ahn et
/// al., MLSys 2020, section 3.1), which keeps the sets that hold least where there are too many. Nothing when `work`
/// (states and what they touch) is spent, when `stop` says so, and for several devices.
std::optional<Sequence> order_that_fits(const Model& model, const Sequence& sequence, std::int64_t work,
                                        const std::function<bool()>& stop);

}  // namespace neaptide::plan::tide
