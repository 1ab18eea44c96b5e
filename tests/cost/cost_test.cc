#include <gtest/gtest.h>

#include <filesystem>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/files.hpp"
#include "neaptide/cost/cost_table.hpp"
#include "neaptide/cost/machine.hpp"
#include "neaptide/graph/builder.hpp"
#include "neaptide/ops/ops.hpp"

namespace neaptide::cost {
namespace {

using graph::DType;

graph::Graph two_relus(std::int64_t n, std::int64_t m) {
  graph::Builder b(ops::all());
  const graph::ValueId x = b.input("x", {DType::kF32, {n}});
  const graph::ValueId y = b.input("y", {DType::kF32, {m}});
  const graph::ValueId p = b.add("Relu", {x}), q = b.add("Relu", {y});
  return b.take({p, q});
}

std::string signature_of(const graph::Graph& g, std::size_t node) {
  return signature(graph::NodeView(g, g.nodes[graph::NodeId(node)]));
}

TEST(Signature, SaysOperatorTypesAndFormatsAndNothingElse) {
  const graph::Graph same = two_relus(8, 8);
  EXPECT_EQ(signature_of(same, 0), signature_of(same, 1));
  const graph::Graph differ = two_relus(8, 9);
  EXPECT_NE(signature_of(differ, 0), signature_of(differ, 1));
  graph::Graph blocked = two_relus(8, 8);
  blocked.values[graph::ValueId(std::size_t{0})].format = {.tag = "a16", .bytes = 64};
  EXPECT_NE(signature_of(blocked, 0), signature_of(blocked, 1));
}

TEST(CostCache, KeepsSecondsInAFileAndRefusesAnother) {
  const std::string path = ::testing::TempDir() + "/neaptide_costs.json";
  std::filesystem::remove(path);
  EXPECT_EQ(CostCache::load(path).size(), 0U);
  CostCache cache;
  const std::string key = cache_key("Relu(f32[8])", "plain", "cpu:0", "oneDNN 3.2");
  cache.put(key, 1.25e-6);
  cache.save(path);
  const CostCache back = CostCache::load(path);
  EXPECT_EQ(back.find(key), 1.25e-6);
  EXPECT_EQ(back.find("other"), std::nullopt);
  write_file_atomically(path, R"({"format": "neaptide.problem", "version": 1})");
  EXPECT_THROW(CostCache::load(path), UserError);
}

TEST(Machine, ReadsBackWhatItWrites) {
  const Machine machine{.devices = {{.name = "cpu:0",
                                     .backend = "cpu",
                                     .threads = 2,
                                     .budget = 1 << 20,
                                     .alignment = 64,
                                     .flops_per_second = 4e11,
                                     .bytes_per_second = 2e10}},
                        .links = {{.from = "cpu:0", .to = "host", .latency = 1e-6, .bytes_per_second = 1e9}}};
  EXPECT_EQ(machine_from_json(to_json(machine), "machine.json"), machine);
  EXPECT_THROW(machine_from_json("{}", "machine.json"), UserError);
  EXPECT_THROW(machine_from_json(R"({"format": "neaptide.machine", "version": 1})", "machine.json"), UserError);
}

TEST(Roofline, IsBoundByComputeOrTraffic) {
  const MachineDevice device{.name = "d",
                             .backend = "",
                             .threads = 1,
                             .budget = {},
                             .alignment = 1,
                             .flops_per_second = 100,
                             .bytes_per_second = 10};
  EXPECT_DOUBLE_EQ(roofline_seconds({.flops = 200, .bytes = 10}, device), 2);    // I = 20 above the ridge of 10
  EXPECT_DOUBLE_EQ(roofline_seconds({.flops = 200, .bytes = 100}, device), 10);  // I = 2 below it
}

}  // namespace
}  // namespace neaptide::cost
