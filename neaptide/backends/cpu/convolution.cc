#include "neaptide/backends/cpu/convolution.hpp"

#include <optional>
#include <utility>

#include "neaptide/backends/cpu/channels.hpp"
#include "neaptide/backends/cpu/window.hpp"

namespace neaptide::backends::cpu {
namespace {

using graph::Format;
using graph::FormatChoice;
using graph::NodeView;
using graph::Shape;
using Forward = dnnl::convolution_forward;
using BackwardData = dnnl::convolution_backward_data;
using BackwardWeights = dnnl::convolution_backward_weights;

constexpr auto kDirect = dnnl::algorithm::convolution_direct;

/// One convolution, seen from any of its three nodes.
struct Conv {
  Shape x, w, y;
  Window window;
  std::int64_t groups = 1;
  bool bias = false, relu = false;
};

bool transposed(const NodeView& node) { return node.node().op.starts_with("ConvTranspose"); }

std::optional<Conv> conv_of(const NodeView& node, Shape x, Shape w, Shape y) {
  if (!all_f32(node) || !node.has_output(0) || x.size() < 3 || x.size() > 5) return std::nullopt;
  Conv c{.x = std::move(x), .w = std::move(w), .y = std::move(y), .window = {}, .groups = node.int_or("group", 1)};
  const Shape kernel(c.w.begin() + 2, c.w.end());
  c.window =
      window_of(transposed(node) ? ops::transposed_window(node, c.y, kernel) : ops::conv_window(node, c.x, kernel));
  c.relu = node.string_or("activation", "") == "relu";
  if (graph::n_elements(c.x) == 0 || graph::n_elements(c.y) == 0) return std::nullopt;
  return c;
}

/// Conv(x, w, b?) -> y and ConvTransposeGradInput(dy, w) -> dx.
std::optional<Conv> forward_conv(const NodeView& node) {
  std::optional<Conv> c = conv_of(node, node.input(0).shape, node.input(1).shape, node.output(0).shape);
  if (c) c->bias = node.has_input(2);
  return c;
}

/// ConvGradInput(dy, w) -> dx and ConvTranspose(x, w, b?) -> y.
std::optional<Conv> grad_input_conv(const NodeView& node) {
  return conv_of(node, node.output(0).shape, node.input(1).shape, node.input(0).shape);
}

/// The inputs of a weight gradient that are the convolution's output gradient and its input.
struct WeightInputs {
  int dy = 0, x = 1;
};
WeightInputs weight_inputs(const NodeView& node) {
  return transposed(node) ? WeightInputs{.dy = 1, .x = 0} : WeightInputs{};
}
const graph::Value& input_at(const NodeView& node, int i) { return node.input_value(static_cast<std::size_t>(i)); }

/// ConvGradWeight(dy, x) -> dw, [1] db and ConvTransposeGradWeight(dy, x) -> dw, [1] db.
std::optional<Conv> grad_weight_conv(const NodeView& node) {
  const WeightInputs at = weight_inputs(node);
  const Shape w = node.ints_or("weight_shape", {});
  std::optional<Conv> c = conv_of(node, input_at(node, at.x).type.shape, w, input_at(node, at.dy).type.shape);
  if (c) c->bias = node.has_output(1) && !transposed(node);
  return c;
}

Desc any_weights(const Conv& c) {
  return Desc(grouped(c.w, c.groups), dnnl::memory::data_type::f32, dnnl::memory::format_tag::any);
}
Desc weights_desc(const Conv& c, const Format& format) {
  if (format.plain()) {
    const Dims dims = grouped(c.w, c.groups);
    return plain_desc(Shape(dims.begin(), dims.end()));
  }
  return desc_of({graph::DType::kF32, c.w}, format);
}
Desc bias_desc(const Conv& c) { return c.bias ? plain_desc({c.y[1]}) : Desc(); }

Forward::primitive_desc forward_desc(const Context& context, const Conv& c, const Desc& x, const Desc& w, const Desc& y,
                                     bool relu) {
  dnnl::primitive_attr attr = user_scratchpad();
  if (relu) {
    dnnl::post_ops post;
    post.append_eltwise(dnnl::algorithm::eltwise_relu, 0.F, 0.F);
    attr.set_post_ops(post);
  }
  return Forward::primitive_desc(context.engine, dnnl::prop_kind::forward_training, kDirect, x, w, bias_desc(c), y,
                                 c.window.strides, c.window.dilations, c.window.before, c.window.after, attr, true);
}

Forward::primitive_desc hint(const Context& context, const Conv& c) {
  return forward_desc(context, c, any_desc(c.x), any_weights(c), any_desc(c.y), false);
}

BackwardData::primitive_desc backward_data_desc(const Context& context, const Conv& c,
                                                const Forward::primitive_desc& forward, const Desc& dx, const Desc& w,
                                                const Desc& dy) {
  return BackwardData::primitive_desc(context.engine, kDirect, dx, w, dy, c.window.strides, c.window.dilations,
                                      c.window.before, c.window.after, forward, user_scratchpad(), true);
}

BackwardWeights::primitive_desc backward_weights_desc(const Context& context, const Conv& c,
                                                      const Forward::primitive_desc& forward, const Desc& x,
                                                      const Desc& dw, const Desc& dy) {
  return BackwardWeights::primitive_desc(context.engine, kDirect, x, dw, bias_desc(c), dy, c.window.strides,
                                         c.window.dilations, c.window.before, c.window.after, forward,
                                         user_scratchpad(), true);
}

struct ConvFormats {
  Format x, w, y;
};

/// Layouts of the forward primitive: that of `x` when it already lies in one that a fast implementation takes, else
/// what the library likes best.
std::optional<ConvFormats> forward_formats(const Context& context, const Conv& c, const Format& x) {
  const auto named_formats = [&](const Forward::primitive_desc& pd) -> std::optional<ConvFormats> {
    if (!named(pd.src_desc()) || !named(pd.weights_desc()) || !named(pd.dst_desc())) return std::nullopt;
    return ConvFormats{format_of(pd.src_desc()), format_of(pd.weights_desc(), c.groups), format_of(pd.dst_desc())};
  };
  if (!x.plain()) {
    const auto kept =
        forward_desc(context, c, desc_of({graph::DType::kF32, c.x}, x), any_weights(c), any_desc(c.y), false);
    if (!slow(kept) && !gemm_based(kept)) {
      if (auto formats = named_formats(kept)) return formats;
    }
  }
  const auto best = hint(context, c);
  if (slow(best)) return std::nullopt;
  return named_formats(best);
}

/// The layout in which the weights lie, whatever the input lies in: the same answer from all three nodes.
Format parameter_layout(const Context& context, const Conv& c) {
  const auto formats = forward_formats(context, c, {});
  return formats ? formats->w : Format{};
}

}  // namespace

FormatChoice conv_formats(const Context& context, const NodeView& node) {
  FormatChoice choice = plain_choice(node);
  const std::optional<Conv> c = forward_conv(node);
  if (!c) return choice;
  if (const auto formats = forward_formats(context, *c, node.input_value(0).format)) {
    choice.inputs[0] = formats->x;
    choice.inputs[1] = formats->w;
    choice.outputs[0] = formats->y;
  }
  return choice;
}

Candidates conv_candidates(const Context& context, const NodeView& node) {
  Candidates out;
  const std::optional<Conv> c = forward_conv(node);
  if (!c) return out;
  const Desc w = weights_desc(*c, node.input_value(1).format);
  auto pd = forward_desc(context, *c, desc_of(node.input_value(0)), w, desc_of(node.output_value(0)), c->relu);
  for_each_impl(pd, [&](const std::string& name) {
    graph::ImplSpec spec{.name = name, .reads = {0, 1}, .writes = {0}};
    std::vector<Slot> slots = {{DNNL_ARG_SRC, pd.src_desc(), Place::kInput, 0},
                               {DNNL_ARG_WEIGHTS, pd.weights_desc(), Place::kInput, 1},
                               {DNNL_ARG_DST, pd.dst_desc(), Place::kOutput, 0}};
    if (c->bias) {
      spec.reads.push_back(2);
      slots.push_back({DNNL_ARG_BIAS, pd.bias_desc(), Place::kInput, 2});
    }
    spec.workspace = static_cast<Bytes>(pd.scratchpad_desc().get_size());
    const auto copy = clone(pd);
    out.push_back({std::move(spec), [context, copy, slots] {
                     return primitive_kernel(context, Forward(copy), slots, copy.scratchpad_desc(), 0);
                   }});
  });
  return out;
}

FormatChoice conv_grad_input_formats(const Context& context, const NodeView& node) {
  FormatChoice choice = plain_choice(node);
  const std::optional<Conv> c = grad_input_conv(node);
  if (!c) return choice;
  const auto hint_desc = hint(context, *c);
  const auto forward = forward_formats(context, *c, {});
  if (!forward) return choice;
  const auto take = [&](const BackwardData::primitive_desc& pd) {
    if (slow(pd) || !named(pd.diff_dst_desc()) || !named(pd.weights_desc()) || !named(pd.diff_src_desc())) return false;
    choice.inputs[0] = format_of(pd.diff_dst_desc());
    choice.inputs[1] = format_of(pd.weights_desc(), c->groups);
    choice.outputs[0] = format_of(pd.diff_src_desc());
    return true;
  };
  const graph::TensorType x{graph::DType::kF32, c->x}, y{graph::DType::kF32, c->y};
  // The layouts of the forward pass first; for a first convolution (plain x) a blocked dx is as good.
  const auto same =
      backward_data_desc(context, *c, hint_desc, desc_of(x, forward->x), any_weights(*c), desc_of(y, forward->y));
  if (!slow(same) && !gemm_based(same) && take(same)) return choice;
  const auto same_dy =
      backward_data_desc(context, *c, hint_desc, any_desc(c->x), any_weights(*c), desc_of(y, forward->y));
  if (!slow(same_dy) && !gemm_based(same_dy) && take(same_dy)) return choice;
  take(backward_data_desc(context, *c, hint_desc, any_desc(c->x), any_weights(*c), any_desc(c->y)));
  return choice;
}

Candidates conv_grad_input_candidates(const Context& context, const NodeView& node) {
  Candidates out;
  const std::optional<Conv> c = grad_input_conv(node);
  if (!c) return out;
  const bool bias = node.has_input(2);
  const std::optional<Channels> channels = channels_of(node.output(0), node.output_value(0).format);
  if (bias && !channels) return out;
  const auto hint_desc = hint(context, *c);  // the library's list of implementations points into it
  auto pd = backward_data_desc(context, *c, hint_desc, desc_of(node.output_value(0)),
                               weights_desc(*c, node.input_value(1).format), desc_of(node.input_value(0)));
  for_each_impl(pd, [&](const std::string& name) {
    graph::ImplSpec spec{.name = name, .reads = {0, 1}, .writes = {0}};
    if (bias) spec.reads.push_back(2);
    spec.workspace = static_cast<Bytes>(pd.scratchpad_desc().get_size());
    const std::vector<Slot> slots = {{DNNL_ARG_DIFF_DST, pd.diff_dst_desc(), Place::kInput, 0},
                                     {DNNL_ARG_WEIGHTS, pd.weights_desc(), Place::kInput, 1},
                                     {DNNL_ARG_DIFF_SRC, pd.diff_src_desc(), Place::kOutput, 0}};
    const auto copy = clone(pd);
    out.push_back({std::move(spec), [context, copy, slots, bias, channels] {
                     KernelPtr kernel = primitive_kernel(context, BackwardData(copy), slots, copy.scratchpad_desc(), 0);
                     if (!bias) return kernel;
                     std::vector<KernelPtr> steps;
                     steps.push_back(std::move(kernel));
                     steps.push_back(loop_kernel([=, threads = context.threads](const graph::KernelArgs& args) {
                       add_to_channels(*channels, threads, in<float>(args, 2), cpu::out<float>(args, 0));
                     }));
                     return sequence_kernel(std::move(steps));
                   }});
  });
  return out;
}

FormatChoice conv_grad_weight_formats(const Context& context, const NodeView& node) {
  FormatChoice choice = plain_choice(node);
  const std::optional<Conv> c = grad_weight_conv(node);
  if (!c) return choice;
  const auto hint_desc = hint(context, *c);
  const WeightInputs at = weight_inputs(node);
  const auto dy_at = static_cast<std::size_t>(at.dy), x_at = static_cast<std::size_t>(at.x);
  const auto take = [&](const BackwardWeights::primitive_desc& pd) {
    if (slow(pd) || !named(pd.diff_dst_desc()) || !named(pd.src_desc()) || !named(pd.diff_weights_desc())) return false;
    choice.inputs[dy_at] = format_of(pd.diff_dst_desc());
    choice.inputs[x_at] = format_of(pd.src_desc());
    choice.outputs[0] = format_of(pd.diff_weights_desc(), c->groups);
    return true;
  };
  const Desc w = weights_desc(*c, parameter_layout(context, *c));
  const auto kept =
      backward_weights_desc(context, *c, hint_desc, desc_of(input_at(node, at.x)), w, desc_of(input_at(node, at.dy)));
  if (!slow(kept) && !gemm_based(kept) && take(kept)) return choice;
  const auto kept_x = backward_weights_desc(context, *c, hint_desc, desc_of(input_at(node, at.x)), w, any_desc(c->y));
  if (!slow(kept_x) && !gemm_based(kept_x) && take(kept_x)) return choice;
  if (take(backward_weights_desc(context, *c, hint_desc, any_desc(c->x), w, any_desc(c->y)))) return choice;
  take(backward_weights_desc(context, *c, hint_desc, any_desc(c->x), any_weights(*c), any_desc(c->y)));
  return choice;
}

Candidates conv_grad_weight_candidates(const Context& context, const NodeView& node) {
  Candidates out;
  const std::optional<Conv> c = grad_weight_conv(node);
  if (!c) return out;
  const WeightInputs at = weight_inputs(node);
  const bool sums = node.has_output(1) && !c->bias;  // of a transposed convolution's dy: oneDNN sums the other one
  const std::optional<Channels> channels = channels_of(node.input(0), node.input_value(0).format);
  if (sums && !channels) return out;
  const auto hint_desc = hint(context, *c);  // the library's list of implementations points into it
  auto pd = backward_weights_desc(context, *c, hint_desc, desc_of(input_at(node, at.x)),
                                  weights_desc(*c, node.output_value(0).format), desc_of(input_at(node, at.dy)));
  for_each_impl(pd, [&](const std::string& name) {
    graph::ImplSpec spec{.name = name, .reads = {0, 1}, .writes = {0}};
    std::vector<Slot> slots = {{DNNL_ARG_DIFF_DST, pd.diff_dst_desc(), Place::kInput, at.dy},
                               {DNNL_ARG_SRC, pd.src_desc(), Place::kInput, at.x},
                               {DNNL_ARG_DIFF_WEIGHTS, pd.diff_weights_desc(), Place::kOutput, 0}};
    if (c->bias) {
      spec.writes.push_back(1);
      slots.push_back({DNNL_ARG_DIFF_BIAS, pd.diff_bias_desc(), Place::kOutput, 1});
    }
    if (sums) spec.writes.push_back(1);
    spec.workspace = static_cast<Bytes>(pd.scratchpad_desc().get_size());
    const auto copy = clone(pd);
    out.push_back({std::move(spec), [context, copy, slots, sums, channels] {
                     KernelPtr kernel =
                         primitive_kernel(context, BackwardWeights(copy), slots, copy.scratchpad_desc(), 0);
                     if (!sums) return kernel;
                     std::vector<KernelPtr> steps;
                     steps.push_back(std::move(kernel));
                     steps.push_back(loop_kernel([=, threads = context.threads](const graph::KernelArgs& args) {
                       sum_channels(*channels, threads, in<float>(args, 0), cpu::out<float>(args, 1));
                     }));
                     return sequence_kernel(std::move(steps));
                   }});
  });
  return out;
}

}  // namespace neaptide::backends::cpu
