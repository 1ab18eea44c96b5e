#include "neaptide/plan/cuts_worker.hpp"

#include <algorithm>
#include <cmath>

namespace neaptide::plan {
namespace {

constexpr double kWhole = 1e-6;  // closer to 0 or 1 counts as that
constexpr double kTie = 1e-9;    // relative: nearer to the target than this is a tie
constexpr double kLeastFraction = 1e-3, kMostParallel = 0.9;
constexpr std::size_t kMostAddedAtOnce = 60;
constexpr std::size_t kTableauRowsAtRoot = 200, kTableauRowsBelow = 40;
constexpr std::size_t kCoversAtRoot = 25, kCoversBelow = 5;  // see find_covers
constexpr int kTriesNearRoot = 4, kTriesBelow = 2, kNearRoot = 6;
constexpr int kTimesSpent = 3;  // what is left decides, decisions leave less
constexpr std::int64_t kMostDiveIterations = 10'000;
constexpr double kMostMultiplier = 1e18;  // fits 64 bits
constexpr int kMostProductBits = 105;     // of a multiplier and a factor: thousands of them fit 128

double fraction(double x) { return std::min(x, 1 - x); }

}  // namespace

std::vector<CutsNode>::iterator CutsNodes::least() {
  return std::min_element(open.begin(), open.end(), [](const CutsNode& a, const CutsNode& b) {
    if (a.leaf.units != b.leaf.units) return a.leaf.units < b.leaf.units;
    return a.leaf.fixed.size() > b.leaf.fixed.size();
  });
}

std::size_t CutsNodes::kept() const {
  std::size_t sum = 0;
  for (const auto* list : {&open, &done}) {
    for (const CutsNode& n : *list) sum += n.leaf.multipliers.size() + n.leaf.implied.size();
  }
  return sum;
}

CutsWorker::CutsWorker(const CutsModel& model)
    : m_(model), lp_(model.relaxation()), follow_(model), now_(model.columns.size(), 2) {
  int exponent = 0;
  std::frexp(m_.byte_scale, &exponent);
  price_log2_ = std::clamp(12 - exponent, -50, 0);
  room_row_.resize(m_.cuts.size());
  for (std::size_t r = 0; r < m_.rows.size(); ++r) {
    if (m_.rows[r].key.kind == CutsKey::kRoom) room_row_[m_.rows[r].key.a] = static_cast<int>(r);
  }
}

CutsWorker::CutsWorker(const CutsWorker& known) : CutsWorker(known.m_) {
  inequalities_ = known.inequalities_;
  settle();
  for (const int i : known.live_) relax_by(i);
  lp_.start_from(known.lp_);
}

void CutsWorker::aim(Wide target, Wide than, std::int64_t work_left) {
  target_ = target;
  than_ = than;
  end_ = work() + work_left;
}

void CutsWorker::add(CutsInequality inequality) {
  inequalities_.push_back(std::move(inequality));
  settle();
}

void CutsWorker::settle() {
  for (; n_followed_ < inequalities_.size(); ++n_followed_) follow_.add(inequalities_[n_followed_]);
}

void CutsWorker::share(CutsWorker* other, CutsNodes* theirs) {
  const auto n_before = static_cast<int>(n_followed_), n_rows = static_cast<int>(m_.rows.size());
  const int n_mine = static_cast<int>(inequalities_.size()) - n_before;
  const auto rename_row = [&](int* row) { *row += *row < n_rows + n_before ? 0 : n_mine; };
  const auto rename = [&](Multipliers* rows) {
    for (auto& [row, multiplier] : *rows) rename_row(&row);
  };
  for (auto* list : {&theirs->open, &theirs->done}) {
    for (CutsNode& n : *list) {
      rename(&n.leaf.multipliers);
      for (CutsImplied& step : n.leaf.implied) rename_row(&step.row);
      for (CutsImplied& step : n.leaf.priced) rename_row(&step.row);
      rename_row(&n.leaf.spends);
    }
  }
  std::vector<int> live, live_there;
  for (const int i : live_) {
    if (i >= n_before) live.push_back(i);
  }
  for (int& i : other->live_) {
    if (i < n_before) continue;
    i += n_mine;
    live_there.push_back(i);
  }
  for (std::size_t i = n_followed_; i < other->inequalities_.size(); ++i) {
    CutsInequality one = std::move(other->inequalities_[i]);
    if (auto* rounded = std::get_if<CutsRounded>(&one.why)) rename(&rounded->rows);
    if (auto* cheaper = std::get_if<CutsCheaper>(&one.why)) rename(&cheaper->rows);
    inequalities_.push_back(std::move(one));
  }
  other->inequalities_.resize(n_followed_);
  other->inequalities_.insert(other->inequalities_.end(), inequalities_.begin() + n_before, inequalities_.end());
  for (const int i : live_there) relax_by(i);
  for (const int i : live) other->relax_by(i);
  settle();
  other->settle();
}

// The inequality takes its place in the relaxation.
void CutsWorker::relax_by(int inequality) {
  const CutsInequality& i = inequalities_[inequality];
  std::vector<milp::Term> row;
  for (const auto& [c, f] : i.terms) row.push_back({{c}, static_cast<double>(f) / i.scale});
  lp_.add_row(static_cast<double>(i.least) / i.scale, milp::kInfinity, row);
  live_.push_back(inequality);
}

void CutsWorker::fix(const std::vector<std::pair<int, char>>& branches, const std::vector<CutsImplied>& implied) {
  std::vector<char> wanted(now_.size(), 2);
  for (const auto& [c, value] : branches) wanted[c] = value;
  for (const CutsImplied& i : implied) {
    if (i.column >= 0) wanted[i.column] = i.value;
  }
  for (std::size_t c = 0; c < now_.size(); ++c) {
    if (wanted[c] == now_[c]) continue;
    lp_.bound({static_cast<int>(c)}, wanted[c] == 1 ? 1 : 0, wanted[c] == 0 ? 0 : 1);
    now_[c] = wanted[c];
  }
}

const CutsTerms& CutsWorker::terms_of(int row, std::int64_t* least, bool* bytes) const {
  const int n = static_cast<int>(m_.rows.size());
  *bytes = row < n && m_.rows[row].in_bytes();
  *least = row < n ? m_.rows[row].least : inequalities_[row - n].least;
  return row < n ? m_.rows[row].terms : inequalities_[row - n].terms;
}

void CutsWorker::multipliers_of(const std::vector<double>& duals, double scale, CutsLeaf* leaf) const {
  leaf->multipliers.clear();
  for (std::size_t r = 0; r < duals.size(); ++r) {
    if (!(duals[r] > 0)) continue;
    const int row = row_id(static_cast<int>(r));
    const bool bytes = r < m_.rows.size() && m_.rows[r].in_bytes();
    double units = duals[r] * scale * m_.cost_scale / scale_of(row);
    if (bytes) units = std::ldexp(units, -price_log2_);
    const double most = bytes ? kMostMultiplier : std::ldexp(1.0, kMostProductBits + price_log2_) / scale_of(row);
    if (units >= 0.5) leaf->multipliers.emplace_back(row, std::llround(std::min({units, most, kMostMultiplier})));
  }
}

// By column: the cost less what the multipliers take of it, in steps of 2^price_log2 units; and what these prove.
std::vector<Wide> CutsWorker::left_by(const Multipliers& multipliers, Wide* sum) const {
  const int shift = -price_log2_;
  std::vector<Wide> left(m_.columns.size());
  for (std::size_t c = 0; c < left.size(); ++c) left[c] = static_cast<Wide>(m_.cost[c]) << shift;
  for (const auto& [row, multiplier] : multipliers) {
    std::int64_t least = 0;
    bool bytes = false;
    const auto& terms = terms_of(row, &least, &bytes);
    const Wide y = bytes ? static_cast<Wide>(multiplier) : static_cast<Wide>(multiplier) << shift;
    *sum += y * least;
    for (const auto& [c, factor] : terms) left[c] -= y * factor;
  }
  return left;
}

/// With what its multipliers prove, and as much of `implied` as that needs.
CutsLeaf CutsWorker::proved(const CutsLeaf& leaf, const std::vector<CutsImplied>& implied) const {
  CutsLeaf out = leaf;
  std::vector<char> wanted(m_.columns.size(), 0);
  if (!implied.empty() && implied.back().column < 0) {
    out.multipliers.clear();
    out.implied = follow_.needed(implied, wanted, inequalities_);
    out.units = than_;
    return out;
  }
  Wide sum = 0;
  const std::vector<Wide> left = left_by(leaf.multipliers, &sum);
  std::vector<char> how(left.size(), 2);
  for (const auto& [c, value] : leaf.fixed) how[c] = value;
  for (const CutsImplied& i : implied) {
    how[i.column] = i.value;
    wanted[i.column] = left[i.column] != 0 && (left[i.column] > 0) == (i.value == 1) ? 1 : 0;
  }
  for (std::size_t c = 0; c < left.size(); ++c) {
    if (how[c] == 1 || (how[c] == 2 && left[c] < 0)) sum += left[c];
  }
  out.implied = follow_.needed(implied, std::move(wanted), inequalities_);
  out.units = m_.floor_units + (sum >> -price_log2_);
  return out;
}

void CutsWorker::choose_candidates(CutsNode* node) const {
  const std::vector<double>& x = lp_.values();
  std::vector<double> price(m_.cuts.size());
  for (std::size_t k = 0; k < price.size(); ++k) price[k] = lp_.row_duals()[room_row_[k]] / m_.byte_scale;
  for (std::size_t r = 0; r < m_.rows.size(); ++r) {
    if (m_.rows[r].key.kind != CutsKey::kInside) continue;
    const double inside = lp_.row_duals()[r] / m_.byte_scale;
    price[m_.rows[r].key.b] += inside;
    price[m_.rows[r].key.b - 1] += inside;
  }
  for (std::size_t c = 0; c < x.size(); ++c) {
    const double f = fraction(x[c]);
    if (f < kWhole) continue;
    const CutsKey& key = m_.columns[c];
    double weight = static_cast<double>(m_.cost[c]) / m_.cost_scale;
    const int instant = key.kind == CutsKey::kHeld ? key.b : key.a;
    if (const Bytes bytes = room_taken(m_, static_cast<int>(c)); bytes > 0)
      weight = std::max(weight, static_cast<double>(bytes) * price[instant]);
    node->candidates.emplace_back(f * (weight + 1e-9), static_cast<int>(c));
  }
  node->integral = node->candidates.empty();
  for (std::size_t c = 0; c < x.size() && node->integral; ++c) {  // for a tie: what it pays for without being told to
    if (x[c] > 0.5 && now_[c] == 2 && m_.cost[c] > 0) {
      node->candidates.emplace_back(static_cast<double>(m_.cost[c]), static_cast<int>(c));
    }
  }
  std::sort(node->candidates.begin(), node->candidates.end(),
            [](const auto& a, const auto& b) { return a.first != b.first ? a.first > b.first : a.second < b.second; });
  if (node->candidates.size() > kTriesNearRoot) node->candidates.resize(kTriesNearRoot);
}

/// What costs more than the parent's multipliers leave to be spent is decided.
void CutsWorker::spend(CutsLeaf* leaf, std::vector<CutsImplied>* implied) {
  if (leaf->spends < 0) return;
  const CutsCheaper& row = spent(*leaf);
  Wide base = 0;
  const std::vector<Wide> left = left_by(row.rows, &base);
  for (int time = 0; time < kTimesSpent; ++time) {
    if (!implied->empty() && implied->back().column < 0) return;
    std::vector<char> how(left.size(), 2);
    for (const auto& [c, value] : leaf->fixed) how[c] = value;
    for (const CutsImplied& i : *implied) how[i.column] = i.value;
    Wide rest = ((row.than - 1 - m_.floor_units) << -price_log2_) - base;
    for (std::size_t c = 0; c < left.size(); ++c) {
      if (how[c] == 1 || (how[c] == 2 && left[c] < 0)) rest -= left[c];
    }
    if (rest < 0) {
      implied->push_back({leaf->spends});
      return;
    }
    const std::size_t before = leaf->priced.size();
    for (std::size_t c = 0; c < left.size(); ++c) {
      if (how[c] != 2 || (left[c] < 0 ? -left[c] : left[c]) <= rest) continue;
      leaf->priced.push_back({leaf->spends, static_cast<int>(c), static_cast<char>(left[c] < 0 ? 1 : 0)});
    }
    if (leaf->priced.size() == before) return;
    *implied = follow_.from(leaf->fixed, leaf->priced);
  }
}

/// What the node's multipliers leave to be spent by a solution that is worth finding, for its children.
void CutsWorker::leave_to_spend(CutsNode* node) {
  CutsLeaf& leaf = node->leaf;
  if (leaf.spends >= 0 && spent(leaf).rows == leaf.multipliers && spent(leaf).than == than_) return;
  CutsCheaper out{leaf.multipliers, than_};
  Wide base = 0;
  for (const Wide left : left_by(leaf.multipliers, &base)) {
    out.left.push_back(static_cast<signed char>((left > 0 ? 1 : 0) - (left < 0 ? 1 : 0)));
  }
  leaf.spends = static_cast<int>(m_.rows.size() + inequalities_.size());
  inequalities_.push_back({std::move(out), {}, 0});
}

const CutsCheaper& CutsWorker::spent(const CutsLeaf& leaf) const {
  return std::get<CutsCheaper>(inequalities_[leaf.spends - static_cast<int>(m_.rows.size())].why);
}

// `inherited`: the parent's multipliers, which hold here too, and the fixed columns.
CutsNode CutsWorker::evaluate(CutsLeaf inherited) {
  CutsNode node;
  std::vector<CutsImplied> implied = follow_.from(inherited.fixed, inherited.priced);
  spend(&inherited, &implied);
  node.leaf = proved(inherited, implied);
  const auto offer = [&](const CutsLeaf& leaf) {
    CutsLeaf better = proved(leaf, implied);
    if (better.units > node.leaf.units) node.leaf = std::move(better);
  };
  ++n_nodes_;
  node.estimate = 1e300;
  if (node.leaf.impossible()) return node;
  CutsLeaf leaf = std::move(inherited);
  leaf.multipliers.clear();
  offer(leaf);
  fix(leaf.fixed, implied);
  const auto outcome = lp_.solve(iterations_left());
  if (outcome == milp::Relaxation::Outcome::kOptimal) {
    node.estimate = lp_.objective();
    choose_candidates(&node);
    multipliers_of(lp_.row_duals(), 1, &leaf);
    offer(leaf);
    return node;
  }
  if (outcome == milp::Relaxation::Outcome::kStopped || lp_.row_duals().empty()) return node;
  // The combination of rows that nothing satisfies, taken often enough to pass the target.
  std::vector<double> ray = lp_.row_duals();
  const double most = *std::max_element(ray.begin(), ray.end());
  for (double& y : ray) y /= std::max(most, 1e-300);
  const double wanted = static_cast<double>(target_ - m_.floor_units) / m_.cost_scale + 1;
  for (double times = wanted; times < wanted * 1e7 && node.leaf.units < target_; times *= 10) {
    multipliers_of(ray, times, &leaf);
    offer(leaf);
  }
  return node;
}

int CutsWorker::row_id(int lp_row) const {
  const int n = static_cast<int>(m_.rows.size());
  return lp_row < n ? lp_row : n + live_[lp_row - n];
}

double CutsWorker::scale_of(int row) const {
  const int n = static_cast<int>(m_.rows.size());
  if (row >= n) return inequalities_[row - n].scale;
  return m_.rows[row].in_bytes() ? m_.byte_scale : 1;
}

// The tableau's rows of the columns nearest to one half, rounded.
void CutsWorker::find_rounded(std::size_t most, std::vector<CutsInequality>* found) {
  const std::vector<double>& x = lp_.values();
  std::vector<std::pair<double, int>> places;  // distance to one half
  const std::vector<int> basic = lp_.basic();
  for (std::size_t i = 0; i < basic.size(); ++i) {
    const int c = basic[i];
    if (c >= 0 && fraction(x[c]) > kLeastFraction) places.emplace_back(0.5 - fraction(x[c]), static_cast<int>(i));
  }
  std::sort(places.begin(), places.end());
  if (places.size() > most) places.resize(most);
  for (const auto& [distance, place] : places) {
    auto multipliers = lp_.tableau_row(place);
    for (auto& [row, y] : multipliers) {
      row = row_id(row);
      y /= scale_of(row);
    }
    if (auto one = round_rows(m_, inequalities_, multipliers, x)) found->push_back(std::move(*one));
    ++extra_iterations_;
  }
}

// The most violated of what is found, as long as they are not much the same.
int CutsWorker::tighten(bool at_root) {
  const std::vector<double>& x = lp_.values();
  const bool whole = std::all_of(x.begin(), x.end(), [](double v) { return fraction(v) < kWhole; });
  if (whole) return 0;
  std::vector<CutsInequality> found = find_paths(m_, x);
  for (CutsInequality& c : find_covers(m_, x, at_root ? kCoversAtRoot : kCoversBelow)) found.push_back(std::move(c));
  find_rounded(at_root ? kTableauRowsAtRoot : kTableauRowsBelow, &found);
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t i = 0; i < found.size(); ++i) order.emplace_back(-violation(found[i], x), i);
  std::sort(order.begin(), order.end());
  loosen();
  std::vector<std::vector<double>> directions;
  for (const auto& [off, i] : order) {
    if (directions.size() >= kMostAddedAtOnce) break;
    const auto& terms = found[i].terms;  // Clang 14 captures no part of a pair
    std::vector<double> direction(x.size());
    double square = 0;
    for (const auto& [c, f] : terms) square += static_cast<double>(f) * static_cast<double>(f);
    for (const auto& [c, f] : terms) direction[c] = static_cast<double>(f) / std::sqrt(square);
    const bool same = std::any_of(directions.begin(), directions.end(), [&](const std::vector<double>& d) {
      double product = 0;
      for (const auto& [c, f] : terms) product += d[c] * direction[c];
      return product > kMostParallel;
    });
    if (same) continue;
    directions.push_back(std::move(direction));
    inequalities_.push_back(std::move(found[i]));
    relax_by(static_cast<int>(inequalities_.size()) - 1);
  }
  return static_cast<int>(directions.size());
}

