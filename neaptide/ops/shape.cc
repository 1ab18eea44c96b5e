#include "neaptide/ops/shape.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "neaptide/graph/builder.hpp"
#include "neaptide/ops/broadcast.hpp"

namespace neaptide::ops {
namespace {

// ---- renames
// -------------------------------------------------------------------------------------------------------------

Work no_work(const NodeView&) { return {}; }

std::vector<Implementation> no_implementations(const NodeView&) { return {}; }

void rename_gradient(GradientContext& context) {
  const Shape shape = context.view().input(0).shape;
  context.set(0, reshaped(context, context.gradient(), shape, "grad"));
}

/// Integers from constant input 1, or else from the attribute.
std::vector<std::int64_t> ints_of(const NodeView& node, const char* key) {
  if (!node.has_input(1)) return node.ints_or(key, {});
  const std::optional<Tensor> given = node.constant_input(1);
  if (!given) node.fail(fmt::format("'{}' is not a constant", key));
  if (given->type.dtype != DType::kI64)
    node.fail(fmt::format("'{}' is {}; i64 is needed", key, graph::to_string(given->type)));
  const auto values = given->as<std::int64_t>();
  return {values.begin(), values.end()};
}

/// 0 keeps the input's dimension (unless allowzero), one -1 takes what is left.
std::vector<TensorType> reshape_infer(const NodeView& node) {
  const TensorType& x = node.input(0);
  Shape shape = ints_of(node, "shape");
  const Shape asked = shape;
  const bool keep_zero = node.int_or("allowzero", 0) != 0;
  std::int64_t known = 1;
  std::size_t open = shape.size();
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0 && !keep_zero && d < x.shape.size()) shape[d] = x.shape[d];
    if (shape[d] == -1) {
      if (open < shape.size()) node.fail("the shape has more than one -1");
      open = d;
    } else if (shape[d] < 0) {
      node.fail(fmt::format("the shape has the dimension {}", shape[d]));
    } else {
      known *= shape[d];
    }
  }
  const std::int64_t n = x.elements();
  if (open < shape.size()) shape[open] = known == 0 ? 0 : n / known;
  if (graph::n_elements(shape) != n) {
    std::vector<std::string> words;
    for (const std::int64_t d : asked) words.push_back(std::to_string(d));
    node.fail(fmt::format("{} cannot become [{}]", graph::to_string(x), fmt::join(words, ", ")));
  }
  return {{x.dtype, shape}};
}

std::vector<TensorType> flatten_infer(const NodeView& node) {
  const TensorType& x = node.input(0);
  const auto rank = static_cast<std::int64_t>(x.shape.size());
  const std::int64_t given = node.int_or("axis", 1);
  const std::int64_t axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis > rank) node.fail(fmt::format("axis {} is outside {}", given, graph::to_string(x)));
  Shape shape{1, 1};
  for (std::int64_t d = 0; d < rank; ++d) shape[d < axis ? 0 : 1] *= x.shape[static_cast<std::size_t>(d)];
  return {{x.dtype, shape}};
}

std::vector<TensorType> squeeze_infer(const NodeView& node) {
  const TensorType& x = node.input(0);
  const std::vector<std::int64_t> axes = ints_of(node, "axes");
  std::vector<bool> dropped(x.shape.size(), false);
  for (std::size_t d = 0; d < x.shape.size(); ++d) dropped[d] = axes.empty() && x.shape[d] == 1;
  for (const std::int64_t axis : axes) {
    const std::size_t d = axis_of(node, axis, x.shape.size());
    if (x.shape[d] != 1) node.fail(fmt::format("dimension {} of {} is not 1", axis, graph::to_string(x)));
    dropped[d] = true;
  }
  Shape shape;
  for (std::size_t d = 0; d < x.shape.size(); ++d) {
    if (!dropped[d]) shape.push_back(x.shape[d]);
  }
  return {{x.dtype, shape}};
}

std::vector<TensorType> unsqueeze_infer(const NodeView& node) {
  const TensorType& x = node.input(0);
  const std::vector<std::int64_t> axes = ints_of(node, "axes");
  if (axes.empty()) node.fail("needs axes");
  const std::size_t rank = x.shape.size() + axes.size();
  std::vector<bool> added(rank, false);
  for (const std::int64_t axis : axes) {
    const std::size_t d = axis_of(node, axis, rank);
    if (added[d]) node.fail(fmt::format("axis {} is given twice", axis));
    added[d] = true;
  }
  Shape shape;
  auto next = x.shape.begin();
  for (std::size_t d = 0; d < rank; ++d) shape.push_back(added[d] ? 1 : *next++);
  return {{x.dtype, shape}};
}

std::vector<TensorType> identity_infer(const NodeView& node) { return {node.input(0)}; }

// ---- copies
// ----------------------------------------------------------------------------------------------------------------

