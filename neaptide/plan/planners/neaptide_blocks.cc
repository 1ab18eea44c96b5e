#include "neaptide/plan/planners/neaptide_blocks.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <unordered_map>

namespace neaptide::plan::tide {
namespace {

constexpr int kShortestPeriod = 4;
constexpr int kFewestBlocks = 3;
constexpr std::size_t kMostStretches = 6;
constexpr std::size_t kMostPeriods = 12;  // candidates, the most frequent ones
constexpr int kNear = 24;                 // a producer further back is not part of the shape

std::uint64_t mix(std::uint64_t h, std::uint64_t x) {
  h ^= x + 0x9E3779B97F4A7C15ULL + (h << 6) + (h >> 2);
  return h * 0xFF51AFD7ED558CCDULL;
}

/// What an op costs, how large its values are, and how far back its near inputs are made.
std::vector<std::uint64_t> shapes(const Model& m, const std::vector<int>& op_at, const std::vector<int>& position_of) {
  std::vector<std::uint64_t> out;
  for (std::size_t i = 0; i < op_at.size(); ++i) {
    std::uint64_t h = 1;
    for (const int id : m.op_actions[op_at[i]]) {
      const Action& a = m.actions[id];
      h = mix(h, std::bit_cast<std::uint64_t>(a.seconds));
      h = mix(h, static_cast<std::uint64_t>(a.extra));
      for (const int c : a.writes) h = mix(h, 2 + static_cast<std::uint64_t>(m.cells[c].size));
      for (const int c : a.reads) {
        h = mix(h, 3 + static_cast<std::uint64_t>(m.cells[c].size));
        const auto& makers = m.values[m.cells[c].value].makers;
        const int back = makers.empty() ? kNear : static_cast<int>(i) - position_of[makers[0]];
        h = mix(h, static_cast<std::uint64_t>(std::min(back, kNear)));
      }
    }
    out.push_back(h);
  }
  return out;
}

/// Distances between an op and the next one of its shape, the most frequent first.
std::vector<int> periods(const std::vector<std::uint64_t>& shape) {
  std::unordered_map<std::uint64_t, int> last;
  std::map<int, int> seen;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const int at = static_cast<int>(i);
    const auto [it, fresh] = last.try_emplace(shape[i], at);
    if (!fresh && at - it->second >= kShortestPeriod) ++seen[at - it->second];
    it->second = at;
  }
  std::vector<std::pair<int, int>> ranked;
  for (const auto& [period, count] : seen) ranked.emplace_back(-count, period);
  std::sort(ranked.begin(), ranked.end());
  if (ranked.size() > kMostPeriods) ranked.resize(kMostPeriods);
  std::vector<int> out;
  for (const auto& [count, period] : ranked) out.push_back(period);
  return out;
}

}  // namespace

Blocks::Blocks(const Model& model) : position_of_(model.problem->ops.size()) {
  for (const OpId op : model.problem->order) {
    position_of_[op.index()] = static_cast<int>(op_at_.size());
    op_at_.push_back(static_cast<int>(op.index()));
  }
  stretch_of_.assign(op_at_.size(), -1);
  find(shapes(model, op_at_, position_of_));
  relate(model);
}

// The longest stretch first, then the longest beside it, and so on.
void Blocks::find(const std::vector<std::uint64_t>& shape) {
  const int n = static_cast<int>(shape.size());
  const std::vector<int> candidates = periods(shape);
  while (stretches_.size() < kMostStretches) {
    Stretch best;
    int longest = 0;
    for (const int period : candidates) {
      int run = 0;
      for (int i = 0; i + period < n; ++i) {
        const bool free = stretch_of_[i] < 0 && stretch_of_[i + period] < 0;
        run = free && shape[i] == shape[i + period] ? run + 1 : 0;
        const int count = run / period + 1;
        if (count < kFewestBlocks || run <= longest) continue;
        longest = run;
        best = {i + 1 - run, period, count, 1};
      }
    }
    if (longest == 0) break;
    for (int i = 0; i < best.period * best.count; ++i) stretch_of_[best.begin + i] = 0;
    stretches_.push_back(best);
  }
  std::sort(stretches_.begin(), stretches_.end(), [](const Stretch& a, const Stretch& b) { return a.begin < b.begin; });
  for (std::size_t s = 0; s < stretches_.size(); ++s) {
    const Stretch& t = stretches_[s];
    for (int i = 0; i < t.period * t.count; ++i) stretch_of_[t.begin + i] = static_cast<int>(s);
  }
}

// Which way a later stretch walks through the blocks of the first one: seen at an op that reads from there.
void Blocks::relate(const Model& model) {
  const auto source_block = [&](int position) {
    for (const int c : model.actions[model.op_actions[op_at_[position]][0]].reads) {
      const auto& makers = model.values[model.cells[c].value].makers;
      if (makers.empty() || stretch_of_[position_of_[makers[0]]] != 0) continue;
      return (position_of_[makers[0]] - stretches_[0].begin) / stretches_[0].period;
    }
    return -1;
  };
  for (std::size_t s = 1; s < stretches_.size(); ++s) {
    Stretch& t = stretches_[s];
    t.direction = 0;
    for (int i = 0; i < t.period && t.direction == 0; ++i) {
      const int here = source_block(t.begin + i), next = source_block(t.begin + i + t.period);
      if (here >= 0 && next >= 0 && std::abs(next - here) == 1) t.direction = next - here;
    }
  }
}

std::vector<int> Blocks::ops(int block) const {
  const Stretch& t = stretches_[0];
  const auto begin = op_at_.begin() + t.begin + static_cast<std::ptrdiff_t>(block) * t.period;
  return {begin, begin + t.period};
}

int Blocks::shifted(int op, int shift) const {
  const int position = position_of_[op];
  if (stretch_of_[position] < 0) return -1;
  const Stretch& t = stretches_[stretch_of_[position]];
  if (t.direction == 0) return -1;
  const int to = position + t.direction * shift * t.period;
  return to >= t.begin && to < t.begin + t.period * t.count ? op_at_[to] : -1;
}

}  // namespace neaptide::plan::tide
