#include "neaptide/onnx/rules.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "neaptide/base/errors.hpp"
#include "neaptide/onnx/fold.hpp"
#include "neaptide/onnx/tensors.hpp"

namespace neaptide::onnx {
namespace {

using graph::Attrs;
using graph::DType;
using graph::Shape;
using graph::Tensor;
using graph::ValueId;
using Ints = std::vector<std::int64_t>;

std::int64_t rank(const NodeImport& n, std::size_t i = 0) { return static_cast<std::int64_t>(n.type(i).shape.size()); }

/// Numbers as they were meant: see shortest().
std::vector<double> short_numbers(const Tensor& tensor, const char* what) {
  std::vector<double> out = numbers(tensor, what);
  if (tensor.type.dtype == DType::kF32) {
    for (double& x : out) x = shortest(static_cast<float>(x));
  }
  return out;
}

/// `axis` counted from the front.
std::int64_t axis_of(const NodeImport& n, std::int64_t otherwise) {
  return resolve_axes({n.int_or("axis", otherwise)}, rank(n))[0];
}

void import_conv(NodeImport& n) {
  std::vector<ValueId> inputs = {n.value(0, Use::kData), n.value(1, Use::kWeight)};
  if (n.has_input(2)) inputs.push_back(n.value(2, Use::kWeight));
  n.finish(
      n.op(), inputs,
      n.pick({"auto_pad", "dilations", "group", "kernel_shape", "output_padding", "output_shape", "pads", "strides"}));
}

void import_pool(NodeImport& n) {
  if (n.output_used(1)) n.fail("its second output (Indices) is used, which is not supported");
  n.finish(n.op(), {n.value(0, Use::kData)},
           n.pick({"auto_pad", "ceil_mode", "count_include_pad", "dilations", "kernel_shape", "pads", "strides"}));
}

void import_global_max_pool(NodeImport& n) {
  const Shape& shape = n.type(0).shape;
  if (shape.size() < 3) n.fail("its input has no spatial dimensions");
  n.finish("MaxPool", {n.value(0, Use::kData)}, {{"kernel_shape", Ints(shape.begin() + 2, shape.end())}});
}

void import_batch_normalization(NodeImport& n) {
  for (std::size_t k = 1; k < n.n_outputs(); ++k) {
    if (n.output_used(k)) n.fail(fmt::format("its output {} is used; only the first is supported", k));
  }
  if (n.int_or("spatial", 1) == 0) n.fail("spatial = 0 is not supported");
  if (n.int_or("training_mode", 0) != 0)
    n.note("BatchNormalization nodes exported in training mode are read as inference; training promotes them again");
  n.finish("BatchNormalization",
           {n.value(0, Use::kData), n.value(1, Use::kOwnWeight), n.value(2, Use::kOwnWeight), n.value(3, Use::kState),
            n.value(4, Use::kState)},
           n.pick({"epsilon", "momentum"}));
}

/// One input, one output, no attributes.
void import_plain(NodeImport& n) { n.finish(n.op(), {n.value(0, Use::kData)}, {}); }

/// A bound of Clip: an attribute before opset 11, a constant input afterwards.
void add_bound(const NodeImport& n, const char* key, std::size_t i, Attrs& attrs) {
  if (n.attrs().contains(key)) attrs[key] = n.float_or(key, 0);
  if (!n.has_input(i)) return;
  if (n.known(i) == nullptr || n.known(i)->type.elements() != 1)
    n.fail(fmt::format("its {} must be one constant number", key));
  attrs[key] = short_numbers(*n.known(i), key)[0];
}

void import_clip(NodeImport& n) {
  Attrs attrs;
  add_bound(n, "min", 1, attrs);
  add_bound(n, "max", 2, attrs);
  n.finish(attrs.empty() ? "Identity" : "Clip", {n.value(0, Use::kData)}, attrs);
}

/// Before opset 13, Softmax saw its input as a matrix, split at `axis`.
void import_softmax(NodeImport& n) {
  const ValueId x = n.value(0, Use::kData);
  if (n.opset() >= 13) return n.finish(n.op(), {x}, {{"axis", axis_of(n, -1)}});
  const Shape& shape = n.type(0).shape;
  const std::int64_t axis = axis_of(n, 1);
  const bool one_axis = std::all_of(shape.begin() + axis + 1, shape.end(), [](std::int64_t d) { return d == 1; });
  if (one_axis) return n.finish(n.op(), {x}, {{"axis", axis}});
  const ValueId flat = n.emit("Flatten", {x}, {{"axis", axis}}, "flat");
  const ValueId y = n.emit(n.op(), {flat}, {{"axis", std::int64_t{1}}}, "matrix");
  n.finish("Reshape", {y}, {{"shape", Ints(shape)}});
}

void import_dropout(NodeImport& n) {
  if (n.output_used(1)) n.fail("its second output (mask) is used, which is not supported");
  double ratio = n.float_or("ratio", 0.5);
  if (n.has_input(1)) {
    if (n.known(1) == nullptr || n.known(1)->type.elements() != 1) n.fail("its ratio must be a constant number");
    ratio = short_numbers(*n.known(1), "ratio")[0];
  }
  if (!(ratio >= 0 && ratio < 1)) n.fail(fmt::format("ratio {} is outside [0, 1)", ratio));
  n.finish("Dropout", {n.value(0, Use::kData)}, {{"ratio", ratio}});
}

void import_gemm(NodeImport& n) {
  std::vector<ValueId> inputs = {n.value(0, Use::kWeight), n.value(1, Use::kWeight)};
  if (n.has_input(2)) inputs.push_back(n.value(2, Use::kWeight));
  n.finish("Gemm", inputs, n.pick({"alpha", "beta", "transA", "transB"}));
}

void import_mat_mul(NodeImport& n) { n.finish("MatMul", {n.value(0, Use::kWeight), n.value(1, Use::kWeight)}, {}); }

/// The side that is a value of the graph comes first: whether it is trained decides about the other.
void import_elementwise(NodeImport& n) {
  const std::size_t first = n.known(0) != nullptr ? 1 : 0;
  std::vector<ValueId> inputs(2);
  inputs[first] = n.value(first, Use::kData);
  inputs[1 - first] = n.value(1 - first, Use::kOperand);
  n.finish(n.op(), inputs, {});
}

void import_sum(NodeImport& n) {
  std::vector<ValueId> inputs;
  for (std::size_t i = 0; i < n.n_inputs(); ++i) inputs.push_back(n.value(i, Use::kOperand));
  if (inputs.empty()) n.fail("has no inputs");
  n.finish(inputs.size() == 1 ? "Identity" : "Sum", inputs, {});
}

void import_reduce(NodeImport& n) {
  const ValueId x = n.value(0, Use::kData);
  if (n.has_input(1) && n.known(1) == nullptr) n.fail("its axes must be constant");
  Ints axes = n.ints_or_input("axes", 1).value_or(Ints());
  if (axes.empty() && n.int_or("noop_with_empty_axes", 0) != 0) return n.finish("Identity", {x}, {});
  if (axes.empty()) {
    axes.resize(static_cast<std::size_t>(rank(n)));
    std::iota(axes.begin(), axes.end(), 0);
  }
  n.finish(n.op(), {x}, {{"axes", resolve_axes(axes, rank(n))}, {"keepdims", n.int_or("keepdims", 1)}});
}

/// A shape that the file gives for an output; its first entry follows the batch when that was rewritten.
Ints rebatched(const NodeImport& n, Ints shape) {
  const auto batch = n.rebatched();
  const Shape& from = n.type(0).shape;
  if (batch && !shape.empty() && !from.empty() && shape[0] == batch->second && from[0] == batch->first)
    shape[0] = batch->first;
  return shape;
}

void import_reshape(NodeImport& n) {
  const ValueId x = n.value(0, Use::kWeight);
  const Shape& from = n.type(0).shape;
  if (n.known(1) == nullptr) n.fail("its shape must be constant");
  const Ints target = rebatched(n, integers(*n.known(1), "its shape"));
  Shape to;
  try {
    to = resolve_reshape(from, target, n.int_or("allowzero", 0) != 0);
  } catch (const UserError& e) {
    n.fail(e.what());
  }
  n.finish("Reshape", {x}, {{"shape", Ints(to)}});
}

void import_flatten(NodeImport& n) { n.finish("Flatten", {n.value(0, Use::kWeight)}, {{"axis", n.int_or("axis", 1)}}); }

void import_squeeze(NodeImport& n) {
  if (n.has_input(1) && n.known(1) == nullptr) n.fail("its axes must be constant");
  auto axes = n.ints_or_input("axes", 1);
  const Shape& shape = n.type(0).shape;
  if (!axes) {
    axes.emplace();
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] == 1) axes->push_back(static_cast<std::int64_t>(d));
    }
  }
  n.finish("Squeeze", {n.value(0, Use::kWeight)}, {{"axes", resolve_axes(*axes, rank(n))}});
}

