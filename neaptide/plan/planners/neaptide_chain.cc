// Chains: what to run just before a step so that a cell is there.
#include "neaptide/plan/planners/neaptide_search.hpp"

#include <algorithm>

namespace neaptide::plan::tide {
namespace {

constexpr int kLongestChain = 400;
constexpr int kMostNeeds = 2000;  // cells looked at for one chain; backtracking could be exponential

}  // namespace

void Search::begin_chain() {
  ++stamp_;
  n_needs_ = 0;
  chain_.clear();
  extended_.clear();
  upgrades_.clear();
  chain_seconds_ = 0;
}

// With the order fixed, an op runs again, but not for the first time, out of its place.
bool Search::keeps_order(int op, int before) const {
  if (switches_.order || op < 0) return true;
  const auto& runs = s_.runs(op);
  return std::any_of(runs.begin(), runs.end(), [&](int run) { return s_.time().before(run, before); });
}

bool Search::allowed(int action, int before) const {
  const Action& a = m_.actions[action];
  if (a.once || !keeps_order(a.op, before)) return false;
  if (!a.closes) return true;
  for (const int c : a.writes) {
    const int killer = m_.values[m_.cells[c].value].overwritten_by;
    if (killer < 0 || s_.runs(killer).empty()) continue;
    const int kill = s_.runs(killer)[0];
    if (kill != before && !s_.time().before(before, kill)) return false;
  }
  return true;
}

bool Search::make(int action, int target, int before, Mode mode, int depth) {
  const std::size_t n_chain = chain_.size(), n_extended = extended_.size(), n_upgrades = upgrades_.size();
  const double seconds = chain_seconds_;
  const Action& a = m_.actions[action];
  bool good = static_cast<int>(n_chain) < kLongestChain && chain_seconds_ <= chain_limit_;
  ++ticks_;
  for (const auto& [in, out] : a.takes_over) good = good && (in == target || !s_.live_before(in, before));
  for (std::size_t i = 0; good && i < a.reads.size(); ++i) good = need(a.reads[i], target, before, mode, depth + 1);
  if (!good) {
    for (std::size_t i = n_chain; i < chain_.size(); ++i) {
      for (const int c : m_.actions[chain_[i]].writes) made_stamp_[c] = 0;
    }
    chain_.resize(n_chain);
    extended_.resize(n_extended);
    upgrades_.resize(n_upgrades);
    chain_seconds_ = seconds;
    return false;
  }
  chain_.push_back(action);
  chain_seconds_ += a.seconds - merged_seconds(action, before);
  for (const auto& [in, out] : a.takes_over) made_stamp_[in] = 0;
  for (const int c : a.writes) made_stamp_[c] = stamp_;
  return true;
}

bool Search::needed_after(int cell, int node) const { return s_.last_read(cell, node) >= 0; }

// An earlier run of its op that could write the cell too: cheaper than another run, and the cell waits from there.
bool Search::upgrade(int cell, int before) {
  for (const int way : m_.ways[cell]) {
    const Action& then = m_.actions[way];
    for (const int run : s_.runs(then.op)) {
      if (!s_.time().before(run, before) || is_upgraded(run)) continue;
      const Action& now = m_.actions[s_.action(run)];
      const bool covers = std::all_of(now.writes.begin(), now.writes.end(), [&](int x) {
        return std::find(then.writes.begin(), then.writes.end(), x) != then.writes.end() || s_.last_read(x, run) < 0;
      });
      if (!covers || now.device != then.device) continue;
      upgrades_.push_back({run, way});
      chain_seconds_ += then.seconds - now.seconds;
      extended_.emplace_back(cell, run);
      return true;
    }
  }
  return false;
}

bool Search::is_upgraded(int node) const {
  return std::any_of(upgrades_.begin(), upgrades_.end(), [&](const Upgrade& u) { return u.node == node; });
}

// The step that took the cell over in place runs by an implementation that leaves it.
bool Search::spare_at(int consumer, int cell) {
  const int other = is_upgraded(consumer) ? -1 : sparing(s_.action(consumer), cell);
  if (other < 0) return false;
  upgrades_.push_back({consumer, other});
  chain_seconds_ += m_.actions[other].seconds - m_.actions[s_.action(consumer)].seconds;
  extended_.emplace_back(cell, consumer);
  made_stamp_[cell] = stamp_;
  return true;
}

bool Search::need(int cell, int target, int before, Mode mode, int depth) {
  if (made_stamp_[cell] == stamp_) return true;
  if (busy_stamp_[cell] == stamp_ || depth > 250 || ++n_needs_ > kMostNeeds) return false;
  ticks_ += (n_needs_ & 3) == 0 ? 1 : 0;
  const Cell& c = m_.cells[cell];
  int from = -1, consumer = -1;
  const auto fits_from = [&](int node) {
    const int begin = s_.time().next(node);
    return begin == before || s_.time().highest(c.track, begin, before) + c.size <= limit_[c.track];
  };
  if (cell != target) {
    const Schedule::Presence there = s_.presence(cell, before);
    if (there.live) return true;
    from = there.from;
    if (from >= 0 && c.size == 0) return true;
    consumer = switches_.spare ? there.consumer : -1;
    const int since = std::max(from, consumer);  // one of them at most
    const bool extend =
        since >= 0 && (mode == Mode::kExtend || (mode == Mode::kFitting && (c.size == 0 || fits_from(since))));
    if (extend && consumer < 0) {
      extended_.emplace_back(cell, from);
      return true;
    }
    if (extend && spare_at(consumer, cell)) return true;
  }
  if (from < 0 && cell != target && (random_() & 1) == 0 && upgrade(cell, before)) {
    made_stamp_[cell] = stamp_;
    return true;
  }
  busy_stamp_[cell] = stamp_;
  const auto& ways = m_.ways[cell];
  bool good = false;
  if (ways.size() == 1) {
    good = allowed(ways[0], before) && make(ways[0], target, before, mode, depth);
  } else {
    // The cheapest way first, one that destroys nothing before one in place; now and then another.
    int tried[8], n_tried = 0;
    for (int k = 0; k < 4 && !good; ++k) {
      int best = -1;
      double best_worth = 0;
      for (const int w : ways) {
        if (std::find(tried, tried + n_tried, w) != tried + n_tried || !allowed(w, before)) continue;
        double worth = m_.actions[w].seconds + (m_.actions[w].takes_over.empty() ? 0 : 1e-3 * epsilon_);
        for (const int r : m_.actions[w].reads) {
          if (r == target) worth += 1e280;
          if (made_stamp_[r] != stamp_ && !s_.live_before(r, before) && m_.cells[r].size > 0 && !m_.ways[r].empty()) {
            worth += m_.actions[m_.fastest[m_.actions[m_.ways[r][0]].op]].seconds;
          }
        }
        if (best < 0 || worth < best_worth) {
          best = w;
          best_worth = worth;
        }
      }
      if (best < 0) break;
      tried[n_tried++] = best;
      good = make(best, target, before, mode, depth);
    }
  }
  if (!good && m_.n_devices > 1) {
    for (int d = 0; d < m_.n_devices && !good; ++d) {
      const int copy = d == c.device ? -1 : m_.copy(c.value, d, c.device);
      if (copy >= 0 && s_.supplier(m_.cell(c.value, d), before) >= 0 && allowed(copy, before)) {
        good = make(copy, target, before, mode, depth);
      }
    }
  }
  if (n_needs_ > kMostNeeds) good = false;
  if (!good && from >= 0 && n_needs_ <= kMostNeeds) {
    extended_.emplace_back(cell, from);
    good = true;
  }
  if (!good && consumer >= 0) good = spare_at(consumer, cell);
  if (!good && cell != target) good = upgrade(cell, before);
  busy_stamp_[cell] = 0;
  if (good) made_stamp_[cell] = stamp_;
  return good;
}

// The step by another implementation, after the chain just made.
Search::Candidate Search::replacement(int node, int action) const {
  Candidate c;
  c.before = node;
  c.replace_node = node;
  c.replace_action = action;
  c.chain = chain_;
  c.upgrades = upgrades_;
  return c;
}

}  // namespace neaptide::plan::tide
