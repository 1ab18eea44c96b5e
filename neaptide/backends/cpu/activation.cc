#include "neaptide/backends/cpu/activation.hpp"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <optional>
#include <utility>

#include "neaptide/backends/cpu/bits.hpp"
#include "neaptide/backends/cpu/loops.hpp"

namespace neaptide::backends::cpu {
namespace {

using graph::Format;
using graph::FormatChoice;
using graph::ImplSpec;
using graph::KernelArgs;
using graph::NodeView;

bool f32(const NodeView& node) {
  return node.input(0).dtype == graph::DType::kF32 && node.output(0).dtype == graph::DType::kF32;
}

std::int64_t stored(const graph::Value& value) { return stored_elements(value.type, value.format); }

/// The candidate and its twin in place of input 0.
void add_with_in_place(Candidates& list, ImplSpec spec, graph::KernelFn fn) {
  const auto make = [fn = std::move(fn)] { return loop_kernel(fn); };
  list.push_back({spec, make});
  spec.name = spec.name == "plain" ? "in-place" : spec.name + " in-place";
  spec.in_place = {{0, 0}};
  list.push_back({std::move(spec), make});
}

/// The limits of a Clip; values below `low` become `below` (the smaller limit, when they are in the wrong order).
struct Bounds {
  float low, high, below;
};

std::optional<Bounds> bounds_of(const NodeView& node, bool from_inputs) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  double low = node.float_or("min", -infinity), high = node.float_or("max", infinity);
  const auto replace = [&](std::size_t i, double& value) {
    if (!from_inputs || !node.has_input(i)) return true;
    const std::optional<graph::Tensor> t = node.constant_input(i);
    if (!t || t->type.dtype != graph::DType::kF32 || t->type.elements() != 1) return false;
    value = static_cast<double>(t->as<float>()[0]);
    return true;
  };
  if (!replace(1, low) || !replace(2, high)) return std::nullopt;
  const auto l = static_cast<float>(low), h = static_cast<float>(high);
  return Bounds{.low = l, .high = h, .below = std::min(l, h)};
}

bool padded(const graph::Value& value) { return stored(value) != value.type.elements(); }

/// Formats of a gradient that may read activations at some positions and bits at another. The activation decides: it
/// lies where the forward pass left it, and its bits cannot be reordered.
FormatChoice grad_formats(const NodeView& node, std::initializer_list<std::size_t> activations, std::size_t bits) {
  FormatChoice choice = plain_choice(node);
  if (!f32(node)) return choice;
  Format format = node.input_value(0).format;
  for (const std::size_t i : activations) {
    if (node.has_input(i)) format = node.input_value(i).format;
  }
  choice.inputs[0] = choice.outputs[0] = format;
  for (const std::size_t i : activations) {
    if (node.has_input(i)) choice.inputs[i] = format;
  }
  if (node.has_input(bits)) choice.inputs[bits] = bits_format(node.input(0), format);
  return choice;
}

NEAPTIDE_CLONES void relu_range(const float* x, float* y, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) y[i] = x[i] <= 0.F ? 0.F : x[i];
}

NEAPTIDE_CLONES void clip_range(Bounds b, const float* x, float* y, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) y[i] = x[i] < b.below ? b.below : x[i] > b.high ? b.high : x[i];
}

/// 1 where the gradient of a clip passes, 0 elsewhere.
NEAPTIDE_CLONES void inside_range(Bounds b, const float* x, float* inside, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) inside[i - begin] = x[i] > b.low && x[i] < b.high ? 1.F : 0.F;
}

NEAPTIDE_CLONES void clip_gate_range(Bounds b, const float* dy, const float* x, float* dx, std::int64_t begin,
                                     std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) dx[i] = x[i] > b.low && x[i] < b.high ? dy[i] : 0.F;
}

NEAPTIDE_CLONES void sigmoid_grad_range(const float* dy, const float* y, float* dx, std::int64_t begin,
                                        std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) dx[i] = dy[i] * y[i] * (1.F - y[i]);
}

NEAPTIDE_CLONES void tanh_grad_range(const float* dy, const float* y, float* dx, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) dx[i] = dy[i] * (1.F - y[i] * y[i]);
}

NEAPTIDE_CLONES void gate_range(const float* dy, const float* x, float* dx, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) dx[i] = x[i] <= 0.F ? 0.F : dy[i];
}

}  // namespace

