#include "neaptide/plan/planners/rotor.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "neaptide/base/errors.hpp"
#include "neaptide/plan/answer.hpp"
#include "neaptide/plan/forward.hpp"
#include "neaptide/plan/simulate.hpp"

namespace neaptide::plan {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// One block of the chain, in the words of the paper: a is its output, a_bar all that its backward part reads.
struct Block {
  std::vector<OpId> forward, backward;
  std::vector<BufferId> made;    // droppable values that its forward ops write
  std::vector<BufferId> output;  // of these, what later blocks read
  double forward_seconds = 0, backward_seconds = 0;
  Bytes a = 0, a_bar = 0;   // bytes of `output`, and of everything in `made` that waits for the backward half
  Bytes forward_peak = 0;   // beside its input, while its forward ops run
  Bytes delta = 0;          // bytes of gradients that its backward part and the earlier ones take over from later ones
  Bytes backward_peak = 0;  // beside a_bar, while its backward ops run: their other results and workspaces
};

const Impl& chosen(const Problem& p, const Forward& f, OpId op) {
  return p.ops[op].impls[static_cast<std::size_t>(f.choice[op])];
}

/// Cuts the forward half at its articulation points and hands each backward op to the last block that it reads from.
class Blocks {
 public:
  Blocks(const Problem& problem, const Forward& forward) : p_(problem), f_(forward) {
    block_of_.assign(problem.buffers.size(), -1);
    for (std::size_t i = 0; i < f_.ops.size(); ++i) {
      if (blocks_.empty() || closed_) blocks_.emplace_back();
      add_forward(f_.ops[i]);
      closed_ = f_.articulation[i] && !f_.waiting[i].empty();
    }
    if (blocks_.empty()) return;
    for (OpId op : f_.backward) add_backward(op);
    for (Block& b : blocks_) measure(b);
    measure_gradients();
  }

  std::vector<Block> take() { return std::move(blocks_); }

 private:
  void add_forward(OpId op) {
    Block& b = blocks_.back();
    b.forward.push_back(op);
    b.forward_seconds += chosen(p_, f_, op).seconds;
    for (BufferId v : chosen(p_, f_, op).writes) {
      if (!f_.uses.droppable[v] || f_.uses.writer[v] != op) continue;
      b.made.push_back(v);
      block_of_[v.index()] = static_cast<int>(blocks_.size()) - 1;
    }
  }

  void add_backward(OpId op) {
    int last = -1;
    for (BufferId v : chosen(p_, f_, op).reads) last = std::max(last, block_of_[v.index()]);
    if (last < 0 || last > current_) last = current_ < 0 ? static_cast<int>(blocks_.size()) - 1 : current_;
    current_ = last;
    Block& b = blocks_[static_cast<std::size_t>(last)];
    b.backward.push_back(op);
    b.backward_seconds += chosen(p_, f_, op).seconds;
    Bytes here = chosen(p_, f_, op).workspace;
    for (BufferId v : chosen(p_, f_, op).writes) here += p_.buffers[v].bytes;
    for (BufferId v : chosen(p_, f_, op).reads)
      here += block_of_[v.index()] < 0 && !p_.buffers[v].home ? p_.buffers[v].bytes : 0;
    b.backward_peak = std::max(b.backward_peak, here);
  }

  void measure(Block& b) const {
    const int last_op = f_.uses.position[b.forward.back()];
    for (BufferId v : b.made) {
      const std::vector<int>& readers = f_.uses.readers[v];
      const bool leaves =
          std::any_of(readers.begin(), readers.end(), [&](int r) { return r > last_op && r <= f_.turn; });
      const bool waits = !readers.empty() && readers.back() > f_.turn;
      if (leaves) b.output.push_back(v);
      if (leaves) b.a += p_.buffers[v].bytes;
      if (waits || leaves) b.a_bar += p_.buffers[v].bytes;
    }
    for (OpId op : b.forward) {
      Bytes here = chosen(p_, f_, op).workspace;
      for (BufferId v : chosen(p_, f_, op).writes) here += p_.buffers[v].bytes;
      for (BufferId v : chosen(p_, f_, op).reads) {
        const bool inside = std::find(b.made.begin(), b.made.end(), v) != b.made.end();
        here += inside ? p_.buffers[v].bytes : 0;
      }
      b.forward_peak = std::max(b.forward_peak, here);
    }
  }

