// CostTable: what every implementation of every node costs on every device, and why a device cannot run a node.
// Numbers; never runs anything (runtime::measure fills it, or the roofline of machine.hpp).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "neaptide/graph/op_def.hpp"

namespace neaptide::cost {

struct ImplCost {
  std::string device;  // "cpu:0"
  graph::ImplSpec spec;
  Seconds seconds = 0;
  friend bool operator==(const ImplCost&, const ImplCost&) = default;
};

struct NodeCosts {
  std::vector<ImplCost> impls;                 // the first is the default; empty for renames
  std::map<std::string, std::string> why_not;  // device -> reason
  friend bool operator==(const NodeCosts&, const NodeCosts&) = default;
};

using CostTable = IdVector<struct graph::NodeTag, NodeCosts>;

/// Two nodes with equal signatures cost the same: operator, attributes, types and formats of inputs and outputs.
std::string signature(const graph::NodeView& node);

/// Measured seconds, kept in a file: "neaptide.costs" version 1. The key is signature, implementation, device, threads
/// and library version. A file that cannot be read is reported by load and replaced by the next save.
class CostCache {
 public:
  static CostCache load(const std::string& path);  // an absent file: empty
  void save(const std::string& path) const;        // atomically
  std::optional<Seconds> find(const std::string& key) const;
  void put(const std::string& key, Seconds seconds);
  std::size_t size() const { return seconds_.size(); }

 private:
  std::map<std::string, Seconds> seconds_;
};
std::string cache_key(const std::string& signature, const std::string& impl, const std::string& device,
                      const std::string& version);

/// JSON text, "neaptide.costs-table": node, device, implementation, seconds, workspace. For `profile --json`.
std::string to_json(const graph::Graph& graph, const CostTable& table);

}  // namespace neaptide::cost