FormatChoice relu_formats(const Context& /*context*/, const NodeView& node) {
  FormatChoice choice = plain_choice(node);
  if (!f32(node)) return choice;
  const Format format = node.input_value(0).format;
  choice.inputs[0] = choice.outputs[0] = format;
  if (node.has_output(1)) choice.outputs[1] = bits_format(node.input(0), format);
  return choice;
}

Candidates relu_candidates(const Context& context, const NodeView& node) {
  Candidates out;
  if (!f32(node) || node.input_value(0).format != node.output_value(0).format) return out;
  const std::int64_t n = stored(node.input_value(0));
  const int threads = context.threads;
  add_with_in_place(out, {.name = "plain", .reads = {0}, .writes = {0}}, [n, threads](const KernelArgs& args) {
    const auto* x = in<float>(args, 0);
    auto* y = cpu::out<float>(args, 0);
    parallel_ranges(threads, n, 512, [=](std::int64_t begin, std::int64_t end) { relu_range(x, y, begin, end); });
  });
  if (!node.has_output(1)) return out;
  add_with_in_place(out, {.name = "sign", .reads = {0}, .writes = {0, 1}}, [n, threads](const KernelArgs& args) {
    relu_with_bits(threads, in<float>(args, 0), cpu::out<float>(args, 0), cpu::out<std::uint8_t>(args, 1), n);
  });
  return out;
}

FormatChoice relu_grad_formats(const Context& /*context*/, const NodeView& node) {
  return grad_formats(node, {1, 2}, 3);
}

Candidates relu_grad_candidates(const Context& context, const NodeView& node) {
  Candidates out;
  if (!f32(node)) return out;
  const std::int64_t n = stored(node.input_value(0));
  const int threads = context.threads;
  for (const auto& [at, name] : {std::pair(2, "from-output"), std::pair(1, "from-input")}) {
    if (!node.has_input(static_cast<std::size_t>(at))) continue;
    add_with_in_place(
        out, {.name = name, .reads = {0, at}, .writes = {0}}, [n, threads, from = at](const KernelArgs& args) {
          const auto *dy = in<float>(args, 0), *x = in<float>(args, from);
          auto* dx = cpu::out<float>(args, 0);
          parallel_ranges(threads, n, 512,
                          [=](std::int64_t begin, std::int64_t end) { gate_range(dy, x, dx, begin, end); });
        });
  }
  if (node.has_input(3)) {
    add_with_in_place(out, {.name = "from-sign", .reads = {0, 3}, .writes = {0}}, [n, threads](const KernelArgs& args) {
      select_by_bits(threads, in<float>(args, 0), in<std::uint8_t>(args, 3), 1.F, cpu::out<float>(args, 0), n);
    });
  }
  return out;
}

FormatChoice clip_formats(const Context& context, const NodeView& node) {
  const std::optional<Bounds> b = f32(node) ? bounds_of(node, true) : std::nullopt;
  FormatChoice choice = plain_choice(node);
  if (!b || (padded(node.input_value(0)) && !(b->low <= 0.F && b->high >= 0.F))) return choice;
  const FormatChoice like_relu = relu_formats(context, node);
  choice.inputs[0] = like_relu.inputs[0];
  choice.outputs = like_relu.outputs;
  return choice;
}

Candidates clip_candidates(const Context& context, const NodeView& node) {
  Candidates out;
  const std::optional<Bounds> b = f32(node) ? bounds_of(node, true) : std::nullopt;
  if (!b || node.input_value(0).format != node.output_value(0).format) return out;
  const std::int64_t n = stored(node.input_value(0));
  const int threads = context.threads;
  add_with_in_place(out, {.name = "plain", .reads = {0}, .writes = {0}}, [n, threads, b = *b](const KernelArgs& args) {
    const auto* x = in<float>(args, 0);
    auto* y = cpu::out<float>(args, 0);
    parallel_ranges(threads, n, 512, [=](std::int64_t begin, std::int64_t end) { clip_range(b, x, y, begin, end); });
  });
  if (!node.has_output(1)) return out;
  add_with_in_place(out, {.name = "mask", .reads = {0}, .writes = {0, 1}},
                    [n, threads, b = *b](const KernelArgs& args) {
                      const auto* x = in<float>(args, 0);
                      auto* y = cpu::out<float>(args, 0);
                      auto* mask = cpu::out<std::uint8_t>(args, 1);
                      constexpr std::int64_t block = 512;  // what passes is found while x is in the first-level cache
                      parallel_ranges(threads, n, block, [=](std::int64_t begin, std::int64_t end) {
                        float inside[block];
                        for (std::int64_t i = begin; i < end; i += block) {
                          const std::int64_t stop = std::min(end, i + block);
                          inside_range(b, x, inside, i, stop);
                          sign_bits(1, inside, mask + i / 8, stop - i);
                          clip_range(b, x, y, i, stop);
                        }
                      });
                    });
  return out;
}

