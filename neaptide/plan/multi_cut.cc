#include "neaptide/plan/multi_cut.hpp"

#include <algorithm>
#include <climits>
#include <cmath>
#include <memory>
#include <tuple>

#include "neaptide/base/errors.hpp"
#include "neaptide/plan/bounds.hpp"
#include "neaptide/plan/cuts_certificate.hpp"
#include "neaptide/plan/cuts_playback.hpp"
#include "neaptide/plan/simulate.hpp"

namespace neaptide::plan {
namespace {

constexpr int kMostNewInstants = 1;  // per round
constexpr int kNodesAtFirst = 60;    // of a stage's tree before another stage is tried
constexpr int kMostInVain = 3;
constexpr int kNearRelaxation = 8;
constexpr int kDearer = 4, kMuchDearer = 2;  // of a playback: part of what is left to prove
constexpr std::size_t kManyInPlace = 8;      // part of the ops that take something over

}  // namespace

Wide MultiCut::target(Seconds known) const {
  const double units = std::ldexp(known * (1 - 1e-13), -frame_.facts.unit_log2);
  return units < 9e18 ? static_cast<Wide>(static_cast<std::int64_t>(std::ceil(units))) : Wide{1} << 62;
}

bool MultiCut::comparable(OpId op, const std::vector<OpId>& cuts) const {
  return std::all_of(cuts.begin(), cuts.end(),
                     [&](OpId c) { return c != op && (frame_.before(c, op) || frame_.before(op, c)); });
}

std::vector<OpId> MultiCut::with(std::vector<OpId> cuts, const std::vector<OpId>& more) const {
  for (const OpId op : more) {
    if (!comparable(op, cuts)) continue;
    cuts.insert(std::find_if(cuts.begin(), cuts.end(), [&](OpId c) { return frame_.before(op, c); }), op);
  }
  return cuts;
}

MultiCut::Grown MultiCut::grow(const std::vector<Compute>& runs, const Grown& now) const {
  std::vector<Step> steps(runs.begin(), runs.end());
  Simulation sim;
  try {
    steps = with_frees(frame_.problem, steps);
    sim = simulate(frame_.problem, steps);
  } catch (const InternalError&) {
    return now;
  }
  const Bytes budget = *frame_.problem.devices[frame_.device].budget;
  struct Over {
    Bytes load;
    OpId op, before;  // before: where a run between the two first runs holds too much
  };
  std::vector<Over> first, again;
  std::vector<char> ran(frame_.problem.ops.size(), 0);
  Bytes inside = 0;
  OpId before;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto* c = std::get_if<Compute>(&steps[i]);
    if (c == nullptr) continue;
    const Bytes load = sim.held[frame_.device.index()][i];
    if (ran[c->op.index()]) {
      inside = std::max(inside, load);
      continue;
    }
    ran[c->op.index()] = 1;
    if (!frame_.may_cut(c->op)) continue;
    if (load > budget && comparable(c->op, now.cuts)) first.push_back({load, c->op, {}});
    if (inside > budget && before.valid()) again.push_back({inside, c->op, before});
    inside = 0;
    before = c->op;
  }
  // Where leaner implementations can be chosen, what a run costs depends on the room in its interval: in all of them.
  const bool choices = std::any_of(frame_.problem.ops.begin(), frame_.problem.ops.end(),
                                   [](const Op& op) { return op.impls.size() > 1; });
  std::vector<Over>& list = first.empty() ? again : first;
  std::stable_sort(list.begin(), list.end(), [](const Over& a, const Over& b) { return a.load > b.load; });
  Grown out = now;
  std::vector<OpId> taken;
  const int apart = std::max(2, static_cast<int>(frame_.problem.ops.size()) / 20);
  for (const Over& o : list) {
    const bool near = std::any_of(taken.begin(), taken.end(), [&](OpId c) {
      return std::abs(frame_.facts.position[c.index()] - frame_.facts.position[o.op.index()]) <= apart;
    });
    if (near || static_cast<int>(taken.size()) >= kMostNewInstants) continue;
    Grown tried = out;
    tried.cuts = with(tried.cuts, {o.op});
    if (o.before.valid()) {
      tried.cuts = with(tried.cuts, {o.before});
      tried.inside.insert(o.op);
      if (choices) tried.inside.insert(tried.cuts.begin() + 1, tried.cuts.end());
    }
    if (tried == out) continue;
    out = std::move(tried);
    taken.push_back(o.op);
  }
  if (out == now) out.cuts = with_beginning(std::move(out.cuts));
  return out;
}

