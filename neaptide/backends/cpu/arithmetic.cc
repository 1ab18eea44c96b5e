#include "neaptide/backends/cpu/arithmetic.hpp"

#include <optional>
#include <utility>

#include "neaptide/backends/cpu/loops.hpp"

namespace neaptide::backends::cpu {
namespace {

using graph::Format;
using graph::FormatChoice;
using graph::ImplSpec;
using graph::KernelArgs;
using graph::NodeView;
using graph::Shape;

bool relu(const NodeView& node) { return node.string_or("activation", "") == "relu"; }

bool same_shapes(const NodeView& node) {
  if (!all_f32(node)) return false;
  for (std::size_t i = 0; i < node.n_inputs(); ++i) {
    if (!node.has_input(i) || node.input(i).shape != node.output(0).shape) return false;
  }
  return true;
}

bool same_formats(const NodeView& node) {
  for (std::size_t i = 0; i < node.n_inputs(); ++i) {
    if (node.input_value(i).format != node.output_value(0).format) return false;
  }
  return true;
}

/// One layout for everything: the first that is not plain.
FormatChoice common_format(const NodeView& node) {
  FormatChoice choice = plain_choice(node);
  Format format;
  for (std::size_t i = 0; i < node.n_inputs() && format.plain(); ++i) format = node.input_value(i).format;
  for (Format& f : choice.inputs) f = format;
  choice.outputs[0] = format;
  return choice;
}

NEAPTIDE_CLONES void add_range(const float* a, const float* b, float* y, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) y[i] = a[i] + b[i];
}

NEAPTIDE_CLONES void add_relu_range(const float* a, const float* b, float* y, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) {
    const float s = a[i] + b[i];
    y[i] = s <= 0.F ? 0.F : s;
  }
}

void add_loop(const KernelArgs& args, int threads, std::int64_t n, bool with_relu) {
  const auto *a = in<float>(args, 0), *b = in<float>(args, 1);
  auto* y = out<float>(args, 0);
  parallel_ranges(threads, n, 512, [=](std::int64_t begin, std::int64_t end) {
    with_relu ? add_relu_range(a, b, y, begin, end) : add_range(a, b, y, begin, end);
  });
}

/// Inputs that broadcast to the output, seen with its rank.
Shape padded(const Shape& shape, std::size_t rank) {
  Shape out(rank - shape.size(), 1);
  out.insert(out.end(), shape.begin(), shape.end());
  return out;
}

std::optional<dnnl::algorithm> algorithm_of(const std::string& op) {
  if (op == "Add") return dnnl::algorithm::binary_add;
  if (op == "Sub") return dnnl::algorithm::binary_sub;
  if (op == "Mul") return dnnl::algorithm::binary_mul;
  if (op == "Div") return dnnl::algorithm::binary_div;
  return std::nullopt;
}

/// What oneDNN computes: the full operand, the (perhaps broadcast) other one, and which inputs they are.
struct Binary {
  int full = 0, other = 1;
  Shape shape, small;
  dnnl::algorithm algorithm = dnnl::algorithm::binary_add;
};

std::optional<Binary> binary_of(const NodeView& node) {
  const auto algorithm = algorithm_of(node.node().op);
  if (!all_f32(node) || !algorithm || node.output(0).shape.empty() || node.output(0).elements() == 0)
    return std::nullopt;
  Binary b{.shape = node.output(0).shape, .small = {}, .algorithm = *algorithm};
  const bool commutes = *algorithm == dnnl::algorithm::binary_add || *algorithm == dnnl::algorithm::binary_mul;
  if (node.input(0).shape != b.shape) {
    if (!commutes || node.input(1).shape != b.shape) return std::nullopt;
    std::swap(b.full, b.other);
  }
  b.small = padded(node.input(static_cast<std::size_t>(b.other)).shape, b.shape.size());
  return b;
}

dnnl::binary::primitive_desc binary_desc(const Context& context, const NodeView& node, const Binary& b,
                                         const Format& full, const Format& other) {
  dnnl::primitive_attr attr = user_scratchpad();
  if (relu(node)) {
    dnnl::post_ops post;
    post.append_eltwise(dnnl::algorithm::eltwise_relu, 0.F, 0.F);
    attr.set_post_ops(post);
  }
  const graph::TensorType big{graph::DType::kF32, b.shape}, small{graph::DType::kF32, b.small};
  const Desc y = desc_of(big, full);
  return dnnl::binary::primitive_desc(context.engine, b.algorithm, y, desc_of(small, other), y, attr, true);
}