  void measure_gradients() {
    std::vector<int> made_in(p_.buffers.size(), -1), read_in(p_.buffers.size(), -1);
    const int n = static_cast<int>(blocks_.size());
    for (int i = n - 1; i >= 0; --i) {
      for (OpId op : blocks_[static_cast<std::size_t>(i)].backward) {
        for (BufferId v : chosen(p_, f_, op).writes) made_in[v.index()] = i;
        for (BufferId v : chosen(p_, f_, op).reads) read_in[v.index()] = i;
      }
    }
    for (std::size_t v = 0; v < made_in.size(); ++v) {
      if (p_.buffers[BufferId(v)].home || made_in[v] < 0) continue;
      const int first = p_.buffers[BufferId(v)].keep ? 0 : read_in[v];
      for (int i = std::max(0, first); first >= 0 && i < made_in[v]; ++i)
        blocks_[static_cast<std::size_t>(i)].delta += p_.buffers[BufferId(v)].bytes;
    }
  }

  const Problem& p_;
  const Forward& f_;
  std::vector<Block> blocks_;
  std::vector<int> block_of_;
  bool closed_ = false;
  int current_ = -1;
};

/// opt(s, t, m) of theorem 1: least time for blocks s..t, forward and backward, when the input of s is stored and m
/// levels of memory are left beside it.
class Table {
 public:
  /// `stop`: what is not filled in by then counts as impossible.
  Table(const std::vector<Block>& blocks, Bytes budget, int levels, const std::function<bool()>& stop)
      : blocks_(blocks),
        n_(static_cast<int>(blocks.size())),
        unit_(std::max<double>(1, static_cast<double>(budget) / levels)),
        levels_(std::max(0, static_cast<int>(static_cast<double>(budget) / unit_))) {
    cost_.assign(static_cast<std::size_t>(n_ * n_) * static_cast<std::size_t>(levels_ + 1), kNever);
    choice_.assign(cost_.size(), -2);
    sum_.assign(static_cast<std::size_t>(n_) + 1, 0);
    for (int i = 0; i < n_; ++i)
      sum_[static_cast<std::size_t>(i) + 1] = sum_[static_cast<std::size_t>(i)] + at(i).forward_seconds;
    for (int length = 0; length < n_ && !stop(); ++length) {
      for (int s = 0; s + length < n_; ++s) fill(s, s + length);
    }
  }

  double cost(int s, int t, int m) const { return m < 0 ? kNever : cost_[index(s, t, m)]; }
  /// -2: impossible; -1: save everything of block s; k > s: store the input of block k and come back later.
  int choice(int s, int t, int m) const { return m < 0 ? -2 : choice_[index(s, t, m)]; }
  int levels() const { return levels_; }
  int level(Bytes bytes) const {
    return static_cast<int>(std::min(1e9, std::ceil(static_cast<double>(bytes) / unit_)));
  }

 private:
  const Block& at(int i) const { return blocks_[static_cast<std::size_t>(i)]; }
  std::size_t index(int s, int t, int m) const {
    return static_cast<std::size_t>(s * n_ + t) * static_cast<std::size_t>(levels_ + 1) + static_cast<std::size_t>(m);
  }

  void fill(int s, int t) {
    const Block& b = at(s);
    const int saved = level(b.a_bar);
    const Bytes delta = at(t).delta;  // waits beside everything until the backward part of t runs
    const int while_saving = level(b.a_bar + b.forward_peak + delta),
              while_reversing = level(b.a_bar + b.backward_peak);
    Bytes passing = 0;  // what running s..k-1 without saving needs at once
    std::vector<int> pass(static_cast<std::size_t>(t - s) + 1, 0);
    for (int k = s; k < t; ++k) {
      const Bytes input = k == s ? 0 : at(k - 1).a;
      passing = std::max(passing, input + at(k).forward_peak);
      pass[static_cast<std::size_t>(k - s) + 1] = level(passing + delta);
    }
    for (int m = 0; m <= levels_; ++m) {
      double best = kNever;
      int how = -2;
      if (m >= while_saving && m >= while_reversing) {
        const double rest = s == t ? 0 : cost(s + 1, t, m - saved);
        if (b.forward_seconds + rest + b.backward_seconds < best) {
          best = b.forward_seconds + rest + b.backward_seconds;
          how = -1;
        }
      }
      for (int k = s + 1; k <= t; ++k) {
        if (m < pass[static_cast<std::size_t>(k - s)]) break;
        const double forward = sum_[static_cast<std::size_t>(k)] - sum_[static_cast<std::size_t>(s)];
        const double total = forward + cost(k, t, m - level(at(k - 1).a)) + after_return(s, k - 1, m);
        if (total >= best) continue;
        best = total;
        how = k;
      }
      cost_[index(s, t, m)] = best;
      choice_[index(s, t, m)] = how;
    }
  }

