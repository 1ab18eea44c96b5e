#include "neaptide/ops/update.hpp"

#include <cmath>

#include "neaptide/ops/elementwise.hpp"

namespace neaptide::ops {
namespace {

/// The first `n` inputs are of one floating-point type, and input `lr` is the f32 scalar.
void require_alike(const NodeView& node, std::size_t n, std::size_t lr) {
  require_float(node, 0);
  for (std::size_t i = 1; i < n; ++i) require_same(node, 0, i);
  if (node.input(lr) != TensorType{DType::kF32, {}})
    node.fail(fmt::format("the learning rate is {}; f32[] is needed", graph::to_string(node.input(lr))));
}

std::vector<TensorType> sgd_infer(const NodeView& node) {
  require_alike(node, 2, 2);
  return {node.input(0)};
}

std::vector<TensorType> momentum_infer(const NodeView& node) {
  require_alike(node, 3, 3);
  return {node.input(0), node.input(2)};
}

std::vector<TensorType> adam_infer(const NodeView& node) {
  require_alike(node, 4, 4);
  if (node.input(5) != TensorType{DType::kI64, {2}})
    node.fail(fmt::format("rng is {}; i64[2] is needed", graph::to_string(node.input(5))));
  return {node.input(0), node.input(2), node.input(3)};
}

std::vector<Implementation> sgd_implementations(const NodeView& node) {
  return with_float(node, node.input(0).dtype, [&](auto zero) -> std::vector<Implementation> {
    using T = decltype(zero);
    const auto decay = static_cast<T>(node.float_or("weight_decay", 0));
    return {{{.name = "plain", .reads = {0, 1, 2}, .writes = {0}},
             [n = node.input(0).elements(), decay](const KernelArgs& args) {
               const T *w = in<T>(args, 0), *dw = in<T>(args, 1);
               const auto lr = static_cast<T>(*in<float>(args, 2));
               T* next = out<T>(args, 0);
               for (std::int64_t i = 0; i < n; ++i) next[i] = w[i] - lr * (dw[i] + decay * w[i]);
             }}};
  });
}

std::vector<Implementation> momentum_implementations(const NodeView& node) {
  return with_float(node, node.input(0).dtype, [&](auto zero) -> std::vector<Implementation> {
    using T = decltype(zero);
    const auto decay = static_cast<T>(node.float_or("weight_decay", 0));
    const auto momentum = static_cast<T>(node.float_or("momentum", 0.9));
    const bool nesterov = node.int_or("nesterov", 0) != 0;
    return {{{.name = "plain", .reads = {0, 1, 2, 3}, .writes = {0, 1}},
             [n = node.input(0).elements(), decay, momentum, nesterov](const KernelArgs& args) {
               const T *w = in<T>(args, 0), *dw = in<T>(args, 1), *m = in<T>(args, 2);
               const auto lr = static_cast<T>(*in<float>(args, 3));
               T *next = out<T>(args, 0), *next_m = out<T>(args, 1);
               for (std::int64_t i = 0; i < n; ++i) {
                 const T g = dw[i] + decay * w[i];
                 const T v = momentum * m[i] + g;
                 next[i] = w[i] - lr * (nesterov ? g + momentum * v : v);
                 next_m[i] = v;
               }
             }}};
  });
}

template <class T>
struct Adam {
  std::int64_t n;
  double beta1, beta2, epsilon, decay;
  bool decoupled;

  void operator()(const KernelArgs& args) const {
    const T *w = in<T>(args, 0), *dw = in<T>(args, 1), *m = in<T>(args, 2), *v = in<T>(args, 3);
    const auto lr = static_cast<double>(*in<float>(args, 4));
    const auto t = static_cast<double>(in<std::int64_t>(args, 5)[1] + 1);
    T *next = out<T>(args, 0), *next_m = out<T>(args, 1), *next_v = out<T>(args, 2);
    const auto rate = static_cast<T>(lr / (1 - std::pow(beta1, t)));
    const auto root = static_cast<T>(std::sqrt(1 - std::pow(beta2, t)));
    const auto shrink = static_cast<T>(decoupled ? 1 - lr * decay : 1.0);
    const auto added = static_cast<T>(decoupled ? 0.0 : decay);
    const auto b1 = static_cast<T>(beta1), b2 = static_cast<T>(beta2), eps = static_cast<T>(epsilon);
    const auto c1 = static_cast<T>(1 - beta1), c2 = static_cast<T>(1 - beta2);
    for (std::int64_t i = 0; i < n; ++i) {
      const T g = dw[i] + added * w[i];
      const T mean = b1 * m[i] + c1 * g, square = b2 * v[i] + c2 * g * g;
      next[i] = shrink * w[i] - rate * mean / (std::sqrt(square) / root + eps);
      next_m[i] = mean;
      next_v[i] = square;
    }
  }
};

std::vector<Implementation> adam_implementations(const NodeView& node) {
  return with_float(node, node.input(0).dtype, [&](auto zero) -> std::vector<Implementation> {
    const Adam<decltype(zero)> adam{.n = node.input(0).elements(),
                                    .beta1 = node.float_or("beta1", 0.9),
                                    .beta2 = node.float_or("beta2", 0.999),
                                    .epsilon = node.float_or("epsilon", 1e-8),
                                    .decay = node.float_or("weight_decay", 0),
                                    .decoupled = node.int_or("decoupled", 0) != 0};
    return {{{.name = "plain", .reads = {0, 1, 2, 3, 4, 5}, .writes = {0, 1, 2}}, adam}};
  });
}

Work sgd_work(const NodeView& node) { return work_of(node, 4.0 * static_cast<double>(node.input(0).elements())); }
Work momentum_work(const NodeView& node) { return work_of(node, 6.0 * static_cast<double>(node.input(0).elements())); }
Work adam_work(const NodeView& node) { return work_of(node, 16.0 * static_cast<double>(node.input(0).elements())); }

}  // namespace

std::vector<OpDef> update_ops() {
  return {
      OpDef{.name = "AdamUpdate",
            .n_inputs = {6, 6},
            .n_outputs = {3, 3},
            .once = true,
            .overwrites = {{0, 0}, {1, 2}, {2, 3}},
            .infer = adam_infer,
            .work = adam_work,
            .implementations = adam_implementations},
      OpDef{.name = "MomentumUpdate",
            .n_inputs = {4, 4},
            .n_outputs = {2, 2},
            .once = true,
            .overwrites = {{0, 0}, {1, 2}},
            .infer = momentum_infer,
            .work = momentum_work,
            .implementations = momentum_implementations},
      OpDef{.name = "SgdUpdate",
            .n_inputs = {3, 3},
            .n_outputs = {1, 1},
            .once = true,
            .overwrites = {{0, 0}},
            .infer = sgd_infer,
            .work = sgd_work,
            .implementations = sgd_implementations},
  };
}

}  // namespace neaptide::ops