FormatChoice clip_grad_formats(const Context& /*context*/, const NodeView& node) {
  return grad_formats(node, {1, 3}, 2);
}

Candidates clip_grad_candidates(const Context& context, const NodeView& node) {
  Candidates out;
  const std::optional<Bounds> b = f32(node) ? bounds_of(node, false) : std::nullopt;
  if (!b) return out;
  const std::int64_t n = stored(node.input_value(0));
  const int threads = context.threads;
  for (const auto& [at, name] : {std::pair(3, "from-output"), std::pair(1, "from-input")}) {
    if (!node.has_input(static_cast<std::size_t>(at))) continue;
    add_with_in_place(
        out, {.name = name, .reads = {0, at}, .writes = {0}}, [n, threads, from = at, b = *b](const KernelArgs& args) {
          const auto *dy = in<float>(args, 0), *x = in<float>(args, from);
          auto* dx = cpu::out<float>(args, 0);
          parallel_ranges(threads, n, 512,
                          [=](std::int64_t begin, std::int64_t end) { clip_gate_range(b, dy, x, dx, begin, end); });
        });
  }
  if (node.has_input(2)) {
    add_with_in_place(out, {.name = "from-mask", .reads = {0, 2}, .writes = {0}}, [n, threads](const KernelArgs& args) {
      select_by_bits(threads, in<float>(args, 0), in<std::uint8_t>(args, 2), 1.F, cpu::out<float>(args, 0), n);
    });
  }
  return out;
}

/// The sigmoid of padding is not zero.
FormatChoice smooth_formats(const Context& context, const NodeView& node) {
  const bool plain = node.node().op == "Sigmoid" && padded(node.input_value(0));
  return plain ? plain_choice(node) : relu_formats(context, node);
}

Candidates smooth_candidates(const Context& context, const NodeView& node) {
  Candidates out;
  if (!f32(node) || node.input(0).elements() == 0) return out;
  const auto algorithm = node.node().op == "Tanh" ? dnnl::algorithm::eltwise_tanh : dnnl::algorithm::eltwise_logistic;
  const Desc x = desc_of(node.input_value(0));
  using Eltwise = dnnl::eltwise_forward;
  const Eltwise::primitive_desc pd(context.engine, dnnl::prop_kind::forward_training, algorithm, x,
                                   desc_of(node.output_value(0)), 0.F, 0.F, user_scratchpad(), true);
  if (slow(pd)) return out;
  ImplSpec spec{.name = pd.impl_info_str(), .reads = {0}, .writes = {0}};
  spec.workspace = static_cast<Bytes>(pd.scratchpad_desc().get_size());
  const std::vector<Slot> slots = {{DNNL_ARG_SRC, pd.src_desc(), Place::kInput, 0},
                                   {DNNL_ARG_DST, pd.dst_desc(), Place::kOutput, 0}};
  const auto make = [context, pd, slots] {
    return primitive_kernel(context, Eltwise(pd), slots, pd.scratchpad_desc(), 0);
  };
  out.push_back({spec, make});
  spec.name += " in-place";
  spec.in_place = {{0, 0}};
  out.push_back({std::move(spec), make});
  return out;
}

FormatChoice smooth_grad_formats(const Context& /*context*/, const NodeView& node) {
  return grad_formats(node, {1}, 2);
}

Candidates smooth_grad_candidates(const Context& context, const NodeView& node) {
  Candidates out;
  if (!f32(node)) return out;
  const auto range = node.node().op == "TanhGrad" ? tanh_grad_range : sigmoid_grad_range;
  add_with_in_place(out, {.name = "plain", .reads = {0, 1}, .writes = {0}},
                    [n = stored(node.input_value(0)), threads = context.threads, range](const KernelArgs& args) {
                      const auto *dy = in<float>(args, 0), *y = in<float>(args, 1);
                      auto* dx = cpu::out<float>(args, 0);
                      parallel_ranges(threads, n, 512,
                                      [=](std::int64_t begin, std::int64_t end) { range(dy, y, dx, begin, end); });
                    });
  return out;
}

}  // namespace neaptide::backends::cpu
