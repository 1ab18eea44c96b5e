// Machine: devices, links and budgets, with measured peaks; and the roofline (DESIGN.md section 10).
// JSON "neaptide.machine" version 1.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "neaptide/graph/op_def.hpp"

namespace neaptide::cost {

struct MachineDevice {
  std::string name;     // "cpu:0"
  std::string backend;  // "cpu", "reference"; "" for host: memory only
  int threads = 0;
  std::optional<Bytes> budget;
  Bytes alignment = 64;
  double flops_per_second = 0;  // peak rate pi, f32
  double bytes_per_second = 0;  // bandwidth beta
  friend bool operator==(const MachineDevice&, const MachineDevice&) = default;
};

struct MachineLink {
  std::string from, to;
  Seconds latency = 0;
  double bytes_per_second = 0;
  friend bool operator==(const MachineLink&, const MachineLink&) = default;
};

struct Machine {
  std::vector<MachineDevice> devices;  // the first is where parameters, state and inputs live
  std::vector<MachineLink> links;
  friend bool operator==(const Machine&, const Machine&) = default;
};

std::string to_json(const Machine& machine);
Machine machine_from_json(std::string_view text, std::string_view place);

/// max(flops / pi, bytes / beta): the roofline's time for `work`.
Seconds roofline_seconds(const graph::Work& work, const MachineDevice& device);

}  // namespace neaptide::cost
