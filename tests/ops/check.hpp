// What the tests of all operator families share: gradients against finite differences, every implementation against the
// first, f32 against f64.
//
//   check_op({random_tensor({2, 3}, 1), random_tensor({3}, 2)},
//            [](Builder& b, const std::vector<ValueId>& x) { return std::vector{b.add("Mul", {x[0], x[1]})}; });
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "neaptide/graph/builder.hpp"
#include "neaptide/ops/interpret.hpp"

namespace neaptide::ops {

/// f64, uniform in [low, high), the same for the same seed.
graph::Tensor random_tensor(const graph::Shape& shape, unsigned seed, double low = -1, double high = 1);
graph::Tensor integers(const graph::Shape& shape, const std::vector<std::int64_t>& values);  // i64
graph::Tensor reals(const graph::Shape& shape, const std::vector<double>& values);           // f64

/// Elements of any type as doubles.
std::vector<double> to_doubles(const graph::Tensor& tensor);
/// f64 <-> f32; other types are returned as they are.
graph::Tensor to_dtype(const graph::Tensor& tensor, graph::DType dtype);

/// |a - b| <= tolerance (1 + |b|), element by element, and the same type; NaN equals NaN.
void expect_close(const graph::Tensor& actual, const graph::Tensor& expected, double tolerance,
                  const std::string& what);

/// Runs every implementation of every node on the same inputs: each must be able to run and must give what the first
/// one that writes an output gave, bit for bit when `tolerance` is 0. Returns all values.
Values expect_implementations_agree(const graph::Graph& graph, const Feeds& feeds, double tolerance = 0);

struct CheckOptions {
  double step = 1e-5;                      // of the central differences
  double tolerance = 1e-6;                 // gradients against differences, relative to 1 + |gradient|
  double f32_tolerance = 1e-4;             // f32 against f64, relative
  double implementations = 1e-12;          // implementations against the first, f64 (f32: f32_tolerance)
  std::vector<std::size_t> constant = {};  // inputs that are not differentiated
};

/// Makes the outputs from inputs (f64 in the test's hands, fed also as f32; integers as they are).
using MakeOp = std::function<std::vector<graph::ValueId>(graph::Builder&, const std::vector<graph::ValueId>&)>;

/// The whole check of an operator: forward and gradient graphs are sound, gradients of a random projection of all
/// floating-point outputs agree with central differences in f64, all implementations agree, f32 agrees with f64, and
/// every node states its work.
void check_op(const std::vector<graph::Tensor>& inputs, const MakeOp& make, const CheckOptions& options = {});

/// The outputs in f64.
std::vector<graph::Tensor> evaluate(const std::vector<graph::Tensor>& inputs, const MakeOp& make);

/// The message of the UserError that building throws; "" when it throws none.
std::string refusal(const std::vector<graph::Tensor>& inputs, const MakeOp& make);

}  // namespace neaptide::ops