Work copy_work(const NodeView& node) { return work_of(node, 0); }

Work slice_work(const NodeView& node) { return {0, 2 * traffic(node, {}, {0})}; }

/// f of an unsigned type as wide as the elements.
template <class F>
auto with_width(DType dtype, F&& f) {
  switch (graph::size_of(dtype)) {
    case 1:
      return f(std::uint8_t{});
    case 4:
      return f(std::uint32_t{});
    default:
      return f(std::uint64_t{});
  }
}

// Transpose

std::vector<std::size_t> perm_of(const NodeView& node) {
  const std::size_t rank = node.input(0).shape.size();
  std::vector<std::int64_t> reversed(rank);
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  const std::vector<std::int64_t> given = node.ints_or("perm", reversed);
  std::vector<bool> seen(rank, false);
  std::vector<std::size_t> perm;
  for (const std::int64_t axis : given) {
    perm.push_back(axis_of(node, axis, rank));
    if (seen[perm.back()]) node.fail(fmt::format("perm names axis {} twice", axis));
    seen[perm.back()] = true;
  }
  if (perm.size() != rank) node.fail(fmt::format("perm has {} axes; the input has {}", perm.size(), rank));
  return perm;
}

std::vector<TensorType> transpose_infer(const NodeView& node) {
  const TensorType& x = node.input(0);
  Shape shape;
  for (const std::size_t d : perm_of(node)) shape.push_back(x.shape[d]);
  return {{x.dtype, shape}};
}

void transpose_gradient(GradientContext& context) {
  const std::vector<std::size_t> perm = perm_of(context.view());
  std::vector<std::int64_t> inverse(perm.size());
  for (std::size_t d = 0; d < perm.size(); ++d) inverse[perm[d]] = static_cast<std::int64_t>(d);
  context.set(0, context.emit("Transpose", {context.gradient()}, {{"perm", inverse}}, "grad")[0]);
}

std::vector<Implementation> transpose_implementations(const NodeView& node) {
  const Strides own = strides_of(node.input(0).shape);
  Strides strides;
  for (const std::size_t d : perm_of(node)) strides.push_back(own[d]);
  const StridedLoop<1> loop(node.output(0).shape, {strides});
  return with_width(node.input(0).dtype, [&](auto zero) -> std::vector<Implementation> {
    using T = decltype(zero);
    return {{{.name = "plain", .reads = {0}, .writes = {0}}, [loop](const KernelArgs& args) {
               const T* x = in<T>(args, 0);
               T* y = out<T>(args, 0);
               loop.run([&](const auto& at) { *y++ = x[at[0]]; });
             }}};
  });
}

// Concat

std::vector<TensorType> concat_infer(const NodeView& node) {
  if (!node.has_attr("axis")) node.fail("needs the attribute 'axis'");
  TensorType type = node.input(0);
  const std::size_t axis = axis_of(node, node.int_or("axis", 0), type.shape.size());
  for (std::size_t i = 1; i < node.n_inputs(); ++i) {
    TensorType other = node.input(i);
    if (other.shape.size() != type.shape.size())
      node.fail(
          fmt::format("input {} is {}; input 0 is {}", i, graph::to_string(other), graph::to_string(node.input(0))));
    const std::int64_t extent = other.shape[axis];
    other.shape[axis] = type.shape[axis];
    if (other != type)
      node.fail(fmt::format("input {} is {}, which does not fit input 0, {}, along axis {}", i,
                            graph::to_string(node.input(i)), graph::to_string(node.input(0)), axis));
    type.shape[axis] += extent;
  }
  return {type};
}

void concat_gradient(GradientContext& context) {
  const std::size_t n = context.view().n_inputs();
  const std::size_t rank = context.view().input(0).shape.size();
  const std::size_t axis = axis_of(context.view(), context.view().int_or("axis", 0), rank);
  std::int64_t start = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t end = start + context.view().input(i).shape[axis];
    if (context.wants(i))
      context.set(i, context.emit("Slice", {context.gradient()},
                                  {{"axis", static_cast<std::int64_t>(axis)}, {"start", start}, {"end", end}},
                                  fmt::format("grad_{}", i))[0]);
    start = end;
  }
}

/// Bytes of `shape` from dimension `d` on.
std::size_t bytes_from(const TensorType& type, std::size_t d) {
  std::int64_t n = graph::size_of(type.dtype);
  for (; d < type.shape.size(); ++d) n *= type.shape[d];
  return static_cast<std::size_t>(n);
}

std::size_t rows_before(const Shape& shape, std::size_t axis) {
  std::int64_t n = 1;
  for (std::size_t d = 0; d < axis; ++d) n *= shape[d];
  return static_cast<std::size_t>(n);
}

