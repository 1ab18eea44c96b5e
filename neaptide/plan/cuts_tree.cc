#include "neaptide/plan/cuts_tree.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "neaptide/base/errors.hpp"

namespace neaptide::plan {
namespace {

constexpr double kWhole = 1e-6;  // closer to 0 or 1 counts as that
constexpr double kTie = 1e-9;    // relative: nearer to the target than this is a tie
constexpr int kMostCoverRounds = 20;
constexpr int kTriesNearRoot = 4, kTriesBelow = 2, kNearRoot = 6;
constexpr double kMostMultiplier = 1e18;
constexpr std::int64_t kWorkPerKept = 1000;  // of the work allowed: what a certificate may hold grows with it
constexpr std::int64_t kLeastKept = 20'000, kMostKept = 300'000;  // multipliers in all leaves

double fraction(double x) { return std::min(x, 1 - x); }

}  // namespace

CutsTree::CutsTree(const CutsModel& model) : m_(model), lp_(model.relaxation()), now_(model.columns.size(), 2) {
  int exponent = 0;
  std::frexp(m_.byte_scale, &exponent);
  price_log2_ = std::clamp(12 - exponent, -50, 0);
  held_.resize(m_.cuts.size());
  room_row_.resize(m_.cuts.size());
  for (std::size_t r = 0; r < m_.rows.size(); ++r) {
    const CutsRow& row = m_.rows[r];
    if (row.key.kind != CutsKey::kRoom) continue;
    room_row_[row.key.a] = static_cast<int>(r);
    for (const auto& [c, factor] : row.terms) {
      if (room_taken(c) > 0) held_[row.key.a].push_back(c);
    }
  }
}

CutsTree::~CutsTree() = default;

// Bytes of its instant's room that a column takes: a value, or an implementation beyond the leanest one.
Bytes CutsTree::room_taken(int column) const {
  const CutsKey& key = m_.columns[column];
  if (key.kind == CutsKey::kHeld) return m_.frame.size[key.a];
  if (key.kind != CutsKey::kFirst) return 0;
  const OpId tau = m_.cuts[key.a];
  return m_.frame.extra(tau, key.b) - m_.frame.least_extra(tau);
}

void CutsTree::fix(const std::vector<std::pair<int, char>>& fixed) {
  std::vector<char> wanted(now_.size(), 2);
  for (const auto& [c, value] : fixed) wanted[c] = value;
  for (std::size_t c = 0; c < now_.size(); ++c) {
    if (wanted[c] == now_[c]) continue;
    lp_.bound({static_cast<int>(c)}, wanted[c] == 1 ? 1 : 0, wanted[c] == 0 ? 0 : 1);
    now_[c] = wanted[c];
  }
}

const std::vector<std::pair<int, std::int64_t>>& CutsTree::terms_of(int row, std::int64_t* least, bool* bytes) const {
  const int n = static_cast<int>(m_.rows.size());
  *bytes = row < n && m_.rows[row].in_bytes();
  *least = row < n ? m_.rows[row].least : -covers_[row - n].most;
  return row < n ? m_.rows[row].terms : cover_terms_[row - n];
}

void CutsTree::multipliers_of(const std::vector<double>& duals, double scale, Leaf* leaf) const {
  leaf->multipliers.clear();
  for (std::size_t r = 0; r < duals.size(); ++r) {
    if (!(duals[r] > 0)) continue;
    const bool bytes = r < m_.rows.size() && m_.rows[r].in_bytes();
    double units = duals[r] * scale * m_.cost_scale;
    if (bytes) units = std::ldexp(units / m_.byte_scale, -price_log2_);
    if (units >= 0.5)
      leaf->multipliers.emplace_back(static_cast<int>(r), std::llround(std::min(units, kMostMultiplier)));
  }
}

// In steps of 2^price_log2 units.
Wide CutsTree::prove(const Leaf& leaf) const {
  const int shift = -price_log2_;
  std::vector<Wide> left(m_.columns.size());
  for (std::size_t c = 0; c < left.size(); ++c) left[c] = static_cast<Wide>(m_.cost[c]) << shift;
  Wide sum = 0;
  for (const auto& [row, multiplier] : leaf.multipliers) {
    std::int64_t least = 0;
    bool bytes = false;
    const auto& terms = terms_of(row, &least, &bytes);
    const Wide y = bytes ? static_cast<Wide>(multiplier) : static_cast<Wide>(multiplier) << shift;
    sum += y * least;
    for (const auto& [c, factor] : terms) left[c] -= y * factor;
  }
  std::vector<char> how(left.size(), 2);
  for (const auto& [c, value] : leaf.fixed) how[c] = value;
  for (std::size_t c = 0; c < left.size(); ++c) {
    if (how[c] == 1 || (how[c] == 2 && left[c] < 0)) sum += left[c];
  }
  return m_.floor_units + (sum >> shift);
}

void CutsTree::choose_candidates(Node* node) const {
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
    if (const Bytes bytes = room_taken(static_cast<int>(c)); bytes > 0)
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

// `inherited`: the parent's multipliers, which hold here too, and the fixed columns.
CutsTree::Node CutsTree::evaluate(Leaf inherited, Wide target) {
  Node node;
  node.leaf = std::move(inherited);
  node.leaf.units = prove(node.leaf);
  const auto offer = [&](Leaf leaf) {
    leaf.units = prove(leaf);
    if (leaf.units > node.leaf.units) node.leaf = std::move(leaf);
  };
  offer({node.leaf.fixed, {}, 0});
  fix(node.leaf.fixed);
  ++n_nodes_;
  const auto outcome = lp_.solve(std::max<std::int64_t>(1, (end_ - work()) / n_columns()));
  Leaf leaf{node.leaf.fixed, {}, 0};
  if (outcome == milp::Relaxation::Outcome::kOptimal) {
    node.estimate = lp_.objective();
    choose_candidates(&node);
    multipliers_of(lp_.row_duals(), 1, &leaf);
    offer(leaf);
    return node;
  }
  node.estimate = 1e300;
  if (outcome == milp::Relaxation::Outcome::kStopped || lp_.row_duals().empty()) return node;
  // The combination of rows that nothing satisfies, taken often enough to pass the target.
  std::vector<double> ray = lp_.row_duals();
  const double most = *std::max_element(ray.begin(), ray.end());
  for (double& y : ray) y /= std::max(most, 1e-300);
  const double wanted = static_cast<double>(target - m_.floor_units) / m_.cost_scale + 1;
  for (double times = wanted; times < wanted * 1e7 && node.leaf.units < target; times *= 10) {
    multipliers_of(ray, times, &leaf);
    offer(leaf);
  }
  return node;
}

namespace {

struct Item {
  double held;
  Bytes size;
  int column;
};

using Weights = std::vector<std::int64_t>;

/// Rounded multiples of what fits, in several ways: any integers give a valid inequality, these often a strong one
/// (after Gomory's rounding and Marchand and Wolsey, "Aggregation and mixed integer rounding to solve MIPs", 2001).
std::vector<Weights> rounded(const std::vector<Item>& items, Bytes room, double step) {
  double free = static_cast<double>(room);
  for (const Item& i : items) free -= i.held > 0.5 ? static_cast<double>(i.size) : 0;
  const auto part = [](double x) { return x - std::floor(x); };
  const double of_all = part(static_cast<double>(room) / step), of_free = part(free / step);
  const auto mixed = [&](double x, double of) { return std::floor(x) + std::max(0.0, part(x) - of) / (1 - of); };
  std::vector<Weights> out(3);
  for (const Item& i : items) {
    const double x = static_cast<double>(i.size) / step;
    out[0].push_back(static_cast<std::int64_t>(std::floor(x)));
    out[1].push_back(static_cast<std::int64_t>(std::ceil(x)));
    out[2].push_back(std::llround(x));
  }
  for (const int scale : {1, 2, 3, 6}) {
    Weights of_room, of_rest;
    for (const Item& i : items) {
      const double x = static_cast<double>(i.size) / step;
      of_room.push_back(static_cast<std::int64_t>(scale * mixed(x, of_all) + 1e-9));
      const double w = i.held > 0.5 ? -scale * mixed(-x, of_free) : scale * mixed(x, of_free);
      of_rest.push_back(std::max<std::int64_t>(0, std::llround(w)));
    }
    out.push_back(std::move(of_room));
    out.push_back(std::move(of_rest));
  }
  return out;
}

/// What fits weighs at least this: filling up by weight per byte.
std::int64_t greedy_weight(const std::vector<Item>& items, const Weights& weights, Bytes room) {
  std::vector<std::size_t> order(items.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return static_cast<double>(weights[a]) * static_cast<double>(items[b].size) >
           static_cast<double>(weights[b]) * static_cast<double>(items[a].size);
  });
  std::int64_t sum = 0;
  for (const std::size_t i : order) {
    if (weights[i] == 0 || items[i].size > room) continue;
    room -= items[i].size;
    sum += weights[i];
  }
  return sum;
}

/// The most that what fits can weigh, exactly: the fewest bytes for every weight. -1: too much work.
std::int64_t most_weight(const std::vector<Item>& items, const Weights& weights, Bytes room) {
  constexpr std::int64_t kLargest = 4000, kMostWork = 400'000;
  std::int64_t all = 0, n = 1;
  for (const std::int64_t w : weights) {
    all += w;
    n += w > 0 ? 1 : 0;
  }
  if (all > std::min(kLargest, kMostWork / n)) return -1;
  std::vector<Bytes> bytes(static_cast<std::size_t>(all) + 1, room + 1);
  bytes[0] = 0;
  std::int64_t reached = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (weights[i] == 0 || items[i].size > room) continue;
    reached += weights[i];
    for (std::int64_t w = reached; w >= weights[i]; --w) {
      bytes[w] = std::min(bytes[w], std::min(room + 1, bytes[w - weights[i]] + items[i].size));
    }
  }
  while (bytes[reached] > room) --reached;
  return reached;
}

}  // namespace