// Inequalities that the solution does not touch leave the relaxation.
void CutsWorker::loosen() {
  const std::size_t n = m_.rows.size();
  const std::vector<char> idle = lp_.idle_rows();
  std::vector<int> rows, left;
  for (std::size_t i = 0; i < live_.size(); ++i) {
    if (idle[n + i]) {
      rows.push_back(static_cast<int>(n + i));
    } else {
      left.push_back(live_[i]);
    }
  }
  lp_.remove_rows(rows);
  live_ = std::move(left);
}

// A round of inequalities that this node's solution violates.
void CutsWorker::refine(CutsNode* node) {
  node->refined = true;
  leave_to_spend(node);
  std::vector<CutsImplied> implied = follow_.from(node->leaf.fixed, node->leaf.priced);
  spend(&node->leaf, &implied);
  if (!implied.empty() && implied.back().column < 0) {
    *node = evaluate(node->leaf);
    return;
  }
  fix(node->leaf.fixed, implied);
  if (lp_.solve(iterations_left()) != milp::Relaxation::Outcome::kOptimal || tighten(false) == 0) return;
  CutsNode better = evaluate(node->leaf);
  better.refined = true;
  *node = std::move(better);
}

// Both children of the candidate whose children gain most; some candidates are tried out first.
std::array<CutsNode, 2> CutsWorker::branch(const CutsNode& node) {
  const std::size_t depth = node.leaf.fixed.size();
  const std::size_t most = depth < kNearRoot ? kTriesNearRoot : kTriesBelow;
  const std::size_t tries = node.integral ? 1 : std::min(most, node.candidates.size());
  std::array<CutsNode, 2> best;
  double best_score = -1;
  for (std::size_t t = 0; t < tries; ++t) {
    std::array<CutsNode, 2> pair;
    double score = 1;
    for (const int value : {0, 1}) {
      CutsLeaf leaf = node.leaf;
      leaf.fixed.emplace_back(node.candidates[t].second, static_cast<char>(value));
      pair[value] = evaluate(std::move(leaf));
      const double gain = static_cast<double>(std::min(pair[value].leaf.units, target_) - node.leaf.units);
      score *= std::max(gain / m_.cost_scale, 1e-6);
    }
    const bool ends = pair[0].leaf.units >= target_ || pair[1].leaf.units >= target_;
    if (score > best_score) best = std::move(pair);
    best_score = std::max(best_score, score);
    if (ends) break;
  }
  return best;
}

