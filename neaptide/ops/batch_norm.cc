#include "neaptide/ops/batch_norm.hpp"

#include <array>
#include <cmath>

#include "neaptide/graph/builder.hpp"
#include "neaptide/ops/bits.hpp"
#include "neaptide/ops/elementwise.hpp"

namespace neaptide::ops {
namespace {

/// x as {batch, channels, elements}.
struct Channels {
  std::int64_t batch = 1, channels = 1, elements = 1;
  double epsilon = 1e-5;

  Channels(const NodeView& node, const Shape& x) : epsilon(node.float_or("epsilon", 1e-5)) {
    if (x.size() < 2) node.fail(fmt::format("the input {} has no channels; axis 1 holds them", graph::to_string(x)));
    batch = x[0];
    channels = x[1];
    for (std::size_t i = 2; i < x.size(); ++i) elements *= x[i];
    if (batch * elements == 0) node.fail(fmt::format("the input {} is empty", graph::to_string(x)));
  }
  std::int64_t count() const { return batch * elements; }
  double inverse_deviation(double var) const { return 1.0 / std::sqrt(var + epsilon); }
};

/// f(offset) for every element of a channel, in order.
template <class F>
void for_channel(const Channels& s, std::int64_t c, F&& f) {
  for (std::int64_t n = 0; n < s.batch; ++n) {
    const std::int64_t row = (n * s.channels + c) * s.elements;
    for (std::int64_t i = row; i < row + s.elements; ++i) f(i);
  }
}

bool has_relu(const NodeView& node) {
  const std::string activation = node.string_or("activation", "");
  if (!activation.empty() && activation != "relu")
    node.fail(fmt::format("activation '{}' is unknown; 'relu' or none is needed", activation));
  return activation == "relu";
}

void require_channel_vectors(const NodeView& node, std::size_t first, std::size_t last, const TensorType& x) {
  for (std::size_t i = first; i <= last; ++i) require_type(node, i, {x.dtype, {x.shape[1]}});
}

/// One normalised and scaled value; the same expression wherever it is computed, so that the bits are the same.
struct Affine {
  double mean, inverse, scale, shift;
  template <class T>
  T operator()(T x) const {
    return static_cast<T>((static_cast<double>(x) - mean) * inverse * scale + shift);
  }
};

template <class T>
Affine affine_of(const Channels& s, std::int64_t c, const T* scale, const T* shift, const T* mean, const T* var) {
  return {static_cast<double>(mean[c]), s.inverse_deviation(static_cast<double>(var[c])), static_cast<double>(scale[c]),
          static_cast<double>(shift[c])};
}

// ---- BatchNormalization(x, scale, b, mean, var) -> y ---------------------------------------------------------------

std::vector<TensorType> inference_infer(const NodeView& node) {
  require_float(node, 0);
  const TensorType& x = node.input(0);
  const Channels s(node, x.shape);
  require_channel_vectors(node, 1, 4, x);
  if (node.int_or("training_mode", 0) != 0) node.fail("training_mode is 1; BatchNormTrain computes that");
  if (node.int_or("spatial", 1) != 1) node.fail("spatial is 0; only statistics per channel are supported");
  return {x};
}

template <class T>
KernelFn inference_kernel(const NodeView& node) {
  return [s = Channels(node, node.input(0).shape)](const KernelArgs& args) {
    const T* x = in<T>(args, 0);
    T* y = out<T>(args, 0);
    for (std::int64_t c = 0; c < s.channels; ++c) {
      const Affine f = affine_of(s, c, in<T>(args, 1), in<T>(args, 2), in<T>(args, 3), in<T>(args, 4));
      for_channel(s, c, [&](std::int64_t i) { y[i] = f(x[i]); });
    }
  };
}

std::vector<Implementation> inference_implementations(const NodeView& node) {
  return with_float(node, node.input(0).dtype, [&](auto zero) {
    std::vector<Implementation> list;
    add_with_in_place(
        list, {{.name = "plain", .reads = {0, 1, 2, 3, 4}, .writes = {0}}, inference_kernel<decltype(zero)>(node)}, 0,
        0);
    return list;
  });
}

Work inference_work(const NodeView& node) { return work_of(node, 2.0 * static_cast<double>(node.input(0).elements())); }

// ---- BatchNormTrain(x, scale, b) -> y, [1] mean, [2] var, [3] mask -------------------------------------------------

std::vector<TensorType> train_infer(const NodeView& node) {
  require_float(node, 0);
  const TensorType& x = node.input(0);
  const Channels s(node, x.shape);
  require_channel_vectors(node, 1, 2, x);
  const TensorType per_channel{x.dtype, {s.channels}};
  std::vector<TensorType> types = {x, per_channel, per_channel};
  if (has_relu(node)) types.push_back(bits_type(x.shape));
  return types;
}

void train_gradient(GradientContext& context) {
  const NodeView node = context.view();
  const bool relu = has_relu(node);
  const graph::Attrs attrs = node.node().attrs;
  if (context.gradient(1).valid() || context.gradient(2).valid())
    node.fail("no gradient flows through the outputs mean and var");
  const ValueId mean = context.auxiliary(1, "mean"), var = context.auxiliary(2, "var");
  std::vector<ValueId> inputs = {context.gradient(), context.input(0), context.input(1), mean, var};
  if (relu) {
    const ValueId mask = context.auxiliary(3, "mask");
    inputs.insert(inputs.end(), {context.input(2), context.output(0), mask});
  }
  const std::vector<bool> wanted = {context.wants(0), context.wants(1), context.wants(2)};
  const std::vector<ValueId> grads = context.emit("BatchNormTrainGrad", inputs, attrs, "grad", wanted);
  for (std::size_t i = 0; i < 3; ++i) {
    if (wanted[i]) context.set(i, grads[i]);
  }
}

struct Statistics {
  double mean = 0, var = 0;
};

template <class T>
Statistics statistics_of(const Channels& s, std::int64_t c, const T* x) {
  const auto count = static_cast<double>(s.count());
  double sum = 0, squares = 0;
  for_channel(s, c, [&](std::int64_t i) { sum += static_cast<double>(x[i]); });
  const double mean = sum / count;
  for_channel(s, c, [&](std::int64_t i) {
    const double d = static_cast<double>(x[i]) - mean;
    squares += d * d;
  });
  return {mean, squares / count};
}

/// Statistics are rounded to T before they are used, so that whoever reads mean and var can compute y again to the bit.
template <class T>
void train_forward(const Channels& s, bool relu, const KernelArgs& args) {
  const T* x = in<T>(args, 0);
  T* y = out<T>(args, 0);
  for (std::int64_t c = 0; c < s.channels; ++c) {
    const Statistics statistics = statistics_of(s, c, x);
    const auto mean = static_cast<T>(statistics.mean), var = static_cast<T>(statistics.var);
    if (T* means = out<T>(args, 1)) means[c] = mean;
    if (T* vars = out<T>(args, 2)) vars[c] = var;
    const Affine f = affine_of<T>(s, 0, in<T>(args, 1) + c, in<T>(args, 2) + c, &mean, &var);
    if (relu)
      for_channel(s, c, [&](std::int64_t i) { y[i] = f(x[i]) <= T{0} ? T{0} : f(x[i]); });
    else
      for_channel(s, c, [&](std::int64_t i) { y[i] = f(x[i]); });
  }
}

template <class T>
std::vector<Implementation> train_implementations_of(const NodeView& node) {
  const Channels s(node, node.input(0).shape);
  const bool relu = has_relu(node);
  // Outputs that the node lacks are null for the kernel.
  const auto at = [&](std::size_t k) { return node.has_output(k); };
  const KernelFn forward = [s, relu, mean = at(1), var = at(2)](const KernelArgs& args) {
    const std::array<void*, 3> outputs = {args.outputs[0], mean ? args.outputs[1] : nullptr,
                                          var ? args.outputs[2] : nullptr};
    train_forward<T>(s, relu, {.inputs = args.inputs, .outputs = outputs});
  };
  std::vector<int> writes = present_outputs(node);
  if (at(3)) writes.pop_back();
  std::vector<Implementation> list = {{{.name = "plain", .reads = {0, 1, 2}, .writes = writes}, forward}};
  if (!at(3)) return list;
  list.push_back({{.name = "mask", .reads = {0, 1, 2}, .writes = present_outputs(node)},
                  [forward, n = node.input(0).elements()](const KernelArgs& args) {
                    forward(args);
                    const T* y = out<T>(args, 0);
                    fill_bits(out<std::uint8_t>(args, 3), n, [&](std::int64_t i) { return !(y[i] <= T{0}); });
                  }});
  return list;
}

std::vector<Implementation> train_implementations(const NodeView& node) {
  return with_float(node, node.input(0).dtype,
                    [&](auto zero) { return train_implementations_of<decltype(zero)>(node); });
}

/// Mean 1, variance 3, normalisation 3 per element.
Work train_work(const NodeView& node) {
  std::vector<int> writes = present_outputs(node);
  if (node.has_output(3)) writes.pop_back();
  return {7.0 * static_cast<double>(node.input(0).elements()), traffic(node, {0, 1, 2}, writes)};
}

// ---- BatchNormTrainGrad(dy, x, scale, mean, var, b?, y?, mask?) -> dx, dscale, db ----------------------------------

std::vector<TensorType> grad_infer(const NodeView& node) {
  require_float(node, 0);
  require_same(node, 0, 1);
  const TensorType& x = node.input(1);
  const Channels s(node, x.shape);
  require_channel_vectors(node, 2, 4, x);
  if (node.has_input(5)) require_channel_vectors(node, 5, 5, x);
  if (node.has_input(6)) require_same(node, 0, 6);
  if (node.has_input(7)) require_type(node, 7, bits_type(x.shape));
  if (has_relu(node) && !node.has_input(5) && !node.has_input(6) && !node.has_input(7))
    node.fail("needs b, y or mask to know where the relu passed");
  const TensorType per_channel{x.dtype, {s.channels}};
  return {x, per_channel, per_channel};
}

/// Which outputs the node has.
struct GradOutputs {
  bool dx, dscale, db;
};

/// gate(channel, offset): does the gradient pass there.
template <class T, class Gate>
void grad_backward(const Channels& s, GradOutputs wanted, const KernelArgs& args, Gate&& gate) {
  const T *dy = in<T>(args, 0), *x = in<T>(args, 1);
  for (std::int64_t c = 0; c < s.channels; ++c) {
    const auto mean = static_cast<double>(in<T>(args, 3)[c]);
    const double inverse = s.inverse_deviation(static_cast<double>(in<T>(args, 4)[c]));
    const auto passed = [&](std::int64_t i) { return gate(c, i) ? static_cast<double>(dy[i]) : 0.0; };
    const auto normal = [&](std::int64_t i) { return (static_cast<double>(x[i]) - mean) * inverse; };
    double sum = 0, product = 0;
    for_channel(s, c, [&](std::int64_t i) {
      sum += passed(i);
      product += passed(i) * normal(i);
    });
    if (wanted.dscale) out<T>(args, 1)[c] = static_cast<T>(product);
    if (wanted.db) out<T>(args, 2)[c] = static_cast<T>(sum);
    if (!wanted.dx) continue;
    T* dx = out<T>(args, 0);
    const auto count = static_cast<double>(s.count());
    const double factor = static_cast<double>(in<T>(args, 2)[c]) * inverse;
    for_channel(s, c, [&](std::int64_t i) {
      dx[i] = static_cast<T>(factor * (passed(i) - sum / count - normal(i) * (product / count)));
    });
  }
}

/// An implementation that takes its gate from make_gate(args), and reads input `extra` for it (-1: none).
template <class T, class MakeGate>
void add_grad(std::vector<Implementation>& list, const NodeView& node, const char* name, int extra,
              MakeGate make_gate) {
  const Channels s(node, node.input(1).shape);
  const GradOutputs wanted{node.has_output(0), node.has_output(1), node.has_output(2)};
  Implementation plain{
      {.name = name, .reads = {0, 1, 2, 3, 4}, .writes = present_outputs(node)},
      [s, wanted, make_gate](const KernelArgs& args) { grad_backward<T>(s, wanted, args, make_gate(args)); }};
  if (extra >= 0) plain.spec.reads.push_back(extra);
  if (wanted.dx)
    add_with_in_place(list, std::move(plain), 0, 0);
  else
    list.push_back(std::move(plain));
}

template <class T>
std::vector<Implementation> grad_implementations_of(const NodeView& node) {
  std::vector<Implementation> list;
  if (!has_relu(node)) {
    add_grad<T>(list, node, "plain", -1,
                [](const KernelArgs&) { return [](std::int64_t, std::int64_t) { return true; }; });
    return list;
  }
  if (node.has_input(6))
    add_grad<T>(list, node, "from-output", 6, [](const KernelArgs& args) {
      return [y = in<T>(args, 6)](std::int64_t, std::int64_t i) { return !(y[i] <= T{0}); };
    });
  if (node.has_input(7))
    add_grad<T>(list, node, "from-mask", 7, [](const KernelArgs& args) {
      return [mask = in<std::uint8_t>(args, 7)](std::int64_t, std::int64_t i) { return bit(mask, i); };
    });
  if (node.has_input(5))
    add_grad<T>(list, node, "from-input", 5, [s = Channels(node, node.input(1).shape)](const KernelArgs& args) {
      return [&args, s](std::int64_t c, std::int64_t i) {
        const Affine f = affine_of(s, c, in<T>(args, 2), in<T>(args, 5), in<T>(args, 3), in<T>(args, 4));
        return !(f(in<T>(args, 1)[i]) <= T{0});
      };
    });
  return list;
}

std::vector<Implementation> grad_implementations(const NodeView& node) {
  return with_float(node, node.input(0).dtype,
                    [&](auto zero) { return grad_implementations_of<decltype(zero)>(node); });
}

/// Sums 5, dx 6 per element; the mask is the cheapest way to the relu's gate.
Work grad_work(const NodeView& node) {
  std::vector<int> reads = {0, 1, 2, 3, 4};
  if (has_relu(node)) reads.push_back(node.has_input(7) ? 7 : node.has_input(5) ? 5 : 6);
  return {11.0 * static_cast<double>(node.input(0).elements()), traffic(node, reads, present_outputs(node))};
}

// ---- RunningStatistics(running, batch) -> running' -----------------------------------------------------------------

std::vector<TensorType> running_infer(const NodeView& node) {
  require_float(node, 0);
  require_same(node, 0, 1);
  return {node.input(0)};
}

std::vector<Implementation> running_implementations(const NodeView& node) {
  const std::int64_t n = node.input(0).elements();
  const double momentum = node.float_or("momentum", 0.9);
  return with_float(node, node.input(0).dtype, [&](auto zero) {
    using T = decltype(zero);
    return std::vector<Implementation>{
        {{.name = "plain", .reads = {0, 1}, .writes = {0}}, [n, momentum](const KernelArgs& args) {
           const T *running = in<T>(args, 0), *batch = in<T>(args, 1);
           for (std::int64_t i = 0; i < n; ++i)
             out<T>(args, 0)[i] = static_cast<T>(static_cast<double>(running[i]) * momentum +
                                                 static_cast<double>(batch[i]) * (1 - momentum));
         }}};
  });
}

Work running_work(const NodeView& node) { return work_of(node, 3.0 * static_cast<double>(node.input(0).elements())); }

}  // namespace

std::vector<OpDef> batch_norm_ops() {
  return {
      OpDef{.name = "BatchNormTrain",
            .n_inputs = {3, 3},
            .n_outputs = {1, 4},
            .infer = train_infer,
            .gradient = train_gradient,
            .work = train_work,
            .implementations = train_implementations},
      OpDef{.name = "BatchNormTrainGrad",
            .n_inputs = {5, 8},
            .n_outputs = {1, 3},
            .infer = grad_infer,
            .work = grad_work,
            .implementations = grad_implementations},
      OpDef{.name = "BatchNormalization",
            .n_inputs = {5, 5},
            .n_outputs = {1, 1},
            .infer = inference_infer,
            .work = inference_work,
            .implementations = inference_implementations},
      OpDef{.name = "RunningStatistics",
            .n_inputs = {2, 2},
            .n_outputs = {1, 1},
            .once = true,
            .overwrites = {{0, 0}},
            .infer = running_infer,
            .work = running_work,
            .implementations = running_implementations},
  };
}

}  // namespace neaptide::ops