std::vector<Implementation> concat_implementations(const NodeView& node) {
  const std::size_t axis = axis_of(node, node.int_or("axis", 0), node.input(0).shape.size());
  const std::size_t rows = rows_before(node.output(0).shape, axis), stride = bytes_from(node.output(0), axis);
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < node.n_inputs(); ++i) widths.push_back(bytes_from(node.input(i), axis));
  return {
      {{.name = "plain", .reads = present_inputs(node), .writes = {0}}, [rows, stride, widths](const KernelArgs& args) {
         std::size_t offset = 0;
         for (std::size_t i = 0; i < widths.size(); ++i) {
           const auto* x = in<std::byte>(args, i);
           auto* y = out<std::byte>(args, 0) + offset;
           for (std::size_t r = 0; r < rows; ++r) std::copy_n(x + r * widths[i], widths[i], y + r * stride);
           offset += widths[i];
         }
       }}};
}

// Slice(axis, start, end): negative positions count from the end, positions outside are moved to the border; SliceGrad
// puts it back between zeros.

struct Range {
  std::size_t axis;
  std::int64_t start, end;
};

Range range_of(const NodeView& node, const Shape& shape) {
  Range range{axis_of(node, node.int_or("axis", 0), shape.size()), 0, 0};
  const std::int64_t size = shape[range.axis];
  const auto position = [&](std::int64_t p) { return std::clamp<std::int64_t>(p < 0 ? p + size : p, 0, size); };
  range.start = position(node.int_or("start", 0));
  range.end = std::max(range.start, position(node.int_or("end", std::numeric_limits<std::int64_t>::max())));
  return range;
}

std::vector<TensorType> slice_infer(const NodeView& node) {
  TensorType type = node.input(0);
  const Range range = range_of(node, type.shape);
  type.shape[range.axis] = range.end - range.start;
  return {type};
}

void slice_gradient(GradientContext& context) {
  const Shape shape = context.view().input(0).shape;
  graph::Attrs attrs = context.view().node().attrs;
  attrs["input_shape"] = shape;
  context.set(0, context.emit("SliceGrad", {context.gradient()}, attrs, "grad")[0]);
}

/// A slice is `width` bytes at `offset` of each of `rows` rows of `stride` bytes.
struct Window {
  std::size_t rows, stride, offset, width;
};

Window window_of(const NodeView& node, const TensorType& whole) {
  const Range range = range_of(node, whole.shape);
  const std::size_t unit = bytes_from(whole, range.axis + 1);
  return {.rows = rows_before(whole.shape, range.axis),
          .stride = bytes_from(whole, range.axis),
          .offset = unit * static_cast<std::size_t>(range.start),
          .width = unit * static_cast<std::size_t>(range.end - range.start)};
}

std::vector<Implementation> slice_implementations(const NodeView& node) {
  return {
      {{.name = "plain", .reads = {0}, .writes = {0}}, [w = window_of(node, node.input(0))](const KernelArgs& args) {
         const auto* x = in<std::byte>(args, 0) + w.offset;
         auto* y = out<std::byte>(args, 0);
         for (std::size_t r = 0; r < w.rows; ++r) std::copy_n(x + r * w.stride, w.width, y + r * w.width);
       }}};
}

std::vector<TensorType> slice_grad_infer(const NodeView& node) {
  const TensorType whole{node.input(0).dtype, node.ints_or("input_shape", {})};
  const Range range = range_of(node, whole.shape);
  TensorType part = whole;
  part.shape[range.axis] = range.end - range.start;
  if (part != node.input(0))
    node.fail(fmt::format("the slice of {} is {}; the gradient is {}", graph::to_string(whole), graph::to_string(part),
                          graph::to_string(node.input(0))));
  return {whole};
}

std::vector<Implementation> slice_grad_implementations(const NodeView& node) {
  return {
      {{.name = "plain", .reads = {0}, .writes = {0}}, [w = window_of(node, node.output(0))](const KernelArgs& args) {
         const auto* dy = in<std::byte>(args, 0);
         auto* dx = out<std::byte>(args, 0);
         std::fill_n(dx, w.rows * w.stride, std::byte{0});
         for (std::size_t r = 0; r < w.rows; ++r) std::copy_n(dy + r * w.width, w.width, dx + r * w.stride + w.offset);
       }}};
}

// Cast(to): our name of the type ("f32") or ONNX's number

DType target_of(const NodeView& node) {
  const auto found = node.node().attrs.find("to");
  if (found == node.node().attrs.end()) node.fail("needs the attribute 'to'");
  if (std::holds_alternative<std::string>(found->second))
    return graph::dtype_from(std::get<std::string>(found->second));
  switch (node.int_or("to", 0)) {
    case 1:
      return DType::kF32;
    case 2:
      return DType::kU8;
    case 6:
      return DType::kI32;
    case 7:
      return DType::kI64;
    case 9:
      return DType::kBool;
    case 11:
      return DType::kF64;
    default:
      node.fail(fmt::format("ONNX element type {} is not supported", node.int_or("to", 0)));
  }
}

