#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "neaptide/base/errors.hpp"
#include "neaptide/memory/memory.hpp"
#include "neaptide/memory/placement.hpp"

namespace neaptide::memory {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Blocks = std::vector<Block>;

Offsets run(const Blocks& blocks, std::string_view packer, std::int64_t effort = 0) {
  PackOptions options;
  options.effort = effort;
  options.packer = std::string(packer);
  options.time_limit = 1e9;  // only effort may end a search, so that results repeat
  return pack(blocks, options);
}

struct Shape {
  int n, times, longest;
  Bytes largest;
};

Blocks random_blocks(const Shape& shape, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  Blocks out;
  for (int i = 0; i < shape.n; ++i) {
    const int begin = static_cast<int>(below(shape.times));
    out.push_back({begin, begin + 1 + static_cast<int>(below(shape.longest)), below(shape.largest + 1)});
  }
  return out;
}

TEST(Load, IsTheLargestSumOfLiveBytes) {
  EXPECT_EQ(load(Blocks{}), 0);
  EXPECT_EQ(load(Blocks{{0, 2, 5}, {2, 4, 6}}), 6);  // half-open: they never meet
  EXPECT_EQ(load(Blocks{{0, 3, 5}, {2, 4, 6}}), 11);
  EXPECT_THROW(load(Blocks{{0, 3, INT64_MAX}, {2, 4, 6}}), UserError);
}

TEST(Verify, NamesEveryKindOfFault) {
  const Blocks blocks = {{0, 2, 64}, {1, 3, 64}, {2, 4, 64}};
  const auto faults = [&](std::vector<Bytes> offset, Bytes top, Bytes alignment = 1) {
    return verify(blocks, Offsets{.offset = std::move(offset), .top = top}, alignment);
  };
  EXPECT_THAT(faults({0, 64, 0}, 128, 64), IsEmpty());
  EXPECT_THAT(faults({0, 63, 127}, 191),
              ElementsAre("blocks 0 and 1 overlap: [0, 64) and [63, 127) are both held at step 1"));
  EXPECT_THAT(faults({0, 64, 0}, 120), ElementsAre("the top is 128, not 120"));
  EXPECT_THAT(faults({0, 65, 0}, 129, 64), ElementsAre("block 1 lies at 65, not a multiple of 64"));
  EXPECT_THAT(faults({-64, 0, 64}, 128), ElementsAre("block 0 lies at -64, below 0"));
  EXPECT_THAT(faults({0, 64}, 128), ElementsAre("2 offsets for 3 blocks"));
}

TEST(Pack, RefusesUnknownPackersAndBadSizes) {
  try {
    run({}, "best-fitt");
    FAIL();
  } catch (const UserError& e) {
    EXPECT_STREQ(e.what(), "unknown packer 'best-fitt'; did you mean 'best-fit'?");
  }
  EXPECT_THROW(run({{0, 1, -1}}, "best"), UserError);
  EXPECT_THROW(run({{0, 1, INT64_MAX}, {1, 2, 1}}, "best"), UserError);
}

TEST(Pack, ListsPackersSorted) {
  for (std::size_t i = 1; i < packers().size(); ++i) EXPECT_LT(packers()[i - 1].name, packers()[i].name);
}

class EveryPacker : public testing::TestWithParam<std::string_view> {};

TEST_P(EveryPacker, PlacesDegenerateBlocks) {
  EXPECT_EQ(run({}, GetParam()).top, 0);
  EXPECT_EQ(run({{0, 1, 0}, {0, 1, 0}}, GetParam()).top, 0);
  EXPECT_EQ(run({{3, 4, 7}}, GetParam()).top, 7);
  EXPECT_EQ(run(Blocks(50, Block{0, 1, 8}), GetParam()).top, 400);
  EXPECT_EQ(run({{0, 1, INT64_MAX / 2}, {0, 1, INT64_MAX / 2}}, GetParam()).top, INT64_MAX - 1);
}

TEST_P(EveryPacker, IsSoundOnRandomBlocks) {  // pack() itself verifies and throws
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Blocks blocks =
        random_blocks({.n = 1 + static_cast<int>(seed % 40), .times = 20, .longest = 15, .largest = 9}, seed);
    const Offsets out = run(blocks, GetParam(), 100'000);
    EXPECT_GE(out.top, load(blocks)) << "seed " << seed;
    EXPECT_EQ(run(blocks, GetParam(), 100'000).offset, out.offset) << "seed " << seed;
  }
}

TEST_P(EveryPacker, KeepsTheAlignmentOfTheSizes) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Blocks blocks = random_blocks({.n = 30, .times = 20, .longest = 15, .largest = 9}, seed);
    for (Block& b : blocks) b.bytes *= 64;
    EXPECT_THAT(verify(blocks, run(blocks, GetParam(), 100'000), 64), IsEmpty());
  }
}

TEST_P(EveryPacker, SurvivesTwentyThousandBlocks) {
  const Blocks random = random_blocks({.n = 20000, .times = 5000, .longest = 100, .largest = 1 << 20}, 1);
  EXPECT_GE(run(random, GetParam(), 1'000'000).top, load(random));
  const Blocks equal(20000, Block{0, 10, 4});
  EXPECT_EQ(run(equal, GetParam(), 1'000'000).top, 80000);
}

INSTANTIATE_TEST_SUITE_P(Packers, EveryPacker, testing::ValuesIn([] {
                           std::vector<std::string_view> names;
                           for (const Packer& p : packers()) names.push_back(p.name);
                           return names;
                         }()),
                         [](const auto& packer) {
                           std::string name(packer.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

/// Least top over all orders of first-fit: some order of ascending offsets gives every layout whose blocks lie on
/// others.
Bytes brute_force(const Blocks& blocks) {
  std::vector<int> order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  Bytes best = INT64_MAX;
  do {
    best = std::min(best, place(blocks, order, Fit::kFirst).top);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

TEST(Exact, EqualsBruteForceOnTinyInstances) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Blocks blocks = random_blocks({.n = 4, .times = 5, .longest = 4, .largest = 6}, seed);
    blocks.push_back(blocks[0]);      // a twin
    blocks.push_back({100, 101, 3});  // a part of its own
    const Offsets out = run(blocks, "exact");
    EXPECT_EQ(out.top, brute_force(blocks)) << "seed " << seed;
    EXPECT_TRUE(out.optimal) << "seed " << seed;
  }
}

TEST(Exact, ProvesThatTheLoadCannotBeReached) {
  const Blocks blocks = {{6, 9, 5}, {2, 6, 4}, {5, 6, 4}, {2, 4, 5}, {4, 7, 1},
                         {3, 5, 3}, {3, 7, 3}, {1, 3, 5}, {4, 9, 3}};
  EXPECT_EQ(load(blocks), 15);
  EXPECT_EQ(brute_force(blocks), 16);
  const Offsets out = run(blocks, "exact");
  EXPECT_EQ(out.top, 16);
  EXPECT_TRUE(out.optimal);
  Blocks more = blocks;  // the same twice in a row, in larger units
  for (const Block& b : blocks) more.push_back({b.begin + 20, b.end + 20, b.bytes});
  for (Block& b : more) b.bytes *= 64;
  EXPECT_EQ(run(more, "exact").top, 16 * 64);
}

TEST(Exact, IsNeverAboveTheHeuristics) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const Blocks blocks = random_blocks({.n = 30, .times = 20, .longest = 10, .largest = 50}, seed);
    PackOptions options;
    options.packer = "exact";
    options.effort = 2'000'000;
    options.time_limit = 1e9;
    const Bytes exact = pack(blocks, options).top;
    for (const char* packer : {"best-fit", "first-fit", "stack"}) EXPECT_LE(exact, run(blocks, packer).top) << packer;
    EXPECT_LE(run(blocks, "best").top, run(blocks, "best-fit").top);
  }
}

TEST(Best, StopsAtTheCapacity) {
  const Blocks blocks = {{0, 2, 3}, {1, 3, 3}, {2, 4, 5}};
  PackOptions options;
  options.capacity = 1000;
  EXPECT_LE(pack(blocks, options).top, 1000);
}

TEST(Stack, IsOptimalForNestedLifetimes) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    std::mt19937_64 random(seed);
    Blocks blocks;
    std::vector<std::pair<int, int>> open = {{0, 1000}};
    for (int i = 0; i < 60 && !open.empty(); ++i) {  // split a random open interval
      const std::size_t k = random() % open.size();
      const auto [begin, end] = open[k];
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(k));
      if (end - begin < 3) continue;
      blocks.push_back({begin, end, static_cast<Bytes>(random() % 100)});
      const int middle = begin + 1 + static_cast<int>(random() % static_cast<std::uint64_t>(end - begin - 1));
      open.push_back({begin, middle});
      open.push_back({middle, end});
    }
    const Offsets out = run(blocks, "stack");
    EXPECT_EQ(out.top, load(blocks));
    EXPECT_TRUE(out.optimal);
  }
}

}  // namespace
}  // namespace neaptide::memory
