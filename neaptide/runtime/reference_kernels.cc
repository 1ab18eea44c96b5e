#include "neaptide/runtime/reference_kernels.hpp"

#include <utility>

#include "neaptide/base/errors.hpp"
#include "neaptide/ops/ops.hpp"

namespace neaptide::runtime {
namespace {

using graph::ImplSpec;
using graph::NodeView;
using graph::Value;

class LoopKernel : public Kernel {
 public:
  explicit LoopKernel(graph::KernelFn fn) : fn_(std::move(fn)) {}
  void run(const graph::KernelArgs& args) override { fn_(args); }

 private:
  graph::KernelFn fn_;
};

/// The first value of the node that is not plain, or null.
const Value* first_formatted(const NodeView& node) {
  for (std::size_t i = 0; i < node.n_inputs(); ++i) {
    if (node.has_input(i) && !node.input_value(i).format.plain()) return &node.input_value(i);
  }
  for (std::size_t k = 0; k < node.n_outputs(); ++k) {
    if (node.has_output(k) && !node.output_value(k).format.plain()) return &node.output_value(k);
  }
  return nullptr;
}

}  // namespace

Offer reference_offer(const NodeView& node) {
  Offer out;
  if (const Value* v = first_formatted(node)) {
    out.why_not = fmt::format("'{}' lies in format {}; the reference knows plain tensors only", v->name, v->format.tag);
    return out;
  }
  const graph::OpDef& op = ops::all().at(node.node().op);
  if (!op.renames.empty()) {
    out.why_not = fmt::format("{} only renames its input; there is nothing to run", op.name);
    return out;
  }
  for (const graph::Implementation& i : op.implementations(node)) out.impls.push_back(i.spec);
  if (out.impls.empty()) out.why_not = fmt::format("{} has no reference kernel for these types", op.name);
  return out;
}

std::unique_ptr<Kernel> reference_kernel(const NodeView& node, const ImplSpec& spec) {
  const graph::OpDef& op = ops::all().at(node.node().op);
  if (op.implementations != nullptr) {
    for (graph::Implementation& i : op.implementations(node)) {
      if (i.spec.name == spec.name) return std::make_unique<LoopKernel>(std::move(i.kernel));
    }
  }
  throw InternalError("node '{}' ({}) has no implementation '{}'", node.name(), op.name, spec.name);
}

}  // namespace neaptide::runtime
