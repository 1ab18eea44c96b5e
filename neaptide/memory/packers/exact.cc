// Branch and bound over canonical placements: every block lies at 0 or on the top of another. The decision "do all
// blocks fit below `top`?" is searched bottom-up. At each node one of the blocks with the lowest possible offset is
// chosen, and either lies there or is rejected: then another block must come to lie in its way, and it moves up. Time
// is cut into sections (the maximal sets of blocks alive together), and into parts that share no block, which are
// solved one by one. Short runs under different priorities are restarted with growing effort; a run that ends by itself
// is a proof.
//
// The setting (sections, canonical placements, parts) is that of M. Moffitt, "MiniMalloc", 2023.
#include <algorithm>
#include <chrono>
#include <limits>
#include <numeric>
#include <random>
#include <tuple>

#include "neaptide/base/errors.hpp"
#include "neaptide/memory/packers/packers.hpp"
#include "neaptide/memory/placement.hpp"

namespace neaptide::memory {

namespace {

using Units = std::int64_t;  // bytes / the greatest common divisor of all sizes
constexpr Units kNone = std::numeric_limits<Units>::max();
constexpr std::int64_t kDescents = 3;
constexpr std::int64_t kDefaultEffort = 2'000'000'000;
using Clock = std::chrono::steady_clock;

std::size_t at(int i) { return static_cast<std::size_t>(i); }

/// A block in the search: alive in the sections [lo, hi).
struct Item {
  int lo = 0, hi = 0;
  Units size = 0;
  double duration = 0;
  std::vector<int> meets;  // the items alive in a common section
  int twin = -1;           // the next item with the same size and sections; it lies above this one
};

struct Instance {
  std::vector<Item> items;
  int n_sections = 0;
};

/// Numbers the sections: a new one starts where a block begins after another has ended.
void cut_into_sections(const std::vector<Block>& blocks, Instance& out) {
  std::vector<std::tuple<int, bool, int>> events;  // time, begins, block: ends come first
  for (int i = 0; i < static_cast<int>(blocks.size()); ++i) {
    events.push_back({blocks[at(i)].begin, true, i});
    events.push_back({blocks[at(i)].end, false, i});
  }
  std::sort(events.begin(), events.end());
  bool open = false;
  for (const auto& [time, begins, i] : events) {
    if (begins) {
      out.items[at(i)].lo = out.n_sections;
      open = true;
      continue;
    }
    if (open) ++out.n_sections;
    open = false;
    out.items[at(i)].hi = out.n_sections;
  }
}

void find_twins(std::vector<Item>& items) {
  std::vector<int> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](int i) { return std::tie(items[at(i)].lo, items[at(i)].hi, items[at(i)].size); };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return key(a) < key(b); });
  for (std::size_t k = 1; k < order.size(); ++k) {
    if (key(order[k - 1]) == key(order[k])) items[at(order[k - 1])].twin = order[k];
  }
}

Instance make_instance(const std::vector<Block>& blocks, Bytes unit) {
  Instance out;
  out.items.resize(blocks.size());
  cut_into_sections(blocks, out);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    out.items[i].size = blocks[i].bytes / unit;
    out.items[i].duration = static_cast<double>(blocks[i].end) - blocks[i].begin;
    for (std::size_t j = 0; j < blocks.size(); ++j) {
      if (i != j && meet(blocks[i], blocks[j])) out.items[i].meets.push_back(static_cast<int>(j));
    }
  }
  find_twins(out.items);
  return out;
}

/// Which of the items with the lowest possible offset is decided first.
enum class Focus { kAnywhere, kFullest, kFewest };
struct Priority {
  Focus focus;
  bool by_area;  // else by duration
};
constexpr Priority kPriorities[] = {{Focus::kAnywhere, false}, {Focus::kAnywhere, true}, {Focus::kFewest, false},
                                    {Focus::kFewest, true},    {Focus::kFullest, false}, {Focus::kFullest, true}};

enum class Answer { kFits, kDoesNotFit, kStopped };

struct Limits {
  std::int64_t ticks;
  Clock::time_point deadline;
};

/// One run for one top. A tick is one item in one section.
class Search {
 public:
  Search(const Instance& instance, Units top, Priority priority, std::uint64_t seed, Limits limits);

  Answer run();
  Units offset(int item) const { return state_[at(item)].low; }
  std::int64_t ticks() const { return ticks_; }

