#include "neaptide/plan/forward.hpp"

#include <algorithm>

#include "neaptide/plan/simulate.hpp"

namespace neaptide::plan {
namespace {

/// The position after which most bytes wait for a later op, when everything is kept until its last use.
int turn_of(const Problem& problem, const Uses& uses) {
  const std::size_t n = problem.order.size();
  std::vector<Bytes> change(n + 1, 0);
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const BufferId b(i);
    if (!uses.writer[b].valid() || uses.readers[b].empty()) continue;
    const int from = uses.position[uses.writer[b]], to = uses.readers[b].back();
    if (from >= to) continue;
    change[static_cast<std::size_t>(from)] += problem.buffers[b].bytes;
    change[static_cast<std::size_t>(to)] -= problem.buffers[b].bytes;
  }
  Bytes waiting = 0, most = -1;
  std::size_t turn = 0;
  for (std::size_t t = 0; t < n; ++t) {
    waiting += change[t];
    if (waiting <= most) continue;
    most = waiting;
    turn = t;
  }
  return static_cast<int>(turn);
}

const Impl& chosen(const Problem& p, const Choice& choice, OpId op) {
  return p.ops[op].impls[static_cast<std::size_t>(choice[op])];
}

}  // namespace

Forward forward_of(const Problem& problem) {
  Forward f;
  f.choice = first_choice(problem);
  f.uses = uses_of(problem, f.choice);
  f.turn = turn_of(problem, f.uses);
  for (OpId op : problem.order) {
    if (f.choice[op] >= 0) (f.uses.position[op] <= f.turn ? f.ops : f.backward).push_back(op);
  }
  // reach[i]: the last forward position that reads a droppable value made before or at ops[i] by another op than
  // ops[i].
  int others = -1;
  for (OpId op : f.ops) {
    const int here = f.uses.position[op];
    int own = -1;
    f.waiting.emplace_back();
    for (BufferId b : chosen(problem, f.choice, op).writes) {
      if (!f.uses.droppable[b] || f.uses.writer[b] != op) continue;
      for (int reader : f.uses.readers[b]) {
        if (reader <= f.turn) own = std::max(own, reader);
      }
      if (!f.uses.readers[b].empty() && f.uses.readers[b].back() > f.turn) f.waiting.back().push_back(b);
    }
    f.articulation.push_back(others <= here);
    others = std::max(others, own);
  }
  return f;
}

std::vector<Step> with_checkpoints(const Problem& problem, const Forward& forward, const std::vector<bool>& kept) {
  Emitter emit(problem, forward.choice);
  for (OpId op : forward.ops) {
    if (!emit.run(op)) return {};
  }
  for (std::size_t i = 0; i < forward.ops.size(); ++i) {
    if (kept[i]) continue;
    for (BufferId b : chosen(problem, forward.choice, forward.ops[i]).writes) {
      if (forward.uses.droppable[b] && forward.uses.writer[b] == forward.ops[i]) emit.drop(b);
    }
  }
  for (OpId op : forward.backward) {
    if (!emit.run(op)) return {};
  }
  if (!emit.finish()) return {};
  return with_frees(problem, emit.take());
}

}  // namespace neaptide::plan
