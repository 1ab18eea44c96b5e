// Loops over index spaces with a stride per operand: broadcasting, transposing, reducing, slicing. Nothing is allocated
// when a loop runs; the order is row-major over `shape`.
//
//   StridedLoop<2> loop({4, 3}, {row_strides, column_strides});
//   loop.run([&](const std::array<std::int64_t, 2>& at) { y[at[0]] += x[at[1]]; });
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "neaptide/base/errors.hpp"
#include "neaptide/graph/types.hpp"

namespace neaptide::ops {

using Strides = std::vector<std::int64_t>;  // in elements

/// Of a row-major tensor.
inline Strides strides_of(const graph::Shape& shape) {
  Strides strides(shape.size(), 1);
  for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

/// Of a tensor of `shape` read over the larger `target` by numpy's broadcasting: 0 where it repeats.
inline Strides broadcast_strides(const graph::Shape& shape, const graph::Shape& target) {
  const Strides own = strides_of(shape);
  Strides strides(target.size(), 0);
  const std::size_t shift = target.size() - shape.size();
  for (std::size_t d = 0; d < shape.size(); ++d) strides[d + shift] = shape[d] == 1 ? 0 : own[d];
  return strides;
}

template <std::size_t N>
class StridedLoop {
 public:
  static constexpr std::size_t kMaxRank = 16;

  StridedLoop(const graph::Shape& shape, const std::array<Strides, N>& strides) : n_(graph::n_elements(shape)) {
    for (std::size_t d = 0; d < shape.size(); ++d) append(shape[d], strides, d);
    if (dims_.empty()) append(1, {}, 0);
    if (dims_.size() > kMaxRank)
      throw UserError("a tensor of {} dimensions; at most {} are supported", dims_.size(), kMaxRank);
  }

  /// f(offsets) for every index.
  template <class F>
  void run(F&& f) const {
    if (n_ == 0) return;
    std::array<std::int64_t, kMaxRank> index{};
    std::array<std::int64_t, N> at{};
    const std::size_t last = dims_.size() - 1;
    for (;;) {
      for (std::int64_t i = 0; i < dims_[last].size; ++i) {
        f(static_cast<const std::array<std::int64_t, N>&>(at));
        for (std::size_t k = 0; k < N; ++k) at[k] += dims_[last].stride[k];
      }
      for (std::size_t k = 0; k < N; ++k) at[k] -= dims_[last].stride[k] * dims_[last].size;
      std::size_t d = last;
      for (; d > 0; --d) {
        for (std::size_t k = 0; k < N; ++k) at[k] += dims_[d - 1].stride[k];
        if (++index[d - 1] < dims_[d - 1].size) break;
        for (std::size_t k = 0; k < N; ++k) at[k] -= dims_[d - 1].stride[k] * dims_[d - 1].size;
        index[d - 1] = 0;
      }
      if (d == 0) return;
    }
  }

 private:
  struct Dim {
    std::int64_t size;
    std::array<std::int64_t, N> stride;
  };

  /// Dimensions of one are dropped, and a dimension that continues its left neighbour in every operand is merged with
  /// it.
  void append(std::int64_t size, const std::array<Strides, N>& strides, std::size_t d) {
    Dim dim{size, {}};
    for (std::size_t k = 0; k < N; ++k) dim.stride[k] = d < strides[k].size() ? strides[k][d] : 0;
    if (size == 1 && !dims_.empty()) return;
    bool continues = !dims_.empty();
    for (std::size_t k = 0; k < N && continues; ++k) continues = dims_.back().stride[k] == dim.stride[k] * size;
    if (dims_.size() == 1 && dims_.back().size == 1) {
      dims_.back() = dim;
    } else if (continues) {
      dims_.back().size *= size;
      dims_.back().stride = dim.stride;
    } else {
      dims_.push_back(dim);
    }
  }

  std::int64_t n_;
  std::vector<Dim> dims_;
};

}  // namespace neaptide::ops
