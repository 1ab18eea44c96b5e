#include "neaptide/plan/facts.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace neaptide::plan {

Seconds seconds_down(Wide units, int log2) {
  if (units <= 0) return 0;
  int shift = 0;
  while (units >> shift > (Wide{1} << 53) - 1) ++shift;
  return std::ldexp(static_cast<double>(static_cast<std::int64_t>(units >> shift)), shift + log2);
}

Units Facts::units(Seconds s) const { return static_cast<Units>(std::floor(std::ldexp(s, -unit_log2))); }

Facts::Facts(const Problem& p) : problem(p), versions_(versions(p)), value_of(p.buffers.size()) {
  for (std::size_t b = 0; b < p.buffers.size(); ++b) {
    const int last = versions_.last[BufferId(b)];
    for (int v = 0; v <= last; ++v) {
      value_of[b].push_back(static_cast<int>(values.size()));
      values.push_back({BufferId(b), v, {}, v == last && p.buffers[BufferId(b)].keep});
    }
  }
  for (std::size_t o = 0; o < p.ops.size(); ++o) {
    const Op& op = p.ops[OpId(o)];
    std::map<int, std::size_t> n_reads;
    std::vector<int> written;
    Seconds fastest = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < op.impls.size(); ++i) {
      const Impl& impl = op.impls[i];
      fastest = std::min(fastest, impl.seconds);
      for (std::size_t r = 0; r < impl.reads.size(); ++r) {
        if (versions_.read[o][i][r] >= 0) ++n_reads[value_of[impl.reads[r].index()][versions_.read[o][i][r]]];
      }
      for (std::size_t w = 0; w < impl.writes.size(); ++w) {
        written.push_back(value_of[impl.writes[w].index()][versions_.write[o][i][w]]);
      }
    }
    std::sort(written.begin(), written.end());
    written.erase(std::unique(written.begin(), written.end()), written.end());
    for (const int v : written) values[v].makers.push_back(OpId(o));
    reads.emplace_back();
    for (const auto& [v, n] : n_reads) {
      if (n == op.impls.size()) reads.back().push_back(v);
    }
    writes.push_back(std::move(written));
    least.push_back(fastest);
  }
  for (std::size_t o = 0; o < p.ops.size(); ++o) find_first_runs(o);
  position.resize(p.ops.size());
  for (std::size_t i = 0; i < p.order.size(); ++i) position[p.order[i].index()] = static_cast<int>(i);

  necessary.assign(p.ops.size(), 0);
  std::vector<std::size_t> open;
  const auto need_op = [&](std::size_t o) {
    if (necessary[o]) return;
    necessary[o] = 1;
    open.push_back(o);
  };
  const auto need_value = [&](int v) {
    const bool homed = values[v].version == 0 && p.buffers[values[v].buffer].home;
    if (!homed && values[v].makers.size() == 1) need_op(values[v].makers[0].index());
  };
  for (std::size_t o = 0; o < p.ops.size(); ++o) {
    if (p.ops[OpId(o)].once) need_op(o);
  }
  for (std::size_t v = 0; v < values.size(); ++v) {
    if (values[v].at_end) need_value(static_cast<int>(v));
  }
  while (!open.empty()) {
    const std::size_t o = open.back();
    open.pop_back();
    for (const int v : reads[o]) need_value(v);
  }
  double total = 0;
  for (const Seconds s : least) total += s;
  int exponent = 0;
  if (total > 0) std::frexp(total, &exponent);
  unit_log2 = exponent - 58;  // the sum of all costs stays below 2^59 units
  for (std::size_t o = 0; o < p.ops.size(); ++o) {
    if (necessary[o]) floor_units += units(least_first[o]);
  }
}

// Whether only the op makes what its implementations write to the buffer.
bool Facts::only_maker(std::size_t o, BufferId buffer) const {
  for (const int v : writes[o]) {
    if (values[v].buffer == buffer && values[v].makers.size() > 1) return false;
  }
  return true;
}

void Facts::find_first_runs(std::size_t o) {
  const auto& impls = problem.ops[OpId(o)].impls;
  Seconds fastest = std::numeric_limits<double>::infinity();
  may_be_first.emplace_back();
  for (std::size_t i = 0; i < impls.size(); ++i) {
    bool may = true;
    for (std::size_t r = 0; r < impls[i].reads.size(); ++r) {
      const bool of_itself = versions_.read[o][i][r] < 0;  // written by another of its implementations
      may = may && !(of_itself && only_maker(o, impls[i].reads[r]));
    }
    may_be_first.back().push_back(may ? 1 : 0);
    if (may) fastest = std::min(fastest, impls[i].seconds);
  }
  least_first.push_back(std::isfinite(fastest) ? fastest : least[o]);
}

}  // namespace neaptide::plan
