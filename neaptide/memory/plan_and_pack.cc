#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "neaptide/memory/memory.hpp"
#include "neaptide/plan/planners/neaptide.hpp"

namespace neaptide::memory {

namespace {

using Budgets = IdVector<plan::DeviceTag, std::optional<Bytes>>;
using PerDevice = IdVector<plan::DeviceTag, Bytes>;

constexpr int kRounds = 8;
constexpr double kFirstShare = 0.6, kNextShare = 0.25;  // of a time limit, of what is left of it: what one attempt gets
constexpr std::int64_t kLessEffort = 10;  // part of the planner's: what attempts get that start from the first plan
constexpr Bytes kFirstCut = 200;          // part of the budget
constexpr Bytes kFaster = 3;              // each cut grows by so many times what it is
constexpr double kPackShare = 0.05;       // of a time limit: what one layout gets
constexpr Seconds kLeastPolish = 1;
constexpr Seconds kPatience = 0.5;  // of someone who has interrupted, with the layout of the plan that he gets

Budgets budgets_of(const plan::Problem& problem) {
  Budgets out(problem.devices.size());
  for (std::size_t i = 0; i < problem.devices.size(); ++i) {
    out[plan::DeviceId(i)] = problem.devices[plan::DeviceId(i)].budget;
  }
  return out;
}

/// One attempt after the other: plan under budgets made smaller by `cut`, pack under the true ones.
class Rounds {
 public:
  Rounds(const plan::Problem& problem, std::string_view planner, const plan::Options& options,
         const PackOptions& pack_options)
      : problem_(plan::with_options(problem, options)),
        planner_(planner),
        options_(options),
        pack_options_(pack_options),
        budgets_(budgets_of(problem_)),
        cut_(problem_.devices.size(), 0),
        misses_(cut_),
        fits_(cut_) {}

  plan::Plan run();

  /// After run(): plans were found, but no layout of theirs fits.
  bool only_layouts_failed() const { return nearest_ && !best_; }

 private:
  plan::Plan attempt();
  std::int64_t less_effort() const;
  bool may_polish() const;
  void polish();
  PerDevice overflow(const plan::Plan& plan) const;
  bool move_cut(bool fits, const PerDevice& over);
  bool halve_cut(const PerDevice& enough);
  void keep_if_better(plan::Plan plan);
  void restate_proof(plan::Plan& plan) const;
  plan::Plan nothing_fits() const;
  Seconds seconds_spent() const;
  Seconds seconds_left() const { return std::max(0.0, options_.time_limit - seconds_spent()); }
  bool stopped() const { return seconds_left() <= 0 || options_.interrupted(); }

