// Budgets as a user writes them: "800MiB", "60%" (of the keep-all peak), "min" (the smallest in which a plan was found
// that also packs); "DEVICE=" before any of them where there is more than one device.
//
//   options.budgets = session::resolve_budgets(problem, {"cpu:0=60%", "ocl:0=256MiB"}, "neaptide", options);
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "neaptide/plan/planner.hpp"

namespace neaptide::session {

/// Peak of plan::keep_all_steps on a device: what per cents refer to.
Bytes keep_all_peak(const plan::Problem& problem, plan::DeviceId device);

/// The smallest budget on `device` found for which planning and packing succeed (the other devices as in `options`):
/// from the smallest peak found upwards, in growing steps that begin at a 512th of the keep-all peak.
Bytes smallest_budget(const plan::Problem& problem, plan::DeviceId device, std::string_view planner,
                      const plan::Options& options);

/// Words to bytes by device name. UserError for an unknown device, a device named twice, or an amount that is none.
std::map<std::string, Bytes> resolve_budgets(const plan::Problem& problem, std::span<const std::string> words,
                                             std::string_view planner, const plan::Options& options);

}  // namespace neaptide::session