std::vector<TensorType> cast_infer(const NodeView& node) { return {{target_of(node), node.input(0).shape}}; }

void cast_gradient(GradientContext& context) {
  const std::string from(graph::to_string(context.view().input(0).dtype));
  context.set(0, context.emit("Cast", {context.gradient()}, {{"to", from}}, "grad")[0]);
}

/// Integers saturate, and NaN becomes 0.
template <class To, class From>
To convert(From x) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    constexpr auto kLeast = static_cast<double>(std::numeric_limits<To>::min());
    constexpr auto kMost = static_cast<double>(std::numeric_limits<To>::max());
    const auto v = static_cast<double>(x);
    if (v != v) return 0;
    if (v <= kLeast) return std::numeric_limits<To>::min();
    if (v >= kMost) return std::numeric_limits<To>::max();
  }
  return static_cast<To>(x);
}

template <class F>
auto with_any(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kF32:
      return f(float{});
    case DType::kF64:
      return f(double{});
    case DType::kI64:
      return f(std::int64_t{});
    case DType::kI32:
      return f(std::int32_t{});
    default:
      return f(std::uint8_t{});
  }
}

std::vector<Implementation> cast_implementations(const NodeView& node) {
  const std::int64_t n = node.input(0).elements();
  const bool truth = node.output(0).dtype == DType::kBool;
  return with_any(node.input(0).dtype, [&](auto from) {
    return with_any(node.output(0).dtype, [&](auto to) -> std::vector<Implementation> {
      using From = decltype(from);
      using To = decltype(to);
      return {{{.name = "plain", .reads = {0}, .writes = {0}}, [n, truth](const KernelArgs& args) {
                 const From* x = in<From>(args, 0);
                 To* y = out<To>(args, 0);
                 for (std::int64_t i = 0; i < n; ++i)
                   y[i] = truth ? static_cast<To>(x[i] != From{0}) : convert<To>(x[i]);
               }}};
    });
  });
}

}  // namespace

std::vector<OpDef> shape_ops() {
  return {
      OpDef{.name = "Cast",
            .n_inputs = {1, 1},
            .n_outputs = {1, 1},
            .infer = cast_infer,
            .gradient = cast_gradient,
            .work = copy_work,
            .implementations = cast_implementations},
      OpDef{.name = "Concat",
            .n_inputs = {1, -1},
            .n_outputs = {1, 1},
            .infer = concat_infer,
            .gradient = concat_gradient,
            .work = copy_work,
            .implementations = concat_implementations},
      OpDef{.name = "Flatten",
            .n_inputs = {1, 1},
            .n_outputs = {1, 1},
            .renames = {{0, 0}},
            .infer = flatten_infer,
            .gradient = rename_gradient,
            .work = no_work,
            .implementations = no_implementations},
      OpDef{.name = "Identity",
            .n_inputs = {1, 1},
            .n_outputs = {1, 1},
            .renames = {{0, 0}},
            .infer = identity_infer,
            .gradient = rename_gradient,
            .work = no_work,
            .implementations = no_implementations},
      OpDef{.name = "Reshape",
            .n_inputs = {1, 2},
            .n_outputs = {1, 1},
            .renames = {{0, 0}},
            .infer = reshape_infer,
            .gradient = rename_gradient,
            .work = no_work,
            .implementations = no_implementations},
      OpDef{.name = "Slice",
            .n_inputs = {1, 1},
            .n_outputs = {1, 1},
            .infer = slice_infer,
            .gradient = slice_gradient,
            .work = slice_work,
            .implementations = slice_implementations},
      OpDef{.name = "SliceGrad",
            .n_inputs = {1, 1},
            .n_outputs = {1, 1},
            .infer = slice_grad_infer,
            .work = copy_work,
            .implementations = slice_grad_implementations},
      OpDef{.name = "Squeeze",
            .n_inputs = {1, 2},
            .n_outputs = {1, 1},
            .renames = {{0, 0}},
            .infer = squeeze_infer,
            .gradient = rename_gradient,
            .work = no_work,
            .implementations = no_implementations},
      OpDef{.name = "Transpose",
            .n_inputs = {1, 1},
            .n_outputs = {1, 1},
            .infer = transpose_infer,
            .gradient = transpose_gradient,
            .work = copy_work,
            .implementations = transpose_implementations},
      OpDef{.name = "Unsqueeze",
            .n_inputs = {1, 2},
            .n_outputs = {1, 1},
            .renames = {{0, 0}},
            .infer = unsqueeze_infer,
            .gradient = rename_gradient,
            .work = no_work,
            .implementations = no_implementations},
  };
}

}  // namespace neaptide::ops
