#include "neaptide/onnx/fold.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "neaptide/base/errors.hpp"
#include "neaptide/onnx/tensors.hpp"

namespace neaptide::onnx {
namespace {

using graph::Attrs;
using graph::DType;
using graph::Shape;
using graph::Tensor;
using graph::TensorType;
using Index = std::int64_t;

template <class T>
const T* attr(const Attrs& attrs, const char* key) {
  const auto found = attrs.find(key);
  if (found == attrs.end()) return nullptr;
  const T* v = std::get_if<T>(&found->second);
  if (v == nullptr) throw UserError("attribute '{}' has the wrong type", key);
  return v;
}

Index int_or(const Attrs& attrs, const char* key, Index otherwise) {
  const Index* v = attr<Index>(attrs, key);
  return v != nullptr ? *v : otherwise;
}

const Tensor& input(const FoldArgs& a, std::size_t i) {
  if (i >= a.inputs.size() || a.inputs[i] == nullptr) throw UserError("input {} is missing", i);
  return *a.inputs[i];
}
bool has_input(const FoldArgs& a, std::size_t i) { return i < a.inputs.size() && a.inputs[i] != nullptr; }

/// Integers from an attribute in old opsets, from input `i` in new ones; null when neither is given.
std::optional<std::vector<Index>> ints_of(const FoldArgs& a, const char* key, std::size_t i) {
  if (const auto* v = attr<std::vector<Index>>(a.attrs, key)) return *v;
  if (has_input(a, i)) return integers(*a.inputs[i], fmt::format("input {}", i));
  return std::nullopt;
}

std::vector<Index> strides_of(const Shape& shape) {
  std::vector<Index> strides(shape.size(), 1);
  for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = checked_mul(strides[d], shape[d]);
  return strides;
}

void check_limit(const FoldArgs& a, const TensorType& type) {
  if (type.bytes() > a.limit)
    throw UserError("its constant result {} is larger than the {} bytes allowed", graph::to_string(type), a.limit);
}

/// The tensor of `shape` whose element at coordinates c is the source's element offset + sum c[d] * strides[d].
Tensor strided(const FoldArgs& a, const Tensor& from, const Shape& shape, const std::vector<Index>& strides,
               Index offset) {
  const TensorType type{from.type.dtype, shape};
  check_limit(a, type);
  const auto size = static_cast<std::size_t>(graph::size_of(type.dtype));
  const Index n = type.elements();
  std::vector<std::byte> out(static_cast<std::size_t>(type.bytes()));
  std::vector<Index> at(shape.size(), 0);
  Index source = offset;
  for (Index i = 0; i < n; ++i) {
    std::memcpy(out.data() + static_cast<std::size_t>(i) * size,
                from.data->data() + static_cast<std::size_t>(source) * size, size);
    for (std::size_t d = shape.size(); d-- > 0;) {
      source += strides[d];
      if (++at[d] < shape[d]) break;
      source -= strides[d] * shape[d];
      at[d] = 0;
    }
  }
  return graph::make_tensor(type, out);
}

Tensor reshaped(const Tensor& from, Shape shape) {
  const TensorType type{from.type.dtype, std::move(shape)};
  if (type.elements() != from.type.elements())
    throw UserError("{} does not become {}", graph::to_string(from.type), graph::to_string(type));
  return {type, from.data};
}

Tensor of_integers(DType dtype, Shape shape, const std::vector<Index>& v) {
  const auto narrow = [&]<class T>(T) {
    std::vector<T> out(v.size());
    std::transform(v.begin(), v.end(), out.begin(), [](Index i) { return static_cast<T>(i); });
    return graph::tensor_of(dtype, std::move(shape), out);
  };
  if (dtype == DType::kI64) return narrow(Index());
  if (dtype == DType::kI32) return narrow(std::int32_t());
  return narrow(std::uint8_t());
}

Tensor of_numbers(DType dtype, Shape shape, const std::vector<double>& v) {
  if (dtype == DType::kF64) return graph::tensor_of(dtype, std::move(shape), v);
  std::vector<float> out(v.size());
  std::transform(v.begin(), v.end(), out.begin(), [](double x) { return static_cast<float>(x); });
  return graph::tensor_of(dtype, std::move(shape), out);
}

bool floating(DType dtype) { return dtype == DType::kF32 || dtype == DType::kF64; }

/// A double to an integer without undefined behaviour.
Index to_integer(double x) {
  if (std::isnan(x)) return 0;
  return x >= 9.2e18 ? INT64_MAX : x <= -9.2e18 ? INT64_MIN : static_cast<Index>(x);
}

Tensor fold_gather(const FoldArgs& a) {
  const Tensor& from = input(a, 0);
  const auto rank = static_cast<Index>(from.type.shape.size());
  const auto axis = static_cast<std::size_t>(resolve_axes({int_or(a.attrs, "axis", 0)}, rank)[0]);
  const std::vector<Index> at = integers(input(a, 1), "input 1");
  const Index dim = from.type.shape[axis];
  Shape shape(from.type.shape.begin(), from.type.shape.begin() + static_cast<Index>(axis));
  shape.insert(shape.end(), a.inputs[1]->type.shape.begin(), a.inputs[1]->type.shape.end());
  shape.insert(shape.end(), from.type.shape.begin() + static_cast<Index>(axis) + 1, from.type.shape.end());
  const TensorType type{from.type.dtype, shape};
  check_limit(a, type);
  if (type.elements() == 0) return graph::zeros(type);
  const Index outer = std::accumulate(from.type.shape.begin(), from.type.shape.begin() + static_cast<Index>(axis),
                                      Index{1}, std::multiplies<>());
  const Index inner = checked_mul(strides_of(from.type.shape)[axis], graph::size_of(type.dtype));
  std::vector<std::byte> out;
  out.reserve(static_cast<std::size_t>(type.bytes()));
  for (Index o = 0; o < outer; ++o) {
    for (Index i : at) {
      if (i < -dim || i >= dim) throw UserError("index {} is outside a dimension of {}", i, dim);
      const auto begin = from.data->begin() + (o * dim + (i < 0 ? i + dim : i)) * inner;
      out.insert(out.end(), begin, begin + inner);
    }
  }
  return graph::make_tensor(type, out);
}

Tensor fold_concat(const FoldArgs& a) {
  const Tensor& first = input(a, 0);
  const auto rank = static_cast<Index>(first.type.shape.size());
  const auto axis = static_cast<std::size_t>(resolve_axes({int_or(a.attrs, "axis", 1)}, rank)[0]);
  Shape shape = first.type.shape;
  shape[axis] = 0;
  for (std::size_t i = 0; i < a.inputs.size(); ++i) {
    Shape rest = input(a, i).type.shape;
    if (rest.size() != shape.size() || a.inputs[i]->type.dtype != first.type.dtype)
      throw UserError("input {} does not fit input 0", i);
    shape[axis] = checked_add(shape[axis], rest[axis]);
    rest[axis] = first.type.shape[axis];
    if (rest != first.type.shape) throw UserError("input {} does not fit input 0", i);
  }
  const TensorType type{first.type.dtype, shape};
  check_limit(a, type);
  if (type.elements() == 0) return graph::zeros(type);
  const Index outer =
      std::accumulate(shape.begin(), shape.begin() + static_cast<Index>(axis), Index{1}, std::multiplies<>());
  std::vector<std::byte> out;
  out.reserve(static_cast<std::size_t>(type.bytes()));
  for (Index o = 0; o < outer; ++o) {
    for (const Tensor* t : a.inputs) {
      const Index part = static_cast<Index>(t->data->size()) / outer;
      out.insert(out.end(), t->data->begin() + o * part, t->data->begin() + (o + 1) * part);
    }
  }
  return graph::make_tensor(type, out);
}

Tensor fold_slice(const FoldArgs& a) {
  const Tensor& from = input(a, 0);
  const auto starts = ints_of(a, "starts", 1), ends = ints_of(a, "ends", 2);
  if (!starts || !ends || starts->size() != ends->size()) throw UserError("starts and ends do not match");
  std::vector<Index> axes = ints_of(a, "axes", 3).value_or(std::vector<Index>());
  if (axes.empty()) {
    axes.resize(starts->size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  const std::vector<Index> steps = ints_of(a, "steps", 4).value_or(std::vector<Index>(axes.size(), 1));
  axes = resolve_axes(axes, static_cast<Index>(from.type.shape.size()));
  if (axes.size() != starts->size() || steps.size() != starts->size()) throw UserError("axes and starts do not match");
  Shape shape = from.type.shape;
  std::vector<Index> strides = strides_of(shape);
  Index offset = 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto d = static_cast<std::size_t>(axes[i]);
    const SliceRange r = resolve_slice(shape[d], (*starts)[i], (*ends)[i], steps[i]);
    offset += r.start * strides[d];
    if (r.count > 1) strides[d] *= r.step;
    shape[d] = r.count;
  }
  return strided(a, from, shape, strides, offset);
}

Tensor fold_transpose(const FoldArgs& a) {
  const Tensor& from = input(a, 0);
  const std::size_t rank = from.type.shape.size();
  std::vector<Index> perm(rank);
  std::iota(perm.rbegin(), perm.rend(), 0);
  if (const auto* given = attr<std::vector<Index>>(a.attrs, "perm")) perm = *given;
  perm = resolve_axes(perm, static_cast<Index>(rank));
  if (perm.size() != rank) throw UserError("perm has {} entries for rank {}", perm.size(), rank);
  const std::vector<Index> strides = strides_of(from.type.shape);
  Shape shape(rank);
  std::vector<Index> moved(rank);
  for (std::size_t d = 0; d < rank; ++d) {
    shape[d] = from.type.shape[static_cast<std::size_t>(perm[d])];
    moved[d] = strides[static_cast<std::size_t>(perm[d])];
  }
  return strided(a, from, shape, moved, 0);
}

Shape broadcast(const Shape& a, const Shape& b) {
  Shape out(std::max(a.size(), b.size()));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const Index x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const Index y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1)
      throw UserError("{} and {} do not broadcast", graph::to_string(a), graph::to_string(b));
    out[out.size() - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

Tensor expanded(const FoldArgs& a, const Tensor& from, const Shape& shape) {
  if (from.type.shape == shape) return from;
  const std::vector<Index> own = strides_of(from.type.shape);
  std::vector<Index> strides(shape.size(), 0);
  for (std::size_t i = 0; i < from.type.shape.size(); ++i) {
    const std::size_t k = from.type.shape.size() - 1 - i;
    if (from.type.shape[k] != 1) strides[shape.size() - 1 - i] = own[k];
  }
  return strided(a, from, shape, strides, 0);
}

Tensor fold_expand(const FoldArgs& a) {
  const Tensor& from = input(a, 0);
  return expanded(a, from, broadcast(from.type.shape, integers(input(a, 1), "input 1")));
}

/// Both inputs broadcast, then `f` on 64-bit integers or doubles.
template <class OnIntegers, class OnNumbers>
Tensor binary(const FoldArgs& a, OnIntegers on_integers, OnNumbers on_numbers) {
  const Tensor &x = input(a, 0), &y = input(a, 1);
  if (x.type.dtype != y.type.dtype)
    throw UserError("{} and {} differ in element type", graph::to_string(x.type), graph::to_string(y.type));
  const Shape shape = broadcast(x.type.shape, y.type.shape);
  const Tensor ex = expanded(a, x, shape), ey = expanded(a, y, shape);
  if (floating(x.type.dtype)) {
    std::vector<double> u = numbers(ex, "input 0"), v = numbers(ey, "input 1");
    std::transform(u.begin(), u.end(), v.begin(), u.begin(), on_numbers);
    return of_numbers(x.type.dtype, shape, u);
  }
  std::vector<Index> u = integers(ex, "input 0"), v = integers(ey, "input 1");
  std::transform(u.begin(), u.end(), v.begin(), u.begin(), on_integers);
  return of_integers(x.type.dtype, shape, u);
}

/// Integer arithmetic wraps, as it does in every ONNX runtime.
template <class F>
Index wrapping(Index x, Index y, F f) {
  return static_cast<Index>(f(static_cast<std::uint64_t>(x), static_cast<std::uint64_t>(y)));
}

Tensor fold_add(const FoldArgs& a) {
  return binary(
      a, [](Index x, Index y) { return wrapping(x, y, std::plus<>()); }, std::plus<double>());
}
Tensor fold_sub(const FoldArgs& a) {
  return binary(
      a, [](Index x, Index y) { return wrapping(x, y, std::minus<>()); }, std::minus<double>());
}
Tensor fold_mul(const FoldArgs& a) {
  return binary(
      a, [](Index x, Index y) { return wrapping(x, y, std::multiplies<>()); }, std::multiplies<double>());
}
Tensor fold_div(const FoldArgs& a) {
  const auto divide = [](Index x, Index y) {
    if (y == 0) throw UserError("divides by zero");
    return y == -1 ? wrapping(0, x, std::minus<>()) : x / y;
  };
  return binary(a, divide, std::divides<double>());
}

Tensor fold_neg(const FoldArgs& a) {
  const Tensor& x = input(a, 0);
  if (floating(x.type.dtype)) {
    std::vector<double> v = numbers(x, "input 0");
    for (double& e : v) e = -e;
    return of_numbers(x.type.dtype, x.type.shape, v);
  }
  std::vector<Index> v = integers(x, "input 0");
  for (Index& e : v) e = wrapping(0, e, std::minus<>());
  return of_integers(x.type.dtype, x.type.shape, v);
}

template <class F>
Tensor rounded(const FoldArgs& a, F f) {
  const Tensor& x = input(a, 0);
  std::vector<double> v = numbers(x, "input 0");
  std::transform(v.begin(), v.end(), v.begin(), f);
  return of_numbers(floating(x.type.dtype) ? x.type.dtype : DType::kF32, x.type.shape, v);
}
Tensor fold_floor(const FoldArgs& a) {
  return rounded(a, [](double x) { return std::floor(x); });
}
Tensor fold_ceil(const FoldArgs& a) {
  return rounded(a, [](double x) { return std::ceil(x); });
}
Tensor fold_sqrt(const FoldArgs& a) {
  return rounded(a, [](double x) { return std::sqrt(x); });
}

Tensor fold_cast(const FoldArgs& a) {
  const Tensor& x = input(a, 0);
  const DType to = dtype_of(static_cast<int>(int_or(a.attrs, "to", 0)), "the type cast to");
  check_limit(a, {to, x.type.shape});
  if (floating(to)) return of_numbers(to, x.type.shape, numbers(x, "input 0"));
  std::vector<Index> v;
  if (floating(x.type.dtype)) {
    for (const double e : numbers(x, "input 0"))
      v.push_back(to == DType::kBool ? static_cast<Index>(e != 0) : to_integer(e));
  } else {
    v = integers(x, "input 0");
    if (to == DType::kBool) {
      for (Index& e : v) e = e != 0;
    }
  }
  return of_integers(to, x.type.shape, v);
}

Tensor fold_equal(const FoldArgs& a) {
  const Tensor same = binary(
      a, [](Index x, Index y) { return static_cast<Index>(x == y); }, [](double x, double y) { return x == y; });
  std::vector<Index> v;
  for (const double e : numbers(same, "result")) v.push_back(e != 0);
  return of_integers(DType::kBool, same.type.shape, v);
}

Tensor fold_where(const FoldArgs& a) {
  const Tensor &x = input(a, 1), &y = input(a, 2);
  if (x.type.dtype != y.type.dtype) throw UserError("inputs 1 and 2 differ in element type");
  const Shape shape = broadcast(broadcast(input(a, 0).type.shape, x.type.shape), y.type.shape);
  const Tensor c = expanded(a, input(a, 0), shape), ex = expanded(a, x, shape), ey = expanded(a, y, shape);
  const std::vector<Index> chosen = integers(c, "input 0");
  const auto size = static_cast<std::size_t>(graph::size_of(x.type.dtype));
  std::vector<std::byte> out(ex.data->size());
  for (std::size_t i = 0; i < chosen.size(); ++i)
    std::memcpy(out.data() + i * size, (chosen[i] != 0 ? ex : ey).data->data() + i * size, size);
  return graph::make_tensor({x.type.dtype, shape}, out);
}

Tensor fold_range(const FoldArgs& a) {
  for (std::size_t i = 0; i < 3; ++i) {
    if (input(a, i).type.elements() != 1) throw UserError("input {} is not a scalar", i);
  }
  const double start = numbers(input(a, 0), "input 0")[0], end = numbers(input(a, 1), "input 1")[0];
  const double step = numbers(input(a, 2), "input 2")[0];
  const double count = std::max(0.0, std::ceil((end - start) / step));
  const DType dtype = input(a, 0).type.dtype;
  if (!(count * static_cast<double>(graph::size_of(dtype)) <= static_cast<double>(a.limit)))
    throw UserError("its constant result is larger than the {} bytes allowed", a.limit);
  std::vector<double> v(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = start + static_cast<double>(i) * step;
  const Shape shape{static_cast<Index>(v.size())};
  if (floating(dtype)) return of_numbers(dtype, shape, v);
  std::vector<Index> w(v.size());
  std::transform(v.begin(), v.end(), w.begin(), to_integer);
  return of_integers(dtype, shape, w);
}

Tensor fold_constant(const FoldArgs& a) {
  if (const auto* t = attr<Tensor>(a.attrs, "value")) return *t;
  if (const auto* f = attr<double>(a.attrs, "value_float")) return of_numbers(DType::kF32, {}, {*f});
  if (const auto* i = attr<Index>(a.attrs, "value_int")) return of_integers(DType::kI64, {}, {*i});
  if (const auto* f = attr<std::vector<double>>(a.attrs, "value_floats"))
    return of_numbers(DType::kF32, {static_cast<Index>(f->size())}, *f);
  if (const auto* i = attr<std::vector<Index>>(a.attrs, "value_ints"))
    return of_integers(DType::kI64, {static_cast<Index>(i->size())}, *i);
  throw UserError("has no value that is supported (value, value_float, value_floats, value_int, value_ints)");
}

Tensor fold_constant_of_shape(const FoldArgs& a) {
  const Shape shape = integers(input(a, 0), "input 0");
  const Tensor* given = attr<Tensor>(a.attrs, "value");
  const Tensor value = given != nullptr ? *given : of_numbers(DType::kF32, {}, {0});
  if (value.type.elements() != 1) throw UserError("attribute 'value' must hold one element");
  return strided(a, value, shape, std::vector<Index>(shape.size(), 0), 0);
}

Tensor fold_reshape(const FoldArgs& a) {
  const Tensor& from = input(a, 0);
  return reshaped(
      from, resolve_reshape(from.type.shape, integers(input(a, 1), "input 1"), int_or(a.attrs, "allowzero", 0) != 0));
}

Tensor fold_flatten(const FoldArgs& a) {
  const Shape& from = input(a, 0).type.shape;
  const auto rank = static_cast<Index>(from.size());
  Index axis = int_or(a.attrs, "axis", 1);
  if (axis < -rank || axis > rank) throw UserError("axis {} is outside rank {}", axis, rank);
  if (axis < 0) axis += rank;
  Index outer = 1;
  for (Index d = 0; d < axis; ++d) outer = checked_mul(outer, from[static_cast<std::size_t>(d)]);
  Index inner = 1;
  for (Index d = axis; d < rank; ++d) inner = checked_mul(inner, from[static_cast<std::size_t>(d)]);
  return reshaped(*a.inputs[0], {outer, inner});
}

Tensor fold_squeeze(const FoldArgs& a) {
  const Shape& from = input(a, 0).type.shape;
  const auto axes = ints_of(a, "axes", 1);
  std::set<Index> gone;
  if (axes) {
    const std::vector<Index> resolved = resolve_axes(*axes, static_cast<Index>(from.size()));
    gone.insert(resolved.begin(), resolved.end());
  }
  Shape shape;
  for (std::size_t d = 0; d < from.size(); ++d) {
    const bool drop = axes ? gone.contains(static_cast<Index>(d)) : from[d] == 1;
    if (!drop) shape.push_back(from[d]);
  }
  return reshaped(*a.inputs[0], shape);
}

Tensor fold_unsqueeze(const FoldArgs& a) {
  const Shape& from = input(a, 0).type.shape;
  const auto axes = ints_of(a, "axes", 1);
  if (!axes) throw UserError("axes are missing");
  const auto rank = static_cast<Index>(from.size() + axes->size());
  const std::vector<Index> resolved = resolve_axes(*axes, rank);
  const std::set<Index> fresh(resolved.begin(), resolved.end());
  Shape shape;
  for (Index d = 0, next = 0; d < rank; ++d)
    shape.push_back(fresh.contains(d) ? 1 : from[static_cast<std::size_t>(next++)]);
  return reshaped(*a.inputs[0], shape);
}

Tensor fold_identity(const FoldArgs& a) { return input(a, 0); }

Tensor fold_reduce_prod(const FoldArgs& a) {
  const Tensor& x = input(a, 0);
  if (x.type.shape.size() != 1 || floating(x.type.dtype))
    throw UserError("a constant {} is reduced; only lists of integers are", graph::to_string(x.type));
  Index product = 1;
  for (const Index e : integers(x, "input 0")) product = wrapping(product, e, std::multiplies<>());
  return of_integers(x.type.dtype, int_or(a.attrs, "keepdims", 1) != 0 ? Shape{1} : Shape{}, {product});
}

/// Min and Max of any number of inputs.
template <class Pick>
Tensor fold_extreme(const FoldArgs& a, Pick pick) {
  Tensor best = input(a, 0);
  for (std::size_t i = 1; i < a.inputs.size(); ++i) {
    const FoldArgs pair{a.attrs, {&best, &input(a, i)}, a.limit};
    best = binary(pair, pick, pick);
  }
  return best;
}
Tensor fold_min(const FoldArgs& a) {
  return fold_extreme(a, [](auto x, auto y) { return std::min(x, y); });
}
Tensor fold_max(const FoldArgs& a) {
  return fold_extreme(a, [](auto x, auto y) { return std::max(x, y); });
}

using Fold = Tensor (*)(const FoldArgs&);
const std::map<std::string, Fold>& folds() {
  static const std::map<std::string, Fold> all = {
      {"Add", fold_add},
      {"Cast", fold_cast},
      {"Ceil", fold_ceil},
      {"Concat", fold_concat},
      {"Constant", fold_constant},
      {"ConstantOfShape", fold_constant_of_shape},
      {"Div", fold_div},
      {"Equal", fold_equal},
      {"Expand", fold_expand},
      {"Flatten", fold_flatten},
      {"Floor", fold_floor},
      {"Gather", fold_gather},
      {"Identity", fold_identity},
      {"Max", fold_max},
      {"Min", fold_min},
      {"Mul", fold_mul},
      {"Neg", fold_neg},
      {"Range", fold_range},
      {"ReduceProd", fold_reduce_prod},
      {"Reshape", fold_reshape},
      {"Slice", fold_slice},
      {"Sqrt", fold_sqrt},
      {"Squeeze", fold_squeeze},
      {"Sub", fold_sub},
      {"Transpose", fold_transpose},
      {"Unsqueeze", fold_unsqueeze},
      {"Where", fold_where},
  };
  return all;
}

}  // namespace

std::vector<Index> resolve_axes(const std::vector<Index>& axes, Index rank) {
  std::vector<Index> out;
  for (const Index axis : axes) {
    if (axis < -rank || axis >= rank) throw UserError("axis {} is outside rank {}", axis, rank);
    out.push_back(axis < 0 ? axis + rank : axis);
    if (std::count(out.begin(), out.end(), out.back()) > 1) throw UserError("axis {} is given twice", axis);
  }
  return out;
}

Shape resolve_reshape(const Shape& from, const std::vector<Index>& target, bool allow_zero) {
  Shape out = target;
  Index known = 1;
  std::optional<std::size_t> inferred;
  for (std::size_t d = 0; d < out.size(); ++d) {
    if (out[d] == 0 && !allow_zero) {
      if (d >= from.size())
        throw UserError("shape {} copies dimension {}, which the input lacks", graph::to_string(target), d);
      out[d] = from[d];
    }
    if (out[d] == -1 && !inferred) {
      inferred = d;
      continue;
    }
    if (out[d] < 0) throw UserError("shape {} is not legal", graph::to_string(target));
    known = checked_mul(known, out[d], "a shape");
  }
  const Index n = graph::n_elements(from);
  if (inferred) {
    if (known == 0 || n % known != 0) throw UserError("{} elements do not fill shape {}", n, graph::to_string(target));
    out[*inferred] = n / known;
  } else if (known != n) {
    throw UserError("{} elements do not fill shape {}", n, graph::to_string(target));
  }
  return out;
}

SliceRange resolve_slice(Index dim, Index start, Index end, Index step) {
  if (step == 0 || step == INT64_MIN) throw UserError("step {} is not legal", step);
  const auto clamp = [&](Index x, Index low, Index high) { return std::clamp(x < 0 ? x + dim : x, low, high); };
  if (step > 0) {
    start = clamp(start, 0, dim);
    end = clamp(end, 0, dim);
    return {start, step, end > start ? (end - start - 1) / step + 1 : 0};
  }
  start = clamp(start, -1, dim - 1);
  end = end < -dim ? -1 : clamp(end, -1, dim - 1);
  const Index count = start > end ? (start - end - 1) / -step + 1 : 0;
  return {std::max<Index>(start, 0), step, count};
}

bool foldable(const std::string& op) { return folds().contains(op); }

bool only_moves(const std::string& op) {
  static const std::set<std::string> moving = {"Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"};
  return moving.contains(op);
}

Tensor fold(const std::string& op, const FoldArgs& args) { return folds().at(op)(args); }

}  // namespace neaptide::onnx
