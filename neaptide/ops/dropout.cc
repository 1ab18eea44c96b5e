#include "neaptide/ops/dropout.hpp"

#include "neaptide/graph/builder.hpp"
#include "neaptide/ops/bits.hpp"
#include "neaptide/ops/elementwise.hpp"

namespace neaptide::ops {
namespace {

/// What a kernel needs to know.
struct Settings {
  std::int64_t elements = 0, stream = 0;
  double ratio = 0.5;

  explicit Settings(const NodeView& node)
      : elements(node.input(0).elements()), stream(node.int_or("stream", 0)), ratio(node.float_or("ratio", 0.5)) {
    if (!(ratio >= 0 && ratio < 1)) node.fail(fmt::format("ratio {} is outside [0, 1)", ratio));
    if (stream < 0 || stream > UINT32_MAX) node.fail(fmt::format("stream {} is not a 32-bit number", stream));
    if (elements > std::int64_t{1} << 34) node.fail(fmt::format("{} elements are more than 2^34", elements));
  }
  DropoutDraws draws(const std::int64_t* rng) const { return {rng, stream, ratio}; }
  template <class T>
  T scale() const {
    return static_cast<T>(1 / (1 - ratio));
  }
};

const TensorType kRng{DType::kI64, {2}};

// ---- Dropout(x) -> y: the identity ---------------------------------------------------------------------------------

void inference_gradient(GradientContext& context) { context.set(0, context.gradient()); }

Work no_work(const NodeView&) { return {}; }

// ---- DropoutTrain(x, rng) -> y, [1] mask ---------------------------------------------------------------------------

std::vector<TensorType> train_infer(const NodeView& node) {
  require_float(node, 0);
  require_type(node, 1, kRng);
  const Settings checked(node);
  return {node.input(0), bits_type(node.input(0).shape)};
}

void train_gradient(GradientContext& context) {
  const graph::Attrs attrs = context.view().node().attrs;
  const ValueId mask = context.auxiliary(1, "mask");
  context.set(0, context.emit("DropoutTrainGrad", {context.gradient(), context.input(1), mask}, attrs, "grad")[0]);
}

/// out[i] = in[i] * scale where element i survives, else 0; `rng` is the input at that position.
template <class T>
KernelFn from_seed(const Settings& s, std::size_t rng) {
  return [s, rng](const KernelArgs& args) {
    DropoutDraws draws = s.draws(in<std::int64_t>(args, rng));
    const T* x = in<T>(args, 0);
    T* y = out<T>(args, 0);
    for (std::int64_t i = 0; i < s.elements; ++i) y[i] = draws.keeps(i) ? x[i] * s.scale<T>() : T{0};
  };
}

template <class T>
KernelFn with_mask(const Settings& s) {
  return [s](const KernelArgs& args) {
    DropoutDraws draws = s.draws(in<std::int64_t>(args, 1));
    const T* x = in<T>(args, 0);
    T* y = out<T>(args, 0);
    fill_bits(out<std::uint8_t>(args, 1), s.elements, [&](std::int64_t i) {
      const bool keep = draws.keeps(i);
      y[i] = keep ? x[i] * s.scale<T>() : T{0};
      return keep;
    });
  };
}

std::vector<Implementation> train_implementations(const NodeView& node) {
  const Settings s(node);
  return with_float(node, node.input(0).dtype, [&](auto zero) {
    using T = decltype(zero);
    std::vector<Implementation> list;
    add_with_in_place(list, {{.name = "plain", .reads = {0, 1}, .writes = {0}}, from_seed<T>(s, 1)}, 0, 0);
    if (node.has_output(1))
      add_with_in_place(list, {{.name = "mask", .reads = {0, 1}, .writes = {0, 1}}, with_mask<T>(s)}, 0, 0);
    return list;
  });
}

Work train_work(const NodeView& node) {
  return {static_cast<double>(node.input(0).elements()), traffic(node, {0, 1}, {0})};
}

// ---- DropoutTrainGrad(dy, rng?, mask?) -> dx -----------------------------------------------------------------------

std::vector<TensorType> grad_infer(const NodeView& node) {
  require_float(node, 0);
  const Settings checked(node);
  if (node.has_input(1)) require_type(node, 1, kRng);
  if (node.has_input(2)) require_type(node, 2, bits_type(node.input(0).shape));
  if (!node.has_input(1) && !node.has_input(2)) node.fail("needs rng or mask");
  return {node.input(0)};
}

template <class T>
KernelFn from_mask(const Settings& s) {
  return [s](const KernelArgs& args) {
    const T* dy = in<T>(args, 0);
    const auto* mask = in<std::uint8_t>(args, 2);
    T* dx = out<T>(args, 0);
    for (std::int64_t i = 0; i < s.elements; ++i) dx[i] = bit(mask, i) ? dy[i] * s.scale<T>() : T{0};
  };
}

std::vector<Implementation> grad_implementations(const NodeView& node) {
  const Settings s(node);
  return with_float(node, node.input(0).dtype, [&](auto zero) {
    using T = decltype(zero);
    std::vector<Implementation> list;
    if (node.has_input(1))
      add_with_in_place(list, {{.name = "from-seed", .reads = {0, 1}, .writes = {0}}, from_seed<T>(s, 1)}, 0, 0);
    if (node.has_input(2))
      add_with_in_place(list, {{.name = "from-mask", .reads = {0, 2}, .writes = {0}}, from_mask<T>(s)}, 0, 0);
    return list;
  });
}

Work grad_work(const NodeView& node) {
  return {static_cast<double>(node.input(0).elements()), traffic(node, {0, node.has_input(1) ? 1 : 2}, {0})};
}

}  // namespace

std::vector<OpDef> dropout_ops() {
  return {
      OpDef{.name = "Dropout",
            .n_inputs = {1, 1},
            .n_outputs = {1, 1},
            .renames = {{0, 0}},
            .infer = infer_same,
            .gradient = inference_gradient,
            .work = no_work},
      OpDef{.name = "DropoutTrain",
            .n_inputs = {2, 2},
            .n_outputs = {1, 2},
            .infer = train_infer,
            .gradient = train_gradient,
            .work = train_work,
            .implementations = train_implementations},
      OpDef{.name = "DropoutTrainGrad",
            .n_inputs = {2, 3},
            .n_outputs = {1, 1},
            .infer = grad_infer,
            .work = grad_work,
            .implementations = grad_implementations},
  };
}

}  // namespace neaptide::ops