void import_unsqueeze(NodeImport& n) {
  const auto axes = n.ints_or_input("axes", 1);
  if (!axes) n.fail("its axes must be constant");
  const auto full = rank(n) + static_cast<std::int64_t>(axes->size());
  n.finish("Unsqueeze", {n.value(0, Use::kWeight)}, {{"axes", resolve_axes(*axes, full)}});
}

void import_identity(NodeImport& n) {
  if (n.known(0) != nullptr) return n.alias(0);
  n.finish("Identity", {n.value(0, Use::kData)}, {});
}

void import_transpose(NodeImport& n) {
  Ints perm(static_cast<std::size_t>(rank(n)));
  std::iota(perm.rbegin(), perm.rend(), 0);
  if (const auto given = n.ints("perm")) perm = resolve_axes(*given, rank(n));
  n.finish("Transpose", {n.value(0, Use::kWeight)}, {{"perm", perm}});
}

void import_concat(NodeImport& n) {
  std::vector<ValueId> inputs;
  for (std::size_t i = 0; i < n.n_inputs(); ++i) inputs.push_back(n.value(i, Use::kOperand));
  n.finish("Concat", inputs, {{"axis", axis_of(n, 1)}});
}

Attrs slice_attrs(std::int64_t axis, std::int64_t start, std::int64_t end) {
  return {{"axis", axis}, {"start", start}, {"end", end}};
}

