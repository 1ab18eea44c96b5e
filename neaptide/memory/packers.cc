#include "neaptide/memory/packers/packers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/text.hpp"

namespace neaptide::memory {

static constexpr Packer kPackers[] = {
    {"best", "the portfolio: the packers one after the other until one reaches the load or the capacity", pack_best},
    {"best-fit", "into the smallest gap that holds it, best of several orders", pack_best_fit},
    {"exact", "branch and bound over canonical placements; optimal when the effort lasts", pack_exact},
    {"first-fit", "largest first, each into the lowest gap that holds it", pack_first_fit},
    {"hill-climb", "first-fit under an order that moves what reaches the top forward", pack_hill_climb},
    {"stack", "each on top of what is live when it begins; optimal for nested lifetimes", pack_stack},
};

std::span<const Packer> packers() { return kPackers; }

static const Packer& find_packer(const std::string& name) {
  std::vector<std::string> names;
  for (const Packer& p : kPackers) {
    if (p.name == name) return p;
    names.emplace_back(p.name);
  }
  throw UserError("unknown packer '{}'{}", name, did_you_mean(name, names));
}

static void check_sizes(std::span<const Block> blocks) {
  Bytes sum = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].bytes < 0) throw UserError("block {} has {} bytes; a size is at least 0", i, blocks[i].bytes);
    sum = checked_add(sum, blocks[i].bytes, "the sum of all blocks");
  }
}

Offsets pack(std::span<const Block> blocks, const PackOptions& options) {
  check_sizes(blocks);
  Offsets out = find_packer(options.packer).run(blocks, options);
  out.optimal = out.optimal || out.top == load(blocks);
  const std::vector<std::string> wrong = verify(blocks, out);
  if (!wrong.empty()) throw InternalError("packer '{}': {}", options.packer, wrong.front());
  return out;
}

plan::Layout pack(const plan::Problem& problem, const plan::Plan& plan, const PackOptions& options) {
  plan::Layout layout;
  layout.top.resize(problem.devices.size(), 0);
  layout.load.resize(problem.devices.size(), 0);
  for (const Lifetimes& life : lifetimes(problem, plan.steps)) {
    PackOptions here = options;
    here.capacity = problem.devices[life.device].budget;
    if (plan.budgets.has(life.device)) here.capacity = plan.budgets[life.device];
    const Offsets offsets = pack(life.blocks, here);
    layout.top[life.device] = offsets.top;
    layout.load[life.device] = load(life.blocks);
    for (std::size_t i = 0; i < life.blocks.size(); ++i) {
      const Block& b = life.blocks[i];
      layout.blocks.push_back({life.names[i], life.device, b.begin, b.end, b.bytes, offsets.offset[i]});
    }
  }
  std::sort(layout.blocks.begin(), layout.blocks.end(), [](const plan::Placement& a, const plan::Placement& b) {
    return std::tie(a.begin, a.offset, a.device, a.end, a.name) < std::tie(b.begin, b.offset, b.device, b.end, b.name);
  });
  const std::vector<std::string> wrong = verify(problem, plan, layout);
  if (!wrong.empty()) throw InternalError("layout: {}", wrong.front());
  return layout;
}

}  // namespace neaptide::memory
