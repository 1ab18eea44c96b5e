// Taking decisions back: recomputations, slower implementations; and what a change made needless.
#include "neaptide/plan/planners/neaptide_search.hpp"

#include <algorithm>

namespace neaptide::plan::tide {
namespace {

constexpr int kLongestGap = 200;  // steps between two decisions that count as neighbours

}  // namespace

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

// The cheapest implementation of the same op that reads and writes the same, but takes nothing over from `cell`; -1:
// there is none.
int Search::sparing(int action, int cell) const {
  const Action& now = m_.actions[action];
  int best = -1;
  for (const int a : m_.op_actions[now.op]) {
    const Action& other = m_.actions[a];
    const bool takes =
        std::any_of(other.takes_over.begin(), other.takes_over.end(), [&](const auto& t) { return t.first == cell; });
    if (takes || other.device != now.device || other.reads != now.reads || other.writes != now.writes) continue;
    if (best < 0 || other.seconds < m_.actions[best].seconds) best = a;
  }
  return best;
}

// Where one of the cells is read after a step took it over in place, that step leaves it.
void Search::spare(const std::vector<int>& cells) {
  if (!switches_.spare) return;
  for (const int cell : cells) {
    for (std::size_t i = 0; i + 1 < s_.events(cell).size(); ++i) {
      const Event now = s_.events(cell)[i], following = s_.events(cell)[i + 1];
      if (now.write || following.write || !s_.consumes(now.node, cell)) continue;
      if (const int other = sparing(s_.action(now.node), cell); other >= 0) s_.swap(now.node, other);
    }
  }
}

// The run that would be needless if the cell stayed until then, where there is room for that; -1: none.
int Search::needless_after(int cell, int node) const {
  const Gap gap = s_.until_written(cell, node);
  if (gap.to < 0 || !removable(gap.to)) return -1;
  const Cell& c = m_.cells[cell];
  const int begin = s_.time().next(gap.from);
  if (c.size == 0 || begin == gap.to) return gap.to;
  return s_.time().highest(c.track, begin, s_.time().previous(gap.to)) + c.size <= limit_[c.track] ? gap.to : -1;
}

// What a run of `action` just before a step spares later.
double Search::merged_seconds(int action, int before) const {
  if (!switches_.merge) return 0;
  for (const int cell : m_.actions[action].writes) {
    const int later = s_.events(cell).empty() ? -1 : needless_after(cell, before);
    if (later >= 0 && m_.actions[s_.action(later)].op == m_.actions[action].op) {
      return m_.actions[s_.action(later)].seconds;
    }
  }
  return 0;
}

void Search::merge_later(int node) {
  const std::vector<int> writes = m_.actions[s_.action(node)].writes;
  for (const int cell : writes) {
    const int later = needless_after(cell, node);
    if (later < 0) continue;
    take_out(later, false);  // what is over the budget elsewhere may stay so
    if (!s_.alive(node)) return;
  }
}

// The runs since then take the place of later ones.
void Search::merge_since(std::size_t mark) {
  if (!switches_.merge) return;
  const std::vector<int> nodes = s_.changed_since(mark);
  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
    if (s_.alive(*it)) merge_later(*it);
  }
}

bool Search::try_remove(int node) { return s_.alive(node) && removable(node) && take_out(node, true); }

// A removable step and the inputs made for it alone; not when that costs more, or breaks something.
bool Search::take_out(int node, bool must_fit) {
  const std::size_t mark = s_.mark();
  const double seconds = s_.seconds();
  const std::vector<int> made = m_.actions[s_.action(node)].writes;
  remove_with_inputs(node);
  spare(made);
  ticks_ += 10;
  if (s_.sound_since(mark) && (!must_fit || excess() <= 0) && s_.seconds() <= seconds) return true;
  s_.undo(mark);
  return false;
}

// Who reads later what the action takes over in place reads something else that is there, by another implementation.
bool Search::readers_give_way(int node, int action) {
  for (const auto& taken : m_.actions[action].takes_over) {
    const int cell = taken.first;
    std::vector<int> readers;
    bool after = false;
    for (const Event& e : s_.events(cell)) {
      if (after && e.write) break;
      if (after) readers.push_back(e.node);
      after = after || (e.node == node && !e.write);
    }
    for (const int reader : readers) {
      const int now = s_.action(reader);
      if (now < 0 || m_.actions[now].op < 0) return false;
      int best = -1;
      for (const int a : m_.op_actions[m_.actions[now].op]) {
        const Action& other = m_.actions[a];
        const bool reads_it = std::find(other.reads.begin(), other.reads.end(), cell) != other.reads.end();
        if (reads_it || other.device != m_.actions[now].device || other.writes != m_.actions[now].writes) continue;
        const bool there =
            std::all_of(other.reads.begin(), other.reads.end(), [&](int r) { return s_.supplier(r, reader) >= 0; });
        if (there && (best < 0 || other.seconds < m_.actions[best].seconds)) best = a;
      }
      if (best < 0) return false;
      s_.swap(reader, best);
    }
  }
  return true;
}