/// The layout of the small operand that goes with the large one's; none when oneDNN has no fast kernel for it.
std::optional<Format> other_format(const Context& context, const NodeView& node, const Binary& b, const Format& full) {
  const bool named_alike = node.input(static_cast<std::size_t>(b.other)).shape.size() == b.shape.size();
  if (!full.plain() && !named_alike) return std::nullopt;
  const auto bytes = [&] {
    return Format{full.tag, static_cast<Bytes>(desc_of({graph::DType::kF32, b.small}, full).get_size())};
  };
  const Format other = full.plain() ? Format{} : bytes();
  if (slow(binary_desc(context, node, b, full, other))) return std::nullopt;
  return other;
}

}  // namespace

FormatChoice add_formats(const Context& context, const NodeView& node) {
  return same_shapes(node) ? common_format(node) : binary_formats(context, node);
}

Candidates add_candidates(const Context& context, const NodeView& node) {
  if (!same_shapes(node)) return binary_candidates(context, node);
  Candidates list;
  if (!same_formats(node)) return list;
  const std::int64_t n = stored_elements(node.output(0), node.output_value(0).format);
  const auto make = [n, threads = context.threads, with_relu = relu(node)] {
    return loop_kernel([=](const KernelArgs& args) { add_loop(args, threads, n, with_relu); });
  };
  list.push_back({{.name = "plain", .reads = {0, 1}, .writes = {0}}, make});
  list.push_back({{.name = "in-place", .reads = {0, 1}, .writes = {0}, .in_place = {{0, 0}}}, make});
  list.push_back({{.name = "in-place on 1", .reads = {0, 1}, .writes = {0}, .in_place = {{1, 0}}}, make});
  return list;
}

FormatChoice binary_formats(const Context& context, const NodeView& node) {
  FormatChoice choice = plain_choice(node);
  const std::optional<Binary> b = binary_of(node);
  if (!b) return choice;
  const Format full = node.input_value(static_cast<std::size_t>(b->full)).format;
  const std::optional<Format> other = full.plain() ? std::nullopt : other_format(context, node, *b, full);
  if (!other) return choice;
  choice.inputs[static_cast<std::size_t>(b->full)] = choice.outputs[0] = full;
  choice.inputs[static_cast<std::size_t>(b->other)] = *other;
  return choice;
}

Candidates binary_candidates(const Context& context, const NodeView& node) {
  Candidates list;
  const std::optional<Binary> b = binary_of(node);
  if (!b) return list;
  const Format full = node.output_value(0).format;
  const Format other = node.input_value(static_cast<std::size_t>(b->other)).format;
  const auto pd = binary_desc(context, node, *b, full, other);
  if (slow(pd)) return list;
  ImplSpec spec{.name = pd.impl_info_str(), .reads = {0, 1}, .writes = {0}};
  spec.workspace = static_cast<Bytes>(pd.scratchpad_desc().get_size());
  const std::vector<Slot> slots = {{DNNL_ARG_SRC_0, pd.src0_desc(), Place::kInput, b->full},
                                   {DNNL_ARG_SRC_1, pd.src1_desc(), Place::kInput, b->other},
                                   {DNNL_ARG_DST, pd.dst_desc(), Place::kOutput, 0}};
  const auto make = [context, pd, slots] {
    return primitive_kernel(context, dnnl::binary(pd), slots, pd.scratchpad_desc(), 0);
  };
  list.push_back({spec, make});
  spec.name += " in-place";
  spec.in_place = {{b->full, 0}};
  list.push_back({std::move(spec), make});
  return list;
}

FormatChoice sum_formats(const Context& /*context*/, const NodeView& node) {
  return same_shapes(node) ? common_format(node) : plain_choice(node);
}

Candidates sum_candidates(const Context& context, const NodeView& node) {
  Candidates list;
  if (!same_shapes(node) || !same_formats(node)) return list;
  const std::int64_t n = stored_elements(node.output(0), node.output_value(0).format);
  ImplSpec spec{.name = "plain", .reads = {}, .writes = {0}};
  for (int i = 0; i < static_cast<int>(node.n_inputs()); ++i) spec.reads.push_back(i);
  const int n_inputs = static_cast<int>(node.n_inputs()), threads = context.threads;
  const auto make = [=] {
    return loop_kernel([=](const KernelArgs& args) {
      auto* y = out<float>(args, 0);
      parallel_ranges(threads, n, 512, [&](std::int64_t begin, std::int64_t end) {
        if (n_inputs == 1) {
          std::copy(in<float>(args, 0) + begin, in<float>(args, 0) + end, y + begin);
          return;
        }
        constexpr std::int64_t block = 4096;  // partial sums stay in the first-level cache
        for (std::int64_t i = begin; i < end; i += block) {
          const std::int64_t stop = std::min(end, i + block);
          add_range(in<float>(args, 0), in<float>(args, 1), y, i, stop);
          for (int k = 2; k < n_inputs; ++k) add_range(y, in<float>(args, k), y, i, stop);
        }
      });
    });
  };
  list.push_back({std::move(spec), make});
  return list;
}

}  // namespace neaptide::backends::cpu
