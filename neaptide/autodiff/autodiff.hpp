// Graph -> Graph: loss, backward, update. A pure function of its arguments; every update stands right after the node
// that completes its gradient.
#pragma once

#include <string>
#include <vector>

#include "neaptide/graph/builder.hpp"

namespace neaptide::autodiff {

enum class Loss { kSoftmaxCrossEntropy, kMeanSquaredError };
enum class Optimizer { kSgd, kMomentum, kNesterov, kAdam, kAdamW };

struct TrainingOptions {
  Loss loss = Loss::kSoftmaxCrossEntropy;
  Optimizer optimizer = Optimizer::kMomentum;
  double momentum = 0.9;
  double weight_decay = 0;  // decoupled for AdamW, added to the gradient otherwise
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  std::vector<std::string> frozen = {};  // parameters not trained
  std::string output = {};               // which graph output the loss reads; default: the first
};

/// The training graph with the values that a session feeds and reads. `inputs`: the model's own.
struct Training {
  graph::Graph graph;
  std::vector<graph::ValueId> inputs;
  graph::ValueId labels;   // i64[n] class indices, or the target of the same type as the output
  graph::ValueId lr;       // f32 scalar
  graph::ValueId rng;      // i64[2] {seed, step}
  graph::ValueId loss;     // scalar
  graph::ValueId correct;  // i64 scalar, for cross entropy; invalid otherwise
  graph::ValueId output;   // what the loss reads
};

/// UserError naming the node when an operator on the way to a parameter has no gradient. The forward graph must be
/// promoted already (passes::promote_to_training).
Training make_training(const graph::Graph& forward, const graph::OpSet& ops, const TrainingOptions& options);

/// Backward only: appends the gradients of `loss` with respect to `wrt` and returns them (invalid where the loss does
/// not depend on it). What make_training and the gradient checks are built from.
std::vector<graph::ValueId> append_backward(graph::Builder& builder, graph::ValueId loss,
                                            const std::vector<graph::ValueId>& wrt);

/// The same for any outputs, given the values that hold their gradients (vector-Jacobian product).
std::vector<graph::ValueId> append_backward(graph::Builder& builder, const std::vector<graph::ValueId>& outputs,
                                            const std::vector<graph::ValueId>& output_gradients,
                                            const std::vector<graph::ValueId>& wrt);

}  // namespace neaptide::autodiff
