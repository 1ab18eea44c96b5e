#include "neaptide/backends/cpu/pooling.hpp"

#include <optional>
#include <utility>

#include "neaptide/backends/cpu/loops.hpp"
#include "neaptide/backends/cpu/window.hpp"

namespace neaptide::backends::cpu {
namespace {

using graph::Format;
using graph::FormatChoice;
using graph::ImplSpec;
using graph::KernelArgs;
using graph::NodeView;
using graph::Shape;
using graph::TensorType;
using Forward = dnnl::pooling_forward;
using Backward = dnnl::pooling_backward;

/// One pool, seen from the forward or the gradient node.
struct Pool {
  TensorType x, y;
  Window window;
  dnnl::algorithm algorithm = dnnl::algorithm::pooling_max;
  bool maximum() const { return algorithm == dnnl::algorithm::pooling_max; }
};

/// Does a window reach past the padding that ONNX counts (rounding up)? oneDNN would count that as padding too.
bool reaches_past_padding(const ops::Window& window) {
  for (const ops::Axis& a : window.axes) {
    if ((a.out - 1) * a.stride + a.extent() - a.in - a.pad_begin > a.pad_end) return true;
  }
  return false;
}

std::optional<Pool> pool_of(const NodeView& node, const TensorType& x, const TensorType& y) {
  if (x.dtype != graph::DType::kF32 || x.shape.size() < 3 || x.shape.size() > 5 || x.elements() == 0)
    return std::nullopt;
  const ops::Window window = ops::pool_window(node, x.shape);
  Pool p{.x = x, .y = y, .window = window_of(window)};
  if (!node.node().op.starts_with("Max")) {
    const bool include = node.int_or("count_include_pad", 0) != 0;
    if (include && reaches_past_padding(window)) return std::nullopt;
    p.algorithm = include ? dnnl::algorithm::pooling_avg_include_padding : dnnl::algorithm::pooling_avg_exclude_padding;
  }
  return p;
}

std::optional<Pool> forward_pool(const NodeView& node) { return pool_of(node, node.input(0), node.output(0)); }
std::optional<Pool> grad_pool(const NodeView& node) { return pool_of(node, node.output(0), node.input(0)); }

/// The same layout for a tensor of another size.
Desc like(const TensorType& type, const Format& format) {
  const Dims dims(type.shape.begin(), type.shape.end());
  return format.plain() ? plain_desc(type.shape, type.dtype) : tagged_desc(dims, type.dtype, format.tag);
}

Forward::primitive_desc forward_desc(const Context& context, const Pool& p, const Format& format, bool training) {
  return Forward::primitive_desc(context.engine,
                                 training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference,
                                 p.algorithm, like(p.x, format), like(p.y, format), p.window.strides, p.window.kernel,
                                 p.window.dilations, p.window.before, p.window.after, user_scratchpad(), true);
}

Backward::primitive_desc backward_desc(const Context& context, const Pool& p, const Format& format) {
  return Backward::primitive_desc(context.engine, p.algorithm, like(p.x, format), like(p.y, format), p.window.strides,
                                  p.window.kernel, p.window.dilations, p.window.before, p.window.after,
                                  forward_desc(context, p, format, true), user_scratchpad(), true);
}

/// Is the library's workspace the node's index: one integer of its type per output?
bool workspace_is_index(const Forward::primitive_desc& pd, const TensorType& index) {
  const Desc desc = pd.workspace_desc();
  return named(desc) && desc.get_data_type() == data_type_of(index.dtype) &&
         desc.get_dims() == Dims(index.shape.begin(), index.shape.end());
}

Candidate forward_candidate(const Context& context, const Forward::primitive_desc& pd, bool index) {
  ImplSpec spec{.name = pd.impl_info_str(), .reads = {0}, .writes = {0}};
  std::vector<Slot> slots = {{DNNL_ARG_SRC, pd.src_desc(), Place::kInput, 0},
                             {DNNL_ARG_DST, pd.dst_desc(), Place::kOutput, 0}};
  if (index) {
    spec.name += " index";
    spec.writes.push_back(1);
    slots.push_back({DNNL_ARG_WORKSPACE, pd.workspace_desc(), Place::kOutput, 1});
  }
  spec.workspace = static_cast<Bytes>(pd.scratchpad_desc().get_size());
  return {std::move(spec),
          [context, pd, slots] { return primitive_kernel(context, Forward(pd), slots, pd.scratchpad_desc(), 0); }};
}

Candidate backward_candidate(const Context& context, const Backward::primitive_desc& pd, bool from_index) {
  ImplSpec spec{.name = pd.impl_info_str(), .reads = {0}, .writes = {0}};
  std::vector<Slot> slots = {{DNNL_ARG_DIFF_DST, pd.diff_dst_desc(), Place::kInput, 0},
                             {DNNL_ARG_DIFF_SRC, pd.diff_src_desc(), Place::kOutput, 0}};
  if (from_index) {
    spec.name += " from-index";
    spec.reads.push_back(3);
    slots.push_back({DNNL_ARG_WORKSPACE, pd.workspace_desc(), Place::kInput, 3});
  }
  spec.workspace = static_cast<Bytes>(pd.scratchpad_desc().get_size());
  return {std::move(spec),
          [context, pd, slots] { return primitive_kernel(context, Backward(pd), slots, pd.scratchpad_desc(), 0); }};
}

/// Pools x once more into the workspace to find the maxima.
Candidate backward_from_input(const Context& context, const Forward::primitive_desc& forward,
                              const Backward::primitive_desc& backward) {
  Workspace workspace;
  const auto piece = [&](const Desc& desc) { return workspace.take(static_cast<Bytes>(desc.get_size())); };
  const Bytes y = piece(forward.dst_desc()), index = piece(forward.workspace_desc());
  const Bytes first = piece(forward.scratchpad_desc()), second = piece(backward.scratchpad_desc());
  ImplSpec spec{.name = std::string(backward.impl_info_str()) + " from-input", .reads = {0, 1}, .writes = {0}};
  spec.workspace = workspace.bytes();
  const std::vector<Slot> pool = {{DNNL_ARG_SRC, forward.src_desc(), Place::kInput, 1},
                                  {DNNL_ARG_DST, forward.dst_desc(), Place::kWorkspace, 0, y},
                                  {DNNL_ARG_WORKSPACE, forward.workspace_desc(), Place::kWorkspace, 0, index}};
  const std::vector<Slot> grad = {{DNNL_ARG_DIFF_DST, backward.diff_dst_desc(), Place::kInput, 0},
                                  {DNNL_ARG_WORKSPACE, backward.workspace_desc(), Place::kWorkspace, 0, index},
                                  {DNNL_ARG_DIFF_SRC, backward.diff_src_desc(), Place::kOutput, 0}};
  return {std::move(spec), [=] {
            std::vector<KernelPtr> steps;
            steps.push_back(primitive_kernel(context, Forward(forward), pool, forward.scratchpad_desc(), first));
            steps.push_back(primitive_kernel(context, Backward(backward), grad, backward.scratchpad_desc(), second));
            return sequence_kernel(std::move(steps));
          }};
}

/// The layout that decides in a gradient: that of the index, of x, or of dy.
Format grad_format(const NodeView& node) {
  Format format = node.input_value(0).format;
  if (node.has_input(1)) format = node.input_value(1).format;
  if (node.has_input(3)) format = node.input_value(3).format;
  return format;
}

Format sized(const TensorType& type, const Format& format) {
  return format.plain() ? Format{} : format_of(like(type, format));
}

// ---- Global average pooling: {n, c, s...} plain or in blocks of 16 channels -> {n, c, 1...} plain
// ----------------------

constexpr std::int64_t kLanes = 16;

bool blocked_by_16(const TensorType& x, const Format& format) {
  return (format.tag == "aBc16b" || format.tag == "aBcd16b" || format.tag == "aBcde16b") && x.shape[1] % kLanes == 0;
}

struct Planes {
  std::int64_t groups = 0;  // of 16 channels when blocked, of one otherwise
  std::int64_t n = 0;       // elements of a plane
  bool blocked = false;
};

std::optional<Planes> planes_of(const TensorType& x, const Format& format) {
  if (x.dtype != graph::DType::kF32 || x.shape.size() < 3 || x.elements() == 0) return std::nullopt;
  const bool blocked = blocked_by_16(x, format);
  if (!blocked && !format.plain()) return std::nullopt;
  const std::int64_t planes = x.shape[0] * x.shape[1];
  return Planes{.groups = blocked ? planes / kLanes : planes, .n = x.elements() / planes, .blocked = blocked};
}

/// Sixteen interleaved sums of x[0, n * 16), each in order.
NEAPTIDE_CLONES void lane_sums(const float* x, std::int64_t n, float* sums) {
  for (std::int64_t l = 0; l < kLanes; ++l) sums[l] = 0.F;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t l = 0; l < kLanes; ++l) sums[l] += x[i * kLanes + l];
  }
}

