#include "neaptide/plan/planners/chen.hpp"

#include <cmath>

#include "neaptide/plan/answer.hpp"
#include "neaptide/plan/forward.hpp"

namespace neaptide::plan {
namespace {

/// The candidates for checkpoints: indices into forward.ops.
std::vector<std::size_t> candidates(const Forward& forward, bool articulation) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < forward.ops.size(); ++i) {
    if (!forward.waiting[i].empty() && (!articulation || forward.articulation[i])) out.push_back(i);
  }
  return out;
}

std::vector<bool> sqrt_checkpoints(const Forward& forward, bool articulation) {
  const std::vector<std::size_t> list = candidates(forward, articulation);
  std::vector<bool> kept(forward.ops.size(), false);
  if (list.empty()) return kept;
  const double n_segments = std::max(1.0, std::round(std::sqrt(static_cast<double>(list.size()))));
  const double length = static_cast<double>(list.size()) / n_segments;
  for (double at = length; at < static_cast<double>(list.size()); at += length)
    kept[list[static_cast<std::size_t>(at) - 1]] = true;
  kept[list.back()] = true;
  return kept;
}

std::vector<bool> greedy_checkpoints(const Problem& problem, const Forward& forward, bool articulation, double b) {
  std::vector<bool> kept(forward.ops.size(), false);
  double since = 0;
  std::vector<bool> may(forward.ops.size(), false);
  for (std::size_t i : candidates(forward, articulation)) may[i] = true;
  for (std::size_t i = 0; i < forward.ops.size(); ++i) {
    for (BufferId v : forward.waiting[i]) since += static_cast<double>(problem.buffers[v].bytes);
    if (since <= b || !may[i]) continue;
    kept[i] = true;
    since = 0;
  }
  return kept;
}

/// Which values of the switch to try.
std::vector<bool> articulation_values(const Options& options) {
  const std::string value = switch_value(options, "articulation", "auto", {"auto", "off", "on"});
  if (value == "auto") return {true, false};
  return {value == "on"};
}

}  // namespace

Plan run_chen_sqrt(const Problem& problem, const Options& options) {
  check_switches(options, "chen-sqrt", {"articulation"});
  const Forward forward = forward_of(problem);
  BestPlan best(problem);
  for (bool articulation : articulation_values(options))
    best.offer(with_checkpoints(problem, forward, sqrt_checkpoints(forward, articulation)));
  return std::move(best).plan();
}

Plan run_chen_greedy(const Problem& problem, const Options& options) {
  check_switches(options, "chen-greedy", {"articulation"});
  constexpr int kTries = 40;
  const Forward forward = forward_of(problem);
  double total = 0;
  for (const auto& list : forward.waiting) {
    for (BufferId b : list) total += static_cast<double>(problem.buffers[b].bytes);
  }
  BestPlan best(problem);
  for (bool articulation : articulation_values(options)) {
    std::vector<bool> before;
    for (int i = 0; i < kTries && !options.interrupted(); ++i) {  // b from all the bytes down to nothing
      const double b = total * std::pow(1 - static_cast<double>(i) / (kTries - 1), 2);
      std::vector<bool> kept = greedy_checkpoints(problem, forward, articulation, b);
      if (kept == before) continue;
      best.offer(with_checkpoints(problem, forward, kept));
      before = std::move(kept);
    }
  }
  return std::move(best).plan();
}

}  // namespace neaptide::plan
