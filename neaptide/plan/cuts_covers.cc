#include <algorithm>
#include <cmath>
#include <set>

#include "neaptide/plan/cuts_inequalities.hpp"

namespace neaptide::plan {
namespace {

constexpr double kLeastViolation = 1e-3;

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
  std::vector<std::pair<double, std::size_t>> order;  // bytes per weight
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (weights[i] > 0) order.emplace_back(static_cast<double>(items[i].size) / static_cast<double>(weights[i]), i);
  }
  std::sort(order.begin(), order.end());
  std::int64_t sum = 0;
  for (const auto& [ratio, i] : order) {
    if (items[i].size > room) continue;
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

/// The most violated inequalities of one instant's room.
std::vector<CutsInequality> find_at(const CutsModel& model, int cut, const std::vector<int>& held,
                                    const std::vector<double>& x, std::size_t thorough) {
  constexpr std::size_t kMostAdded = 3;
  const std::size_t most_steps = held.size() > 1000 ? 5 : thorough;
  std::vector<Item> items;
  std::set<double> steps;
  for (const int c : held) {
    const Item item{x[c], room_taken(model, c), c};
    items.push_back(item);
    if (std::min(item.held, 1 - item.held) < 1e-6 || steps.size() >= most_steps) continue;
    for (const double part : {1.0, 2.0, 3.0, 4.0, 0.5}) steps.insert(static_cast<double>(item.size) / part);
  }
  struct Found {
    double violation;
    CutsCover cover;
  };
  std::vector<Found> found;
  std::multiset<double> best;  // violations
  double least = kLeastViolation;
  const Bytes room = model.room[cut];
  for (const double step : steps) {
    for (const Weights& weights : rounded(items, room, step)) {
      double taken = 0, square = 0;
      for (std::size_t i = 0; i < items.size(); ++i) {
        taken += static_cast<double>(weights[i]) * items[i].held;
        square += static_cast<double>(weights[i] * weights[i]);
      }
      const double norm = std::sqrt(std::max(1.0, square));
      const auto off = [&](std::int64_t most) { return (taken - static_cast<double>(most)) / norm; };
      if (off(greedy_weight(items, weights, room)) <= least) continue;
      const std::int64_t most = most_weight(items, weights, room);
      if (most < 0 || off(most) <= least) continue;
      CutsCover c{cut, {}, most};
      for (std::size_t i = 0; i < items.size(); ++i) {
        if (weights[i] > 0) c.weights.emplace_back(items[i].column, weights[i]);
      }
      found.push_back({off(most), std::move(c)});
      best.insert(off(most));
      if (best.size() > kMostAdded) best.erase(best.begin());
      if (best.size() == kMostAdded) least = *best.begin();
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Found& a, const Found& b) { return a.violation > b.violation; });
  std::vector<CutsInequality> out;
  for (std::size_t f = 0; f < found.size() && out.size() < kMostAdded; ++f) {
    const CutsCover& c = found[f].cover;
    if (f > 0 && c.weights == found[f - 1].cover.weights) continue;
    CutsInequality made{c, {}, -c.most};
    for (const auto& [column, weight] : c.weights) made.terms.emplace_back(column, -weight);
    out.push_back(std::move(made));
  }
  return out;
}

}  // namespace

Bytes room_taken(const CutsModel& model, int column) {
  const CutsKey& key = model.columns[column];
  if (key.kind == CutsKey::kHeld) return model.frame.size[key.a];
  if (key.kind != CutsKey::kFirst) return 0;
  const OpId tau = model.cuts[key.a];
  return model.frame.extra(tau, key.b) - model.frame.least_extra(tau);
}

std::vector<std::vector<int>> takers_of_room(const CutsModel& model) {
  std::vector<std::vector<int>> out(model.cuts.size());
  for (const CutsRow& row : model.rows) {
    if (row.key.kind != CutsKey::kRoom) continue;
    for (const auto& [c, factor] : row.terms) {
      if (room_taken(model, c) > 0) out[row.key.a].push_back(c);
    }
  }
  return out;
}

double violation(const CutsInequality& inequality, const std::vector<double>& x) {
  double sum = static_cast<double>(inequality.least), square = 0;
  for (const auto& [c, factor] : inequality.terms) {
    sum -= static_cast<double>(factor) * x[c];
    square += static_cast<double>(factor) * static_cast<double>(factor);
  }
  return sum / std::sqrt(std::max(square, 1e-300));
}

std::vector<CutsInequality> find_covers(const CutsModel& model, const std::vector<double>& x, std::size_t thorough) {
  std::vector<CutsInequality> out;
  const auto held = takers_of_room(model);
  for (int k = 0; k < static_cast<int>(held.size()); ++k) {
    for (CutsInequality& i : find_at(model, k, held[k], x, thorough)) out.push_back(std::move(i));
  }
  return out;
}

}  // namespace neaptide::plan
