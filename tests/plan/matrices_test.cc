// Matrices of plans written by hand.
#include "neaptide/plan/matrices.hpp"

#include <gtest/gtest.h>

#include "neaptide/base/json.hpp"

namespace neaptide::plan {
namespace {

using Rows = std::vector<std::vector<int>>;
using Frees = std::vector<std::vector<std::pair<int, int>>>;

/// f0 -> f1 -> b1 (reads f1) -> b0 (reads b1 and f0), one buffer each.
Problem chain(int n_devices = 1) {
  Problem p;
  for (int d = 0; d < n_devices; ++d) p.devices.push_back({.name = "d" + std::to_string(d)});
  const auto add = [&](const char* name, std::vector<BufferId> reads) {
    const BufferId out = p.buffers.push_back({.name = name, .bytes = 1});
    Impl impl{.name = "i", .device = DeviceId(0), .seconds = 1, .reads = std::move(reads), .writes = {out}};
    p.order.push_back(p.ops.push_back({name, false, {std::move(impl)}}));
    return out;
  };
  const BufferId f0 = add("f0", {}), f1 = add("f1", {f0}), b1 = add("b1", {f1});
  p.buffers[add("b0", {b1, f0})].keep = true;
  return p;
}

Step run(int op) { return Compute{OpId(op), 0}; }
Step drop(int buffer, int device = 0) { return Free{BufferId(buffer), DeviceId(device)}; }

TEST(Matrices, OfAPlanThatKeepsEverything) {
  const Matrices m = matrices_of(chain(), {run(0), run(1), run(2), drop(1), run(3), drop(0), drop(2)});
  EXPECT_EQ(m.ops, (std::vector<OpId>{OpId(0), OpId(1), OpId(2), OpId(3)}));
  EXPECT_EQ(m.runs, (Rows{{0}, {1}, {2}, {3}}));
  EXPECT_EQ(m.held, (Rows{{}, {0}, {0, 1}, {0, 2}}));
  EXPECT_EQ(m.freed, (Frees{{}, {}, {{1, 2}}, {{0, 3}, {2, 3}}}));
}

TEST(Matrices, OfAPlanThatRunsAgain) {
  const Matrices m = matrices_of(chain(), {run(0), run(1), drop(0), run(2), drop(1), run(0), run(3)});
  EXPECT_EQ(m.runs, (Rows{{0}, {1}, {2}, {0, 3}}));
  EXPECT_EQ(m.held, (Rows{{}, {0}, {1}, {2}}));
  EXPECT_EQ(m.freed, (Frees{{}, {{0, 1}}, {{1, 2}}, {}}));
  const Json j = parse_json(to_json(chain(), m), "matrices");
  EXPECT_EQ(j.at("format"), "neaptide.matrices");
  EXPECT_EQ(j.at("ops"), (Json{"f0", "f1", "b1", "b0"}));
  EXPECT_EQ(j.at("R"), (Json{{0}, {1}, {2}, {0, 3}}));
  EXPECT_EQ(j.at("F").at(1), (Json{{0, 1}}));
  EXPECT_FALSE(j.contains("S_on"));
}

TEST(Matrices, ColumnsFollowTheFirstRuns) {
  Problem p = chain();
  p.ops[OpId(1)].impls[0].reads.clear();
  const Matrices m = matrices_of(p, {run(1), run(0), run(2), run(3)});
  EXPECT_EQ(m.ops, (std::vector<OpId>{OpId(1), OpId(0), OpId(2), OpId(3)}));
  EXPECT_EQ(m.held.back(), (std::vector<int>{0, 1, 2}));
}

TEST(Matrices, SayWhereAValueWaits) {
  const DeviceId near(0), far(1);
  const Matrices m = matrices_of(chain(2), {run(0), Copy{BufferId(0), near, far}, run(1), drop(0), run(2), drop(1),
                                            Copy{BufferId(0), far, near}, drop(0, 1), run(3)});
  EXPECT_EQ(m.held, (Rows{{}, {0}, {0, 1}, {0, 2}}));
  EXPECT_EQ(m.held_on[2][near], (std::vector<int>{1}));
  EXPECT_EQ(m.held_on[2][far], (std::vector<int>{0}));
  EXPECT_EQ(m.freed, (Frees{{}, {}, {{1, 2}}, {}}));  // the copy is given up, the value is not
  const Json j = parse_json(to_json(chain(2), m), "matrices");
  EXPECT_EQ(j.at("S_on").at("d1").at(2), (Json{0}));
}

TEST(Matrices, InPlaceEndsItsInputAndAnUpdateItsPredecessor) {
  Problem p = chain();
  p.ops[OpId(1)].impls[0].in_place = {{BufferId(0), BufferId(1)}};
  p.ops[OpId(3)].once = true;
  p.ops[OpId(3)].impls[0].reads = {BufferId(2)};
  p.ops[OpId(3)].impls[0].writes = {BufferId(1)};
  const Matrices m = matrices_of(p, {run(0), run(1), run(2), run(3)});
  EXPECT_EQ(m.freed, (Frees{{}, {{0, 1}}, {}, {{1, 3}}}));
  EXPECT_EQ(m.held, (Rows{{}, {0}, {1}, {1, 2}}));
}

TEST(Matrices, ThePictureFoldsWhenItIsTooWide) {
  const Matrices m = matrices_of(chain(), {run(0), run(1), drop(0), run(2), drop(1), run(0), run(3)});
  const Cell o = Cell::kNothing, h = Cell::kHeld, f = Cell::kFreed, x = Cell::kFirst, a = Cell::kAgain;
  using Picture = std::vector<std::vector<Cell>>;
  EXPECT_EQ(picture(m, 4), (Picture{{x, o, o, o}, {f, x, o, o}, {o, f, x, o}, {a, o, h, x}}));
  EXPECT_EQ(picture(m, 100), picture(m, 4));
  EXPECT_EQ(picture(m, 3), (Picture{{x, o}, {a, x}}));
  EXPECT_EQ(picture(m, 1), (Picture{{a}}));
  EXPECT_TRUE(picture(matrices_of(chain(), {}), 80).empty());
}

}  // namespace
}  // namespace neaptide::plan
