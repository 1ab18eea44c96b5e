// The public packing instances: minimalloc's five below their capacity, and the sixteen bars of the MXNet paper.
#include <gtest/gtest.h>

#include "neaptide/base/files.hpp"
#include "neaptide/base/json.hpp"
#include "neaptide/memory/csv.hpp"
#include "neaptide/memory/mxnet.hpp"
#include "tests/plan/shared_data.hpp"

namespace neaptide::memory {
namespace {

using plan::shared_path;

class Minimalloc : public testing::TestWithParam<const char*> {};

TEST_P(Minimalloc, FitsTheCapacity) {
  const std::string file = std::string("instances/minimalloc/") + GetParam() + ".1048576.csv";
  NEAPTIDE_NEEDS_SHARED(file);
  const CsvBlocks in = read_csv(shared_path(file));
  PackOptions options;
  options.capacity = 1048576;
  options.time_limit = 600;  // the effort decides
  options.packer = "exact";
  EXPECT_LE(pack(in.blocks, options).top, 1048576);
  EXPECT_EQ(csv_from_text(to_csv(in), file), in);
}

INSTANTIATE_TEST_SUITE_P(Files, Minimalloc, testing::Values("A", "C", "D", "E", "J"));

class MxnetFigure7 : public testing::TestWithParam<const char*> {};

TEST_P(MxnetFigure7, HasTheBarsOfThePaper) {
  const std::string file = std::string("instances/mxnet_") + GetParam() + ".json";
  NEAPTIDE_NEEDS_SHARED(file);
  const std::string text = read_maybe_gzip(shared_path(file));
  const Json published = parse_json(text, file)["reference"]["gib"];
  const plan::Problem problem = plan::problem_from_json(text, file);
  const auto gib = [&](bool in_place, bool co_share) {
    const MxnetBlocks blocks = mxnet_blocks(problem, {.in_place = in_place, .co_share = co_share});
    return static_cast<double>(blocks.total) / (1 << 30);
  };
  const auto expect_near = [&](double ours, const char* bar) {
    const double theirs = published[bar].get<double>();
    EXPECT_NEAR(ours, theirs, 0.02 * theirs) << bar;
  };
  expect_near(gib(false, false), "naive");
  expect_near(gib(true, false), "in_place");
  expect_near(gib(false, true), "co_share");
  expect_near(gib(true, true), "both");
}

INSTANTIATE_TEST_SUITE_P(Files, MxnetFigure7,
                         testing::Values("googlenet_b64_forward", "googlenet_b64_train", "vgga_b64_forward",
                                         "vgga_b64_train"));

/// A chain of ops v0 -> v1 -> ... of these sizes.
plan::Problem chain(const std::vector<Bytes>& sizes) {
  plan::Problem p;
  const plan::DeviceId d = p.devices.push_back({.name = "d", .budget = {}, .alignment = 1});
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    plan::Buffer buffer;
    buffer.name = "v" + std::to_string(i);
    buffer.bytes = sizes[i];
    const plan::BufferId out = p.buffers.push_back(buffer);
    plan::Impl impl;
    impl.device = d;
    impl.writes = {out};
    if (i > 0) impl.reads = {plan::BufferId(i - 1)};
    plan::Op op;
    op.name = "op" + std::to_string(i);
    op.impls = {impl};
    if (i > 0) {
      impl.in_place = {{plan::BufferId(i - 1), out}};
      op.impls.push_back(impl);
    }
    p.order.push_back(p.ops.push_back(op));
  }
  return p;
}

Bytes total(const plan::Problem& p, bool in_place, bool co_share) {
  return mxnet_blocks(p, {.in_place = in_place, .co_share = co_share}).total;
}

TEST(Mxnet, TakesOverOnlyBlocksOfEqualSize) {
  EXPECT_EQ(total(chain({10, 10, 10}), false, false), 30);
  EXPECT_EQ(total(chain({10, 10, 10}), true, false), 10);
  EXPECT_EQ(total(chain({10, 9, 9}), true, false), 19);
}

TEST(Mxnet, SharesFreeBlocksWithinAFactorOfSixteen) {
  EXPECT_EQ(total(chain({10, 10, 10}), false, true), 20);
  EXPECT_EQ(total(chain({10, 10, 15}), false, true), 25);    // v2 makes the block of v0 grow
  EXPECT_EQ(total(chain({16, 1, 1}), false, true), 17);      // 1 byte takes the block of 16
  EXPECT_EQ(total(chain({17, 1, 1}), false, true), 19);      // not one of 17
  EXPECT_EQ(total(chain({1, 5, 16}), false, true), 5 + 16);  // 1 grows to 16
  EXPECT_EQ(total(chain({1, 5, 17}), false, true), 1 + 5 + 17);
}

}  // namespace
}  // namespace neaptide::memory
