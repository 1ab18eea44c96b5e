#include "neaptide/cost/machine.hpp"

#include <algorithm>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/json.hpp"

namespace neaptide::cost {

std::string to_json(const Machine& machine) {
  Json root{{"format", "neaptide.machine"}, {"version", 1}, {"devices", Json::array()}, {"links", Json::array()}};
  for (const MachineDevice& d : machine.devices) {
    Json entry{{"name", d.name}, {"backend", d.backend}, {"threads", d.threads}, {"alignment", d.alignment}};
    if (d.budget) entry["budget"] = *d.budget;
    entry["flops_per_second"] = d.flops_per_second;
    entry["bytes_per_second"] = d.bytes_per_second;
    root["devices"].push_back(std::move(entry));
  }
  for (const MachineLink& l : machine.links)
    root["links"].push_back(
        {{"from", l.from}, {"to", l.to}, {"latency", l.latency}, {"bytes_per_second", l.bytes_per_second}});
  return json_text(root);
}

Machine machine_from_json(std::string_view text, std::string_view place) {
  const Json root = parse_json(text, place);
  const JsonReader r(root, std::string(place));
  if (r.string("format") != "neaptide.machine" || r.integer("version", 1) != 1)
    throw UserError("{} is not a \"neaptide.machine\" file of version 1", place);
  Machine machine;
  for (const JsonReader& d : r.items("devices")) {
    MachineDevice device{.name = d.string("name"),
                         .backend = d.string("backend"),
                         .threads = static_cast<int>(std::min<std::int64_t>(d.integer("threads", 0), 4096)),
                         .budget = {},
                         .alignment = d.integer("alignment", 1),
                         .flops_per_second = d.number("flops_per_second", 0),
                         .bytes_per_second = d.number("bytes_per_second", 0)};
    if (d.has("budget")) device.budget = d.integer("budget", 0);
    machine.devices.push_back(std::move(device));
  }
  if (machine.devices.empty()) throw UserError("{} names no device; it needs at least one", place);
  for (const JsonReader& l : r.items("links"))
    machine.links.push_back({.from = l.string("from"),
                             .to = l.string("to"),
                             .latency = l.number("latency", 0),
                             .bytes_per_second = l.number("bytes_per_second", 0)});
  return machine;
}

Seconds roofline_seconds(const graph::Work& work, const MachineDevice& device) {
  const Seconds compute = device.flops_per_second > 0 ? work.flops / device.flops_per_second : 0;
  const Seconds traffic = device.bytes_per_second > 0 ? work.bytes / device.bytes_per_second : 0;
  return std::max(compute, traffic);
}

}  // namespace neaptide::cost