// Adds the most violated inequalities of one instant's room.
int CutsTree::cover(int cut, double least_violation) {
  constexpr std::size_t kMostAdded = 3;
  const std::size_t most_steps = held_[cut].size() > 1000 ? 5 : 25;
  std::vector<Item> items;
  std::set<double> steps;
  for (const int c : held_[cut]) {
    const Item item{lp_.values()[c], room_taken(c), c};
    items.push_back(item);
    if (fraction(item.held) < kWhole || steps.size() >= most_steps) continue;
    for (const double part : {1.0, 2.0, 3.0, 4.0, 0.5}) steps.insert(static_cast<double>(item.size) / part);
  }
  struct Found {
    double violation;
    CutsCover cover;
  };
  std::vector<Found> found;
  const Bytes room = m_.room[cut];
  for (const double step : steps) {
    for (const Weights& weights : rounded(items, room, step)) {
      double held = 0, square = 0;
      for (std::size_t i = 0; i < items.size(); ++i) {
        held += static_cast<double>(weights[i]) * items[i].held;
        square += static_cast<double>(weights[i] * weights[i]);
      }
      const double norm = std::sqrt(std::max(1.0, square));
      const auto violation = [&](std::int64_t most) { return (held - static_cast<double>(most)) / norm; };
      if (violation(greedy_weight(items, weights, room)) < least_violation) continue;
      const std::int64_t most = most_weight(items, weights, room);
      if (most < 0 || violation(most) < least_violation) continue;
      CutsCover c{cut, {}, most};
      for (std::size_t i = 0; i < items.size(); ++i) {
        if (weights[i] > 0) c.weights.emplace_back(items[i].column, weights[i]);
      }
      found.push_back({violation(most), std::move(c)});
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Found& a, const Found& b) { return a.violation > b.violation; });
  std::size_t added = 0;
  for (std::size_t f = 0; f < found.size() && added < kMostAdded; ++f) {
    CutsCover& c = found[f].cover;
    if (f > 0 && c.weights == found[f - 1].cover.weights) continue;
    std::vector<std::pair<int, std::int64_t>> terms;
    std::vector<milp::Term> row;
    for (const auto& [column, weight] : c.weights) {
      terms.emplace_back(column, -weight);
      row.push_back({{column}, -static_cast<double>(weight)});
    }
    lp_.add_row(-static_cast<double>(c.most), milp::kInfinity, row);
    covers_.push_back(c);
    cover_terms_.push_back(std::move(terms));
    ++added;
  }
  return static_cast<int>(added);
}

