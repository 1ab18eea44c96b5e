// Runs a graph node by node on a backend, and compares with the reference kernels in double precision.
#pragma once

#include <vector>

#include "neaptide/ops/interpret.hpp"
#include "neaptide/runtime/backend.hpp"
#include "tests/ops/check.hpp"

namespace neaptide {

struct RunOptions {
  std::size_t implementation = 0;  // every node runs its k-th implementation (the last one when it has fewer)
  std::size_t offset = 0;          // bytes past a page at which every buffer starts; a multiple of 64
};

/// The graph's outputs, plain, in order. Every buffer holds NaN bit patterns before it is written, and 64 bytes behind
/// its end are checked to stay as they were. `feeds`: plain contents of every input; replaces those of parameters.
std::vector<graph::Tensor> run_on(runtime::Backend& backend, const graph::Graph& graph, const ops::Feeds& feeds,
                                  const RunOptions& options = {});

/// The most implementations that a node of the graph has, and those of all nodes by name.
std::size_t most_implementations(runtime::Backend& backend, const graph::Graph& graph);

struct ConformOptions {
  double tolerance = 1e-4;
  bool blocked = false;   // inputs of 3 to 5 dimensions come in blocks of 16 channels
  bool gradients = true;  // run the gradients of all floating-point inputs as well
  bool fused = false;     // through passes::fuse_activations
};

/// Builds the graph (with gradients) in f32, gives it the backend's formats, runs every implementation of every node at
/// two alignments, and compares with the f64 reference. Input 0 is a graph input, further floating-point ones are
/// parameters. Two runs must agree to the bit.
void conform(runtime::Backend& backend, const std::vector<graph::Tensor>& inputs, const ops::MakeOp& make,
             const ConformOptions& options = {});

}  // namespace neaptide