float plane_sum(const float* x, std::int64_t n) {
  float sums[kLanes];
  lane_sums(x, n / kLanes, sums);
  float total = 0.F;
  for (const float s : sums) total += s;
  for (std::int64_t i = n / kLanes * kLanes; i < n; ++i) total += x[i];
  return total;
}

void global_average(const Planes& p, int threads, const float* x, float* y) {
  const float share = 1.F / static_cast<float>(p.n);
  parallel_for(threads, p.groups, [=](std::int64_t g) {
    if (!p.blocked) {
      y[g] = plane_sum(x + g * p.n, p.n) * share;
      return;
    }
    float sums[kLanes];
    lane_sums(x + g * p.n * kLanes, p.n, sums);
    for (std::int64_t l = 0; l < kLanes; ++l) y[g * kLanes + l] = sums[l] * share;
  });
}

void global_average_grad(const Planes& p, int threads, const float* dy, float* dx) {
  const float share = 1.F / static_cast<float>(p.n);
  parallel_for(threads, p.groups, [=](std::int64_t g) {
    if (!p.blocked) {
      std::fill_n(dx + g * p.n, p.n, dy[g] * share);
      return;
    }
    float row[kLanes];
    for (std::int64_t l = 0; l < kLanes; ++l) row[l] = dy[g * kLanes + l] * share;
    for (std::int64_t i = 0; i < p.n; ++i) std::copy_n(row, kLanes, dx + (g * p.n + i) * kLanes);
  });
}

}  // namespace