// Before the first instant the model does not choose implementations. Where there is a choice, the earliest op that may
// becomes an instant.
std::vector<OpId> MultiCut::with_beginning(std::vector<OpId> cuts) const {
  for (const OpId op : frame_.problem.order) {
    const bool before = op != cuts.front() && !frame_.before(cuts.front(), op);
    if (before && frame_.may_cut(op) && comparable(op, cuts)) return with(std::move(cuts), {op});
    if (frame_.before(cuts.front(), op)) break;
  }
  return cuts;
}

Wide MultiCut::units_of(const std::vector<Compute>& runs) const {
  Wide sum = 0;
  for (const Compute& c : runs)
    sum += frame_.facts.units(frame_.problem.ops[c.op].impls[static_cast<std::size_t>(c.impl)].seconds);
  return sum;
}

std::set<OpId> MultiCut::all_if_many(const std::set<OpId>& ops) const {
  std::set<OpId> all;
  for (std::size_t o = 0; o < frame_.impl_takes.size(); ++o) {
    const auto& takes = frame_.impl_takes[o];
    if (std::any_of(takes.begin(), takes.end(), [](const auto& list) { return !list.empty(); })) all.emplace(o);
  }
  return ops.size() * kManyInPlace > all.size() ? all : std::set<OpId>{};
}

struct MultiCut::Stage {
  Stage(const CutsFrame& frame, Grown grown)
      : at(std::move(grown)), model(frame, at.cuts, at.inside, at.in_place), tree(model) {}
  /// What its bound may reach: where a solution of its own costs less than the best plan, no more than that.
  Wide goal(Wide known) const { return cheapest.empty() ? known : std::min(known, tree.units(cheapest)); }
  void take(std::vector<char> solution) {
    if (cheapest.empty() || tree.units(solution) < tree.units(cheapest)) cheapest = std::move(solution);
  }

  const Grown at;
  const CutsModel model;
  CutsTree tree;
  std::vector<char> cheapest;  // 0/1 solution so far; empty: none
  bool in_earnest = false;     // has had all the work there was
};

