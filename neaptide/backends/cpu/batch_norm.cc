#include "neaptide/backends/cpu/batch_norm.hpp"

#include <utility>

#include "neaptide/backends/cpu/bits.hpp"

namespace neaptide::backends::cpu {
namespace {

using graph::Format;
using graph::FormatChoice;
using graph::ImplSpec;
using graph::NodeView;
using Forward = dnnl::batch_normalization_forward;
using Backward = dnnl::batch_normalization_backward;
using Flags = dnnl::normalization_flags;

bool relu(const NodeView& node) { return node.string_or("activation", "") == "relu"; }

/// Ranks with a channel-blocked layout of 16; others run by the reference.
const char* blocked_tag(std::size_t rank) {
  switch (rank) {
    case 3:
      return "aBc16b";
    case 4:
      return "aBcd16b";
    case 5:
      return "aBcde16b";
    default:
      return nullptr;
  }
}

bool supported(const NodeView& node, const graph::TensorType& x) {
  if (blocked_tag(x.shape.size()) == nullptr || x.elements() == 0) return false;
  return x.dtype == graph::DType::kF32 && node.input(0).dtype == graph::DType::kF32;
}

/// The layout in which normalisation is fast: the one that `x` lies in, or blocked when it is plain.
Format layout(const graph::Value& x) {
  if (!x.format.plain()) return x.format;
  const Dims dims(x.type.shape.begin(), x.type.shape.end());
  return format_of(tagged_desc(dims, x.type.dtype, blocked_tag(dims.size())));
}

Flags flags(bool with_relu) {
  const Flags scale_shift = Flags::use_scale | Flags::use_shift;
  return with_relu ? scale_shift | Flags::fuse_norm_relu : scale_shift;
}

Forward::primitive_desc forward_desc(const Context& context, const NodeView& node, const Desc& x) {
  return Forward::primitive_desc(context.engine, dnnl::prop_kind::forward_training, x, x,
                                 static_cast<float>(node.float_or("epsilon", 1e-5)), flags(relu(node)),
                                 user_scratchpad(), true);
}

/// Does the library's mask have one bit per stored element? (Only then can it be the node's mask.)
bool mask_is_bits(const Forward::primitive_desc& pd, const Desc& x) {
  return pd.workspace_desc().get_size() * 8 * sizeof(float) == x.get_size();
}

Candidate forward_candidate(const Context& context, const NodeView& node, const Forward::primitive_desc& pd,
                            bool write_mask) {
  Workspace workspace;
  ImplSpec spec{.name = pd.impl_info_str(), .reads = {0, 1, 2}, .writes = {}};
  std::vector<Slot> slots = {{DNNL_ARG_SRC, pd.src_desc(), Place::kInput, 0},
                             {DNNL_ARG_SCALE, pd.weights_desc(), Place::kInput, 1},
                             {DNNL_ARG_SHIFT, pd.weights_desc(), Place::kInput, 2}};
  const auto result = [&](int arg, const Desc& desc, int output, bool wanted) {
    if (wanted) {
      spec.writes.push_back(output);
      slots.push_back({arg, desc, Place::kOutput, output});
    } else {
      slots.push_back({arg, desc, Place::kWorkspace, 0, workspace.take(static_cast<Bytes>(desc.get_size()))});
    }
  };
  result(DNNL_ARG_DST, pd.dst_desc(), 0, true);
  result(DNNL_ARG_MEAN, pd.mean_desc(), 1, node.has_output(1));
  result(DNNL_ARG_VARIANCE, pd.variance_desc(), 2, node.has_output(2));
  if (relu(node)) result(DNNL_ARG_WORKSPACE, pd.workspace_desc(), 3, write_mask);
  if (relu(node) && !write_mask && node.has_output(3)) spec.name += " without mask";
  const Desc scratchpad = pd.scratchpad_desc();
  const Bytes offset = workspace.take(static_cast<Bytes>(scratchpad.get_size()));
  spec.workspace = workspace.bytes();
  return {std::move(spec), [context, pd, slots, scratchpad, offset] {
            return primitive_kernel(context, Forward(pd), slots, scratchpad, offset);
          }};
}

/// Where the gradient gets the ReLU's mask from.
enum class MaskFrom { kNothing, kMask, kOutput };

Candidate backward_candidate(const Context& context, const NodeView& node, const Backward::primitive_desc& pd,
                             MaskFrom from, bool in_place) {
  Workspace workspace;
  ImplSpec spec{.name = pd.impl_info_str(), .reads = {0, 1, 2, 3, 4}, .writes = {}};
  std::vector<Slot> slots = {{DNNL_ARG_DIFF_DST, pd.diff_dst_desc(), Place::kInput, 0},
                             {DNNL_ARG_SRC, pd.src_desc(), Place::kInput, 1},
                             {DNNL_ARG_SCALE, pd.weights_desc(), Place::kInput, 2},
                             {DNNL_ARG_MEAN, pd.mean_desc(), Place::kInput, 3},
                             {DNNL_ARG_VARIANCE, pd.variance_desc(), Place::kInput, 4}};
  const auto result = [&](int arg, const Desc& desc, int output) {
    if (node.has_output(static_cast<std::size_t>(output))) {
      spec.writes.push_back(output);
      slots.push_back({arg, desc, Place::kOutput, output});
    } else {
      slots.push_back({arg, desc, Place::kWorkspace, 0, workspace.take(static_cast<Bytes>(desc.get_size()))});
    }
  };
  result(DNNL_ARG_DIFF_SRC, pd.diff_src_desc(), 0);
  result(DNNL_ARG_DIFF_SCALE, pd.diff_weights_desc(), 1);
  result(DNNL_ARG_DIFF_SHIFT, pd.diff_weights_desc(), 2);
  Bytes mask_offset = 0;
  if (from == MaskFrom::kMask) {
    spec.name += " from-mask";
    spec.reads.push_back(7);
    slots.push_back({DNNL_ARG_WORKSPACE, pd.workspace_desc(), Place::kInput, 7});
  } else if (from == MaskFrom::kOutput) {
    spec.name += " from-output";
    spec.reads.push_back(6);
    mask_offset = workspace.take(static_cast<Bytes>(pd.workspace_desc().get_size()));
    slots.push_back({DNNL_ARG_WORKSPACE, pd.workspace_desc(), Place::kWorkspace, 0, mask_offset});
  }
  if (in_place) {
    spec.name += " in-place";
    spec.in_place = {{0, 0}};
  }
  const Desc scratchpad = pd.scratchpad_desc();
  const Bytes offset = workspace.take(static_cast<Bytes>(scratchpad.get_size()));
  spec.workspace = workspace.bytes();
  const auto n = static_cast<std::int64_t>(pd.src_desc().get_size() / sizeof(float));
  return {std::move(spec), [context, pd, slots, scratchpad, offset, mask_offset, from, n] {
            std::vector<KernelPtr> steps;
            if (from == MaskFrom::kOutput) {
              steps.push_back(loop_kernel([threads = context.threads, n, mask_offset](const graph::KernelArgs& args) {
                sign_bits(threads, in<float>(args, 6), scratch<std::uint8_t>(args, mask_offset), n);
              }));
            }
            steps.push_back(primitive_kernel(context, Backward(pd), slots, scratchpad, offset));
            return steps.size() == 1 ? std::move(steps[0]) : sequence_kernel(std::move(steps));
          }};
}

}  // namespace

FormatChoice batch_norm_formats(const Context& context, const NodeView& node) {
  FormatChoice choice = plain_choice(node);
  if (!supported(node, node.input(0))) return choice;
  const Format format = layout(node.input_value(0));
  const Desc x = desc_of(node.input(0), format);
  const auto pd = forward_desc(context, node, x);
  if (slow(pd) || (relu(node) && !mask_is_bits(pd, x))) return choice;
  choice.inputs[0] = choice.outputs[0] = format;
  if (node.has_output(3)) choice.outputs[3] = bits_format(node.input(0), format);
  return choice;
}

Candidates batch_norm_candidates(const Context& context, const NodeView& node) {
  Candidates out;
  if (!supported(node, node.input(0)) || node.input_value(0).format.plain()) return out;
  const auto pd = forward_desc(context, node, desc_of(node.input_value(0)));
  if (slow(pd)) return out;
  if (node.has_output(3)) out.push_back(forward_candidate(context, node, pd, true));
  out.push_back(forward_candidate(context, node, pd, false));
  return out;
}

FormatChoice batch_norm_grad_formats(const Context& context, const NodeView& node) {
  FormatChoice choice = plain_choice(node);
  if (!supported(node, node.input(1))) return choice;
  const Format format = layout(node.input_value(1));
  const Desc x = desc_of(node.input(1), format);
  const auto pd = forward_desc(context, node, x);
  if (slow(pd) || (relu(node) && !mask_is_bits(pd, x))) return choice;
  choice.inputs[0] = choice.inputs[1] = format;
  if (node.has_output(0)) choice.outputs[0] = format;
  if (node.has_input(6)) choice.inputs[6] = format;
  if (node.has_input(7)) choice.inputs[7] = bits_format(node.input(1), format);
  return choice;
}

Candidates batch_norm_grad_candidates(const Context& context, const NodeView& node) {
  Candidates out;
  if (!supported(node, node.input(1)) || node.input_value(1).format.plain()) return out;
  const Desc x = desc_of(node.input_value(1));
  const Backward::primitive_desc pd(context.engine, dnnl::prop_kind::backward, x, x, x,
                                    static_cast<float>(node.float_or("epsilon", 1e-5)), flags(relu(node)),
                                    forward_desc(context, node, x), user_scratchpad(), true);
  if (slow(pd)) return out;
  std::vector<MaskFrom> sources;
  if (!relu(node)) sources.push_back(MaskFrom::kNothing);
  if (relu(node) && node.has_input(7)) sources.push_back(MaskFrom::kMask);
  if (relu(node) && node.has_input(6)) sources.push_back(MaskFrom::kOutput);
  for (const MaskFrom from : sources) {
    out.push_back(backward_candidate(context, node, pd, from, false));
    if (node.has_output(0)) out.push_back(backward_candidate(context, node, pd, from, true));
  }
  return out;
}

}  // namespace neaptide::backends::cpu