  /// What is left once the input of block t + 1, which is the output of t, has served the blocks after t. Where that
  /// output is all that the backward part of t reads, it need not be computed once more (the paper's chains save more
  /// per stage).
  double after_return(int s, int t, int m) const {
    const Block& b = at(t);
    if (b.a != b.a_bar) return cost(s, t, m);
    if (m < level(b.a_bar + b.backward_peak)) return kNever;
    return b.backward_seconds + (s == t ? 0 : cost(s, t - 1, m));
  }

  const std::vector<Block>& blocks_;
  int n_;
  double unit_;  // bytes of a level
  int levels_;
  std::vector<double> cost_, sum_;
  std::vector<int> choice_;
};

/// Carries the table's choices out.
class Performer {
 public:
  Performer(const Problem& problem, const Choice& choice, const std::vector<Block>& blocks, const Table& table)
      : p_(problem), blocks_(blocks), table_(table), emit_(problem, choice) {}

  std::vector<Step> run() {
    const int n = static_cast<int>(blocks_.size());
    if (!perform(0, n - 1, table_.levels()) || !emit_.finish()) return {};
    return with_frees(p_, emit_.take());
  }

 private:
  const Block& at(int i) const { return blocks_[static_cast<std::size_t>(i)]; }

  bool run_all(const std::vector<OpId>& ops) {
    return std::all_of(ops.begin(), ops.end(), [&](OpId op) { return emit_.run_again(op); });
  }

  void drop_inside(const Block& b, bool output_too) {
    for (BufferId v : b.made) {
      const bool out = std::find(b.output.begin(), b.output.end(), v) != b.output.end();
      if (output_too || !out) emit_.drop(v);
    }
  }

  bool perform(int s, int t, int m) {
    const int how = table_.choice(s, t, m);
    if (how == -2) return false;
    if (how == -1) {
      if (!run_all(at(s).forward)) return false;
      if (s < t && !perform(s + 1, t, m - table_.level(at(s).a_bar))) return false;
      return run_all(at(s).backward);
    }
    for (int k = s; k < how; ++k) {
      if (!run_all(at(k).forward)) return false;
      drop_inside(at(k), false);
      if (k > s) drop_inside(at(k - 1), true);
    }
    if (!perform(how, t, m - table_.level(at(how - 1).a))) return false;
    if (at(how - 1).a != at(how - 1).a_bar) {
      drop_inside(at(how - 1), true);
      return perform(s, how - 1, m);
    }
    if (!run_all(at(how - 1).backward)) return false;
    drop_inside(at(how - 1), true);
    return s == how - 1 || perform(s, how - 2, m);
  }

  const Problem& p_;
  const std::vector<Block>& blocks_;
  const Table& table_;
  Emitter emit_;
};

Bytes smallest_limit(const Problem& problem) {
  Bytes least = std::numeric_limits<Bytes>::max();
  for (const Device& d : problem.devices) least = std::min(least, d.budget.value_or(least));
  return least;
}

}  // namespace

Plan run_rotor(const Problem& problem, const Options& options) {
  check_switches(options, "rotor", {"levels"});
  const int levels = switch_count(options, "levels", 10, 10'000).value_or(400);
  const Forward forward = forward_of(problem);
  const std::vector<Block> blocks = Blocks(problem, forward).take();
  constexpr std::size_t kMostBlocks = 250;  // the table grows with their square, its time with their cube
  BestPlan best(problem);
  best.offer(keep_all_steps(problem));
  const bool limited = smallest_limit(problem) < std::numeric_limits<Bytes>::max();
  if (best.fits() || blocks.empty() || !limited) return std::move(best).plan();
  if (blocks.size() > kMostBlocks)
    throw UserError("planner 'rotor' takes at most {} blocks between articulation points; '{}' has {}", kMostBlocks,
                    problem.name, blocks.size());
  // What the table does not count (homes, values that cannot be dropped) lowers the budget that it may use.
  const auto budget = static_cast<double>(smallest_limit(problem));
  constexpr int kTries = 12;
  for (int i = 0; i < kTries && !best.fits(); ++i) {
    if (options.interrupted() || (options.progress && !options.progress({}))) break;
    const double share = 1 - static_cast<double>(i) / kTries;
    const Table table(blocks, static_cast<Bytes>(budget * share), levels, options.interrupted);
    if (table.choice(0, static_cast<int>(blocks.size()) - 1, table.levels()) == -2) break;
    best.offer(Performer(problem, forward.choice, blocks, table).run());
  }
  return std::move(best).plan();
}

}  // namespace neaptide::plan
