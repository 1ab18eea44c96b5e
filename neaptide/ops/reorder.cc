#include "neaptide/ops/reorder.hpp"

#include <cstring>

#include "neaptide/graph/builder.hpp"
#include "neaptide/ops/kernel.hpp"

namespace neaptide::ops {
namespace {

std::vector<TensorType> infer(const NodeView& node) { return {node.input(0)}; }

void gradient(GradientContext& context) { context.set(0, context.gradient()); }

Work work(const NodeView& node) { return work_of(node, 0); }

std::vector<Implementation> implementations(const NodeView& node) {
  const auto n = static_cast<std::size_t>(node.input(0).bytes());
  return {{{.name = "plain", .reads = {0}, .writes = {0}},
           [n](const KernelArgs& args) { std::memcpy(args.outputs[0], args.inputs[0], n); }}};
}

}  // namespace

std::vector<OpDef> reorder_ops() {
  return {
      OpDef{.name = "Reorder",
            .n_inputs = {1, 1},
            .n_outputs = {1, 1},
            .infer = infer,
            .gradient = gradient,
            .work = work,
            .implementations = implementations},
  };
}

}  // namespace neaptide::ops