FormatChoice pool_formats(const Context& context, const NodeView& node) {
  FormatChoice choice = plain_choice(node);
  const std::optional<Pool> p = forward_pool(node);
  const Format format = node.input_value(0).format;
  if (!p || format.plain()) return choice;
  const auto pd = forward_desc(context, *p, format, true);
  if (slow(pd) || (node.has_output(1) && !workspace_is_index(pd, node.output(1)))) return choice;
  choice.inputs[0] = format;
  choice.outputs[0] = sized(p->y, format);
  if (node.has_output(1)) choice.outputs[1] = format_of(pd.workspace_desc());
  return choice;
}

Candidates max_pool_candidates(const Context& context, const NodeView& node) {
  Candidates out;
  const std::optional<Pool> p = forward_pool(node);
  if (!p) return out;
  const Format format = node.input_value(0).format;
  const auto training = forward_desc(context, *p, format, true), inference = forward_desc(context, *p, format, false);
  if (slow(training) || slow(inference)) return out;
  if (node.has_output(1)) {
    if (!workspace_is_index(training, node.output(1))) return out;
    out.push_back(forward_candidate(context, training, true));
  }
  out.push_back(forward_candidate(context, inference, false));
  return out;
}

Candidates average_pool_candidates(const Context& context, const NodeView& node) {
  Candidates out;
  const std::optional<Pool> p = forward_pool(node);
  if (!p) return out;
  const auto pd = forward_desc(context, *p, node.input_value(0).format, true);
  if (!slow(pd)) out.push_back(forward_candidate(context, pd, false));
  return out;
}