int CutsTree::separate(double least_violation) {
  int n = 0;
  for (int k = 0; k < static_cast<int>(m_.cuts.size()); ++k) n += cover(k, least_violation);
  return n;
}

Wide CutsTree::bound() const {
  Wide least = -1;
  const auto take = [&](const Node& n) {
    if (least < 0 || n.leaf.units < least) least = n.leaf.units;
  };
  for (const Node& n : open_) take(n);
  for (const Node& n : done_) take(n);
  return least < 0 ? m_.floor_units : least;
}

std::vector<CutsTree::Leaf> CutsTree::leaves() const {
  std::vector<Leaf> out;
  for (const Node& n : done_) out.push_back(n.leaf);
  for (const Node& n : open_) out.push_back(n.leaf);
  return out;
}

// Both children of the candidate whose children gain most; some candidates are tried out first.
void CutsTree::branch(const Node& node, Wide target) {
  const std::size_t depth = node.leaf.fixed.size();
  const std::size_t most = depth < kNearRoot ? kTriesNearRoot : kTriesBelow;
  const std::size_t tries = node.integral ? 1 : std::min(most, node.candidates.size());
  std::array<Node, 2> best;
  double best_score = -1;
  for (std::size_t t = 0; t < tries; ++t) {
    std::array<Node, 2> pair;
    double score = 1;
    for (const int value : {0, 1}) {
      Leaf leaf = node.leaf;
      leaf.fixed.emplace_back(node.candidates[t].second, static_cast<char>(value));
      pair[value] = evaluate(std::move(leaf), target);
      const double gain = static_cast<double>(std::min(pair[value].leaf.units, target) - node.leaf.units);
      score *= std::max(gain / m_.cost_scale, 1e-6);
    }
    const bool ends = pair[0].leaf.units >= target || pair[1].leaf.units >= target;
    if (score > best_score) best = std::move(pair);
    best_score = std::max(best_score, score);
    if (ends) break;
  }
  for (Node& n : best) {
    kept_ += n.leaf.multipliers.size();
    open_.push_back(std::move(n));
  }
}

