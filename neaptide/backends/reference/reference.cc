#include "neaptide/backends/reference/reference.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "neaptide/base/errors.hpp"
#include "neaptide/ops/ops.hpp"

namespace neaptide::backends::reference {
namespace {

using graph::ImplSpec;
using graph::NodeView;
using graph::Value;

class LoopKernel : public runtime::Kernel {
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

class ReferenceBackend : public runtime::Backend {
 public:
  std::string name() const override { return "reference"; }
  std::string version() const override { return "reference 1"; }
  int threads() const override { return 1; }
  runtime::Offer offer(const NodeView& node) override { return reference::offer(node); }
  std::unique_ptr<runtime::Kernel> make_kernel(const NodeView& node, const ImplSpec& spec) override {
    return reference::make_kernel(node, spec);
  }
  void from_plain(const Value& value, const void* plain, void* formatted) const override {
    copy(value, plain, formatted);
  }
  void to_plain(const Value& value, const void* formatted, void* plain) const override {
    copy(value, formatted, plain);
  }

 private:
  static void copy(const Value& value, const void* from, void* to) {
    ensure(value.format.plain(), "the reference backend sees plain tensors only");
    std::memcpy(to, from, static_cast<std::size_t>(value.type.bytes()));
  }
};

}  // namespace

std::unique_ptr<runtime::Backend> make(int /*threads*/) { return std::make_unique<ReferenceBackend>(); }

runtime::Offer offer(const NodeView& node) {
  runtime::Offer out;
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

std::unique_ptr<runtime::Kernel> make_kernel(const NodeView& node, const ImplSpec& spec) {
  const graph::OpDef& op = ops::all().at(node.node().op);
  if (op.implementations != nullptr) {
    for (graph::Implementation& i : op.implementations(node)) {
      if (i.spec.name == spec.name) return std::make_unique<LoopKernel>(std::move(i.kernel));
    }
  }
  throw InternalError("node '{}' ({}) has no implementation '{}'", node.name(), op.name, spec.name);
}

}  // namespace neaptide::backends::reference
