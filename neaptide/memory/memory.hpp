// Plan -> Layout: a byte offset for every lifetime, so that blocks alive together do not overlap. The packers are
// listed in packers.cc; the lower bound is the largest sum of live bytes.
//
//   memory::Packing p = memory::pack(problem, plan, {});       // p.layout is verified
//   if (p.layout.top[cpu] > budget) ...                         // plan again, tighter where it overflowed
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "neaptide/plan/plan.hpp"
#include "neaptide/plan/planner.hpp"

namespace neaptide::memory {

/// A rectangle to place: [begin, end) in time, `bytes` high. What the packers see; knows no buffers.
struct Block {
  int begin = 0, end = 0;
  Bytes bytes = 0;
  friend bool operator==(const Block&, const Block&) = default;
};

/// Blocks of one device of a plan, with the names they carry.
struct Lifetimes {
  plan::DeviceId device;
  std::vector<Block> blocks;
  std::vector<std::string> names;
};

/// One entry per device. A residence of a buffer is one block; in-place successors share their predecessor's block; a
/// workspace is a block of one step. A homed buffer lives over all steps (a pageable one: while it is resident).
std::vector<Lifetimes> lifetimes(const plan::Problem& problem, const std::vector<plan::Step>& steps);

/// Largest sum of live bytes.
Bytes load(std::span<const Block> blocks);

/// Offsets, parallel to the blocks.
struct Offsets {
  std::vector<Bytes> offset;
  Bytes top = 0;
  bool optimal = false;  // top == load, or proved by search
};

/// Everything wrong with the offsets (overlap, negative, misaligned); empty when sound. Written from the definition
/// alone.
std::vector<std::string> verify(std::span<const Block> blocks, const Offsets& offsets, Bytes alignment = 1);

struct PackOptions {
  std::optional<Bytes> capacity;  // stop as soon as the top is at most this
  Seconds time_limit = 5;
  std::int64_t effort = 0;  // ticks; 0: default
  std::uint64_t seed = 1;
  std::string packer = "best";  // a name of packers(), or "best": the portfolio
};

struct Packer {
  std::string_view name;
  std::string_view what;
  Offsets (*run)(std::span<const Block> blocks, const PackOptions& options);
};
std::span<const Packer> packers();

/// Runs the named packer and verifies. Unknown name: UserError.
Offsets pack(std::span<const Block> blocks, const PackOptions& options);

/// Packs every device of a plan. `options.capacity` is replaced by each device's budget.
plan::Layout pack(const plan::Problem& problem, const plan::Plan& plan, const PackOptions& options);

/// Everything wrong with a layout against the plan's lifetimes.
std::vector<std::string> verify(const plan::Problem& problem, const plan::Plan& plan, const plan::Layout& layout);

/// Plans, packs, and plans again with a tighter load while the layout does not fit, from the first plan on and with a
/// tenth of the default planner's effort; then with a load half as tight, and so on, up to eight times in all. The
/// returned plan has a layout whose top is within every budget, or is infeasible.
plan::Plan plan_and_pack(const plan::Problem& problem, std::string_view planner, const plan::Options& options,
                         const PackOptions& pack_options = {});

}  // namespace neaptide::memory
