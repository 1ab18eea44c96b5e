#include "neaptide/backends/reference/reference.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "neaptide/base/errors.hpp"
#include "neaptide/ops/ops.hpp"
#include "tests/cpu/harness.hpp"

namespace neaptide::backends::reference {
namespace {

using graph::Builder;
using graph::DType;
using graph::Graph;
using graph::NodeId;
using graph::NodeView;
using graph::ValueId;
using ops::random_tensor;

TEST(Reference, RunsWhatTheInterpreterRuns) {
  const auto backend = make(1);
  EXPECT_EQ(backend->version(), "reference 1");
  EXPECT_EQ(backend->format_rules(), nullptr);
  conform(*backend, {random_tensor({2, 3, 6, 6}, 1), random_tensor({4, 3, 3, 3}, 2)},
          [](Builder& b, const std::vector<ValueId>& x) {
            const ValueId y = b.add("Relu", {b.add("Conv", {x[0], x[1]})});
            return std::vector{b.add("MaxPool", {y}, {{"kernel_shape", std::vector<std::int64_t>{2, 2}}})};
          });
}

TEST(Reference, SaysWhyNot) {
  const auto backend = make(1);
  Builder b(ops::all());
  const ValueId x = b.input("x", {DType::kF32, {1, 3, 2, 2}});
  const ValueId r = b.add("Reorder", {x}), y = b.add("Relu", {r}), f = b.add("Flatten", {y});
  Graph g = b.take({f});
  g.values[r].format = {"aBcd16b", 256};
  const auto why_not = [&](std::int32_t n) { return backend->offer(NodeView(g, g.nodes[NodeId(n)])).why_not; };
  EXPECT_EQ(why_not(1), "'reorder.out' lies in format aBcd16b; the reference knows plain tensors only");
  EXPECT_EQ(why_not(2), "Flatten only renames its input; there is nothing to run");
}

TEST(Reference, RefusesAnImplementationThatItDoesNotHave) {
  const auto backend = make(1);
  Builder b(ops::all());
  const Graph g = b.take({b.add("Relu", {b.input("x", {DType::kF32, {2}})}, {}, "r")});
  EXPECT_THROW(backend->make_kernel(NodeView(g, g.nodes[NodeId(0)]), {.name = "fast"}), InternalError);
}

}  // namespace
}  // namespace neaptide::backends::reference
