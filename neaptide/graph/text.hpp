// The graph's text form, which parses back to an equal graph, and its DOT picture. Contents of initialised values are
// written in full up to kInlineBytes; larger ones as a digest, and parse back as zeros.
//
//   graph "name"
//   input %x: f32[8x1x28x28]
//   parameter %w: f32[8x1x3x3] = ...
//   %y = Conv(%x, %w, _) {pads = [1, 1, 1, 1]} "conv1" forward
//   output %y
#pragma once

#include <string>
#include <string_view>

#include "neaptide/graph/op_def.hpp"

namespace neaptide::graph {

inline constexpr Bytes kInlineBytes = 4096;

std::string to_text(const Graph& graph);

/// UserError("<place>:<line>: ...") when it is not the text form of a legal graph.
Graph from_text(std::string_view text, const OpSet& ops, std::string_view place);

/// Graphviz source; nodes coloured by role.
std::string to_dot(const Graph& graph);

}  // namespace neaptide::graph
