#include "neaptide/ops/pooling.hpp"

#include <algorithm>
#include <array>

#include "neaptide/graph/builder.hpp"
#include "neaptide/ops/elementwise.hpp"
#include "neaptide/ops/window.hpp"

namespace neaptide::ops {
namespace {

/// The sizes of a pool: `planes` images of the window's input, and the taps of every output that are not padding.
struct Pool {
  Window window;
  std::int64_t planes = 0;
  std::array<std::vector<Span>, 3> taps;

  Pool(const NodeView& node, const Shape& x) : window(pool_window(node, x)), planes(x[0] * x[1]) {
    for (std::size_t a = 0; a < 3; ++a) {
      for (std::int64_t o = 0; o < window.axes[a].out; ++o) taps[a].push_back(taps_of_output(window.axes[a], o));
    }
  }

  Shape y_shape(const Shape& x) const {
    Shape y = {x[0], x[1]};
    for (const std::int64_t size : window.out_shape()) y.push_back(size);
    return y;
  }

  double flops() const {
    return static_cast<double>(planes * window.out_elements()) * static_cast<double>(window.kernel_elements());
  }
};

/// One window of a plane: its output and its taps.
struct Place {
  std::array<std::int64_t, 3> o;  // depth, height, width
  std::int64_t output;            // offset in the plane
};

/// f(place) for the windows of a plane, in order.
template <class F>
void for_windows(const Pool& p, F&& f) {
  const auto& axes = p.window.axes;
  std::int64_t output = 0;
  for (std::int64_t d = 0; d < axes[0].out; ++d) {
    for (std::int64_t h = 0; h < axes[1].out; ++h) {
      for (std::int64_t w = 0; w < axes[2].out; ++w) f(Place{{d, h, w}, output++});
    }
  }
}

/// The offset in the input plane of a tap.
std::int64_t input_offset(const Window& w, const Place& at, std::int64_t kd, std::int64_t kh, std::int64_t kw) {
  const auto& [depth, height, width] = w.axes;
  return (depth.input(at.o[0], kd) * height.in + height.input(at.o[1], kh)) * width.in + width.input(at.o[2], kw);
}

/// f(offset in the input plane, position in the window) for the taps of a window that are not padding, in order.
template <class F>
void for_taps(const Pool& p, const Place& at, F&& f) {
  const auto& axes = p.window.axes;
  const Span d = p.taps[0][static_cast<std::size_t>(at.o[0])], h = p.taps[1][static_cast<std::size_t>(at.o[1])],
             w = p.taps[2][static_cast<std::size_t>(at.o[2])];
  for (std::int64_t kd = d.begin; kd < d.end; ++kd) {
    for (std::int64_t kh = h.begin; kh < h.end; ++kh) {
      std::int64_t offset = input_offset(p.window, at, kd, kh, w.begin);
      const std::int64_t row = (kd * axes[1].kernel + kh) * axes[2].kernel;
      for (std::int64_t kw = w.begin; kw < w.end; ++kw, offset += axes[2].dilation) f(offset, row + kw);
    }
  }
}

/// The offset in the input plane of a position in the window.
std::int64_t offset_of_position(const Pool& p, const Place& at, std::int64_t position) {
  const auto& axes = p.window.axes;
  const std::int64_t kw = position % axes[2].kernel, rest = position / axes[2].kernel;
  return input_offset(p.window, at, rest / axes[1].kernel, rest % axes[1].kernel, kw);
}

struct Maximum {
  std::int64_t offset = -1, position = -1;
};

template <class T>
Maximum maximum_of(const Pool& p, const Place& at, const T* x) {
  Maximum best;
  for_taps(p, at, [&](std::int64_t offset, std::int64_t position) {
    const T v = x[offset];
    const bool better = best.offset < 0 || v > x[best.offset] || (v != v && x[best.offset] == x[best.offset]);
    if (better) best = {offset, position};
  });
  return best;
}

/// f(plane, place) for every window, planes one after the other.
template <class F>
void for_all(const Pool& p, F&& f) {
  for (std::int64_t plane = 0; plane < p.planes; ++plane) for_windows(p, [&](const Place& at) { f(plane, at); });
}

graph::Attrs with_input_shape(const NodeView& node) {
  graph::Attrs attrs = node.node().attrs;
  attrs["input_shape"] = node.input(0).shape;
  return attrs;
}

// ---- MaxPool(x) -> y, [1] index ------------------------------------------------------------------------------------

DType index_type(const Window& w) { return w.kernel_elements() <= 256 ? DType::kU8 : DType::kI32; }

std::vector<TensorType> max_infer(const NodeView& node) {
  require_float(node, 0);
  const TensorType& x = node.input(0);
  const Pool p(node, x.shape);
  return {{x.dtype, p.y_shape(x.shape)}, {index_type(p.window), p.y_shape(x.shape)}};
}

void max_gradient(GradientContext& context) {
  const graph::Attrs attrs = with_input_shape(context.view());
  const ValueId index = context.auxiliary(1, "index");
  context.set(0, context.emit("MaxPoolGrad", {context.gradient(), context.input(0), context.output(0), index}, attrs,
                              "grad")[0]);
}

/// Index: the element type of output 1, or void when it is not written.
template <class T, class Index>
Implementation max_implementation(const Pool& p) {
  constexpr bool kIndex = !std::is_void_v<Index>;
  Implementation impl{{.name = kIndex ? "index" : "plain", .reads = {0}, .writes = {0}}, {}};
  if (kIndex) impl.spec.writes.push_back(1);
  impl.kernel = [p](const KernelArgs& args) {
    const std::int64_t n_in = p.window.in_elements(), n_out = p.window.out_elements();
    for_all(p, [&](std::int64_t plane, const Place& at) {
      const T* x = in<T>(args, 0) + plane * n_in;
      const Maximum best = maximum_of(p, at, x);
      out<T>(args, 0)[plane * n_out + at.output] = x[best.offset];
      if constexpr (kIndex) out<Index>(args, 1)[plane * n_out + at.output] = static_cast<Index>(best.position);
    });
  };
  return impl;
}

std::vector<Implementation> max_implementations(const NodeView& node) {
  return with_float(node, node.input(0).dtype, [&](auto zero) {
    using T = decltype(zero);
    const Pool p(node, node.input(0).shape);
    std::vector<Implementation> list = {max_implementation<T, void>(p)};
    if (!node.has_output(1)) return list;
    list.push_back(index_type(p.window) == DType::kU8 ? max_implementation<T, std::uint8_t>(p)
                                                      : max_implementation<T, std::int32_t>(p));
    return list;
  });
}

Work max_work(const NodeView& node) { return {Pool(node, node.input(0).shape).flops(), traffic(node, {0}, {0})}; }

// ---- MaxPoolGrad(dy, x?, y?, index?) -> dx -------------------------------------------------------------------------

std::vector<TensorType> max_grad_infer(const NodeView& node) {
  require_float(node, 0);
  const DType dtype = node.input(0).dtype;
  const Shape x = required_ints(node, "input_shape");
  const Pool p(node, x);
  const TensorType dy{dtype, p.y_shape(x)};
  require_type(node, 0, dy);
  if (node.has_input(1)) require_type(node, 1, {dtype, x});
  if (node.has_input(2)) require_type(node, 2, dy);
  if (node.has_input(3)) require_type(node, 3, {index_type(p.window), dy.shape});
  if (!node.has_input(1) && !node.has_input(3)) node.fail("needs x or index");
  return {{dtype, x}};
}

/// Adds dy of every window to the input element that offset_of(plane, place) names.
template <class T, class F>
void scatter(const Pool& p, const KernelArgs& args, F&& offset_of) {
  const std::int64_t n_in = p.window.in_elements(), n_out = p.window.out_elements();
  T* dx = out<T>(args, 0);
  std::fill_n(dx, p.planes * n_in, T{0});
  for_all(p, [&](std::int64_t plane, const Place& at) {
    dx[plane * n_in + offset_of(plane, at)] += in<T>(args, 0)[plane * n_out + at.output];
  });
}

template <class T, class Index>
Implementation grad_from_index(const Pool& p) {
  return {{.name = "from-index", .reads = {0, 3}, .writes = {0}}, [p](const KernelArgs& args) {
            const std::int64_t n_out = p.window.out_elements();
            scatter<T>(p, args, [&](std::int64_t plane, const Place& at) {
              return offset_of_position(p, at, in<Index>(args, 3)[plane * n_out + at.output]);
            });
          }};
}

template <class T>
Implementation grad_from_input(const Pool& p) {
  return {{.name = "from-input", .reads = {0, 1}, .writes = {0}}, [p](const KernelArgs& args) {
            const std::int64_t n_in = p.window.in_elements();
            scatter<T>(p, args, [&](std::int64_t plane, const Place& at) {
              return maximum_of(p, at, in<T>(args, 1) + plane * n_in).offset;
            });
          }};
}

std::vector<Implementation> max_grad_implementations(const NodeView& node) {
  return with_float(node, node.input(0).dtype, [&](auto zero) {
    using T = decltype(zero);
    const Pool p(node, node.ints_or("input_shape", {}));
    std::vector<Implementation> list;
    // The default reads what the default of MaxPool leaves.
    if (node.has_input(1)) list.push_back(grad_from_input<T>(p));
    if (node.has_input(3))
      list.push_back(index_type(p.window) == DType::kU8 ? grad_from_index<T, std::uint8_t>(p)
                                                        : grad_from_index<T, std::int32_t>(p));
    return list;
  });
}

Work max_grad_work(const NodeView& node) {
  return {Pool(node, node.ints_or("input_shape", {})).flops(),
          traffic(node, node.has_input(1) ? std::vector<int>{0, 1} : std::vector<int>{0, 3}, {0})};
}

// ---- AveragePool(x) -> y -------------------------------------------------------------------------------------------

/// The number of taps of output o that count: all but those behind the padded input, or only those inside the input.
std::int64_t counted_taps(const Axis& a, std::int64_t o, bool include_pad) {
  const Span inside = taps_of_output(a, o);
  if (!include_pad) return inside.end - inside.begin;
  const std::int64_t room = a.in + a.pad_end - a.input(o, 0);  // from the first tap to the padding's end
  return std::min(a.kernel, (room + a.dilation - 1) / a.dilation);
}

/// A pool and the number that each axis contributes to the divisor, per output.
struct AveragePool {
  Pool pool;
  std::array<std::vector<std::int64_t>, 3> count;