// Works on a stage for a while. Its cheapest 0/1 solution, or one near the relaxation when the tree does not get that
// far, is played back. Returns what to look at next; the stage itself when it has nothing more to say.
MultiCut::Grown MultiCut::work_on(Stage* stage, int nodes_at_once, Seconds* known, const Ways& ways) {
  CutsTree& tree = stage->tree;
  int last_node = nodes_at_once;
  Wide near = 1;
  const auto stop = [&] { return ways.stop() || tree.n_nodes() >= last_node; };
  while (true) {
    const std::int64_t done = tree.work();
    const Wide goal = stage->goal(target(*known));
    const CutsTree::End end = tree.run(goal, ways.work - work_, stop, ways.beside);
    work_ += tree.work() - done;
    if (end == CutsTree::End::kRelaxed) stage->take(tree.relaxed());
    const bool reached = end == CutsTree::End::kReached;
    const bool solved = end == CutsTree::End::kRelaxed || (reached && goal < target(*known));
    const bool gave_up = end == CutsTree::End::kStopped && tree.n_nodes() < last_node;
    if ((reached && !solved) || gave_up || work_ >= ways.work || ways.stop()) return stage->at;
    if (!solved) {  // worth playing back only if it says nearly what the relaxation does
      const std::int64_t before = tree.work();
      if (auto one = tree.dive(ways.stop)) stage->take(std::move(*one));
      work_ += tree.work() - before;
      const Wide bound = tree.bound(), beyond = (target(*known) - bound) * near / kNearRelaxation;
      if (stage->cheapest.empty() || tree.units(stage->cheapest) > bound + beyond) {
        last_node = tree.n_nodes() + nodes_at_once;
        near = std::min<Wide>(2 * near, 1 << 20);  // rather any instant than none
        continue;
      }
    }
    const std::vector<char>& solution = stage->cheapest;
    const auto [runs, in_the_way] = play_back(stage->model, solution);
    const Wide wanted = target(*known);
    if (ways.improve && !runs.empty()) *known = std::min(*known, ways.improve(can_.original(runs)));
    Grown more = stage->at;
    const Wide says = tree.units(solution), costs = units_of(runs), rest = target(*known) - tree.bound();
    if (costs > says + rest / kDearer) more.in_place.merge(all_if_many(in_the_way));
    if (more == stage->at && costs > says + rest / kMuchDearer) more.cuts = with_beginning(std::move(more.cuts));
    const bool lacks_no_more = solved && costs >= target(*known);
    if (lacks_no_more) more.in_place.insert(in_the_way.begin(), in_the_way.end());
    if (more == stage->at) more = grow(runs, stage->at);
    if (more == stage->at && costs > says) more.in_place.insert(in_the_way.begin(), in_the_way.end());
    if (more != stage->at) return more;
    if (solved && target(*known) >= wanted) return more;
    nodes_at_once = 2 * std::min(nodes_at_once, INT_MAX / 4);
    last_node = tree.n_nodes() + nodes_at_once;  // it fits, or the plan is better now: the tree goes on
  }
}

LowerBound MultiCut::prove(OpId first, Seconds known, const Ways& ways) {
  nodes_ = 0;
  work_ = 0;
  Grown now{{first}, {}, {}};
  std::unique_ptr<Stage> best;
  const auto units = [&] { return best ? best->tree.bound() : frame_.facts.floor_units; };
  int in_vain = 0;                            // stages in a row that prove no more than an earlier one
  std::vector<std::pair<Grown, Grown>> came;  // a stage and what it grew to
  const auto follow = [&](const Grown& from, Grown* to) {
    std::erase_if(came, [&](const auto& one) { return one.first == from; });
    came.emplace_back(from, *to);
    const auto next = [&] {
      return std::find_if(came.begin(), came.end(), [&](const auto& one) { return one.first == *to; });
    };
    for (auto it = next(); it != came.end(); it = next()) *to = it->second;  // larger each time
  };
  while (!ways.stop() && work_ < ways.work && units() < target(known)) {
    auto stage = std::make_unique<Stage>(frame_, now);
    instants_ = static_cast<int>(now.cuts.size());
    const bool too_large = stage->model.columns.size() > ways.most_columns || instants_ > ways.most_instants;
    Grown more = too_large ? now : work_on(stage.get(), kNodesAtFirst, &known, ways);
    nodes_ += stage->tree.n_nodes();
    ++in_vain;
    const bool ended = more == now;
    if (!ended) follow(now, &more);
    if (stage->tree.bound() > units()) {
      best = std::move(stage);
      in_vain = 0;
    }
    if ((ended || in_vain >= kMostInVain) && best && !best->in_earnest) {
      const int nodes = best->tree.n_nodes();
      best->in_earnest = true;
      more = work_on(best.get(), INT_MAX / 2, &known, ways);
      nodes_ += best->tree.n_nodes() - nodes;
      in_vain = 0;
      if (more == best->at) break;
      follow(best->at, &more);
    } else if (ended) {
      break;
    }
    now = std::move(more);
  }
  LowerBound bound = floor_bound(frame_.problem);
  if (units() > frame_.facts.floor_units)
    bound = {seconds_down(units(), frame_.facts.unit_log2), frame_.scope, cuts_certificate(best->model, best->tree),
             ""};
  return bound;
}

}  // namespace neaptide::plan
