#include "neaptide/onnx/tensors.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/files.hpp"

namespace neaptide::onnx {
namespace {

using graph::DType;
using graph::Tensor;
using graph::TensorType;

constexpr std::array<std::pair<int, DType>, 6> kTypes = {{{pb::TensorProto::FLOAT, DType::kF32},
                                                          {pb::TensorProto::UINT8, DType::kU8},
                                                          {pb::TensorProto::INT32, DType::kI32},
                                                          {pb::TensorProto::INT64, DType::kI64},
                                                          {pb::TensorProto::BOOL, DType::kBool},
                                                          {pb::TensorProto::DOUBLE, DType::kF64}}};

/// Elements of a typed field, cut to T.
template <class T, class Field>
Tensor from_field(const TensorType& type, const Field& field, const std::string& what) {
  if (field.size() != type.elements())
    throw UserError("{} is {} but holds {} elements", what, graph::to_string(type), field.size());
  std::vector<T> values(static_cast<std::size_t>(field.size()));
  std::transform(field.begin(), field.end(), values.begin(), [](auto v) { return static_cast<T>(v); });
  return graph::make_tensor(type, std::as_bytes(std::span(values)));
}

Tensor from_fields(const pb::TensorProto& t, const TensorType& type, const std::string& what) {
  switch (type.dtype) {
    case DType::kF32:
      return from_field<float>(type, t.float_data(), what);
    case DType::kF64:
      return from_field<double>(type, t.double_data(), what);
    case DType::kI64:
      return from_field<std::int64_t>(type, t.int64_data(), what);
    case DType::kI32:
      return from_field<std::int32_t>(type, t.int32_data(), what);
    case DType::kBool:
    case DType::kU8:
      return from_field<std::uint8_t>(type, t.int32_data(), what);
  }
  throw InternalError("{} has an element type without a field", what);
}

Tensor from_raw(std::string_view raw, const TensorType& type, const std::string& what) {
  if (static_cast<Bytes>(raw.size()) != type.bytes())
    throw UserError("{} is {} and needs {} bytes; it has {}", what, graph::to_string(type), type.bytes(), raw.size());
  return graph::make_tensor(type, std::as_bytes(std::span(raw.data(), raw.size())));
}

std::int64_t external_number(const pb::TensorProto& t, const char* key, std::int64_t otherwise,
                             const std::string& what) {
  for (const pb::StringStringEntryProto& e : t.external_data()) {
    if (e.key() != key) continue;
    std::int64_t v = 0;
    const auto [end, error] = std::from_chars(e.value().data(), e.value().data() + e.value().size(), v);
    if (error != std::errc() || end != e.value().data() + e.value().size() || v < 0)
      throw UserError("{}: external data has {} '{}', which is not a size", what, key, e.value());
    return v;
  }
  return otherwise;
}

std::string external_location(const pb::TensorProto& t, const std::string& what) {
  for (const pb::StringStringEntryProto& e : t.external_data()) {
    if (e.key() != "location") continue;
    const std::filesystem::path path(e.value());
    const bool leaves = path.is_absolute() || std::find(path.begin(), path.end(), "..") != path.end();
    if (leaves || path.empty())
      throw UserError("{}: external data '{}' is not a path below the model's directory", what, e.value());
    return e.value();
  }
  throw UserError("{}: external data names no location", what);
}

}  // namespace

bool known_dtype(int elem_type) {
  return std::any_of(kTypes.begin(), kTypes.end(), [&](const auto& row) { return row.first == elem_type; });
}

std::string type_name(int elem_type) {
  if (!pb::TensorProto_DataType_IsValid(elem_type)) return "type " + std::to_string(elem_type);
  std::string name = pb::TensorProto_DataType_Name(static_cast<pb::TensorProto_DataType>(elem_type));
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return static_cast<char>(tolower(c)); });
  return name;
}

DType dtype_of(int elem_type, const std::string& what) {
  for (const auto& [onnx_type, dtype] : kTypes) {
    if (onnx_type == elem_type) return dtype;
  }
  throw UserError("{} is {}; convert the model to float32", what, type_name(elem_type));
}