 private:
  struct State {
    Units low = 0;      // lowest offset still possible; the offset itself once placed
    Units way = kNone;  // after a rejection: some item must come to lie below this
    bool placed = false;
    bool lifted = false;  // low was raised by inference: nothing need lie right below
  };
  using Saved = std::vector<std::pair<int, State>>;

  Answer solve(const std::vector<int>& free);
  Answer solve_connected(std::vector<int> free);
  bool may_fit(const std::vector<int>& free);
  bool lift(int item);
  bool is_supported(int item) const;
  int choose();
  Units pressure(int item) const;
  void count_rivals();
  void place(int item, Saved& saved);
  bool reject(int item);
  bool out_of_effort();
  Saved save(const std::vector<int>& items) const;
  void restore(const Saved& saved);
  void lift_twins(int item);

  const Item& item(int i) const { return instance_.items[at(i)]; }
  State& state(int i) { return state_[at(i)]; }
  const State& state(int i) const { return state_[at(i)]; }

  const Instance& instance_;
  Units top_;
  Focus focus_;
  Limits limits_;
  std::int64_t ticks_ = 0, nodes_ = 0;
  std::vector<State> state_;
  std::vector<double> weight_;
  std::vector<std::pair<Units, int>> lowest_first_;  // set by may_fit
  std::vector<Units> filled_;                        // per section: set by may_fit
  std::vector<Units> rivals_;                        // per section: set by count_rivals
};

Search::Search(const Instance& instance, Units top, Priority priority, std::uint64_t seed, Limits limits)
    : instance_(instance),
      top_(top),
      focus_(priority.focus),
      limits_(limits),
      state_(instance.items.size()),
      filled_(at(instance.n_sections) + 1, 0),
      rivals_(at(instance.n_sections), 0) {
  std::mt19937_64 random(seed);
  for (const Item& i : instance.items) {
    const double noise = seed == 0 ? 1 : 0.7 + 0.6 * static_cast<double>(random() % 1024) / 1024;
    weight_.push_back(noise * i.duration * (priority.by_area ? static_cast<double>(i.size) : 1.0));
  }
}

Answer Search::run() {
  std::vector<int> all(instance_.items.size());
  std::iota(all.begin(), all.end(), 0);
  for (int i : all) lift_twins(i);
  return solve(std::move(all));
}

bool Search::out_of_effort() {
  if (ticks_ > limits_.ticks) return true;
  return (++nodes_ & 63) == 0 && Clock::now() > limits_.deadline;
}

Search::Saved Search::save(const std::vector<int>& items) const {
  Saved out;
  out.reserve(items.size());
  for (int i : items) out.push_back({i, state(i)});
  return out;
}

void Search::restore(const Saved& saved) {
  for (const auto& [i, s] : saved) state(i) = s;
}

/// Twins can change places, so each lies above the one before.
void Search::lift_twins(int i) {
  for (; item(i).twin >= 0 && !state(item(i).twin).placed; i = item(i).twin) {
    State& above = state(item(i).twin);
    const Units low = state(i).low + item(i).size;
    if (low > above.low) above.low = low, above.lifted = true;
  }
}

/// In every section the free items lie one upon the other, none below its lowest offset: the least height of such a
/// stack, in ascending order of these offsets, must fit. Sets lowest_first_ and filled_.
bool Search::may_fit(const std::vector<int>& free) {
  for (int i : free) {
    if ((state(i).lifted || state(i).way != kNone) && !lift(i)) return false;
  }
  lowest_first_.clear();
  for (int i : free) {
    lowest_first_.push_back({state(i).low, i});
    std::fill(filled_.begin() + item(i).lo, filled_.begin() + item(i).hi, 0);
  }
  std::sort(lowest_first_.begin(), lowest_first_.end());
  for (const auto& [low, i] : lowest_first_) {
    const Units size = item(i).size;
    Units most = 0;
    for (Units *filled = &filled_[at(item(i).lo)], *end = &filled_[at(item(i).hi)]; filled != end; ++filled) {
      *filled = std::max(*filled, low) + size;
      most = std::max(most, *filled);
    }
    ticks_ += item(i).hi - item(i).lo;
    if (most > top_) return false;
  }
  return true;
}

bool Search::is_supported(int i) const {
  const Units low = state(i).low;
  const std::vector<int>& meets = item(i).meets;
  return low == 0 || std::any_of(meets.begin(), meets.end(),
                                 [&](int j) { return state(j).placed && state(j).low + item(j).size == low; });
}