/// One Slice of ours per axis.
void import_slice(NodeImport& n) {
  const auto starts = n.ints_or_input("starts", 1), ends = n.ints_or_input("ends", 2);
  if (!starts || !ends) n.fail("its starts and ends must be constant");
  for (std::size_t i = 3; i < 5; ++i) {
    if (n.has_input(i) && n.known(i) == nullptr) n.fail("its axes and steps must be constant");
  }
  Ints axes(starts->size());
  std::iota(axes.begin(), axes.end(), 0);
  axes = resolve_axes(n.ints_or_input("axes", 3).value_or(axes), rank(n));
  const Ints steps = n.ints_or_input("steps", 4).value_or(Ints(axes.size(), 1));
  if (axes.size() != starts->size() || ends->size() != axes.size() || steps.size() != axes.size())
    n.fail("starts, ends, axes and steps differ in length");
  ValueId x = n.value(0, Use::kWeight);
  if (axes.empty()) return n.finish("Identity", {x}, {});
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (steps[i] != 1) n.fail(fmt::format("step {} is not supported; only 1 is", steps[i]));
    const std::int64_t dim = n.type_of(x).shape[static_cast<std::size_t>(axes[i])];
    const SliceRange range = resolve_slice(dim, (*starts)[i], (*ends)[i], 1);
    const Attrs attrs = slice_attrs(axes[i], range.start, range.start + range.count);
    if (i + 1 == axes.size()) return n.finish("Slice", {x}, attrs);
    x = n.emit("Slice", {x}, attrs, fmt::format("axis{}", axes[i]));
  }
}

/// One Slice of ours per output.
void import_split(NodeImport& n) {
  const std::int64_t axis = axis_of(n, 0);
  const std::int64_t dim = n.type(0).shape[static_cast<std::size_t>(axis)];
  if (n.has_input(1) && n.known(1) == nullptr) n.fail("its split must be constant");
  const auto parts = static_cast<std::int64_t>(n.n_outputs());
  const std::int64_t part = (dim + parts - 1) / parts;
  Ints sizes = n.ints_or_input("split", 1).value_or(Ints(n.n_outputs(), part));
  if (!n.ints_or_input("split", 1)) sizes.back() = dim - part * (parts - 1);
  if (sizes.size() != n.n_outputs()) n.fail("split and outputs differ in number");
  std::int64_t start = 0;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    if (sizes[k] < 0 || sizes[k] > dim - start) n.fail("its parts do not add up to the dimension");
    if (n.output_used(k)) n.finish("Slice", {n.value(0, Use::kData)}, slice_attrs(axis, start, start + sizes[k]), k);
    start += sizes[k];
  }
  if (start != dim) n.fail("its parts do not add up to the dimension");
}

void import_cast(NodeImport& n) {
  DType to;
  try {
    to = dtype_of(static_cast<int>(n.int_or("to", 0)), "the type cast to");
  } catch (const UserError& e) {
    n.fail(e.what());
  }
  const ValueId x = n.value(0, Use::kWeight);
  if (to == n.type(0).dtype) return n.finish("Identity", {x}, {});
  n.finish("Cast", {x}, {{"to", std::string(graph::to_string(to))}});
}