// Where the relaxation says nothing useful: the largest value not yet decided.
void CutsTree::choose_largest(Node* node) const {
  std::vector<char> fixed(now_.size(), 0);
  for (const auto& [c, value] : node->leaf.fixed) fixed[c] = 1;
  int best = -1;
  for (std::size_t c = 0; c < fixed.size(); ++c) {
    if (fixed[c]) continue;
    const auto size = [&](int i) { return m_.columns[i].kind == CutsKey::kHeld ? m_.frame.size[m_.columns[i].a] : 0; };
    if (best < 0 || size(static_cast<int>(c)) > size(best)) best = static_cast<int>(c);
  }
  if (best >= 0) node->candidates.emplace_back(1, best);
}

CutsTree::End CutsTree::run(Wide target, std::int64_t work_left, const std::function<bool()>& stop) {
  end_ = work() + work_left;
  const auto most_kept = static_cast<std::size_t>(std::clamp(work_left / kWorkPerKept, kLeastKept, kMostKept));
  if (open_.empty() && done_.empty()) {
    Node root = evaluate({}, target);
    for (int round = 0; round < kMostCoverRounds && root.estimate < 1e299; ++round) {
      if (root.leaf.units >= target || work() > end_ || separate(1e-3) == 0) break;
      root = evaluate(root.leaf, target);
    }
    open_.push_back(std::move(root));
  }
  while (true) {
    const auto least = std::min_element(open_.begin(), open_.end(), [](const Node& a, const Node& b) {
      if (a.leaf.units != b.leaf.units) return a.leaf.units < b.leaf.units;
      return a.leaf.fixed.size() > b.leaf.fixed.size();
    });
    if (least == open_.end() || least->leaf.units >= target) return bound() >= target ? End::kReached : End::kStopped;
    if (work() >= end_ || kept_ > most_kept || stop()) return End::kStopped;
    const double wanted = static_cast<double>(target - m_.floor_units) / m_.cost_scale;
    const bool cheaper = least->estimate < wanted - kTie * std::max(1.0, wanted);
    if (least->integral && cheaper) {
      fix(least->leaf.fixed);
      if (lp_.solve(10'000) != milp::Relaxation::Outcome::kOptimal) return End::kStopped;
      relaxed_.assign(lp_.values().size(), 0);
      for (std::size_t c = 0; c < relaxed_.size(); ++c) relaxed_[c] = lp_.values()[c] > 0.5 ? 1 : 0;
      return End::kRelaxed;
    }
    Node node = std::move(*least);
    open_.erase(least);
    if (node.candidates.empty()) choose_largest(&node);
    if (node.candidates.empty()) {
      done_.push_back(std::move(node));
      continue;
    }
    kept_ -= std::min(kept_, node.leaf.multipliers.size());
    branch(node, target);
  }
}

}  // namespace neaptide::plan