/// How pressing it is to decide on this item: the height of its fullest section, or (negated) how few items can lie
/// lowest in one of its sections without wasting more than that section's slack.
Units Search::pressure(int i) const {
  const auto first = item(i).lo, last = item(i).hi;
  if (focus_ == Focus::kFullest) return *std::max_element(filled_.begin() + first, filled_.begin() + last);
  if (focus_ == Focus::kFewest) return -*std::min_element(rivals_.begin() + first, rivals_.begin() + last);
  return 0;
}

void Search::count_rivals() {
  const Units level = lowest_first_.front().first;
  for (const auto& [low, i] : lowest_first_) std::fill(rivals_.begin() + item(i).lo, rivals_.begin() + item(i).hi, 0);
  for (const auto& [low, i] : lowest_first_) {
    for (int s = item(i).lo; s < item(i).hi; ++s) rivals_[at(s)] += low + filled_[at(s)] <= level + top_;
  }
}

/// Among the items that share the lowest offset: the most pressing, of these the heaviest.
int Search::choose() {
  if (focus_ == Focus::kFewest) count_rivals();
  int best = -1;
  Units most = 0;
  for (const auto& [low, i] : lowest_first_) {
    if (low != lowest_first_.front().first) break;
    const Units here = pressure(i);
    if (best >= 0 && (here < most || (here == most && weight_[at(i)] <= weight_[at(best)]))) continue;
    best = i;
    most = here;
  }
  return best;
}

void Search::place(int i, Saved& saved) {
  State& s = state(i);
  s.placed = true;
  for (int j : item(i).meets) {
    State& other = state(j);
    if (other.placed) continue;
    saved.push_back({j, other});
    if (other.way != kNone && s.low < other.way) other.way = kNone;
    const Units low = s.low + item(i).size;
    if (low >= other.low) other.low = low, other.lifted = false;
  }
}

/// The item does not lie at its lowest offset, so something free must block its way there, and it comes to lie on
/// something free. False when nothing can.
bool Search::reject(int i) {
  State& s = state(i);
  s.way = std::min(s.way, s.low + item(i).size);
  s.lifted = true;
  ++s.low;
  return lift(i);
}

/// An item that nothing placed supports comes to lie on something free. False when nothing can support it or block its
/// way.
bool Search::lift(int i) {
  State& s = state(i);
  Units rest = kNone;
  bool blocked = s.way == kNone;
  for (int j : item(i).meets) {
    if (state(j).placed) {
      if (state(j).low + item(j).size == s.low) s.lifted = false;
      continue;
    }
    rest = std::min(rest, state(j).low + item(j).size);
    blocked = blocked || state(j).low < s.way;
  }
  if (!blocked) return false;
  if (!s.lifted || s.low >= rest) return true;
  if (rest == kNone) return false;
  s.low = rest;
  lift_twins(i);
  return true;
}

/// Splits the items, given by ascending lo, into parts that share no section, smallest first, and solves each.
Answer Search::solve(const std::vector<int>& free) {
  std::vector<std::vector<int>> parts;
  int reach = 0;
  for (int i : free) {
    if (parts.empty() || item(i).lo >= reach) parts.emplace_back();
    parts.back().push_back(i);
    reach = std::max(reach, item(i).hi);
  }
  if (parts.size() == 1) return solve_connected(std::move(parts.front()));
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
  const Saved before = save(free);
  for (std::vector<int>& part : parts) {
    const Answer answer = solve_connected(std::move(part));
    if (answer == Answer::kDoesNotFit) restore(before);
    if (answer != Answer::kFits) return answer;
  }
  return Answer::kFits;
}

/// Leaves the state as it was when nothing fits.
Answer Search::solve_connected(std::vector<int> free) {
  if (out_of_effort()) return Answer::kStopped;
  const Saved before = save(free);
  while (may_fit(free)) {
    const int chosen = choose();
    if (is_supported(chosen)) {
      Saved saved = {{chosen, state(chosen)}};
      place(chosen, saved);
      std::vector<int> rest;
      std::copy_if(free.begin(), free.end(), std::back_inserter(rest), [&](int i) { return i != chosen; });
      const Answer answer = solve(rest);
      if (answer != Answer::kDoesNotFit) return answer;
      restore(saved);
    }
    if (!reject(chosen)) break;
  }
  restore(before);
  return Answer::kDoesNotFit;
}

