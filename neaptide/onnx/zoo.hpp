// Well-known networks as inference graphs with seeded weights, for examples, tests and benchmarks.
//
//   graph::Graph g = onnx::make("resnet50", 8);
//
// Convolutions and matrices are drawn uniformly in +-sqrt(6 / fan_in) (He et al. 2015) from a counter-based generator:
// the same name, options and seed give the same bits on every machine. Biases are 0, BatchNormalization starts as the
// identity.
#pragma once

#include <string>
#include <vector>

#include "neaptide/graph/graph.hpp"

namespace neaptide::onnx {

struct ZooOptions {
  std::int64_t image = 0;    // height and width; 0: the network's own
  std::int64_t classes = 0;  // 0: the network's own
  std::uint64_t seed = 1;
};

/// Names that `make` knows, sorted.
std::vector<std::string> zoo_names();

/// UserError for an unknown name (with "did you mean") or an image too small for the network.
graph::Graph make(const std::string& name, std::int64_t batch, const ZooOptions& options = {});

}  // namespace neaptide::onnx
