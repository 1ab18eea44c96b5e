#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "neaptide/base/errors.hpp"
#include "neaptide/memory/memory.hpp"

namespace neaptide::memory {
namespace {

using plan::BufferId;
using plan::Compute;
using plan::Copy;
using plan::DeviceId;
using plan::Free;
using plan::OpId;
using testing::ElementsAre;
using testing::IsEmpty;

const DeviceId kCpu(0), kHost(1);
const BufferId kW(0), kA(1), kB(2), kC(3);
const OpId kMakeA(0), kMakeB(1), kMakeC(2), kUpdateW(3);

/// w is homed on the CPU; a = f(w) with a workspace, b = g(a) in place or not, c = h(b), then w is overwritten once.
plan::Problem small_problem() {
  plan::Problem p;
  p.devices.push_back({.name = "cpu:0", .budget = {}, .alignment = 64});
  p.devices.push_back({.name = "host", .budget = {}, .alignment = 1});
  p.buffers.push_back({.name = "w", .bytes = 100, .home = kCpu, .keep = true});
  p.buffers.push_back({.name = "a", .bytes = 1000, .home = {}});
  p.buffers.push_back({.name = "b", .bytes = 900, .home = {}});
  p.buffers.push_back({.name = "c", .bytes = 10, .home = {}});
  const auto op = [&](const char* name, bool once, std::vector<plan::Impl> impls) {
    p.order.push_back(p.ops.push_back({.name = name, .once = once, .impls = std::move(impls)}));
  };
  op("make-a", false,
     {{.name = "cpu", .device = kCpu, .joules = {}, .workspace = 65, .reads = {kW}, .writes = {kA}, .in_place = {}}});
  op("make-b", false,
     {{.name = "plain", .device = kCpu, .joules = {}, .reads = {kA}, .writes = {kB}, .in_place = {}},
      {.name = "in-place", .device = kCpu, .joules = {}, .reads = {kA}, .writes = {kB}, .in_place = {{kA, kB}}}});
  op("make-c", true, {{.name = "cpu", .device = kCpu, .joules = {}, .reads = {kB}, .writes = {kC}, .in_place = {}}});
  op("update-w", true,
     {{.name = "cpu", .device = kCpu, .joules = {}, .reads = {kW, kC}, .writes = {kW}, .in_place = {}}});
  return p;
}

TEST(Lifetimes, RunFromTheFirstStepThatHoldsToTheFreeIncluded) {
  const plan::Problem p = small_problem();
  const auto life = lifetimes(p, {Compute{kMakeA, 0}, Compute{kMakeB, 0}, Free{kA, kCpu}, Compute{kMakeC, 0},
                                  Free{kB, kCpu}, Compute{kUpdateW, 0}});
  ASSERT_EQ(life.size(), 2u);
  EXPECT_THAT(life[0].names, ElementsAre("w", "a", "make-a/workspace", "b", "c"));
  EXPECT_THAT(life[0].blocks,
              ElementsAre(Block{0, 6, 128}, Block{0, 3, 1024}, Block{0, 1, 128}, Block{1, 5, 960}, Block{3, 6, 64}));
  EXPECT_THAT(life[1].blocks, IsEmpty());
  EXPECT_EQ(load(life[0].blocks), 128 + 1024 + 960);
}

TEST(Lifetimes, AnInPlaceSuccessorSharesTheBlock) {
  const plan::Problem p = small_problem();
  const auto life = lifetimes(p, {Compute{kMakeA, 0}, Compute{kMakeB, 1}, Compute{kMakeC, 0}, Free{kB, kCpu}});
  EXPECT_THAT(life[0].names, ElementsAre("w", "a", "make-a/workspace", "c"));
  EXPECT_EQ(life[0].blocks[1], (Block{0, 4, 1024}));
}

TEST(Lifetimes, ACopyIsAResidenceOnTheOtherDevice) {
  const plan::Problem p = small_problem();
  const auto life = lifetimes(p, {Compute{kMakeA, 0}, Copy{kA, kCpu, kHost}, Free{kA, kCpu}, Copy{kA, kHost, kCpu},
                                  Free{kA, kHost}, Compute{kMakeB, 0}});
  EXPECT_THAT(life[0].names, ElementsAre("w", "a", "make-a/workspace", "a", "b"));
  EXPECT_EQ(life[0].blocks[1], (Block{0, 3, 1024}));
  EXPECT_EQ(life[0].blocks[3], (Block{3, 6, 1024}));
  EXPECT_THAT(life[1].blocks, ElementsAre(Block{1, 5, 1000}));
}

TEST(Lifetimes, ANewVersionEndsCopiesElsewhere) {
  const plan::Problem p = small_problem();
  const auto life = lifetimes(p, {Copy{kW, kCpu, kHost}, Compute{kMakeA, 0}, Compute{kMakeB, 0}, Compute{kMakeC, 0},
                                  Compute{kUpdateW, 0}, Free{kC, kCpu}});
  EXPECT_THAT(life[1].names, ElementsAre("w"));
  EXPECT_THAT(life[1].blocks, ElementsAre(Block{0, 5, 100}));
  EXPECT_EQ(life[0].blocks[0], (Block{0, 6, 128}));
}

TEST(Lifetimes, APageableBufferLivesWhileItIsResident) {
  plan::Problem p = small_problem();
  p.buffers[kW].pageable = true;
  const auto life = lifetimes(p, {Copy{kW, kCpu, kHost}, Free{kW, kCpu}, Copy{kW, kHost, kCpu}, Compute{kMakeA, 0}});
  EXPECT_EQ(life[0].blocks[0], (Block{0, 2, 128}));
  EXPECT_EQ(life[0].blocks[1], (Block{2, 4, 128}));
}

TEST(Lifetimes, HomedBuffersCountInAPlanWithoutSteps) {
  const auto life = lifetimes(small_problem(), {});
  EXPECT_EQ(load(life[0].blocks), 128);
}

TEST(Lifetimes, RefuseIllegalSteps) {
  const plan::Problem p = small_problem();
  EXPECT_THROW(lifetimes(p, {Free{kA, kCpu}}), InternalError);
  EXPECT_THROW(lifetimes(p, {Free{kW, kCpu}}), InternalError);
  EXPECT_THROW(lifetimes(p, {Copy{kA, kCpu, kHost}}), InternalError);
  EXPECT_THROW(lifetimes(p, {Compute{kMakeB, 1}}), InternalError);
}

TEST(Layout, PacksAndVerifiesAPlan) {
  const plan::Problem p = small_problem();
  plan::Plan plan;
  plan.steps = {Compute{kMakeA, 0}, Copy{kA, kCpu, kHost}, Compute{kMakeB, 1}, Compute{kMakeC, 0},
                Compute{kUpdateW, 0}};
  plan::Layout layout = pack(p, plan, {});
  EXPECT_THAT(verify(p, plan, layout), IsEmpty());
  EXPECT_EQ(layout.load[kCpu], 128 + 1024 + 128);
  EXPECT_EQ(layout.top[kCpu], 128 + 1024 + 128);
  EXPECT_EQ(layout.top[kHost], 1000);

  plan::Layout broken = layout;
  broken.blocks[0].offset += 1;
  EXPECT_FALSE(verify(p, plan, broken).empty());
  broken = layout;
  broken.blocks.pop_back();
  EXPECT_FALSE(verify(p, plan, broken).empty());
  broken = layout;
  broken.blocks.push_back({.name = "ghost", .device = kCpu, .begin = 0, .end = 1, .bytes = 0, .offset = 0});
  EXPECT_THAT(verify(p, plan, broken),
              ElementsAre("the layout places 'ghost' in steps [0, 1), which the plan does not hold then"));
  broken = layout;
  broken.top[kCpu] += 64;
  EXPECT_THAT(verify(p, plan, broken), ElementsAre("cpu:0: the top is 1280, not 1344"));
  broken = layout;
  broken.load[kCpu] -= 1;
  EXPECT_THAT(verify(p, plan, broken), ElementsAre("cpu:0: the load is 1280, not 1279"));
}

}  // namespace
}  // namespace neaptide::memory