/// Lowers the top of an incumbent, target by target.
class Minimiser {
 public:
  Minimiser(std::span<const Block> blocks, const PackOptions& options);
  Offsets run();

 private:
  Answer decide(Units top, std::int64_t ticks);
  void adopt(const Search& search);
  std::int64_t first_run() const;

  std::span<const Block> blocks_;
  std::vector<int> which_;  // the blocks that hold something, by begin; parallel to the items
  Bytes unit_ = 0;
  Instance instance_;
  Offsets best_;
  Limits limits_;
  std::uint64_t seed_;
  Bytes capacity_;
};

Minimiser::Minimiser(std::span<const Block> blocks, const PackOptions& options)
    : blocks_(blocks),
      best_(pack_best_fit(blocks, options)),
      limits_{options.effort > 0 ? options.effort : kDefaultEffort, Clock::time_point::max()},
      seed_(options.seed),
      capacity_(options.capacity.value_or(0)) {
  if (options.time_limit < 1e6) {
    limits_.deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                          std::chrono::duration<double>(std::max(0.0, options.time_limit)));
  }
}

/// Enough for a few descents without a wrong turn.
std::int64_t Minimiser::first_run() const {
  std::int64_t node = 0;
  for (const Item& i : instance_.items) node += i.hi - i.lo;
  return kDescents * node * static_cast<std::int64_t>(instance_.items.size()) / 2;
}

void Minimiser::adopt(const Search& search) {
  for (std::size_t i = 0; i < which_.size(); ++i) {
    best_.offset[at(which_[i])] = search.offset(static_cast<int>(i)) * unit_;
  }
  best_.top = top_of(blocks_, best_.offset);
}

/// Runs with growing effort, priorities in turn, until one ends by itself.
Answer Minimiser::decide(Units top, std::int64_t ticks) {
  std::int64_t effort = first_run();
  ticks = std::min(ticks, limits_.ticks);
  for (std::uint64_t run = 0; ticks > 0 && Clock::now() < limits_.deadline; ++run) {
    const std::uint64_t seed = run < std::size(kPriorities) ? 0 : seed_ + run;
    Search search(instance_, top, kPriorities[run % std::size(kPriorities)], seed,
                  {std::min(effort, ticks), limits_.deadline});
    const Answer answer = search.run();
    ticks -= search.ticks();
    limits_.ticks -= search.ticks();
    if (answer == Answer::kFits) adopt(search);
    if (answer != Answer::kStopped) return answer;
    effort += effort / 24;
  }
  return Answer::kStopped;
}

Offsets Minimiser::run() {
  const Bytes least = load(blocks_);
  const Bytes enough = std::max(least, capacity_);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (blocks_[i].bytes == 0 || blocks_[i].begin >= blocks_[i].end) continue;
    which_.push_back(static_cast<int>(i));
    unit_ = std::gcd(unit_, blocks_[i].bytes);
  }
  if (best_.top <= enough || which_.size() > kMostExactBlocks) return best_;
  const auto key = [&](int i) { return std::tuple(blocks_[at(i)].begin, i); };
  std::sort(which_.begin(), which_.end(), [&](int a, int b) { return key(a) < key(b); });
  std::vector<Block> real;
  for (int i : which_) real.push_back(blocks_[at(i)]);
  instance_ = make_instance(real, unit_);
  Units proved = least / unit_;  // no layout is lower
  Units first = enough / unit_;  // the lowest target not yet tried
  std::int64_t share = limits_.ticks - limits_.ticks / 4;
  while (best_.top > enough && first < best_.top / unit_ && limits_.ticks > 0 && Clock::now() < limits_.deadline) {
    const Units last = best_.top / unit_ - 1;
    const Units target = share > 0 ? first : first + (last - first) / 2;
    const Answer answer = decide(target, share > 0 ? share : limits_.ticks / 4 + first_run());
    share = 0;
    if (answer == Answer::kDoesNotFit) proved = target + 1;
    if (answer != Answer::kFits) first = target + 1;
  }
  best_.optimal = best_.top / unit_ == proved;
  return best_;
}

}  // namespace

Offsets pack_exact(std::span<const Block> blocks, const PackOptions& options) {
  return Minimiser(blocks, options).run();
}

}  // namespace neaptide::memory
