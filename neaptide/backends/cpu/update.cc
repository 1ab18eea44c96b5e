#include "neaptide/backends/cpu/update.hpp"

#include <cmath>
#include <utility>

#include "neaptide/backends/cpu/loops.hpp"

namespace neaptide::backends::cpu {
namespace {

using graph::Format;
using graph::FormatChoice;
using graph::ImplSpec;
using graph::KernelArgs;
using graph::NodeView;

/// Do weights, gradient and moments lie alike?
bool alike(const NodeView& node, std::size_t n_tensors) {
  const graph::Value& w = node.input_value(0);
  if (w.type.dtype != graph::DType::kF32) return false;
  for (std::size_t i = 1; i < n_tensors; ++i) {
    const graph::Value& v = node.input_value(i);
    if (v.type != w.type || v.format != w.format) return false;
  }
  return node.output_value(0).format == w.format;
}

std::int64_t stored(const NodeView& node) { return stored_elements(node.input(0), node.input_value(0).format); }

struct Sgd {
  float lr, decay;
};
NEAPTIDE_CLONES void sgd_range(Sgd s, const float* w, const float* dw, float* w_out, std::int64_t begin,
                               std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) w_out[i] = w[i] - s.lr * (dw[i] + s.decay * w[i]);
}

struct Momentum {
  float lr, decay, momentum;
  bool nesterov;
};
NEAPTIDE_CLONES void momentum_range(Momentum s, const float* w, const float* dw, const float* m, float* w_out,
                                    float* m_out, std::int64_t begin, std::int64_t end) {
  if (s.nesterov) {
    for (std::int64_t i = begin; i < end; ++i) {
      const float g = dw[i] + s.decay * w[i], next = s.momentum * m[i] + g;
      m_out[i] = next;
      w_out[i] = w[i] - s.lr * (g + s.momentum * next);
    }
    return;
  }
  for (std::int64_t i = begin; i < end; ++i) {
    const float next = s.momentum * m[i] + (dw[i] + s.decay * w[i]);
    m_out[i] = next;
    w_out[i] = w[i] - s.lr * next;
  }
}

struct Adam {
  float lr, decay, decoupled_decay, beta1, beta2, epsilon;
  float correct1, correct2;  // 1 / (1 - beta^t)
};
NEAPTIDE_CLONES void adam_range(Adam s, const float* w, const float* dw, const float* m, const float* v, float* w_out,
                                float* m_out, float* v_out, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) {
    const float g = dw[i] + s.decay * w[i];
    const float next_m = s.beta1 * m[i] + (1.F - s.beta1) * g, next_v = s.beta2 * v[i] + (1.F - s.beta2) * (g * g);
    m_out[i] = next_m;
    v_out[i] = next_v;
    const float step = next_m * s.correct1 / (std::sqrt(next_v * s.correct2) + s.epsilon);
    w_out[i] = w[i] - s.lr * (step + s.decoupled_decay * w[i]);
  }
}

float attribute(const NodeView& node, const char* key, double otherwise) {
  return static_cast<float>(node.float_or(key, otherwise));
}

Candidates one(ImplSpec spec, graph::KernelFn fn) {
  return {{std::move(spec), [fn = std::move(fn)] { return loop_kernel(fn); }}};
}

}  // namespace

FormatChoice update_formats(const Context& /*context*/, const NodeView& node) {
  FormatChoice choice = plain_choice(node);
  const graph::Value& w = node.input_value(0);
  for (std::size_t i = 0; i < node.n_inputs(); ++i) {
    if (node.has_input(i) && node.input(i) == w.type) choice.inputs[i] = w.format;
  }
  for (std::size_t k = 0; k < node.n_outputs(); ++k) {
    if (node.has_output(k)) choice.outputs[k] = w.format;
  }
  return choice;
}

Candidates sgd_candidates(const Context& context, const NodeView& node) {
  if (!alike(node, 2)) return {};
  const float decay = attribute(node, "weight_decay", 0);
  return one({.name = "fused", .reads = {0, 1, 2}, .writes = {0}},
             [n = stored(node), threads = context.threads, decay](const KernelArgs& args) {
               const Sgd s{.lr = *in<float>(args, 2), .decay = decay};
               const auto *w = in<float>(args, 0), *dw = in<float>(args, 1);
               auto* w_out = out<float>(args, 0);
               parallel_ranges(threads, n, 512,
                               [=](std::int64_t begin, std::int64_t end) { sgd_range(s, w, dw, w_out, begin, end); });
             });
}

Candidates momentum_candidates(const Context& context, const NodeView& node) {
  if (!alike(node, 3)) return {};
  const Momentum given{.lr = 0,
                       .decay = attribute(node, "weight_decay", 0),
                       .momentum = attribute(node, "momentum", 0.9),
                       .nesterov = node.int_or("nesterov", 0) != 0};
  return one({.name = "fused", .reads = {0, 1, 2, 3}, .writes = {0, 1}},
             [n = stored(node), threads = context.threads, given](const KernelArgs& args) {
               Momentum s = given;
               s.lr = *in<float>(args, 3);
               const auto *w = in<float>(args, 0), *dw = in<float>(args, 1), *m = in<float>(args, 2);
               auto *w_out = out<float>(args, 0), *m_out = out<float>(args, 1);
               parallel_ranges(threads, n, 512, [=](std::int64_t begin, std::int64_t end) {
                 momentum_range(s, w, dw, m, w_out, m_out, begin, end);
               });
             });
}

Candidates adam_candidates(const Context& context, const NodeView& node) {
  if (!alike(node, 4)) return {};
  const bool decoupled = node.int_or("decoupled", 0) != 0;
  const float decay = attribute(node, "weight_decay", 0);
  const Adam given{.lr = 0,
                   .decay = decoupled ? 0.F : decay,
                   .decoupled_decay = decoupled ? decay : 0.F,
                   .beta1 = attribute(node, "beta1", 0.9),
                   .beta2 = attribute(node, "beta2", 0.999),
                   .epsilon = attribute(node, "epsilon", 1e-8),
                   .correct1 = 1,
                   .correct2 = 1};
  return one({.name = "fused", .reads = {0, 1, 2, 3, 4, 5}, .writes = {0, 1, 2}},
             [n = stored(node), threads = context.threads, given](const KernelArgs& args) {
               Adam s = given;
               s.lr = *in<float>(args, 4);
               const auto t = static_cast<double>(in<std::int64_t>(args, 5)[1] + 1);
               s.correct1 = static_cast<float>(1 / (1 - std::pow(static_cast<double>(s.beta1), t)));
               s.correct2 = static_cast<float>(1 / (1 - std::pow(static_cast<double>(s.beta2), t)));
               const auto *w = in<float>(args, 0), *dw = in<float>(args, 1), *m = in<float>(args, 2),
                          *v = in<float>(args, 3);
               auto *w_out = out<float>(args, 0), *m_out = out<float>(args, 1), *v_out = out<float>(args, 2);
               parallel_ranges(threads, n, 512, [=](std::int64_t begin, std::int64_t end) {
                 adam_range(s, w, dw, m, v, w_out, m_out, v_out, begin, end);
               });
             });
}

}  // namespace neaptide::backends::cpu
