// Problems that are hard on purpose: long, wide, all ties, nothing but zeros, sizes near the edge of 63 bits.
//
//   const plan::Problem p = plan::training_chain(10'000, plan::unit_shape());
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "neaptide/base/errors.hpp"
#include "neaptide/plan/problem.hpp"

namespace neaptide::plan {

/// Bytes of the i-th buffer and seconds of the i-th op.
struct Shape {
  std::function<Bytes(int)> bytes = [](int) { return Bytes{1}; };
  std::function<Seconds(int)> seconds = [](int) { return Seconds{1}; };
};

/// Builds a one-device problem op by op: every op writes one new buffer.
class ProblemMaker {
 public:
  ProblemMaker(std::string name, Shape shape) : shape_(std::move(shape)) {
    p_.name = std::move(name);
    p_.devices.push_back({.name = "d"});
  }

  /// The buffer that the new op writes.
  BufferId op(std::vector<BufferId> reads, bool once = false) {
    const int i = static_cast<int>(p_.ops.size());
    const BufferId out = p_.buffers.push_back({.name = fmt::format("v{}", i), .bytes = shape_.bytes(i)});
    const Impl impl{
        .name = "i", .device = DeviceId(0), .seconds = shape_.seconds(i), .reads = std::move(reads), .writes = {out}};
    p_.order.push_back(p_.ops.push_back({.name = fmt::format("op{}", i), .once = once, .impls = {impl}}));
    return out;
  }

  void keep(BufferId b) { p_.buffers[b].keep = true; }
  Problem take() { return std::move(p_); }

 private:
  Shape shape_;
  Problem p_;
};

/// n layers forward, n gradients backward; gradient i reads the gradient after it and the layer's input.
inline Problem training_chain(int n, const Shape& shape = {}) {
  ProblemMaker m("chain", shape);
  std::vector<BufferId> a;
  for (int i = 0; i < n; ++i) a.push_back(m.op(i == 0 ? std::vector<BufferId>{} : std::vector{a.back()}));
  BufferId g = a.back();
  for (int i = n - 1; i >= 0; --i) {
    std::vector<BufferId> reads{g};
    if (i > 0 && a[static_cast<std::size_t>(i) - 1] != g) reads.push_back(a[static_cast<std::size_t>(i) - 1]);
    g = m.op(std::move(reads), i == 0);
  }
  m.keep(g);
  return m.take();
}

/// Op (i, j) reads (i-1, j) and (i, j-1); the last one is kept.
inline Problem grid(int rows, int columns, const Shape& shape = {}) {
  ProblemMaker m("grid", shape);
  std::vector<BufferId> above(static_cast<std::size_t>(columns));
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      const auto at = static_cast<std::size_t>(j);
      std::vector<BufferId> reads;
      if (i > 0) reads.push_back(above[at]);
      if (j > 0) reads.push_back(above[at - 1]);
      above[at] = m.op(std::move(reads), i + 1 == rows && j + 1 == columns);
    }
  }
  m.keep(above.back());
  return m.take();
}

/// One value that n ops read, and one op that reads all their results.
inline Problem fan(int n, const Shape& shape = {}) {
  ProblemMaker m("fan", shape);
  const BufferId source = m.op({});
  std::vector<BufferId> all;
  for (int i = 0; i < n; ++i) all.push_back(m.op({source}));
  m.keep(m.op(all, true));
  return m.take();
}

/// One value that n ops read; a running sum reads their results one after the other, from the last to the first, so
/// that all of them wait.
inline Problem fan_and_sum(int n, const Shape& shape = {}) {
  ProblemMaker m("fan-and-sum", shape);
  const BufferId source = m.op({});
  std::vector<BufferId> all;
  for (int i = 0; i < n; ++i) all.push_back(m.op({source}));
  BufferId sum = source;
  for (int i = n - 1; i >= 0; --i) sum = m.op({sum, all[static_cast<std::size_t>(i)]}, i == 0);
  m.keep(sum);
  return m.take();
}

/// Every op may run once only, in pairs that wait for each other: nothing can be recomputed.
inline Problem once_only(int n, const Shape& shape = {}) {
  ProblemMaker m("once-only", shape);
  std::vector<BufferId> a;
  for (int i = 0; i < n; ++i) a.push_back(m.op({}, true));
  BufferId sum = a.back();
  for (int i = n - 2; i >= 0; --i) sum = m.op({sum, a[static_cast<std::size_t>(i)]}, true);
  m.keep(sum);
  return m.take();
}

}  // namespace neaptide::plan