  plan::Problem problem_;  // with the true budgets
  std::string planner_;
  plan::Options options_;
  PackOptions pack_options_;
  Budgets budgets_;
  PerDevice cut_;     // what the planner's budgets are short of the true ones
  PerDevice misses_;  // the largest cut whose layout did not fit
  PerDevice fits_;    // the least one whose layout did; of no meaning without a best_
  std::uint64_t n_tightened_ = 0;
  plan::Plan first_;  // under the true budgets: its bound holds for every round
  std::optional<plan::Plan> best_;
  std::optional<plan::Plan> nearest_;  // least overflow, where nothing fits
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

Seconds Rounds::seconds_spent() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

double cost_of(const plan::Plan& plan) { return plan::cost_by(plan.cost, plan.objective); }

bool has_steps(const plan::Plan& plan) {
  return plan.status != plan::Status::kInfeasible && !(plan.status == plan::Status::kTimeLimit && plan.steps.empty());
}

/// Of an attempt that starts from the first plan; 0: whatever the time allows.
std::int64_t Rounds::less_effort() const {
  const bool searched = planner_ == "neaptide" && options_.objective != plan::Objective::kOverlap;
  if (!searched || options_.effort == 1) return options_.effort;
  if (options_.effort > 0) return std::max<std::int64_t>(2, options_.effort / kLessEffort);
  return std::isfinite(options_.time_limit) ? 0 : plan::default_effort(problem_) / kLessEffort;
}

plan::Plan Rounds::attempt() {
  plan::Options options = options_;
  options.time_limit = options_.time_limit * kFirstShare;
  const bool tightened = cut_ != misses_;
  if (tightened) {
    options.time_limit = seconds_left() * kNextShare;
    options.diagnose = false;  // of a tightened budget nobody asks why nothing fits
    options.start = first_.steps;
    options.effort = less_effort();
    options.seed += ++n_tightened_;  // what has failed should not come again
  }
  if (best_ && !tightened) {  // once more, with the time that is left
    options.time_limit = seconds_left();
    options.start = best_->steps;
  }
  for (std::size_t i = 0; i < budgets_.size(); ++i) {
    const plan::DeviceId d(i);
    if (budgets_[d]) options.budgets[problem_.devices[d].name] = *budgets_[d] - cut_[d];
  }
  plan::Plan plan = plan::make_plan(problem_, planner_, options);
  plan.budgets = budgets_;
  if (!has_steps(plan)) return plan;
  PackOptions pack_options = pack_options_;
  pack_options.time_limit = std::min(pack_options.time_limit, std::max(kPatience, options_.time_limit * kPackShare));
  if (options_.interrupted()) pack_options.time_limit = std::min(pack_options.time_limit, kPatience);
  plan.layout = pack(problem_, plan, pack_options);
  return plan;
}

PerDevice Rounds::overflow(const plan::Plan& plan) const {
  PerDevice out(budgets_.size(), 0);
  for (std::size_t i = 0; i < budgets_.size(); ++i) {
    const plan::DeviceId d(i);
    if (budgets_[d]) out[d] = std::max<Bytes>(0, plan.layout->top[d] - *budgets_[d]);
  }
  return out;
}

Bytes most(const PerDevice& bytes) { return *std::max_element(bytes.begin(), bytes.end()); }

/// Half of the way between the largest cut that is too small and `enough`; false when there is nothing between.
bool Rounds::halve_cut(const PerDevice& enough) {
  bool moved = false;
  for (std::size_t i = 0; i < cut_.size(); ++i) {
    const plan::DeviceId d(i);
    const Bytes middle = misses_[d] + (enough[d] - misses_[d]) / 2;
    moved = moved || middle != misses_[d];
    cut_[d] = middle;
  }
  return moved;
}

/// Chooses the next cut; false when no further round can help.
bool Rounds::move_cut(bool fits, const PerDevice& over) {
  (fits ? fits_ : misses_) = cut_;
  if (best_) return halve_cut(fits_);
  for (std::size_t i = 0; i < cut_.size(); ++i) {
    const plan::DeviceId d(i);
    if (!budgets_[d]) continue;
    cut_[d] += std::min(over[d], std::max({*budgets_[d] / kFirstCut, kFaster * cut_[d], Bytes{1}}));
    if (cut_[d] > *budgets_[d]) return false;
  }
  return true;
}

void Rounds::keep_if_better(plan::Plan plan) {
  if (!best_ || cost_of(plan) < cost_of(*best_)) best_ = std::move(plan);
}

/// A bound under the true budgets holds for any plan within them; one under smaller budgets does not.
void Rounds::restate_proof(plan::Plan& plan) const {
  plan.lower_bound = first_.lower_bound;
  plan.options = first_.options;
  plan.seed = first_.seed;
  plan.gap = first_.gap;
  if (plan.cost == first_.cost) {
    plan.status = first_.status;
    return;
  }
  if (plan.status == plan::Status::kOptimal) plan.status = plan::Status::kFeasible;
  if (plan.lower_bound) plan.gap = plan::gap_of(problem_, plan);
}

/// The answer when plans exist whose load fits, but no layout of them does.
plan::Plan Rounds::nothing_fits() const {
  const plan::Plan& near = *nearest_;
  const PerDevice over = overflow(near);
  const auto worst = std::max_element(over.begin(), over.end()) - over.begin();
  const plan::DeviceId device(static_cast<std::int32_t>(worst));
  plan::Infeasible why;
  why.device = device;
  why.smallest = near.layout->top[device];
  for (std::size_t i = 0; i < problem_.buffers.size(); ++i) {
    const plan::Buffer& b = problem_.buffers[plan::BufferId(i)];
    if (b.home == device && !b.pageable) why.proved += problem_.size_on(plan::BufferId(i), device);
  }
  const plan::Placement* highest = nullptr;
  for (const plan::Placement& p : near.layout->blocks) {
    if (p.device == device && (highest == nullptr || p.offset + p.bytes > highest->offset + highest->bytes)) {
      highest = &p;
    }
  }
  const plan::Step& step = near.steps.at(static_cast<std::size_t>(highest->begin));
  if (const auto* compute = std::get_if<plan::Compute>(&step)) why.step = problem_.ops[compute->op].name;
  why.buffers = {highest->name};
  why.advice = fmt::format("plans fit {} bytes, but no layout of them was found; {} bytes are enough",
                           *budgets_[device], why.smallest);
  plan::Plan out = first_;
  out.status = stopped() ? plan::Status::kTimeLimit : plan::Status::kInfeasible;
  out.steps.clear();
  out.cost = {};
  out.peak = PerDevice(budgets_.size(), 0);
  out.gap.reset();  // the bound stays: no plan is cheaper
  out.layout.reset();
  out.infeasible = std::move(why);
  out.seconds_spent = seconds_spent();
  return out;
}

/// Under a time limit the first attempt leaves time for others, which a plan that packs at once does not need.
bool Rounds::may_polish() const {
  const bool limited = std::isfinite(options_.time_limit) && options_.effort == 0;
  const bool cut_short = best_->stopped_by == "time" || best_->stopped_by == "effort";
  return limited && most(cut_) == 0 && cut_short && seconds_left() > kLeastPolish && !options_.interrupted();
}

void Rounds::polish() {
  plan::Plan again = attempt();
  again.seconds_spent = seconds_spent();
  if (!has_steps(again)) return;
  const auto bounds = {first_.lower_bound, again.lower_bound};  // both under the true budgets
  if (most(overflow(again)) == 0 && cost_of(again) <= cost_of(*best_)) {
    first_ = again;
    best_ = std::move(again);
  }
  first_.lower_bound.reset();
  for (const auto& bound : bounds) {  // a solver's word yields to a cheaper plan
    const bool believed = bound && (bound->vouched_by.empty() || bound->seconds < cost_of(*best_));
    if (believed && (!first_.lower_bound || bound->seconds > first_.lower_bound->seconds)) first_.lower_bound = bound;
  }
  if (first_.lower_bound) first_.gap = plan::gap_of(problem_, first_);
}

plan::Plan Rounds::run() {
  for (int round = 0; round < kRounds && (round == 0 || !stopped()); ++round) {
    plan::Plan plan = attempt();
    plan.seconds_spent = seconds_spent();
    if (round == 0) first_ = plan;
    if (!has_steps(plan)) {
      if (round == 0) return plan;
      if (!halve_cut(cut_)) break;
      continue;
    }
    const PerDevice over = overflow(plan);
    const bool fits = most(over) == 0;
    if (fits) {
      const bool cannot_improve = cost_of(plan) <= cost_of(first_);
      keep_if_better(std::move(plan));
      if (cannot_improve) break;
    } else if (!nearest_ || most(over) < most(overflow(*nearest_))) {
      nearest_ = std::move(plan);
    }
    if (!move_cut(fits, over)) break;
  }
  if (!best_) return nothing_fits();
  if (may_polish()) polish();
  restate_proof(*best_);
  return *best_;
}

}  // namespace

plan::Plan plan_and_pack(const plan::Problem& problem, std::string_view planner, const plan::Options& options,
                         const PackOptions& pack_options) {
  Rounds rounds(problem, planner, options, pack_options);
  plan::Plan plan = rounds.run();
  if (!rounds.only_layouts_failed() || options.effort == 1 || options.interrupted()) return plan;
  // A plan that was improved for long may leave its blocks no room where the first plan found does.
  plan::Options least = options;
  least.effort = 1;
  least.time_limit = std::max(kLeastPolish, options.time_limit - plan.seconds_spent);
  plan::Plan first = Rounds(problem, planner, least, pack_options).run();
  return first.steps.empty() ? plan : first;
}

}  // namespace neaptide::memory
