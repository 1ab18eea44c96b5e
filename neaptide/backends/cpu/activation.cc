#include "neaptide/backends/cpu/activation.hpp"

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

NEAPTIDE_CLONES void relu_range(const float* x, float* y, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) y[i] = x[i] <= 0.F ? 0.F : x[i];
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
  FormatChoice choice = plain_choice(node);
  if (!f32(node)) return choice;
  // The activation decides: it lies where the forward pass left it, and its sign bits cannot be reordered.
  Format format = node.input_value(0).format;
  if (node.has_input(1)) format = node.input_value(1).format;
  if (node.has_input(2)) format = node.input_value(2).format;
  choice.inputs[0] = choice.outputs[0] = format;
  for (std::size_t i = 1; i < 3; ++i) {
    if (node.has_input(i)) choice.inputs[i] = format;
  }
  if (node.has_input(3)) choice.inputs[3] = bits_format(node.input(0), format);
  return choice;
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

}  // namespace neaptide::backends::cpu