/// Scales of Resize and Upsample: an attribute in opset 7, an input afterwards, which may be empty; or sizes.
Attrs resize_factors(const NodeImport& n) {
  if (Attrs scales = n.pick({"scales"}); !scales.empty()) return scales;
  const std::size_t at = n.op() == "Upsample" || n.opset() < 11 ? 1 : 2;
  for (const std::size_t i : {at, std::size_t{3}}) {
    if (!n.has_input(i) || n.type(i).elements() == 0) continue;
    const char* key = i == at ? "scales" : "sizes";
    if (n.known(i) == nullptr) n.fail(fmt::format("its {} must be constant", key));
    if (i == at) return {{key, short_numbers(*n.known(i), key)}};
    return {{key, rebatched(n, integers(*n.known(i), key))}};
  }
  n.fail("has neither scales nor sizes");
}

void import_resize(NodeImport& n) {
  const std::string mode = n.string_or("mode", "nearest");
  if (mode != "nearest") n.fail(fmt::format("mode '{}' is not supported; only 'nearest' is", mode));
  if (n.attrs().contains("axes")) n.fail("attribute 'axes' is not supported");
  if (n.string_or("keep_aspect_ratio_policy", "stretch") != "stretch")
    n.fail("attribute 'keep_aspect_ratio_policy' is not supported");
  Attrs attrs = resize_factors(n);
  const bool old = n.op() == "Upsample" || n.opset() < 11;
  attrs["coordinate_transformation_mode"] =
      old ? "asymmetric" : n.string_or("coordinate_transformation_mode", "half_pixel");
  attrs["nearest_mode"] = old ? "floor" : n.string_or("nearest_mode", "round_prefer_floor");
  n.finish("Resize", {n.value(0, Use::kData)}, attrs);
}

void import_pad(NodeImport& n) {
  const auto pads = n.ints_or_input("pads", 1);
  if (!pads) n.fail("its pads must be constant");
  if (std::any_of(pads->begin(), pads->end(), [](std::int64_t p) { return p != 0; }))
    n.fail("pads that are not zero are not supported; use the pads of Conv or a pool");
  n.finish("Identity", {n.value(0, Use::kData)}, {});
}

void import_shape(NodeImport& n) {
  const Shape& shape = n.type(0).shape;
  const SliceRange r =
      resolve_slice(rank(n), n.int_or("start", 0), n.int_or("end", std::numeric_limits<std::int64_t>::max()), 1);
  const Ints part(shape.begin() + r.start, shape.begin() + r.start + r.count);
  n.finish_known(graph::tensor_of(DType::kI64, {r.count}, part), false);
}

void import_size(NodeImport& n) {
  n.finish_known(graph::tensor_of(DType::kI64, {}, Ints{n.type(0).elements()}), false);
}

const std::map<std::string, Rule>& rules() {
  static const std::map<std::string, Rule> all = {
      {"Add", import_elementwise},
      {"AveragePool", import_pool},
      {"BatchNormalization", import_batch_normalization},
      {"Cast", import_cast},
      {"Clip", import_clip},
      {"Concat", import_concat},
      {"Conv", import_conv},
      {"ConvTranspose", import_conv},
      {"Div", import_elementwise},
      {"Dropout", import_dropout},
      {"Flatten", import_flatten},
      {"Gemm", import_gemm},
      {"GlobalAveragePool", import_plain},
      {"GlobalMaxPool", import_global_max_pool},
      {"Identity", import_identity},
      {"LogSoftmax", import_softmax},
      {"MatMul", import_mat_mul},
      {"MaxPool", import_pool},
      {"Mul", import_elementwise},
      {"Pad", import_pad},
      {"ReduceMean", import_reduce},
      {"ReduceSum", import_reduce},
      {"Relu", import_plain},
      {"Reshape", import_reshape},
      {"Resize", import_resize},
      {"Shape", import_shape},
      {"Sigmoid", import_plain},
      {"Size", import_size},
      {"Slice", import_slice},
      {"Softmax", import_softmax},
      {"Split", import_split},
      {"Squeeze", import_squeeze},
      {"Sub", import_elementwise},
      {"Sum", import_sum},
      {"Tanh", import_plain},
      {"Transpose", import_transpose},
      {"Unsqueeze", import_unsqueeze},
      {"Upsample", import_resize},
  };
  return all;
}

}  // namespace

Rule rule_for(const std::string& op) {
  const auto found = rules().find(op);
  return found == rules().end() ? nullptr : found->second;
}

}  // namespace neaptide::onnx
