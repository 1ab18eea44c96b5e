// Operators whose output element i depends on input elements i only. Each can also run in place.
#pragma once

#include "neaptide/ops/kernel.hpp"

namespace neaptide::ops {

/// One output of the type of input 0.
std::vector<TensorType> infer_same(const NodeView& node);

/// One flop per element of output 0.
Work elementwise_work(const NodeView& node);

/// `plain`, and a twin that writes output `out_at` over input `in_at`: the kernel must read element i before it writes
/// it.
void add_with_in_place(std::vector<Implementation>& list, Implementation plain, int in_at, int out_at);

/// y[i] = f(x[i]), "plain" and "in-place".
template <class T, class F>
std::vector<Implementation> unary_implementations(const NodeView& node, F f) {
  const std::int64_t n = node.input(0).elements();
  std::vector<Implementation> list;
  add_with_in_place(list,
                    {{.name = "plain", .reads = {0}, .writes = {0}},
                     [n, f](const KernelArgs& args) {
                       const T* x = in<T>(args, 0);
                       T* y = out<T>(args, 0);
                       for (std::int64_t i = 0; i < n; ++i) y[i] = f(x[i]);
                     }},
                    0, 0);
  return list;
}

/// dx[i] = f(dy[i], a[i]) where dy is input 0 and a is input `at`; in place on dy as well.
template <class T, class F>
void add_gradient_from(std::vector<Implementation>& list, const NodeView& node, const std::string& name, int at, F f) {
  const std::int64_t n = node.input(0).elements();
  const auto from = static_cast<std::size_t>(at);
  add_with_in_place(list,
                    {{.name = name, .reads = {0, at}, .writes = {0}},
                     [n, f, from](const KernelArgs& args) {
                       const T* dy = in<T>(args, 0);
                       const T* a = in<T>(args, from);
                       T* dx = out<T>(args, 0);
                       for (std::int64_t i = 0; i < n; ++i) dx[i] = f(dy[i], a[i]);
                     }},
                    0, 0);
}

}  // namespace neaptide::ops
