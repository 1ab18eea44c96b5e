// What a backend prefers about storage formats. passes::assign_formats asks it and inserts Reorder nodes.
#pragma once

#include <vector>

#include "neaptide/graph/op_def.hpp"

namespace neaptide::graph {

/// Formats that a node wants, parallel to its inputs and outputs (absent ones are ignored).
struct FormatChoice {
  std::vector<Format> inputs;
  std::vector<Format> outputs;
};

class FormatRules {
 public:
  virtual ~FormatRules() = default;
  /// `node`'s inputs carry the formats that they have so far. The answer may keep them (elementwise operators follow
  /// their input), or ask for others, which costs a Reorder. A rename (Reshape) asks for plain.
  virtual FormatChoice choose(const NodeView& node) const = 0;
  /// The format in which a parameter (with its state and gradient) should lie for its first reader; plain by default.
  virtual Format parameter_format(const NodeView& reader, std::size_t input) const = 0;
};

}  // namespace neaptide::graph
