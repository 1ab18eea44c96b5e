// Reverse accumulation over the nodes that a Builder holds when it starts. Gradients that meet in a value are added one
// by one as they arrive, in reverse node order and then input order, so that one running sum exists at a time.
#pragma once

#include <functional>
#include <vector>

#include "neaptide/graph/builder.hpp"

namespace neaptide::autodiff {

/// Called as soon as no later node adds to the gradient of wrt[position]; `gradient` is invalid when none arrived.
using OnComplete = std::function<void(std::size_t position, graph::ValueId gradient)>;

struct Seed {
  graph::ValueId output;
  graph::ValueId gradient;  // invalid: the output's operator is a loss, which knows that its gradient is 1
};

/// UserError naming the node when an operator between a seed and a member of `wrt` has no gradient.
void run_backward(graph::Builder& builder, const std::vector<Seed>& seeds, const std::vector<graph::ValueId>& wrt,
                  const OnComplete& on_complete);

}  // namespace neaptide::autodiff