  AveragePool(const NodeView& node, const Shape& x) : pool(node, x) {
    const bool include_pad = node.int_or("count_include_pad", 0) != 0;
    for (std::size_t a = 0; a < 3; ++a) {
      const Axis& axis = pool.window.axes[a];
      for (std::int64_t o = 0; o < axis.out; ++o) count[a].push_back(counted_taps(axis, o, include_pad));
    }
  }
  double divisor(const Place& at) const {
    std::int64_t n = 1;
    for (std::size_t a = 0; a < 3; ++a) n *= count[a][static_cast<std::size_t>(at.o[a])];
    return static_cast<double>(n);
  }
};

std::vector<TensorType> average_infer(const NodeView& node) {
  require_float(node, 0);
  const TensorType& x = node.input(0);
  return {{x.dtype, Pool(node, x.shape).y_shape(x.shape)}};
}

void average_gradient(GradientContext& context) {
  const graph::Attrs attrs = with_input_shape(context.view());
  context.set(0, context.emit("AveragePoolGrad", {context.gradient()}, attrs, "grad")[0]);
}

template <class T>
KernelFn average_kernel(const NodeView& node) {
  return [a = AveragePool(node, node.input(0).shape)](const KernelArgs& args) {
    const Pool& p = a.pool;
    for_all(p, [&](std::int64_t plane, const Place& at) {
      const T* x = in<T>(args, 0) + plane * p.window.in_elements();
      double sum = 0;
      for_taps(p, at, [&](std::int64_t offset, std::int64_t) { sum += static_cast<double>(x[offset]); });
      out<T>(args, 0)[plane * p.window.out_elements() + at.output] = static_cast<T>(sum / a.divisor(at));
    });
  };
}

std::vector<Implementation> average_implementations(const NodeView& node) {
  return with_float(node, node.input(0).dtype, [&](auto zero) {
    return std::vector<Implementation>{
        {{.name = "plain", .reads = {0}, .writes = {0}}, average_kernel<decltype(zero)>(node)}};
  });
}

Work average_work(const NodeView& node) { return work_of(node, Pool(node, node.input(0).shape).flops()); }

// ---- AveragePoolGrad(dy) -> dx -------------------------------------------------------------------------------------

std::vector<TensorType> average_grad_infer(const NodeView& node) {
  require_float(node, 0);
  const DType dtype = node.input(0).dtype;
  const Shape x = required_ints(node, "input_shape");
  require_type(node, 0, {dtype, Pool(node, x).y_shape(x)});
  return {{dtype, x}};
}

template <class T>
KernelFn average_grad_kernel(const NodeView& node) {
  return [a = AveragePool(node, node.ints_or("input_shape", {}))](const KernelArgs& args) {
    const Pool& p = a.pool;
    const std::int64_t n_in = p.window.in_elements();
    std::fill_n(out<T>(args, 0), p.planes * n_in, T{0});
    for_all(p, [&](std::int64_t plane, const Place& at) {
      T* dx = out<T>(args, 0) + plane * n_in;
      const auto dy = static_cast<double>(in<T>(args, 0)[plane * p.window.out_elements() + at.output]);
      const T share = static_cast<T>(dy / a.divisor(at));
      for_taps(p, at, [&](std::int64_t offset, std::int64_t) { dx[offset] += share; });
    });
  };
}

std::vector<Implementation> average_grad_implementations(const NodeView& node) {
  return with_float(node, node.input(0).dtype, [&](auto zero) {
    return std::vector<Implementation>{
        {{.name = "plain", .reads = {0}, .writes = {0}}, average_grad_kernel<decltype(zero)>(node)}};
  });
}

Work average_grad_work(const NodeView& node) {
  return work_of(node, Pool(node, node.ints_or("input_shape", {})).flops());
}

// ---- GlobalAveragePool(x) -> y and its gradient --------------------------------------------------------------------

/// {n, c, 1, ...}; fails when there is nothing to average.
Shape global_shape(const NodeView& node, const Shape& x) {
  if (x.size() < 3 || std::find(x.begin() + 2, x.end(), 0) != x.end())
    node.fail(fmt::format("the shape {} has no spatial elements to average", graph::to_string(x)));
  Shape y(x.size(), 1);
  y[0] = x[0];
  y[1] = x[1];
  return y;
}

std::vector<TensorType> global_infer(const NodeView& node) {
  require_float(node, 0);
  return {{node.input(0).dtype, global_shape(node, node.input(0).shape)}};
}

void global_gradient(GradientContext& context) {
  const graph::Attrs attrs = with_input_shape(context.view());
  context.set(0, context.emit("GlobalAveragePoolGrad", {context.gradient()}, attrs, "grad")[0]);
}

std::vector<Implementation> global_implementations(const NodeView& node) {
  const std::int64_t planes = node.output(0).elements();
  const std::int64_t n = planes == 0 ? 0 : node.input(0).elements() / planes;
  return with_float(node, node.input(0).dtype, [&](auto zero) {
    using T = decltype(zero);
    return std::vector<Implementation>{
        {{.name = "plain", .reads = {0}, .writes = {0}}, [planes, n](const KernelArgs& args) {
           for (std::int64_t plane = 0; plane < planes; ++plane) {
             double sum = 0;
             for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(in<T>(args, 0)[plane * n + i]);
             out<T>(args, 0)[plane] = static_cast<T>(sum / static_cast<double>(n));
           }
         }}};
  });
}

std::vector<TensorType> global_grad_infer(const NodeView& node) {
  require_float(node, 0);
  const DType dtype = node.input(0).dtype;
  const Shape x = required_ints(node, "input_shape");
  require_type(node, 0, {dtype, global_shape(node, x)});
  return {{dtype, x}};
}

std::vector<Implementation> global_grad_implementations(const NodeView& node) {
  const std::int64_t planes = node.input(0).elements();
  const std::int64_t n = planes == 0 ? 0 : node.output(0).elements() / planes;
  return with_float(node, node.input(0).dtype, [&](auto zero) {
    using T = decltype(zero);
    return std::vector<Implementation>{
        {{.name = "plain", .reads = {0}, .writes = {0}}, [planes, n](const KernelArgs& args) {
           for (std::int64_t plane = 0; plane < planes; ++plane) {
             const double share = static_cast<double>(in<T>(args, 0)[plane]) / static_cast<double>(n);
             std::fill_n(out<T>(args, 0) + plane * n, n, static_cast<T>(share));
           }
         }}};
  });
}

Work global_work(const NodeView& node) { return work_of(node, static_cast<double>(node.input(0).elements())); }

}  // namespace

std::vector<OpDef> pooling_ops() {
  return {
      OpDef{.name = "AveragePool",
            .n_inputs = {1, 1},
            .n_outputs = {1, 1},
            .infer = average_infer,
            .gradient = average_gradient,
            .work = average_work,
            .implementations = average_implementations},
      OpDef{.name = "AveragePoolGrad",
            .n_inputs = {1, 1},
            .n_outputs = {1, 1},
            .infer = average_grad_infer,
            .work = average_grad_work,
            .implementations = average_grad_implementations},
      OpDef{.name = "GlobalAveragePool",
            .n_inputs = {1, 1},
            .n_outputs = {1, 1},
            .infer = global_infer,
            .gradient = global_gradient,
            .work = global_work,
            .implementations = global_implementations},
      OpDef{.name = "GlobalAveragePoolGrad",
            .n_inputs = {1, 1},
            .n_outputs = {1, 1},
            .infer = global_grad_infer,
            .work = elementwise_work,
            .implementations = global_grad_implementations},
      OpDef{.name = "MaxPool",
            .n_inputs = {1, 1},
            .n_outputs = {1, 2},
            .infer = max_infer,
            .gradient = max_gradient,
            .work = max_work,
            .implementations = max_implementations},
      OpDef{.name = "MaxPoolGrad",
            .n_inputs = {2, 4},
            .n_outputs = {1, 1},
            .infer = max_grad_infer,
            .work = max_grad_work,
            .implementations = max_grad_implementations},
  };
}

}  // namespace neaptide::ops
