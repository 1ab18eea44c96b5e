// Element types, shapes, tensor types, storage formats and host tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "neaptide/base/units.hpp"

namespace neaptide::graph {

enum class DType : std::uint8_t { kF32, kF64, kI64, kI32, kBool, kU8 };

std::string_view to_string(DType dtype);  // "f32"
DType dtype_from(std::string_view text);  // UserError for an unknown word
std::int64_t size_of(DType dtype);        // bytes of an element; bool is one byte

/// All dimensions are static and >= 0. A scalar has no dimensions.
using Shape = std::vector<std::int64_t>;

std::int64_t n_elements(const Shape& shape);  // UserError on overflow
std::string to_string(const Shape& shape);    // "8x3x32x32", "scalar"

struct TensorType {
  DType dtype = DType::kF32;
  Shape shape;
  std::int64_t elements() const { return n_elements(shape); }
  Bytes bytes() const;
  friend bool operator==(const TensorType&, const TensorType&) = default;
};
std::string to_string(const TensorType& type);  // "f32[8x3x32x32]"

/// How the elements lie in memory. An empty tag is plain row-major; any other tag belongs to a backend (a blocked
/// layout such as "aBcd16b"), whose `bytes` include its padding. Only Reorder nodes change the format of a value.
struct Format {
  std::string tag;
  Bytes bytes = 0;  // 0 when plain: the type says it
  bool plain() const { return tag.empty(); }
  friend bool operator==(const Format&, const Format&) = default;
};

/// A host tensor in plain format; the bytes are shared and never modified.
struct Tensor {
  TensorType type;
  std::shared_ptr<const std::vector<std::byte>> data;

  template <class T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(data->data()), data->size() / sizeof(T)};
  }
  friend bool operator==(const Tensor& a, const Tensor& b) {
    return a.type == b.type && (a.data == b.data || (a.data && b.data && *a.data == *b.data));
  }
};

/// Copies raw bytes; UserError when their number does not match the type.
Tensor make_tensor(const TensorType& type, std::span<const std::byte> bytes);
Tensor zeros(const TensorType& type);

template <class T>
Tensor tensor_of(DType dtype, Shape shape, const std::vector<T>& values) {
  return make_tensor({dtype, std::move(shape)}, std::as_bytes(std::span(values)));
}

}  // namespace neaptide::graph