// Runs the step by another implementation, making what that reads.
bool Search::swap_with_support(int node, int action, Mode mode) {
  if (!readers_give_way(node, action)) return false;
  begin_chain();
  for (const int r : m_.actions[action].reads) {
    if (!need(r, -1, node, mode, 0)) return false;
  }
  return apply(replacement(node, action));
}

bool Search::try_swap(int node, int action) {
  const std::size_t mark = s_.mark();
  const double before = s_.seconds();
  const bool swapped = swap_with_support(node, action, Mode::kFitting);
  if (swapped && s_.seconds() < before && excess() <= 0) return true;
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
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (ticks_ >= last_tick_ || ((i & 7) == 7 && stop())) return;  // what is needless may stay
    if (!try_remove(nodes[i])) kept.push_back(nodes[i]);
  }
  if (!switches_.implementations) return;
  for (const int node : kept) {
    if (s_.alive(node)) try_faster(node);
  }
}

// A step that could be taken back: made again for nothing but memory, or by a slow implementation.
bool Search::is_extra(int node) const {
  if (!s_.alive(node)) return false;
  const int a = s_.action(node);
  if (a < 0) return false;
  if (removable(node)) return true;
  return has_faster(node);
}

// Whether a faster implementation could be run there: each of its inputs was made before, or can be by another op.
bool Search::has_faster(int node) const {
  const Action& now = m_.actions[s_.action(node)];
  if (now.op < 0 || now.seconds <= m_.actions[m_.fastest[now.op]].seconds) return false;
  const auto within_reach = [&](int cell) {
    if (s_.supplier(cell, node) >= 0) return true;
    return std::any_of(m_.ways[cell].begin(), m_.ways[cell].end(), [&](int w) { return m_.actions[w].op != now.op; });
  };
  const auto& list = m_.op_actions[now.op];
  return std::any_of(list.begin(), list.end(), [&](int a) {
    const Action& other = m_.actions[a];
    return other.seconds < now.seconds && std::all_of(other.reads.begin(), other.reads.end(), within_reach);
  });
}

// A uniformly drawn one; -1 after too many misses.
int Search::random_extra() {
  const int n = s_.n_nodes();
  const int tries = n < 4000 ? n : 4000;
  for (int k = 0; k < tries; ++k) {
    const int node = random_.below(n);
    if (is_extra(node)) return node;
  }
  ticks_ += tries / 16;
  return -1;
}

int Search::n_extras_estimate() const {
  int count = 0;
  for (int node = 0; node < s_.n_nodes(); ++node) count += is_extra(node) ? 1 : 0;
  return count;
}

// Takes back one to twenty decisions.
bool Search::ruin() {
  int node = random_extra();
  if (node < 0) return false;
  const int k = 1 + random_.below(random_.below(2) == 0 ? 10 : 40);
  const bool together = switches_.contiguous && random_.below(2) == 0;
  bool any = false;
  for (int i = 0; i < k && node >= 0; ++i) {
    int following = -1;
    if (together) {
      following = s_.time().next(node);
      for (int skipped = 0; following >= 0 && !is_extra(following); ++skipped) {
        following = skipped < kLongestGap ? s_.time().next(following) : -1;
      }
    } else if (i + 1 < k) {
      following = random_extra();
    }
    any = take_back(node) || any;
    node = following;
  }
  return any;
}

// Removes a step, or runs it by another implementation.
bool Search::take_back(int node) {
  if (!s_.alive(node)) return false;
  const int a = s_.action(node);
  const std::size_t mark = s_.mark();
  ticks_ += 10;
  if (removable(node)) {
    for (const int c : m_.actions[a].writes) recent_.push_back(c);
    remove_with_inputs(node);
    spare(m_.actions[a].writes);
  } else if (a >= 0 && m_.actions[a].op >= 0) {
    const auto& list = m_.op_actions[m_.actions[a].op];
    const int other = list[random_.below(static_cast<int>(list.size()))];
    if (m_.actions[other].seconds >= m_.actions[a].seconds) return false;
    if (!swap_with_support(node, other, random_.below(2) == 0 ? Mode::kExtend : Mode::kRecompute)) {
      s_.undo(mark);
      return false;
    }
  } else {
    return false;
  }
  if (s_.sound_since(mark)) return true;
  s_.undo(mark);
  return false;
}

}  // namespace neaptide::plan::tide
