#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "neaptide/memory/memory.hpp"

namespace neaptide::memory {

namespace {

constexpr std::size_t kMostReasons = 100;

bool holds_something(const Block& b) { return b.bytes > 0 && b.begin < b.end; }

/// Sweeps over time and keeps the live address ranges sorted: only neighbours can be the first to overlap.
void find_overlaps(std::span<const Block> blocks, std::span<const Bytes> offset, std::vector<std::string>& wrong) {
  struct Event {
    int time;
    bool begins;  // ends come before begins at the same time
    std::size_t block;
  };
  std::vector<Event> events;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (!holds_something(blocks[i])) continue;
    events.push_back({blocks[i].begin, true, i});
    events.push_back({blocks[i].end, false, i});
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::tie(a.time, a.begins, a.block) < std::tie(b.time, b.begins, b.block);
  });
  std::map<std::pair<Bytes, std::size_t>, Bytes> live;  // (offset, block) -> end address
  const auto report = [&](std::size_t a, std::size_t b) {
    if (wrong.size() >= kMostReasons) return;
    wrong.push_back(fmt::format("blocks {} and {} overlap: [{}, {}) and [{}, {}) are both held at step {}", a, b,
                                offset[a], offset[a] + blocks[a].bytes, offset[b], offset[b] + blocks[b].bytes,
                                std::max(blocks[a].begin, blocks[b].begin)));
  };
  for (const Event& e : events) {
    if (!e.begins) {
      live.erase({offset[e.block], e.block});
      continue;
    }
    const auto [it, fresh] = live.insert({{offset[e.block], e.block}, offset[e.block] + blocks[e.block].bytes});
    if (it != live.begin() && std::prev(it)->second > offset[e.block]) report(std::prev(it)->first.second, e.block);
    if (std::next(it) != live.end() && std::next(it)->first.first < it->second) {
      report(e.block, std::next(it)->first.second);
    }
  }
}

}  // namespace

std::vector<std::string> verify(std::span<const Block> blocks, const Offsets& offsets, Bytes alignment) {
  std::vector<std::string> wrong;
  if (offsets.offset.size() != blocks.size()) {
    return {fmt::format("{} offsets for {} blocks", offsets.offset.size(), blocks.size())};
  }
  Bytes top = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Bytes o = offsets.offset[i];
    if (o < 0) wrong.push_back(fmt::format("block {} lies at {}, below 0", i, o));
    if (o % alignment != 0) wrong.push_back(fmt::format("block {} lies at {}, not a multiple of {}", i, o, alignment));
    if (o > INT64_MAX - blocks[i].bytes) return {fmt::format("block {} at {} ends past 63 bits", i, o)};
    top = std::max(top, o + blocks[i].bytes);
    if (wrong.size() >= kMostReasons) return wrong;
  }
  if (top != offsets.top) wrong.push_back(fmt::format("the top is {}, not {}", top, offsets.top));
  if (offsets.optimal && top < load(blocks)) wrong.push_back("the top is below the load");
  find_overlaps(blocks, offsets.offset, wrong);
  return wrong;
}

namespace {

using Key = std::tuple<std::string, int, int, Bytes>;

/// The offsets that the layout gives to the blocks of one device; reasons for blocks that are missing or not of the
/// plan.
Offsets offsets_on(const Lifetimes& life, const plan::Layout& layout, std::vector<std::string>& wrong) {
  std::multimap<Key, Bytes> given;
  for (const plan::Placement& p : layout.blocks) {
    if (p.device == life.device) given.insert({{p.name, p.begin, p.end, p.bytes}, p.offset});
  }
  Offsets out;
  out.offset.assign(life.blocks.size(), 0);
  for (std::size_t i = 0; i < life.blocks.size(); ++i) {
    const Block& b = life.blocks[i];
    const auto it = given.find({life.names[i], b.begin, b.end, b.bytes});
    if (it == given.end()) {
      wrong.push_back(fmt::format("'{}', {} bytes held in steps [{}, {}), has no place in the layout", life.names[i],
                                  b.bytes, b.begin, b.end));
      continue;
    }
    out.offset[i] = it->second;
    given.erase(it);
  }
  for (const auto& [key, offset] : given) {
    wrong.push_back(fmt::format("the layout places '{}' in steps [{}, {}), which the plan does not hold then",
                                std::get<0>(key), std::get<1>(key), std::get<2>(key)));
  }
  return out;
}

}  // namespace

std::vector<std::string> verify(const plan::Problem& problem, const plan::Plan& plan, const plan::Layout& layout) {
  std::vector<std::string> wrong;
  const std::size_t n = problem.devices.size();
  if (layout.top.size() != n || layout.load.size() != n) {
    return {
        fmt::format("the layout has {} tops and {} loads for {} devices", layout.top.size(), layout.load.size(), n)};
  }
  for (const plan::Placement& p : layout.blocks) {
    if (!problem.devices.has(p.device)) return {fmt::format("'{}' lies on device {} of {}", p.name, p.device.value, n)};
  }
  for (const Lifetimes& life : lifetimes(problem, plan.steps)) {
    const plan::Device& device = problem.devices[life.device];
    Offsets offsets = offsets_on(life, layout, wrong);
    offsets.top = layout.top[life.device];
    for (const std::string& reason : verify(life.blocks, offsets, device.alignment)) {
      wrong.push_back(fmt::format("{}: {}", device.name, reason));
    }
    const Bytes least = load(life.blocks);
    if (layout.load[life.device] != least) {
      wrong.push_back(fmt::format("{}: the load is {}, not {}", device.name, least, layout.load[life.device]));
    }
  }
  return wrong;
}

}  // namespace neaptide::memory
