#include "neaptide/plan/planners/neaptide_search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "neaptide/base/errors.hpp"

namespace neaptide::plan::tide {
namespace {

constexpr int kSample = 64;        // idle cells looked at per overflow on large problems
constexpr int kLargeCells = 1500;  // more cells than this: sample
constexpr int kLongestChain = 400;
constexpr int kMostNeeds = 2000;  // cells looked at for one chain; backtracking could be exponential
constexpr int kMostRounds = 12;   // of attempts to fit

// Removes what nothing reads, last first.
void remove_useless(Schedule* s) {
  auto nodes = s->time().nodes();
  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
    const int action = s->action(*it);
    if (action < 0) continue;
    const Action& a = s->model().actions[action];
    if (a.once) continue;
    const bool used = std::any_of(a.writes.begin(), a.writes.end(), [&](int c) { return s->last_read(c, *it) >= 0; });
    if (!used) s->remove(*it);
  }
  s->commit();
}

// The device where everything starts: no budget, else the largest.
int main_device(const Model& m) {
  int best = 0;
  const auto room = [&](int d) {
    const auto& budget = m.problem->devices[DeviceId(d)].budget;
    return budget ? static_cast<double>(*budget) : 1e300;
  };
  std::vector<int> ops(m.n_devices);
  for (const auto& list : m.op_actions) {
    for (const int a : list) ++ops[m.actions[a].device];
  }
  const auto worth = [&](int d) { return ops[d] == 0 ? -1.0 : room(d); };
  for (int d = 1; d < m.n_devices; ++d) {
    if (worth(d) > worth(best)) best = d;
  }
  return best;
}

class Starter {
 public:
  explicit Starter(const Model& m)
      : m_(m), written_(m.cells.size()), busy_(m.cells.size()), chosen_(m.problem->ops.size(), -1) {
    for (std::size_t c = 0; c < m.cells.size(); ++c) written_[c] = m.cells[c].at_start;
  }

  std::vector<int> run() {
    const int home = main_device(m_);
    for (const OpId op : m_.problem->order) {
      std::vector<int> list = m_.op_actions[op.index()];
      std::stable_sort(list.begin(), list.end(), [&](int x, int y) {
        const Action &a = m_.actions[x], &b = m_.actions[y];
        if (a.takes_over.empty() != b.takes_over.empty()) return a.takes_over.empty();
        if ((a.device == home) != (b.device == home)) return a.device == home;
        return a.seconds < b.seconds;
      });
      if (!choose(list)) ensure(false, "no implementation finds its inputs in the order of the problem");
    }
    append_ends();
    return sequence_;
  }

 private:
  // What takes nothing in place comes first: another reader may follow.
  bool choose(const std::vector<int>& list) {
    for (const bool consuming : {false, true}) {
      for (const bool really : {false, true}) {
        for (const int a : list) {
          if (m_.actions[a].takes_over.empty() == consuming) continue;
          const auto& reads = m_.actions[a].reads;
          const auto has = [&](int c) { return really ? supply(c, false) : written_[c] != 0; };
          if (!std::all_of(reads.begin(), reads.end(), has)) continue;
          for (const int c : reads) supply(c, true);
          append(a);
          return true;
        }
      }
    }
    return false;
  }

  void append(int a) {
    if (m_.actions[a].op >= 0) chosen_[m_.actions[a].op] = a;
    sequence_.push_back(a);
    for (const auto& [in, out] : m_.actions[a].takes_over) written_[in] = false;
    for (const int c : m_.actions[a].writes) written_[c] = true;
  }

  int richer_run(int cell) const {
    for (const int way : m_.ways[cell]) {
      const int chosen = chosen_[m_.actions[way].op];
      if (chosen < 0) continue;
      const auto &now = m_.actions[chosen].writes, &then = m_.actions[way].writes;
      if (std::find(now.begin(), now.end(), cell) != now.end()) continue;  // it was taken in place since
      const auto& reads = m_.actions[way].reads;
      const bool covers = std::all_of(now.begin(), now.end(),
                                      [&](int c) { return std::find(then.begin(), then.end(), c) != then.end(); });
      if (covers && std::all_of(reads.begin(), reads.end(), [&](int c) { return written_[c]; })) return way;
    }
    return -1;
  }

