#include "neaptide/plan/planners/neaptide_order.hpp"

#include <algorithm>
#include <bit>
#include <unordered_set>

#include "neaptide/plan/planners/neaptide_search.hpp"

namespace neaptide::plan::tide {
namespace {

constexpr std::size_t kNarrowest = 8;
constexpr std::size_t kWidest = 1 << 15;
constexpr std::size_t kWider = 8;

using Bits = std::vector<std::uint64_t>;

bool has(const Bits& bits, int i) { return (bits[static_cast<std::size_t>(i) / 64] >> (i % 64) & 1) != 0; }
void set(Bits* bits, int i) { (*bits)[static_cast<std::size_t>(i) / 64] |= std::uint64_t{1} << (i % 64); }
void clear(Bits* bits, int i) { (*bits)[static_cast<std::size_t>(i) / 64] &= ~(std::uint64_t{1} << (i % 64)); }

/// The steps that have run, and what they leave on the device.
struct State {
  Bits ran, ready;
  Bytes held = 0;
  std::uint64_t hash = 0;
  int trace = -1;  // the last of its steps
};

/// A step after a state.
struct Next {
  std::size_t state;
  int step;
  Bytes held;
  std::uint64_t hash;
};

/// How a state came about, newest step first.
struct Trace {
  int before, step;
};

class Orders {
 public:
  Orders(const Model& model, const Sequence& sequence)
      : m_(model), actions_(sequence.actions), readers_(m_.cells.size()) {
    const int n = static_cast<int>(actions_.size());
    std::vector<int> maker(m_.cells.size(), -1);
    before_.resize(actions_.size());
    after_.resize(actions_.size());
    Random random(1);
    for (int i = 0; i < n; ++i) {
      const std::uint64_t high = random();
      marks_.push_back(high << 32 | random());
      for (const int w : of(i).writes) maker[w] = i;
    }
    for (int i = 0; i < n; ++i) {
      for (const int r : of(i).reads) {
        if (maker[r] >= 0) before_[i].push_back(maker[r]);
        readers_[r].push_back(i);
      }
    }
    for (int i = 0; i < n; ++i) {
      for (const int w : of(i).writes) end_version(i, m_.cells[w]);
      for (const auto& [in, out] : of(i).takes_over) come_last(i, in);
    }
    for (int i = 0; i < n; ++i) {
      std::sort(before_[i].begin(), before_[i].end());
      before_[i].erase(std::unique(before_[i].begin(), before_[i].end()), before_[i].end());
      for (const int b : before_[i]) after_[b].push_back(i);
    }
  }

  /// The order, if one is found among at most `width` sets of each size.
  std::vector<int> search(std::size_t width, std::int64_t work, const std::function<bool()>& stop) {
    cut_ = false;
    traces_.clear();
    std::vector<State> level = {start()};
    for (std::size_t k = 0; k < actions_.size(); ++k) {
      if (spent_ > work || stop()) return {};
      std::vector<Next> next = steps_after(level);
      if (next.empty()) return {};
      if (next.size() > width) {
        std::nth_element(
            next.begin(), next.begin() + static_cast<std::ptrdiff_t>(width), next.end(),
            [](const Next& a, const Next& b) { return a.held != b.held ? a.held < b.held : a.hash < b.hash; });
        next.resize(width);
        cut_ = true;
      }
      std::vector<State> following;
      following.reserve(next.size());
      for (const Next& n : next) following.push_back(after(level[n.state], n));
      level = std::move(following);
    }
    std::vector<int> order;
    for (int t = level[0].trace; t >= 0; t = traces_[static_cast<std::size_t>(t)].before)
      order.push_back(traces_[static_cast<std::size_t>(t)].step);
    std::reverse(order.begin(), order.end());
    return order;
  }

  /// Whether the last search left sets out.
  bool cut() const { return cut_; }
  std::int64_t spent() const { return spent_; }

  /// What runs at each place of the order, in place where that needs less.
  Sequence sequence(const std::vector<int>& order) {
    Sequence s;
    State state = start();
    for (const int i : order) {
      s.actions.push_back(leanest(state, i));
      state = after(state, {0, i, held_after(state, i), 0});
    }
    return s;
  }

 private:
  const Action& of(int step) const { return m_.actions[actions_[static_cast<std::size_t>(step)]]; }

  /// `step` makes a version that ends the one before it: whoever reads that one comes first.
  void end_version(int step, const Cell& made) {
    const Value& value = m_.values[made.value];
    if (value.version > 0) come_last(step, m_.cell(made.value - 1, made.device));  // versions follow each other
  }

  void come_last(int step, int cell) {
    for (const int reader : readers_[cell]) {
      if (reader != step) before_[step].push_back(reader);
    }
  }

  State start() const {
    State s;
    s.ran.assign((actions_.size() + 63) / 64, 0);
    s.ready = s.ran;
    for (std::size_t i = 0; i < actions_.size(); ++i) {
      if (before_[i].empty()) set(&s.ready, static_cast<int>(i));
    }
    for (std::size_t c = 0; c < m_.cells.size(); ++c) {
      if (m_.cells[c].at_start && (m_.cells[c].at_end || !readers_[c].empty())) s.held += m_.cells[c].size;
    }
    return s;
  }

