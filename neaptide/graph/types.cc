#include "neaptide/graph/types.hpp"

#include <array>
#include <utility>

#include "neaptide/base/errors.hpp"

namespace neaptide::graph {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  std::int64_t size;
};
constexpr std::array<Row, 6> kRows = {{{DType::kF32, "f32", 4},
                                       {DType::kF64, "f64", 8},
                                       {DType::kI64, "i64", 8},
                                       {DType::kI32, "i32", 4},
                                       {DType::kBool, "bool", 1},
                                       {DType::kU8, "u8", 1}}};

}  // namespace

std::string_view to_string(DType dtype) { return kRows[static_cast<std::size_t>(dtype)].name; }

DType dtype_from(std::string_view text) {
  for (const Row& r : kRows) {
    if (r.name == text) return r.dtype;
  }
  throw UserError("'{}' is not an element type; known are f32, f64, i64, i32, bool, u8", text);
}

std::int64_t size_of(DType dtype) { return kRows[static_cast<std::size_t>(dtype)].size; }

std::int64_t n_elements(const Shape& shape) {
  std::int64_t n = 1;
  for (const std::int64_t d : shape) {
    if (d < 0) throw UserError("shape {} has a negative dimension", to_string(shape));
    n = checked_mul(n, d, "a shape");
  }
  return n;
}

std::string to_string(const Shape& shape) {
  if (shape.empty()) return "scalar";
  std::string out;
  for (std::size_t i = 0; i < shape.size(); ++i) out += (i > 0 ? "x" : "") + std::to_string(shape[i]);
  return out;
}

Bytes TensorType::bytes() const { return checked_mul(elements(), size_of(dtype), "a tensor"); }

std::string to_string(const TensorType& type) {
  return fmt::format("{}[{}]", to_string(type.dtype), type.shape.empty() ? "" : to_string(type.shape));
}

Tensor make_tensor(const TensorType& type, std::span<const std::byte> bytes) {
  if (type.bytes() != static_cast<Bytes>(bytes.size()))
    throw UserError("a tensor {} needs {} bytes and has {}", to_string(type), type.bytes(), bytes.size());
  return {type, std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end())};
}

Tensor zeros(const TensorType& type) {
  return {type, std::make_shared<const std::vector<std::byte>>(static_cast<std::size_t>(type.bytes()))};
}

}  // namespace neaptide::graph