  // Makes the cell be there: by a copy, by an earlier run that writes more, or by running its op again (what was taken
  // in place and is needed again). With `really` false only says whether that can be done.
  bool supply(int cell, bool really) {
    if (written_[cell]) return true;
    if (busy_[cell]) return false;
    busy_[cell] = true;
    const bool good = copy_in(cell, really) || upgrade(cell, really) || repeat(cell, really);
    busy_[cell] = false;
    return good;
  }

  bool copy_in(int cell, bool really) {
    const Cell& c = m_.cells[cell];
    for (int d = 0; d < m_.n_devices; ++d) {
      const int copy = d == c.device ? -1 : m_.copy(c.value, d, c.device);
      if (copy < 0 || !supply(m_.cell(c.value, d), false)) continue;
      if (really) {
        supply(m_.cell(c.value, d), true);
        append(copy);
      }
      return true;
    }
    return false;
  }

  bool upgrade(int cell, bool really) {
    const int way = richer_run(cell);
    if (way < 0 || !really) return way >= 0;
    int& chosen = chosen_[m_.actions[way].op];
    *std::find(sequence_.begin(), sequence_.end(), chosen) = way;
    chosen = way;
    for (const int c : m_.actions[way].writes) written_[c] = true;
    return true;
  }

  bool repeat(int cell, bool really) {
    for (const int way : m_.ways[cell]) {
      const Action& a = m_.actions[way];
      if (a.once || chosen_[a.op] != way) continue;
      if (!std::all_of(a.reads.begin(), a.reads.end(), [&](int c) { return supply(c, false); })) continue;
      if (really) {
        for (const int c : a.reads) supply(c, true);
        append(way);
      }
      return true;
    }
    return false;
  }

  // What must be on its home at the end and was made elsewhere.
  void append_ends() {
    for (std::size_t c = 0; c < m_.cells.size(); ++c) {
      if (!m_.cells[c].at_end || written_[c]) continue;
      ensure(supply(static_cast<int>(c), true), "a kept buffer cannot reach its home");
    }
  }

  const Model& m_;
  std::vector<char> written_, busy_;
  std::vector<int> chosen_;
  std::vector<int> sequence_;
};

}  // namespace

Sequence starting_actions(const Model& model) {
  Schedule s(model, Sequence{Starter(model).run(), {}});
  remove_useless(&s);
  return s.sequence();
}

Search::Search(const Model& model, const Sequence& start, std::uint64_t seed, const Switches& switches)
    : m_(model),
      switches_(switches),
      s_(model, start),
      random_(seed),
      track_cells_(model.n_tracks),
      made_stamp_(model.cells.size()),
      busy_stamp_(model.cells.size()) {
  base_seconds_ = s_.seconds();
  reference_seconds_ = 0;
  for (const int a : start.actions) {
    if (m_.actions[a].op >= 0) reference_seconds_ += m_.actions[m_.fastest[m_.actions[a].op]].seconds;
  }
  epsilon_ = 1e-4 * base_seconds_ / static_cast<double>(std::max<std::size_t>(1, start.actions.size())) + 1e-30;
  for (std::size_t c = 0; c < m_.cells.size(); ++c) {
    if (m_.cells[c].size > 0) track_cells_[m_.cells[c].track].push_back(static_cast<int>(c));
  }
}

void Search::adopt(const Sequence& sequence) {
  s_ = Schedule(m_, sequence);
  extras_stale_ = true;
  note_best();
}

void Search::note_best() {
  if (s_.excess() > 0 || s_.seconds() >= best_seconds_) return;
  best_ = s_.sequence();
  best_seconds_ = s_.seconds();
}

// ---------------------------------------------------------------------------------------------------------------------
// Chains: what to run just before a step so that a cell is there

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
  chain_seconds_ += a.seconds;
  for (const auto& [in, out] : a.takes_over) made_stamp_[in] = 0;
  for (const int c : a.writes) made_stamp_[c] = stamp_;
  return true;
}

bool Search::needed_after(int cell, int node) const { return s_.last_read(cell, node) >= 0; }

