#include "neaptide/backends/cpu/cpu.hpp"

#include <dnnl_debug.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "neaptide/backends/cpu/activation.hpp"
#include "neaptide/backends/cpu/arithmetic.hpp"
#include "neaptide/backends/cpu/batch_norm.hpp"
#include "neaptide/backends/cpu/convolution.hpp"
#include "neaptide/backends/cpu/matmul.hpp"
#include "neaptide/backends/cpu/pooling.hpp"
#include "neaptide/backends/cpu/reorder.hpp"
#include "neaptide/backends/cpu/update.hpp"
#include "neaptide/base/errors.hpp"
#include "neaptide/runtime/reference_kernels.hpp"

namespace neaptide::backends::cpu {
namespace {

using graph::Format;
using graph::FormatChoice;
using graph::ImplSpec;
using graph::NodeView;
using graph::Value;

// What this backend has kernels of its own for, sorted by name.
constexpr CpuOp kOps[] = {
    {"AdamUpdate", update_formats, adam_candidates},
    {"Add", add_formats, add_candidates},
    {"AveragePool", pool_formats, average_pool_candidates},
    {"AveragePoolGrad", pool_grad_formats, average_pool_grad_candidates},
    {"BatchNormTrain", batch_norm_formats, batch_norm_candidates},
    {"BatchNormTrainGrad", batch_norm_grad_formats, batch_norm_grad_candidates},
    {"Clip", clip_formats, clip_candidates},
    {"ClipGrad", clip_grad_formats, clip_grad_candidates},
    {"Conv", conv_formats, conv_candidates},
    {"ConvGradInput", conv_grad_input_formats, conv_grad_input_candidates},
    {"ConvGradWeight", conv_grad_weight_formats, conv_grad_weight_candidates},
    {"ConvTranspose", conv_grad_input_formats, conv_grad_input_candidates},
    {"ConvTransposeGradInput", conv_formats, conv_candidates},
    {"ConvTransposeGradWeight", conv_grad_weight_formats, conv_grad_weight_candidates},
    {"Div", binary_formats, binary_candidates},
    {"Gemm", nullptr, gemm_candidates},
    {"GlobalAveragePool", global_pool_formats, global_pool_candidates},
    {"GlobalAveragePoolGrad", global_pool_grad_formats, global_pool_grad_candidates},
    {"MatMul", nullptr, matmul_candidates},
    {"MaxPool", pool_formats, max_pool_candidates},
    {"MaxPoolGrad", pool_grad_formats, max_pool_grad_candidates},
    {"MomentumUpdate", update_formats, momentum_candidates},
    {"Mul", binary_formats, binary_candidates},
    {"Relu", relu_formats, relu_candidates},
    {"ReluGrad", relu_grad_formats, relu_grad_candidates},
    {"Reorder", reorder_formats, reorder_candidates},
    {"SgdUpdate", update_formats, sgd_candidates},
    {"Sigmoid", smooth_formats, smooth_candidates},
    {"SigmoidGrad", smooth_grad_formats, smooth_grad_candidates},
    {"Sub", binary_formats, binary_candidates},
    {"Sum", sum_formats, sum_candidates},
    {"Tanh", smooth_formats, smooth_candidates},
    {"TanhGrad", smooth_grad_formats, smooth_grad_candidates},
};

const CpuOp* find(const std::string& name) {
  const auto* found = std::find_if(std::begin(kOps), std::end(kOps), [&](const CpuOp& op) { return op.name == name; });
  return found == std::end(kOps) ? nullptr : found;
}

constexpr std::string_view kReference = "reference:";

class Formats : public graph::FormatRules {
 public:
  explicit Formats(const Context& context) : context_(context) {}

  FormatChoice choose(const NodeView& node) const override {
    const CpuOp* op = find(node.node().op);
    return op != nullptr && op->formats != nullptr ? op->formats(context_, node) : plain_choice(node);
  }

  Format parameter_format(const NodeView& reader, std::size_t input) const override {
    return choose(reader).inputs.at(input);
  }

 private:
  Context context_;
};

class CpuBackend : public runtime::Backend {
 public:
  explicit CpuBackend(int threads)
      : context_{.engine = dnnl::engine(dnnl::engine::kind::cpu, 0), .stream = {}, .threads = threads},
        formats_((context_.stream = dnnl::stream(context_.engine), context_)) {}

  std::string name() const override { return "cpu"; }
  std::string version() const override {
    const dnnl_version_t* v = dnnl_version();
    return fmt::format("oneDNN {}.{}.{} ({}, isa {:#x})", v->major, v->minor, v->patch,
                       dnnl_runtime2str(v->cpu_runtime), static_cast<unsigned>(dnnl_get_effective_cpu_isa()));
  }
  int threads() const override { return context_.threads; }

  runtime::Offer offer(const NodeView& node) override {
    runtime::Offer out;
    for (Candidate& c : candidates(node)) out.impls.push_back(std::move(c.spec));
    if (!out.impls.empty()) return out;
    out = runtime::reference_offer(node);
    for (ImplSpec& spec : out.impls) spec.name.insert(0, kReference);
    return out;
  }

  std::unique_ptr<runtime::Kernel> make_kernel(const NodeView& node, const ImplSpec& spec) override {
    if (spec.name.starts_with(kReference)) {
      ImplSpec plain = spec;
      plain.name.erase(0, kReference.size());
      return runtime::reference_kernel(node, plain);
    }
    for (const Candidate& c : candidates(node)) {
      if (c.spec.name == spec.name) return made(node, c);
    }
    throw InternalError("node '{}' ({}) has no implementation '{}' on cpu", node.name(), node.node().op, spec.name);
  }

  const graph::FormatRules* format_rules() const override { return &formats_; }

  void from_plain(const Value& value, const void* plain, void* formatted) const override {
    if (value.format.plain()) {
      std::memcpy(formatted, plain, static_cast<std::size_t>(value.type.bytes()));
      return;
    }
    const Desc desc = desc_of(value);
    convert(context_, plain_desc(desc.get_dims(), value.type.dtype), plain, desc, formatted);
  }

  void to_plain(const Value& value, const void* formatted, void* plain) const override {
    if (value.format.plain()) {
      std::memcpy(plain, formatted, static_cast<std::size_t>(value.type.bytes()));
      return;
    }
    const Desc desc = desc_of(value);
    convert(context_, desc, formatted, plain_desc(desc.get_dims(), value.type.dtype), plain);
  }

 private:
  Candidates candidates(const NodeView& node) const {
    const CpuOp* op = find(node.node().op);
    if (op == nullptr) return {};
    try {
      return op->candidates(context_, node);
    } catch (const dnnl::error&) {
      return {};  // a layout that the library does not take: the reference answers
    }
  }

  static std::unique_ptr<runtime::Kernel> made(const NodeView& node, const Candidate& candidate) {
    try {
      return candidate.make();
    } catch (const dnnl::error& e) {
      throw DeviceError("oneDNN cannot make '{}' for node '{}' ({}): {}", candidate.spec.name, node.name(),
                        node.node().op, e.what());
    }
  }

  Context context_;
  Formats formats_;
};

}  // namespace

std::unique_ptr<runtime::Backend> make(int threads) {
  if (threads < 1) throw UserError("{} threads cannot compute; at least 1 is needed", threads);
  return std::make_unique<CpuBackend>(threads);
}

}  // namespace neaptide::backends::cpu