// Where the relaxation says nothing useful: the largest value not yet decided.
void CutsWorker::choose_largest(CutsNode* node) {
  std::vector<char> fixed(now_.size(), 0);
  for (const auto& [c, value] : node->leaf.fixed) fixed[c] = 1;
  for (const CutsImplied& i : follow_.from(node->leaf.fixed, node->leaf.priced)) {
    if (i.column >= 0) fixed[i.column] = 1;
  }
  int best = -1;
  for (std::size_t c = 0; c < fixed.size(); ++c) {
    if (fixed[c]) continue;
    const auto size = [&](int i) { return m_.columns[i].kind == CutsKey::kHeld ? m_.frame.size[m_.columns[i].a] : 0; };
    if (best < 0 || size(static_cast<int>(c)) > size(best)) best = static_cast<int>(c);
  }
  if (best >= 0) node->candidates.emplace_back(1, best);
}

std::optional<std::vector<char>> CutsWorker::dive(const CutsLeaf& from, const std::function<bool()>& stop) {
  std::vector<std::pair<int, char>> fixed = from.fixed;
  const std::size_t given = fixed.size();
  for (std::size_t left = now_.size(); left > 0 && !stop(); --left) {
    const std::vector<CutsImplied> implied = follow_.from(fixed, from.priced);
    const bool impossible = !implied.empty() && implied.back().column < 0;
    if (!impossible) fix(fixed, implied);
    if (impossible || lp_.solve(kMostDiveIterations) != milp::Relaxation::Outcome::kOptimal) {
      if (fixed.size() == given || fixed.back().second == 0) return std::nullopt;
      fixed.back().second = 0;
      continue;
    }
    ++n_nodes_;
    std::vector<std::pair<double, int>> open;
    for (std::size_t c = 0; c < now_.size(); ++c) {
      if (fraction(lp_.values()[c]) > kWhole) open.emplace_back(-lp_.values()[c], static_cast<int>(c));
    }
    if (open.empty()) {
      std::vector<char> out(now_.size());
      for (std::size_t c = 0; c < out.size(); ++c) out[c] = lp_.values()[c] > 0.5 ? 1 : 0;
      return out;
    }
    std::sort(open.begin(), open.end());
    for (std::size_t i = 0; i <= open.size() / 10; ++i) {
      if (i == 0 || open[i].first < -0.8) fixed.emplace_back(open[i].second, 1);
    }
  }
  return std::nullopt;
}

bool CutsWorker::is_solution(const CutsNode& node) const {
  const double wanted = static_cast<double>(target_ - m_.floor_units) / m_.cost_scale;
  return node.integral && node.leaf.units < target_ && node.estimate < wanted - kTie * std::max(1.0, wanted);
}

void CutsWorker::step(std::vector<CutsNode>::iterator at, CutsNodes* nodes) {
  CutsNode node = std::move(*at);
  nodes->open.erase(at);
  if (!node.refined && !node.integral && !node.leaf.fixed.empty() && node.estimate < 1e299) {
    refine(&node);
    nodes->open.push_back(std::move(node));
    return;
  }
  if (node.candidates.empty()) choose_largest(&node);
  if (node.candidates.empty()) {
    nodes->done.push_back(std::move(node));
    return;
  }
  leave_to_spend(&node);
  for (CutsNode& n : branch(node)) nodes->open.push_back(std::move(n));
}

}  // namespace neaptide::plan
