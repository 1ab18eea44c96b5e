// Candidates against an overflow, and the loop that applies them until everything fits.
#include "neaptide/plan/planners/neaptide_search.hpp"

#include <algorithm>

namespace neaptide::plan::tide {
namespace {
const auto kBetter = [](const auto& a, const auto& b) {
  return a.worth != b.worth ? a.worth > b.worth : a.gap.cell < b.gap.cell;
};

constexpr double kNoise = 0.6;                        // of every comparison: repeated repairs must differ
constexpr std::size_t kLookedAt[] = {3, 6, 20, 100};  // of the idle values, before an overflow
constexpr int kSample = 64;                           // idle cells looked at per overflow on large problems
constexpr int kLargeCells = 1500;                     // more cells than this: sample

}  // namespace

void Search::offer(Candidate&& c) {
  best_score_ = std::max(best_score_, c.score);
  c.score *= random_.between(1 - kNoise, 1 + kNoise);
  candidates_.push_back(std::move(c));
}

double Search::chain_penalty(int track, const Gap& gap) {
  const Cell& c = m_.cells[gap.cell];
  double penalty = 0;
  for (const auto& [cell, from] : extended_) {
    if (m_.cells[cell].track != track || m_.cells[cell].size == 0) continue;
    const Bytes size = m_.cells[cell].size;
    const bool inside = from == gap.from || s_.time().before(gap.from, from);
    penalty += s_.time().relief(track, from, gap.to, size, limit_[track] - size + (inside ? c.size : 0));
  }
  Bytes level = s_.load_before(track, gap.to) - c.size - limit_[track];
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
  cheapest_ = std::min(cheapest_, chain_seconds_);
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
    const Bytes size = m_.cells[gap.cell].size, limit = limit_[track];
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
    double gain = s_.time().relief(track, gap.from, gap.to, cell.size, limit_[track]);
    const Cell& other = m_.cells[there];
    if (other.size > 0 && !s_.live_before(there, gap.to)) {
      gain -= s_.time().relief(other.track, gap.from, gap.to, other.size, limit_[other.track] - other.size);
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
  const double relief = s_.time().relief(track, gap.from, gap.to, m_.cells[gap.cell].size, limit_[track]);
  cheapest_ = 1e300;
  const int draw = random_.below(10);
  const Mode other = draw < 9 ? Mode::kRecompute : Mode::kExtend;
  const bool fitting = draw < 6 || (other == Mode::kRecompute && !switches_.chain_recompute);
  consider_eviction(track, node, gap, fitting ? Mode::kFitting : other, relief);
  if (cheapest_ < 1e299) price_[gap.cell] += 0.5 * (cheapest_ - price_[gap.cell]);
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
  for (int t = 0; t < m_.n_tracks; ++t) sum += s_.time().total_excess(t, limit_[t]);
  return sum;
}

// Another implementation of the overflowing step itself: measured by doing it.
void Search::consider_replacement(int track, int node) {
  const int now = s_.action(node);
  if (now < 0 || m_.actions[now].op < 0) return;
  const auto& list = m_.op_actions[m_.actions[now].op];
  if (list.size() < 2) return;
  const Bytes load = s_.time().load(track, node), limit = limit_[track];
  for (const int other : list) {
    if (other == now) continue;
    begin_chain();
    ticks_ += 6;
    bool good = true;
    for (const int r : m_.actions[other].reads) good = good && need(r, -1, node, Mode::kFitting, 0);
    if (!good) continue;
    Candidate c = replacement(node, other);
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
    const Bytes over = s_.time().highest(t) - limit_[t];
    if (over <= worst) continue;
    worst = over;
    *track = t;
  }
  if (*track < 0) return false;
  const Bytes limit = limit_[*track];
  if (earliest) {
    *node = s_.time().first_above(*track, limit);
  } else if (random_.below(5) == 0) {
    *node = s_.time().random_above(*track, limit, random_());
  } else {
    *node = s_.time().highest_node(*track);
  }
  return true;
}

// What it costs to make each cell again, when all inputs are there; chains correct it as they are seen.
void Search::rate_prices() {
  price_.assign(m_.cells.size(), 0);
  for (std::size_t c = 0; c < m_.cells.size(); ++c) {
    double least = 1e300;
    for (const int way : m_.ways[c]) {
      if (!m_.actions[way].once) least = std::min(least, m_.actions[way].seconds);
    }
    price_[c] = least;
    if (m_.cells[c].size > 0 && least < 1e299) by_price_.push_back(static_cast<int>(c));
  }
  std::sort(by_price_.begin(), by_price_.end(), [&](int x, int y) {
    const double a = price_[x] / static_cast<double>(m_.cells[x].size);
    const double b = price_[y] / static_cast<double>(m_.cells[y].size);
    return a != b ? a < b : x < y;
  });
}

void Search::rate(int cell, int node, Bytes over) {
  Rated r;
  if (!s_.idle_at(cell, node, &r.gap)) return;
  const auto bytes = static_cast<double>(std::min(over, m_.cells[cell].size));
  r.worth = bytes / (price_[cell] + epsilon_) * random_.between(1 - kNoise, 1 + kNoise);
  rated_.push_back(r);
}

// The most promising idle cells, by their last known price: all are looked at on small problems, else those that the
// ruin gave back and a sample that favours the cheap.
void Search::collect_gaps(int track, int node) {
  gaps_.clear();
  rated_.clear();
  const auto& cells = track_cells_[track];
  const int n = static_cast<int>(cells.size());
  const Bytes over = std::max<Bytes>(1, s_.time().load(track, node) - limit_[track]);
  if (n > kLargeCells) {
    for (const int c : recent_) {
      if (m_.cells[c].track == track) rate(c, node, over);
    }
    const int n_priced = static_cast<int>(by_price_.size());
    for (int k = 0; k < 12 * kSample && static_cast<int>(rated_.size()) < kSample; ++k) {
      const double u = random_.unit();
      const int c =
          n_priced > 0 && (k & 3) != 0 ? by_price_[static_cast<int>(u * u * n_priced)] : cells[random_.below(n)];
      if (m_.cells[c].track == track) rate(c, node, over);
    }
    ticks_ += kSample / 4;
  }
  if (n <= kLargeCells || static_cast<int>(rated_.size()) < kSample / 8) {
    rated_.clear();
    for (const int c : cells) rate(c, node, over);
    ticks_ += n / 8;
  }
  const std::size_t most = std::min(n_looked_at_, rated_.size());
  std::nth_element(rated_.begin(), rated_.begin() + static_cast<std::ptrdiff_t>(most), rated_.end(), kBetter);
  std::sort(rated_.begin(), rated_.begin() + static_cast<std::ptrdiff_t>(most), kBetter);
  for (std::size_t i = 0; i < most; ++i) {
    if (i == 0 || rated_[i].gap.cell != rated_[i - 1].gap.cell) gaps_.push_back(rated_[i].gap);
  }
}

bool Search::repair(double cutoff, int max_moves, bool earliest) {
  n_looked_at_ = kLookedAt[random_.below(4)];
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
    const std::size_t mark = s_.mark();
    bool applied = false;
    for (int attempt = 0; attempt < 12 && !applied && !candidates_.empty(); ++attempt) {
      const auto best = std::max_element(candidates_.begin(), candidates_.end(),
                                         [](const Candidate& a, const Candidate& b) { return a.score < b.score; });
      applied = apply(*best);
      if (!applied) candidates_.erase(best);
    }
    if (!applied) return false;
    merge_since(mark);
  }
  return false;
}

}  // namespace neaptide::plan::tide