int elem_type_of(DType dtype) {
  for (const auto& [onnx_type, ours] : kTypes) {
    if (ours == dtype) return onnx_type;
  }
  throw InternalError("an element type has no ONNX name");
}

std::string_view ExternalFiles::read(const pb::TensorProto& tensor, Bytes bytes, const std::string& what) {
  const std::string location = external_location(tensor, what);
  if (directory_.empty()) throw UserError("{}: its data is in another file, '{}'", what, location);
  const std::int64_t offset = external_number(tensor, "offset", 0, what);
  const std::int64_t length = external_number(tensor, "length", bytes, what);
  if (length != bytes) throw UserError("{} needs {} bytes; its external data has {}", what, bytes, length);
  auto found = files_.find(location);
  if (found == files_.end())
    found = files_.emplace(location, read_file((std::filesystem::path(directory_) / location).string())).first;
  const auto size = static_cast<std::int64_t>(found->second.size());
  if (offset > size || length > size - offset)
    throw UserError("{}: external data '{}' has {} bytes; {} from byte {} are needed", what, location, size, length,
                    offset);
  return std::string_view(found->second).substr(static_cast<std::size_t>(offset), static_cast<std::size_t>(length));
}

Bytes checked_bytes(const TensorType& type, const std::string& what) {
  try {
    return type.bytes();
  } catch (const UserError& e) {
    throw UserError("{}: {}", what, e.what());
  }
}

Tensor decode(const pb::TensorProto& t, const std::string& what, ExternalFiles& files) {
  const TensorType type{dtype_of(t.data_type(), what), {t.dims().begin(), t.dims().end()}};
  for (const std::int64_t d : type.shape) {
    if (d < 0) throw UserError("{} has the negative dimension {}", what, d);
  }
  const Bytes bytes = checked_bytes(type, what);
  if (t.has_segment()) throw UserError("{} is stored in segments, which are not supported", what);
  if (t.data_location() == pb::TensorProto::EXTERNAL) return from_raw(files.read(t, bytes, what), type, what);
  if (t.has_raw_data()) return from_raw(t.raw_data(), type, what);
  return from_fields(t, type, what);
}

pb::TensorProto encode(const Tensor& tensor, const std::string& name) {
  pb::TensorProto out;
  out.set_name(name);
  out.set_data_type(elem_type_of(tensor.type.dtype));
  for (const std::int64_t d : tensor.type.shape) out.add_dims(d);
  out.set_raw_data(tensor.data->data(), tensor.data->size());
  return out;
}

double shortest(float x) {
  if (!std::isfinite(x)) return static_cast<double>(x);
  const std::string text = fmt::format("{}", x);
  double out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

std::vector<std::int64_t> integers(const Tensor& tensor, const std::string& what) {
  const auto widen = [](auto span) { return std::vector<std::int64_t>(span.begin(), span.end()); };
  switch (tensor.type.dtype) {
    case DType::kI64:
      return widen(tensor.as<std::int64_t>());
    case DType::kI32:
      return widen(tensor.as<std::int32_t>());
    case DType::kBool:
    case DType::kU8:
      return widen(tensor.as<std::uint8_t>());
    default:
      throw UserError("{} is {}; integers are needed", what, graph::to_string(tensor.type));
  }
}

std::vector<double> numbers(const Tensor& tensor, const std::string& what) {
  const auto widen = [](auto span) { return std::vector<double>(span.begin(), span.end()); };
  if (tensor.type.dtype == DType::kF32) return widen(tensor.as<float>());
  if (tensor.type.dtype == DType::kF64) return widen(tensor.as<double>());
  const std::vector<std::int64_t> v = integers(tensor, what);
  std::vector<double> out(v.size());
  std::transform(v.begin(), v.end(), out.begin(), [](std::int64_t i) { return static_cast<double>(i); });
  return out;
}

}  // namespace neaptide::onnx
