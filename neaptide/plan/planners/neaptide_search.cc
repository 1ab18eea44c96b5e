#include "neaptide/plan/planners/neaptide_search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace neaptide::plan::tide {
namespace {

constexpr double kBandDecisions = 10;
constexpr double kTemperature = 0.4;  // of annealing, against the band
constexpr int kMostRounds = 12;       // of attempts to fit

/// About -log(u), by nothing that one machine could round otherwise than another.
double exponential(double u) { return 8 / std::sqrt(std::sqrt(std::sqrt(u + 1e-9))) - 8; }

}  // namespace

Search::Search(const Model& model, const Sequence& start, std::uint64_t seed, const Switches& switches)
    : m_(model),
      switches_(switches),
      limit_(model.limit),
      opening_(start),
      blocks_(model),
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
  rate_prices();
}

void Search::adopt(const Sequence& sequence) {
  s_ = Schedule(m_, sequence);
  note_best();
}

void Search::offer(const Sequence& sequence) {
  const Schedule s(m_, sequence);
  if (s.excess() > 0 || s.seconds() >= best_seconds_) return;
  best_ = sequence;
  best_seconds_ = s.seconds();
}

void Search::note_best() {
  if (s_.excess() > 0 || s_.seconds() >= best_seconds_) return;
  best_ = s_.sequence();
  best_seconds_ = s_.seconds();
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
      note_best();
      return true;
    }
    s_.undo(mark);
  }
  return false;
}

// Bytes above the limits in force, largest over the tracks.
Bytes Search::excess() const {
  Bytes worst = m_.n_tracks == 0 ? 0 : std::numeric_limits<Bytes>::min();
  for (int t = 0; t < m_.n_tracks; ++t) worst = std::max(worst, s_.time().highest(t) - limit_[t]);
  return worst;
}

void Search::shake(std::int64_t ticks) {
  const std::size_t mark = s_.mark();
  const double share = random_.between(0.8, 1.0);
  for (Bytes& limit : limit_) limit = static_cast<Bytes>(share * static_cast<double>(limit));
  last_tick_ = ticks_ + ticks;
  const int n = static_cast<int>(s_.time().nodes().size());
  repair(1e300, 100 + 6 * n, random_.below(2) == 0);
  limit_ = m_.limit;
  prune(mark);
  if (excess() > 0) s_.undo(mark);
  s_.commit();
  note_best();
}

bool Search::restart(std::int64_t ticks) {
  s_ = Schedule(m_, opening_);
  return make_feasible(ticks);
}

void Search::improve(std::int64_t ticks, double warmth) {
  const std::int64_t begin = ticks_, end = ticks_ + ticks;
  last_tick_ = std::numeric_limits<std::int64_t>::max();
  double record = excess() <= 0 ? s_.seconds() : best_seconds_;  // of this call
  double n_extras = n_extras_estimate();
  const bool annealed = switches_.anneal && excess() <= 0 && random_.below(2) == 0;
  for (int k = 0; ticks_ < end && best_seconds_ > floor; ++k) {
    if ((k & 1023) == 1023) n_extras = n_extras_estimate();
    if ((k & 15) == 0 && stop()) return;
    ++ticks_;
    const double left = 1.0 - static_cast<double>(ticks_ - begin) / static_cast<double>(ticks);
    // What one ruin can lose, not what all decisions together cost: on large problems a wide band only drifts.
    const double share = std::min(1.0, kBandDecisions / std::max(1.0, n_extras));
    const double band = warmth * left * share * (record - reference_seconds_);
    const double worse = annealed ? kTemperature * exponential(random_.unit()) : 1;
    const double cutoff = (annealed ? s_.seconds() : record) + worse * band;
    const std::size_t mark = s_.mark();
    recent_.clear();
    const bool moved = switches_.order && random_.below(4) == 0 && move_step();
    bool placed = false;
    if (m_.n_devices > 1 && switches_.implementations && random_.below(2) == 0) {
      placed = random_.below(4) == 0 ? move_end() : relocate_stretch();
    }
    const bool copied = switches_.blocks && blocks_.count() > 0 && random_.below(4) == 0 && copy_block();
    placed = placed || copied;
    if (!(random_.below(4) != 0 && placed) && !ruin() && !moved && !placed) {
      s_.undo(mark);
      if (n_extras == 0 && !switches_.order && m_.n_devices == 1) return;
      ticks_ += 10;
      continue;
    }
    if (!repair(cutoff, 60, false) && (excess() > 0 || s_.seconds() > cutoff + band)) {
      s_.undo(mark);
      continue;
    }
    prune(mark);
    if (s_.seconds() > cutoff || excess() > 0) {
      s_.undo(mark);
      continue;
    }
    s_.commit();
    record = std::min(record, s_.seconds());
    note_best();
  }
}

}  // namespace neaptide::plan::tide