  /// Whether the cell is of no use once `step` has run as well.
  bool ends(const State& s, int step, int cell) {
    if (m_.cells[cell].at_end || m_.values[m_.cells[cell].value].keep_anywhere) return false;
    const auto& list = readers_[cell];
    spent_ += static_cast<std::int64_t>(list.size());
    return std::all_of(list.begin(), list.end(), [&](int r) { return r == step || has(s.ran, r); });
  }

  Bytes held_after(const State& s, int step) {
    Bytes held = s.held;
    const auto& reads = of(step).reads;
    for (std::size_t r = 0; r < reads.size(); ++r) {
      const bool again = std::find(reads.begin(), reads.begin() + static_cast<std::ptrdiff_t>(r), reads[r]) !=
                         reads.begin() + static_cast<std::ptrdiff_t>(r);
      if (!again && ends(s, step, reads[r])) held -= m_.cells[reads[r]].size;
    }
    for (const int w : of(step).writes) {
      if (!ends(s, step, w)) held += m_.cells[w].size;
    }
    return held;
  }

  /// The action that does what the step does, in no more time, and holds least meanwhile.
  int leanest(const State& s, int step) {
    const int given = actions_[static_cast<std::size_t>(step)];
    const Action& a = m_.actions[given];
    int best = given;
    for (const int other : m_.op_actions[a.op]) {
      const Action& b = m_.actions[other];
      if (b.extra >= m_.actions[best].extra || b.seconds > a.seconds || b.reads != a.reads || b.writes != a.writes)
        continue;
      const bool may = std::all_of(b.takes_over.begin(), b.takes_over.end(),
                                   [&](const auto& pair) { return ends(s, step, pair.first); });
      if (may) best = other;
    }
    return best;
  }

  Bytes load(const State& s, int step) {
    Bytes load = s.held + m_.actions[leanest(s, step)].extra;
    for (const int w : of(step).writes) load += m_.cells[w].size;
    return load;
  }

  /// The steps that fit after the state. One that holds no more afterwards than before may as well come first, alone:
  /// whatever follows then finds at least the room that it found.
  void append_steps(const State& s, std::size_t state, std::vector<Next>* next) {
    const std::size_t mark = next->size();
    for (std::size_t word = 0; word < s.ready.size(); ++word) {
      for (std::uint64_t left = s.ready[word]; left != 0; left &= left - 1) {
        const int step = static_cast<int>(word) * 64 + std::countr_zero(left);
        spent_ += 4;
        if (load(s, step) > m_.limit[0]) continue;
        const Next n{state, step, held_after(s, step), s.hash ^ marks_[static_cast<std::size_t>(step)]};
        if (n.held <= s.held) next->resize(mark);
        next->push_back(n);
        if (n.held <= s.held) return;
      }
    }
  }

  /// After all states, each set of steps once.
  std::vector<Next> steps_after(const std::vector<State>& level) {
    std::vector<Next> next;
    for (std::size_t k = 0; k < level.size(); ++k) append_steps(level[k], k, &next);
    std::unordered_set<std::uint64_t> seen;
    std::erase_if(next, [&](const Next& n) { return !seen.insert(n.hash).second; });
    return next;
  }

  State after(const State& s, const Next& n) {
    State t = s;
    t.held = n.held;
    t.hash = n.hash;
    set(&t.ran, n.step);
    clear(&t.ready, n.step);
    for (const int a : after_[static_cast<std::size_t>(n.step)]) {
      const auto& list = before_[static_cast<std::size_t>(a)];
      if (std::all_of(list.begin(), list.end(), [&](int b) { return has(t.ran, b); })) set(&t.ready, a);
      spent_ += static_cast<std::int64_t>(list.size());
    }
    spent_ += static_cast<std::int64_t>(t.ran.size());
    traces_.push_back({s.trace, n.step});
    t.trace = static_cast<int>(traces_.size()) - 1;
    return t;
  }

  const Model& m_;
  std::vector<int> actions_;                      // by step
  std::vector<std::vector<int>> readers_;         // by cell: steps
  std::vector<std::vector<int>> before_, after_;  // by step
  std::vector<std::uint64_t> marks_;              // by step: a set's hash is the exclusive or of its steps'
  std::vector<Trace> traces_;
  std::int64_t spent_ = 0;
  bool cut_ = false;
};

}  // namespace

std::optional<Sequence> order_that_fits(const Model& model, const Sequence& sequence, std::int64_t work,
                                        const std::function<bool()>& stop) {
  if (model.n_devices != 1 || model.n_tracks != 1) return std::nullopt;
  Orders orders(model, sequence);
  for (std::size_t width = kNarrowest; width <= kWidest; width *= kWider) {
    const std::vector<int> order = orders.search(width, work, stop);
    if (!order.empty()) return orders.sequence(order);
    if (!orders.cut() || orders.spent() > work || stop()) break;
  }
  return std::nullopt;
}

}  // namespace neaptide::plan::tide
