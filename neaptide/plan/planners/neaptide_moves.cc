// Steps to other places and other devices.
#include "neaptide/plan/planners/neaptide_search.hpp"

#include <algorithm>

namespace neaptide::plan::tide {

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

// Another block gets the decisions of one: its own further runs go, and each further run there is repeated here, before
// the step that corresponds to the one it was made for.
bool Search::copy_block() {
  const int from = random_.below(blocks_.count());
  const int n_targets = random_.below(4) == 0 ? 1 + random_.below(8) : 1;
  struct Run {
    int node, anchor_op;
  };
  std::vector<Run> runs;
  for (const int op : blocks_.ops(from)) {
    for (const int node : s_.runs(op)) {
      if (!is_repeated(node)) continue;
      int anchor = s_.time().next(node);
      while (s_.action(anchor) >= 0 && is_repeated(anchor)) anchor = s_.time().next(anchor);
      if (s_.action(anchor) >= 0 && m_.actions[s_.action(anchor)].op >= 0) {
        runs.push_back({node, m_.actions[s_.action(anchor)].op});
      }
    }
  }
  std::sort(runs.begin(), runs.end(), [&](const Run& a, const Run& b) { return s_.time().before(a.node, b.node); });
  const std::size_t mark = s_.mark();
  for (int k = 0; k < n_targets; ++k) {
    const int shift = random_.below(blocks_.count()) - from;
    if (shift == 0) continue;
    for (const int op : blocks_.ops(from + shift)) {
      const std::vector<int> here = s_.runs(op);
      for (const int node : here) {
        if (!is_repeated(node)) continue;
        for (const int c : m_.actions[s_.action(node)].writes) recent_.push_back(c);
        s_.remove(node);
        ticks_ += 10;
      }
    }
    for (const Run& run : runs) {
      if (!s_.alive(run.node)) continue;
      const Action& a = m_.actions[s_.action(run.node)];
      const int op = blocks_.shifted(a.op, shift), anchor_op = blocks_.shifted(run.anchor_op, shift);
      if (op < 0 || anchor_op < 0 || s_.runs(anchor_op).empty()) continue;
      s_.insert(m_.op_actions[op][static_cast<std::size_t>(a.impl)], first_run(anchor_op));
      ticks_ += 10;
    }
  }
  if (s_.mark() > mark && s_.sound_since(mark)) return true;
  s_.undo(mark);
  return false;
}

int Search::first_run(int op) const {
  const auto& list = s_.runs(op);
  return *std::min_element(list.begin(), list.end(), [&](int x, int y) { return s_.time().before(x, y); });
}

bool Search::is_repeated(int node) const {
  const int op = s_.action(node) < 0 ? -1 : m_.actions[s_.action(node)].op;
  return op >= 0 && s_.runs(op).size() > 1 && first_run(op) != node;
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

}  // namespace neaptide::plan::tide
