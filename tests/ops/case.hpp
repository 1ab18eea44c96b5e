// A single node as test data, for operators whose configurations are many (windows, normalisation, fixtures written by
// another framework).
//
//   check_case({.op = "Conv", .attrs = {{"group", std::int64_t{2}}}, .inputs = {x, w}});
#pragma once

#include <string>
#include <vector>

#include "check.hpp"

namespace neaptide::ops {

/// Inputs are f64 (or integers). Gradients are asked for all floating inputs but those in `fixed`.
struct Case {
  std::string op;
  graph::Attrs attrs = {};
  std::vector<graph::Tensor> inputs;
  std::vector<std::size_t> fixed = {};
};
std::string describe(const Case& c);

/// The node, and the gradients of sum(y * dy) for its output 0.
struct Built {
  graph::Graph graph;
  std::vector<graph::ValueId> inputs;
  graph::ValueId y, dy;                   // dy is a graph input; invalid when nothing is differentiated
  std::vector<graph::ValueId> gradients;  // parallel to inputs; invalid where not asked for
};
Built build(const Case& c, bool with_gradient = true);

/// Default implementations; dy may lack data when there is none.
Values evaluate(const Built& built, const Case& c, const graph::Tensor& dy = {});

/// check_op, and all implementations give the same bits in f64 and in f32.
void check_case(const Case& c);

/// "MaxPool.plain", ...: of every node of the case, in order.
std::vector<std::string> implementation_names(const Case& c);

/// Every case of a JSON file in tests/fixtures: forward and gradients in f64 (1e-10) and f32 (1e-5), relative to
/// 1 + |expected|.
void check_fixtures(const std::string& file);

/// The message of the UserError that building the node throws; "" when it throws none.
std::string refusal(const Case& c);

}  // namespace neaptide::ops
