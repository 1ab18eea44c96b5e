#include <algorithm>
#include <cmath>

#include "neaptide/plan/cuts_inequalities.hpp"

namespace neaptide::plan {
namespace {

constexpr double kLeastViolation = 0.01;
constexpr std::size_t kMostFromPair = 40;

class PathFinder {
 public:
  PathFinder(const CutsModel& model, const std::vector<double>& x)
      : m_(model), f_(model.frame), runs_(f_.problem.ops.size()), back_(f_.size.size()), held_(model.cuts.size()) {
    const auto n = static_cast<std::size_t>(m_.n_intervals());
    for (auto& list : runs_) list.assign(n, 0);
    for (auto& list : back_) list.assign(n, 0);
    for (auto& list : held_) list.assign(f_.size.size(), -1);
    for (std::size_t c = 0; c < x.size(); ++c) {
      const CutsKey& key = m_.columns[c];
      if (key.kind == CutsKey::kRun) runs_[key.a][key.b] += x[c];
      if (key.kind == CutsKey::kBack) back_[key.a][key.b] += x[c];
      if (key.kind == CutsKey::kHeld) held_[key.b][key.a] = x[c];
    }
    for (auto* of : {&runs_, &back_}) {  // up to an interval
      for (auto& list : *of) {
        for (std::size_t j = 1; j < n; ++j) list[j] += list[j - 1];
      }
    }
  }

  /// Longest paths: what the relaxation leaves of a certain read, as far as it is neither held nor brought back.
  void find(int from, int to, std::vector<CutsInequality>* out) const {
    struct Asked {
      double share = 0;
      int next = -1;  // value made from this one
      OpId reader;
    };
    std::vector<Asked> asked(f_.size.size());
    const auto ask = [&](int v, double share, int next, OpId reader) {
      if (share > asked[v].share) asked[v] = {share, next, reader};
    };
    for (std::size_t o = 0; o < runs_.size(); ++o) {
      if (!f_.facts.necessary[o] || m_.first[o][0] != to || m_.first[o][1] != to) continue;
      for (const int v : f_.common_reads(OpId(o))) ask(v, 1, -1, OpId(o));
    }
    for (std::size_t v = 0; v < asked.size() && to == m_.n_intervals() - 1; ++v) {
      if (f_.needed_at_end[v]) ask(static_cast<int>(v), 1, -1, {});
    }
    struct Found {
      double violation;
      int value;
    };
    std::vector<Found> found;
    const auto& order = f_.problem.order;
    for (auto op = order.rbegin(); op != order.rend(); ++op) {
      const std::size_t o = op->index();
      const auto& range = m_.first[o];
      if (f_.facts.necessary[o] && range[0] > from && range[0] == range[1] && range[1] <= to) continue;  // made anyway
      for (const int v : f_.facts.writes[o]) {
        if (asked[v].share <= 0 || held_[from][v] < 0 || f_.sole_maker(v) != op->value) continue;
        const double left = asked[v].share - held_[from][v] - (back_[v][to] - back_[v][from]);
        if (left < kLeastViolation) continue;
        if (const double by = left - (runs_[o][to] - runs_[o][from]); by > kLeastViolation) found.push_back({by, v});
        for (const int u : f_.common_reads(*op)) ask(u, left, v, asked[v].reader);
      }
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const Found& a, const Found& b) { return a.violation > b.violation; });
    if (found.size() > kMostFromPair) found.resize(kMostFromPair);
    for (const Found& one : found) {
      CutsPath path{from, to, asked[one.value].reader, {}};
      for (int v = one.value; v >= 0; v = asked[v].next) path.values.push_back(v);
      out->push_back(inequality(std::move(path)));
    }
  }

 private:
  CutsInequality inequality(CutsPath path) const {
    CutsInequality out{{}, {}, 1};
    const auto put = [&](const CutsKey& key) {
      if (const int c = m_.column(key); c >= 0) out.terms.emplace_back(c, 1);
    };
    for (const int v : path.values) {
      put({CutsKey::kHeld, v, path.from});
      for (int j = path.from + 1; j <= path.to; ++j) put({CutsKey::kBack, v, j});
    }
    const int made = path.values[0], o = f_.sole_maker(made);
    for (int j = path.from + 1; j <= path.to; ++j) {
      for (std::size_t i = 0; i < f_.impl_writes[o].size(); ++i) {
        const auto& writes = f_.impl_writes[o][i];
        if (has(writes, made)) put({CutsKey::kRun, o, j, static_cast<int>(i)});
      }
    }
    std::sort(out.terms.begin(), out.terms.end());
    out.why = std::move(path);
    return out;
  }

  const CutsModel& m_;
  const CutsFrame& f_;
  std::vector<std::vector<double>> runs_, back_;  // [op], [value][interval]: in it or before
  std::vector<std::vector<double>> held_;         // [instant][value]; -1: no column
};

}  // namespace

std::vector<CutsInequality> find_paths(const CutsModel& model, const std::vector<double>& x) {
  std::vector<CutsInequality> out;
  const PathFinder finder(model, x);
  for (int from = 0; from < static_cast<int>(model.cuts.size()); ++from) {
    for (int to = from + 2; to < model.n_intervals(); ++to) finder.find(from, to, &out);
  }
  return out;
}

}  // namespace neaptide::plan