bool Search::need(int cell, int target, int before, Mode mode, int depth) {
  if (made_stamp_[cell] == stamp_) return true;
  if (busy_stamp_[cell] == stamp_ || depth > 250 || ++n_needs_ > kMostNeeds) return false;
  const Cell& c = m_.cells[cell];
  int from = -1;
  if (cell != target) {
    const Schedule::Presence there = s_.presence(cell, before);
    if (there.live) return true;
    from = there.from;
    if (from >= 0 && c.size == 0) return true;
    bool extend = from >= 0 && mode == Mode::kExtend;
    if (from >= 0 && mode == Mode::kFitting) {
      const int begin = s_.time().next(from);
      extend = begin == before || s_.time().highest(c.track, begin, before) + c.size <= m_.limit[c.track];
    }
    if (extend) {
      extended_.emplace_back(cell, from);
      return true;
    }
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
  if (!good && cell != target) {
    for (const int w : ways) {  // an earlier run of its op that could write it too
      for (const int run : s_.runs(m_.actions[w].op)) {
        if (!s_.time().before(run, before)) continue;
        const Action& now = m_.actions[s_.action(run)];
        const Action& then = m_.actions[w];
        const bool covers = std::all_of(now.writes.begin(), now.writes.end(), [&](int x) {
          return std::find(then.writes.begin(), then.writes.end(), x) != then.writes.end() || s_.last_read(x, run) < 0;
        });
        if (!covers || now.device != then.device) continue;
        upgrades_.push_back({run, w});
        chain_seconds_ += then.seconds - now.seconds;
        extended_.emplace_back(cell, run);
        good = true;
        break;
      }
      if (good) break;
    }
  }
  busy_stamp_[cell] = 0;
  if (good) made_stamp_[cell] = stamp_;
  return good;
}

// ---------------------------------------------------------------------------------------------------------------------
// Candidates against an overflow

void Search::offer(Candidate&& c) {
  best_score_ = std::max(best_score_, c.score);
  c.score *= random_.between(0.4, 1.6);
  candidates_.push_back(std::move(c));
}

double Search::chain_penalty(int track, const Gap& gap) {
  const Cell& c = m_.cells[gap.cell];
  double penalty = 0;
  for (const auto& [cell, from] : extended_) {
    if (m_.cells[cell].track != track || m_.cells[cell].size == 0) continue;
    const Bytes size = m_.cells[cell].size;
    const bool inside = from == gap.from || s_.time().before(gap.from, from);
    penalty += s_.time().relief(track, from, gap.to, size, m_.limit[track] - size + (inside ? c.size : 0));
  }
  Bytes level = s_.load_before(track, gap.to) - c.size - m_.limit[track];
  for (const auto& [cell, from] : extended_) level += m_.cells[cell].track == track ? m_.cells[cell].size : 0;
  Bytes previous = 0;
  for (const int action : chain_) {
    Bytes writes = 0;
    for (const int w : m_.actions[action].writes) writes += m_.cells[w].track == track ? m_.cells[w].size : 0;
    const Bytes over = level + previous + writes +
                       (m_.cells[m_.cell(0, m_.actions[action].device)].track == track ? m_.actions[action].extra : 0);
    if (over > 0) penalty += static_cast<double>(over);
    previous = writes;
  }
  return penalty;
}

void Search::consider_eviction(int track, int node, const Gap& gap, Mode mode, double relief) {
  begin_chain();
  ticks_ += 4;
  chain_limit_ = best_score_ > 0 ? 2.0 * relief / best_score_ : 1e300;
  const bool good = need(gap.cell, gap.cell, gap.to, mode, 0);
  chain_limit_ = 1e300;
  if (!good) return;
  ticks_ += static_cast<std::int64_t>(chain_.size());
  Bytes at_node = m_.cells[gap.cell].size;
  for (const auto& [cell, from] : extended_) {
    if (m_.cells[cell].track == track && s_.time().before(from, node)) at_node -= m_.cells[cell].size;
  }
  if (at_node <= 0) return;
  double gain = relief - chain_penalty(track, gap);
  if (gain <= 0) gain = 1e-6 * static_cast<double>(at_node);
  Candidate c;
  c.seconds = chain_seconds_;
  c.score = gain / (std::max(0.0, chain_seconds_) + epsilon_);
  c.cell = gap.cell;
  c.before = gap.to;
  c.chain = chain_;
  c.upgrades = upgrades_;
  offer(std::move(c));
}

void Search::consider_other_user(int track, int node, const Gap& gap) {
  const int now = s_.action(gap.to);
  if (now < 0 || m_.actions[now].op < 0) return;
  const auto& list = m_.op_actions[m_.actions[now].op];
  if (list.size() < 2) return;
  for (const int other : list) {
    const Action& a = m_.actions[other];
    if (other == now || std::find(a.reads.begin(), a.reads.end(), gap.cell) != a.reads.end()) continue;
    begin_chain();
    ticks_ += 4;
    bool good = true;
    for (const auto& [in, out] : a.takes_over) good = good && !needed_after(in, gap.to);
    for (std::size_t i = 0; good && i < a.reads.size(); ++i)
      good = need(a.reads[i], gap.cell, gap.to, Mode::kFitting, 0);
    if (!good) continue;
    const Bytes size = m_.cells[gap.cell].size, limit = m_.limit[track];
    Bytes at_node = size;
    for (const auto& [cell, from] : extended_) {
      if (m_.cells[cell].track == track && s_.time().before(from, node)) at_node -= m_.cells[cell].size;
    }
    if (at_node <= 0) continue;
    double gain = s_.time().relief(track, gap.from, gap.to, size, limit) - chain_penalty(track, gap);
    if (gain <= 0) gain = 1e-6 * static_cast<double>(at_node);
    Candidate c;
    c.seconds = chain_seconds_ + a.seconds - m_.actions[now].seconds;
    c.score = gain / (std::max(0.0, c.seconds) + epsilon_);
    c.cell = gap.cell;
    c.before = gap.to;
    c.replace_node = gap.to;
    c.replace_action = other;
    c.chain = chain_;
    c.upgrades = upgrades_;
    offer(std::move(c));
  }
}

void Search::consider_paging(int track, int node, const Gap& gap) {
  (void)node;
  const Cell& cell = m_.cells[gap.cell];
  for (int d = 0; d < m_.n_devices; ++d) {
    if (d == cell.device) continue;
    const int out = m_.copy(cell.value, cell.device, d), in = m_.copy(cell.value, d, cell.device);
    if (in < 0 || !allowed(in, gap.to)) continue;
    const int there = m_.cell(cell.value, d);
    const bool held = s_.extendable_from(there, gap.to) >= 0;
    if (!held && (out < 0 || gap.from == s_.sink())) continue;
    ticks_ += 4;
    Candidate c;
    c.seconds = m_.actions[in].seconds + (held ? 0 : m_.actions[out].seconds);
    double gain = s_.time().relief(track, gap.from, gap.to, cell.size, m_.limit[track]);
    const Cell& other = m_.cells[there];
    if (other.size > 0 && !s_.live_before(there, gap.to)) {
      gain -= s_.time().relief(other.track, gap.from, gap.to, other.size, m_.limit[other.track] - other.size);
    }
    if (gain <= 0) continue;
    c.score = gain / (c.seconds + epsilon_);
    c.cell = gap.cell;
    c.before = gap.to;
    c.chain = {in};
    if (!held) {
      c.page_out = out;
      c.page_after = gap.from;
    }
    offer(std::move(c));
  }
}

void Search::consider_gap(int track, int node, const Gap& gap) {
  const double relief = s_.time().relief(track, gap.from, gap.to, m_.cells[gap.cell].size, m_.limit[track]);
  consider_eviction(track, node, gap, Mode::kFitting, relief);
  if (switches_.chain_recompute) consider_eviction(track, node, gap, Mode::kRecompute, relief);
  if ((random_() & 3) == 0) consider_eviction(track, node, gap, Mode::kExtend, relief);
  if (switches_.implementations) consider_other_user(track, node, gap);
  if (switches_.paging && m_.n_devices > 1) consider_paging(track, node, gap);
}

// The user of an idle cell runs earlier, or its maker later: measured by doing it.
void Search::consider_moves(int node, const Gap& gap) {
  const auto offer_move = [&](int moved, int before) {
    if (s_.action(moved) < 0 || moved == before || s_.time().next(moved) == before) return;
    const double excess = total_excess();
    const std::size_t mark = s_.mark();
    s_.move(moved, before);
    ticks_ += 12;
    if (s_.sound_since(mark)) {
      const double gain = excess - total_excess();
      if (gain > 0) {
        Candidate c;
        c.score = gain / epsilon_;
        c.moved = moved;
        c.before = before;
        offer(std::move(c));
      }
    }
    s_.undo(mark);
  };
  offer_move(gap.to, node);
  offer_move(gap.to, s_.time().next(gap.from));
  const auto& list = s_.events(gap.cell);
  const bool made_here =
      std::any_of(list.begin(), list.end(), [&](const Event& e) { return e.node == gap.from && e.write; });
  if (made_here && s_.time().next(node) >= 0) {
    offer_move(gap.from, gap.to);
    offer_move(gap.from, s_.time().next(node));
  }
}

double Search::total_excess() const {
  double sum = 0;
  for (int t = 0; t < m_.n_tracks; ++t) sum += s_.time().total_excess(t, m_.limit[t]);
  return sum;
}

// Another implementation of the overflowing step itself: measured by doing it.
void Search::consider_replacement(int track, int node) {
  const int now = s_.action(node);
  if (now < 0 || m_.actions[now].op < 0) return;
  const auto& list = m_.op_actions[m_.actions[now].op];
  if (list.size() < 2) return;
  const Bytes load = s_.time().load(track, node), limit = m_.limit[track];
  for (const int other : list) {
    if (other == now) continue;
    begin_chain();
    ticks_ += 6;
    bool good = true;
    for (const int r : m_.actions[other].reads) good = good && need(r, -1, node, Mode::kFitting, 0);
    if (!good) continue;
    Candidate c;
    c.before = node;
    c.replace_node = node;
    c.replace_action = other;
    c.chain = chain_;
    c.upgrades = upgrades_;
    const std::size_t mark = s_.mark();
    const double before = s_.seconds();
    if (apply(c)) {
      const Bytes saved = std::min(load, std::max(limit, load)) - std::max(limit, s_.time().load(track, node));
      c.seconds = s_.seconds() - before;
      c.score = static_cast<double>(saved) / (std::max(0.0, c.seconds) + epsilon_);
    }
    s_.undo(mark);
    if (c.score > 0) offer(std::move(c));
  }
}

bool Search::apply(const Candidate& c) {
  const std::size_t mark = s_.mark();
  if (c.moved >= 0) s_.move(c.moved, c.before);
  if (c.page_out >= 0) s_.insert(c.page_out, s_.time().next(c.page_after));
  for (const Upgrade& u : c.upgrades) s_.swap(u.node, u.action);
  for (const int a : c.chain) s_.insert(a, c.before);
  if (c.replace_node >= 0) s_.swap(c.replace_node, c.replace_action);
  ticks_ += 10 + 10 * static_cast<std::int64_t>(c.chain.size());
  if (s_.sound_since(mark)) return true;
  s_.undo(mark);
  return false;
}

bool Search::pick_overflow(bool earliest, int* track, int* node) {
  *track = -1;
  Bytes worst = 0;
  for (int t = 0; t < m_.n_tracks; ++t) {
    const Bytes over = s_.time().highest(t) - m_.limit[t];
    if (over <= worst) continue;
    worst = over;
    *track = t;
  }
  if (*track < 0) return false;
  const Bytes limit = m_.limit[*track];
  if (earliest) {
    *node = s_.time().first_above(*track, limit);
  } else if (random_.below(5) == 0) {
    *node = s_.time().random_above(*track, limit, random_());
  } else {
    *node = s_.time().highest_node(*track);
  }
  return true;
}

void Search::collect_gaps(int track, int node) {
  gaps_.clear();
  const auto& cells = track_cells_[track];
  const int n = static_cast<int>(cells.size());
  Gap gap;
  if (n > kLargeCells) {
    for (int k = 0; k < 12 * kSample && static_cast<int>(gaps_.size()) < kSample; ++k) {
      if (s_.idle_at(cells[random_.below(n)], node, &gap)) gaps_.push_back(gap);
    }
    ticks_ += 8 * kSample / 4;
    if (static_cast<int>(gaps_.size()) >= kSample / 8) return;
    gaps_.clear();
  }
  for (const int c : cells) {
    if (s_.idle_at(c, node, &gap)) gaps_.push_back(gap);
  }
  ticks_ += n / 4;
}

bool Search::repair(double cutoff, int max_moves, bool earliest) {
  for (int k = 0; k < max_moves; ++k) {
    int track = -1, node = -1;
    if (!pick_overflow(earliest, &track, &node)) return s_.seconds() <= cutoff;
    if (s_.seconds() > cutoff) return false;
    if (ticks_ >= last_tick_ || ((k & 15) == 15 && stop())) return false;
    candidates_.clear();
    best_score_ = 0;
    collect_gaps(track, node);
    for (const Gap& gap : gaps_) consider_gap(track, node, gap);
    if (switches_.order && !gaps_.empty()) {
      const int n_moves = std::min<int>(4, static_cast<int>(gaps_.size()));
      for (int i = 0; i < n_moves; ++i) consider_moves(node, gaps_[random_.below(static_cast<int>(gaps_.size()))]);
    }
    if (switches_.implementations) consider_replacement(track, node);
    bool applied = false;
    for (int attempt = 0; attempt < 12 && !applied && !candidates_.empty(); ++attempt) {
      const auto best = std::max_element(candidates_.begin(), candidates_.end(),
                                         [](const Candidate& a, const Candidate& b) { return a.score < b.score; });
      applied = apply(*best);
      if (!applied) candidates_.erase(best);
    }
    if (!applied) return false;
  }
  return false;
}

// ---------------------------------------------------------------------------------------------------------------------
// Taking decisions back

// With the order fixed, the first run of an op stays where it is.
bool Search::fixed_in_order(int node) const {
  const int op = m_.actions[s_.action(node)].op;
  if (switches_.order || op < 0) return false;
  const auto& runs = s_.runs(op);
  return std::all_of(runs.begin(), runs.end(),
                     [&](int other) { return other == node || s_.time().before(node, other); });
}

bool Search::removable(int node) const {
  const int action = s_.action(node);
  if (action < 0 || m_.actions[action].once || fixed_in_order(node)) return false;
  for (const int c : m_.actions[action].writes) {
    if (s_.last_read(c, node) >= 0 && s_.supplier(c, node) < 0) return false;
  }
  return true;
}

// The step, and the steps that only it needed.
void Search::remove_with_inputs(int node) {
  std::vector<int> suppliers;
  for (const int c : m_.actions[s_.action(node)].reads) suppliers.push_back(s_.supplier(c, node));
  s_.remove(node);
  for (const int supplier : suppliers) {
    if (supplier < 0 || !s_.alive(supplier) || s_.action(supplier) < 0) continue;
    const Action& a = m_.actions[s_.action(supplier)];
    const bool used =
        std::any_of(a.writes.begin(), a.writes.end(), [&](int c) { return s_.last_read(c, supplier) >= 0; });
    if (!used && !a.once && !fixed_in_order(supplier)) remove_with_inputs(supplier);
  }
}

bool Search::try_remove(int node) {
  if (!s_.alive(node) || !removable(node)) return false;
  const std::size_t mark = s_.mark();
  remove_with_inputs(node);
  ticks_ += 10;
  if (s_.sound_since(mark) && s_.excess() <= 0) return true;
  s_.undo(mark);
  return false;
}

// Runs the step by another implementation, making what that reads.
bool Search::swap_with_support(int node, int action, Mode mode) {
  begin_chain();
  for (const int r : m_.actions[action].reads) {
    if (!need(r, -1, node, mode, 0)) return false;
  }
  Candidate c;
  c.before = node;
  c.replace_node = node;
  c.replace_action = action;
  c.chain = chain_;
  c.upgrades = upgrades_;
  return apply(c);
}

bool Search::try_swap(int node, int action) {
  const std::size_t mark = s_.mark();
  const double before = s_.seconds();
  if (!swap_with_support(node, action, Mode::kFitting)) return false;
  if (s_.seconds() < before && s_.excess() <= 0) return true;
  s_.undo(mark);
  return false;
}

bool Search::try_faster(int node) {
  const int now = s_.action(node);
  if (now < 0 || m_.actions[now].op < 0) return false;
  std::vector<int> list;
  for (const int a : m_.op_actions[m_.actions[now].op]) {
    if (m_.actions[a].seconds < m_.actions[now].seconds) list.push_back(a);
  }
  std::sort(list.begin(), list.end(), [&](int x, int y) { return m_.actions[x].seconds < m_.actions[y].seconds; });
  for (const int a : list) {
    if (try_swap(node, a)) return true;
  }
  return false;
}

void Search::prune(std::size_t mark) {
  if (!switches_.prune) return;
  std::vector<int> nodes = s_.changed_since(mark);
  const std::size_t n_changed = nodes.size();
  for (std::size_t i = 0; i < n_changed; ++i) {
    const Action& a = m_.actions[s_.action(nodes[i])];
    for (const int c : a.writes) {
      for (const Event& e : s_.events(c)) {
        if (e.write && e.node != nodes[i]) nodes.push_back(e.node);
      }
    }
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  // Dear ones first: what one removal takes up, a cheaper one cannot have.
  std::sort(nodes.begin(), nodes.end(), [&](int x, int y) {
    const double a = s_.action(x) < 0 ? 0 : m_.actions[s_.action(x)].seconds;
    const double b = s_.action(y) < 0 ? 0 : m_.actions[s_.action(y)].seconds;
    return a != b ? a > b : x < y;
  });
  std::vector<int> kept;
  for (const int node : nodes) {
    if (!try_remove(node)) kept.push_back(node);
  }
  if (!switches_.implementations) return;
  for (const int node : kept) {
    if (s_.alive(node)) try_faster(node);
  }
}

void Search::refresh_extras() {
  extras_.clear();
  for (const int node : s_.time().nodes()) {
    if (removable(node)) {
      extras_.push_back(node);
      continue;
    }
    const int a = s_.action(node);
    if (a >= 0 && m_.actions[a].op >= 0 && m_.actions[a].seconds > m_.actions[m_.fastest[m_.actions[a].op]].seconds) {
      extras_.push_back(node);
    }
  }
  extras_stale_ = false;
}

// Runs a step on another device: its inputs are copied in, its outputs copied back for whoever reads them here.
bool Search::relocate(int node, int action) {
  const std::size_t mark = s_.mark();
  const std::vector<int> old_writes = m_.actions[s_.action(node)].writes;
  const int device = m_.actions[action].device;
  for (const int r : m_.actions[action].reads) {
    if (s_.supplier(r, node) >= 0) continue;
    const Cell& cell = m_.cells[r];
    int copy = -1;
    for (int d = 0; d < m_.n_devices && copy < 0; ++d) {
      const int c = d == device ? -1 : m_.copy(cell.value, d, device);
      if (c >= 0 && s_.extendable_from(m_.cell(cell.value, d), node) >= 0) copy = c;
    }
    if (copy < 0) {
      s_.undo(mark);
      return false;
    }
    s_.insert(copy, node);
  }
  s_.swap(node, action);
  for (const int w : old_writes) {
    const Cell& cell = m_.cells[w];
    if (s_.last_read(w, node) < 0 || cell.device == device || s_.supplier(w, node) >= 0) continue;
    const int copy = m_.copy(cell.value, device, cell.device);
    if (copy >= 0) s_.insert(copy, s_.time().next(node));
  }
  ticks_ += 40;
  if (s_.sound_since(mark)) return true;
  s_.undo(mark);
  return false;
}

// A stretch of steps moves to another device, and the copies that this makes needless go.
bool Search::relocate_stretch() {
  const auto nodes = s_.time().nodes();
  const int n = static_cast<int>(nodes.size());
  const int from = random_.below(n);
  const int most = random_.below(3) == 0 ? n / 3 : 12;
  const int length = 1 + random_.below(std::max(1, most));
  const int device = random_.below(m_.n_devices);
  const std::size_t mark = s_.mark();
  bool any = false;
  for (int i = from; i < std::min(n, from + length); ++i) {
    const int now = s_.action(nodes[i]);
    if (now < 0 || m_.actions[now].op < 0 || m_.actions[now].device == device) continue;
    for (const int a : m_.op_actions[m_.actions[now].op]) {
      if (m_.actions[a].device != device) continue;
      any = relocate(nodes[i], a) || any;
      if (s_.action(nodes[i]) == a) break;
    }
  }
  if (!any) return false;
  // Last first, so that a copy of a copy goes as well.
  const auto after = s_.time().nodes();
  for (auto it = after.rbegin(); it != after.rend(); ++it) {
    if (!s_.alive(*it) || s_.action(*it) < 0 || m_.actions[s_.action(*it)].once) continue;
    const auto& writes = m_.actions[s_.action(*it)].writes;
    if (std::none_of(writes.begin(), writes.end(), [&](int c) { return s_.last_read(c, *it) >= 0; })) s_.remove(*it);
  }
  // A copy of something that is there already.
  for (const int node : s_.time().nodes()) {
    const int a = s_.action(node);
    if (a < 0 || m_.actions[a].op >= 0 || s_.extendable_from(m_.actions[a].writes[0], node) < 0) continue;
    const std::size_t before = s_.mark();
    s_.remove(node);
    if (!s_.sound_since(before)) s_.undo(before);
  }
  ticks_ += 2 * n;
  if (s_.sound_since(mark)) return true;
  s_.undo(mark);
  return false;
}

// What may end on any device ends where that holds least.
bool Search::move_end() {
  const int value = random_.below(static_cast<int>(m_.values.size()));
  if (!m_.values[value].keep_anywhere) return false;
  const int device = random_.below(m_.n_devices);
  if (device == s_.end_device(value) || s_.extendable_from(m_.cell(value, device), s_.sink()) < 0) return false;
  const std::size_t mark = s_.mark();
  s_.end_on(value, device);
  if (s_.sound_since(mark)) return true;
  s_.undo(mark);
  return false;
}

// Takes back one to twenty decisions.
bool Search::ruin() {
  if (extras_stale_ || random_.below(50) == 0) refresh_extras();
  const int n = static_cast<int>(extras_.size());
  if (n == 0) return false;
  const int k = std::min(n, 1 + random_.below(random_.below(2) == 0 ? 6 : 20));
  const bool together = switches_.contiguous && random_.below(2) == 0;
  int at = random_.below(n);
  bool any = false;
  for (int i = 0; i < k; ++i) {
    const int node = extras_[at];
    at = together ? (at + 1) % n : random_.below(n);
    if (!s_.alive(node)) continue;
    const int a = s_.action(node);
    const std::size_t mark = s_.mark();
    ticks_ += 10;
    if (removable(node)) {
      remove_with_inputs(node);
    } else if (a >= 0 && m_.actions[a].op >= 0) {
      const auto& list = m_.op_actions[m_.actions[a].op];
      const int other = list[random_.below(static_cast<int>(list.size()))];
      if (m_.actions[other].seconds >= m_.actions[a].seconds) continue;
      if (!swap_with_support(node, other, random_.below(2) == 0 ? Mode::kExtend : Mode::kRecompute)) continue;
    } else {
      continue;
    }
    if (s_.sound_since(mark)) {
      any = true;
    } else {
      s_.undo(mark);
    }
  }
  return any;
}

// A step to another place between its inputs and its users.
bool Search::move_step() {
  const auto nodes = s_.time().nodes();
  ticks_ += 10 + static_cast<std::int64_t>(nodes.size()) / 64;
  const int n = static_cast<int>(nodes.size());
  const int at = 1 + random_.below(n - 1);
  const int node = nodes[at];
  if (s_.action(node) < 0) return false;
  const int reach = 1 + random_.below(random_.below(2) == 0 ? 8 : std::max(2, n / 4));
  const int to = std::clamp(random_.below(2) == 0 ? at - reach : at + 1 + reach, 1, n - 1);
  if (to == at || to == at + 1) return false;
  const std::size_t mark = s_.mark();
  s_.move(node, nodes[to]);
  if (s_.sound_since(mark)) return true;
  s_.undo(mark);
  return false;
}

bool Search::make_feasible(std::int64_t ticks) {
  const std::int64_t end = ticks_ + ticks;
  const int n = static_cast<int>(s_.sequence().actions.size());
  last_tick_ = end;
  for (int round = 0; ticks_ < end && round < kMostRounds && !stop(); ++round) {
    const std::size_t mark = s_.mark();
    const bool earliest = round % 2 == 1;
    if (repair(1e300, 100 + 6 * n, earliest)) {
      prune(mark);
      s_.commit();
      extras_stale_ = true;
      note_best();
      return true;
    }
    s_.undo(mark);
  }
  return false;
}

void Search::improve(std::int64_t ticks, double warmth) {
  const std::int64_t begin = ticks_, end = ticks_ + ticks;
  last_tick_ = std::numeric_limits<std::int64_t>::max();
  for (int k = 0; ticks_ < end && best_seconds_ > floor; ++k) {
    if ((k & 15) == 0 && stop()) return;
    ++ticks_;
    const double left = 1.0 - static_cast<double>(ticks_ - begin) / static_cast<double>(ticks);
    const double band = warmth * left * (best_seconds_ - reference_seconds_);
    const double cutoff = best_seconds_ + band;
    const std::size_t mark = s_.mark();
    const bool moved = switches_.order && random_.below(4) == 0 && move_step();
    bool placed = false;
    if (m_.n_devices > 1 && switches_.implementations && random_.below(2) == 0) {
      placed = random_.below(4) == 0 ? move_end() : relocate_stretch();
    }
    if (!(random_.below(4) != 0 && placed) && !ruin() && !moved && !placed) {
      s_.undo(mark);
      if (extras_.empty() && !switches_.order && m_.n_devices == 1) return;
      ticks_ += 10;
      continue;
    }
    if (!repair(cutoff, 60, false) && (s_.excess() > 0 || s_.seconds() > cutoff + band)) {
      s_.undo(mark);
      continue;
    }
    prune(mark);
    if (s_.seconds() > cutoff || s_.excess() > 0) {
      s_.undo(mark);
      continue;
    }
    s_.commit();
    extras_stale_ = true;
    note_best();
  }
}

}  // namespace neaptide::plan::tide
