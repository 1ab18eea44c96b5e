// Times every implementation of every node on the device: warm-up, cold caches as in a real step, median.
#pragma once

#include <functional>
#include <string>

#include "neaptide/cost/cost_table.hpp"
#include "neaptide/cost/machine.hpp"
#include "neaptide/runtime/backend.hpp"

namespace neaptide::runtime {

struct MeasureOptions {
  int repeats = 5;
  Seconds least_seconds =
      0.002;              // repeat up to `repeats` times, or until this much time is spent on one implementation
  bool estimate = false;  // the roofline instead of running anything
  std::function<void(int done, int total)> progress = {};
};

/// The table for `graph` on one device. Each signature is measured once; `cache` is read and extended.
cost::CostTable measure(const graph::Graph& graph, const graph::OpSet& ops, const cost::MachineDevice& device,
                        Backend& backend, cost::CostCache& cache, const MeasureOptions& options);

/// Peak flops (f32 multiply-add) and bandwidth of this host with `threads` threads, measured in about 0.2 s.
cost::MachineDevice measure_host(const std::string& name, Backend& backend);

}  // namespace neaptide::runtime