FormatChoice pool_grad_formats(const Context& context, const NodeView& node) {
  FormatChoice choice = plain_choice(node);
  const std::optional<Pool> p = grad_pool(node);
  const Format format = grad_format(node);
  if (!p || format.plain() || slow(backward_desc(context, *p, format))) return choice;
  if (node.has_input(3) && !workspace_is_index(forward_desc(context, *p, format, true), node.input(3))) return choice;
  choice.inputs[0] = sized(p->y, format);
  choice.outputs[0] = sized(p->x, format);
  if (node.has_input(1)) choice.inputs[1] = choice.outputs[0];
  if (node.has_input(2)) choice.inputs[2] = choice.inputs[0];
  if (node.has_input(3)) choice.inputs[3] = format_of(forward_desc(context, *p, format, true).workspace_desc());
  return choice;
}

Candidates max_pool_grad_candidates(const Context& context, const NodeView& node) {
  Candidates out;
  const std::optional<Pool> p = grad_pool(node);
  if (!p) return out;
  const Format format = node.output_value(0).format;
  const auto forward = forward_desc(context, *p, format, true);
  const auto backward = backward_desc(context, *p, format);
  if (slow(forward) || slow(backward)) return out;
  if (node.has_input(3)) {
    if (!workspace_is_index(forward, node.input(3))) return out;
    out.push_back(backward_candidate(context, backward, true));
  }
  if (node.has_input(1)) out.push_back(backward_from_input(context, forward, backward));
  return out;
}

Candidates average_pool_grad_candidates(const Context& context, const NodeView& node) {
  Candidates out;
  const std::optional<Pool> p = grad_pool(node);
  if (!p) return out;
  const auto pd = backward_desc(context, *p, node.output_value(0).format);
  if (!slow(pd)) out.push_back(backward_candidate(context, pd, false));
  return out;
}

FormatChoice global_pool_formats(const Context& /*context*/, const NodeView& node) {
  FormatChoice choice = plain_choice(node);
  const Format format = node.input_value(0).format;
  if (planes_of(node.input(0), format)) choice.inputs[0] = format;
  return choice;
}

Candidates global_pool_candidates(const Context& context, const NodeView& node) {
  const std::optional<Planes> p = planes_of(node.input(0), node.input_value(0).format);
  if (!p || !node.output_value(0).format.plain()) return {};
  const auto make = [p = *p, threads = context.threads] {
    return loop_kernel(
        [=](const KernelArgs& args) { global_average(p, threads, in<float>(args, 0), out<float>(args, 0)); });
  };
  return {{{.name = "plain", .reads = {0}, .writes = {0}}, make}};
}

/// The gradient is spread in blocks where it can be: what stands before a global pool almost always lies in them.
FormatChoice global_pool_grad_formats(const Context& /*context*/, const NodeView& node) {
  FormatChoice choice = plain_choice(node);
  const TensorType& x = node.output(0);
  static constexpr const char* kTags[] = {"aBc16b", "aBcd16b", "aBcde16b"};
  if (x.dtype != graph::DType::kF32 || x.shape.size() < 3 || x.shape.size() > 5 || x.shape[1] % kLanes != 0)
    return choice;
  choice.outputs[0] = {kTags[x.shape.size() - 3], x.bytes()};
  return choice;
}

Candidates global_pool_grad_candidates(const Context& context, const NodeView& node) {
  const std::optional<Planes> p = planes_of(node.output(0), node.output_value(0).format);
  if (!p || !node.input_value(0).format.plain()) return {};
  const auto make = [p = *p, threads = context.threads] {
    return loop_kernel(
        [=](const KernelArgs& args) { global_average_grad(p, threads, in<float>(args, 0), out<float>(args, 0)); });
  };
  return {{{.name = "plain", .reads = {0}, .writes = {0}}, make}};
}

}  // namespace neaptide::backends::cpu
