// The integer programmes of the literature in one form. Time is cut into stages: stage t computes the t-th op for the
// first time, and before it, in the given order, any earlier op once more. What differs between the published systems
// is which runs and which copies are allowed.
//
//   R[t,p,k]  op p runs in stage t with implementation k
//   A[t,v,e]  value v is alive between its e-th and its next event in stage t (an event is an op that reads or writes
//   it);
//             the last one of a stage is the first one of the next
//   C         copies, where the rules allow them
//
// Rows: sum_k R[t,t,k] = 1; R[t,p,k] <= A before p for all that k reads; A after p <= A before p + the R that write v;
// in place: A after p <= 1 - R for the input; the load before p plus the results and workspace of p stays within the
// budget. These are the constraints of Checkmate (Jain et al. 2020, equations 1b-1e and 5-8), written with live ranges
// instead of Free and U: no big numbers, half the size, the same schedules, a stronger relaxation. A value needs no
// variable where nothing can want it any more.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "neaptide/milp/model.hpp"
#include "neaptide/plan/emit.hpp"
#include "neaptide/plan/planner.hpp"

namespace neaptide::plan {

struct StagedRules {
  bool implementations = false;  // every implementation, else the first choice
  bool backward_once = false;    // ops after the turn run once, and nothing is recomputed up to the turn
  bool copies_for_use = false;   // an op may read a value from another device; the copy ends with the op
  bool paging = false;           // values may be copied between stages and stay there
};

/// What the planners checkmate, checkmate-lp, monet, poet and xengine allow; none for the others.
std::optional<StagedRules> staged_rules(std::string_view planner);

/// The integer programme of one of these planners as MPS text, with readable names, for any other solver.
///   write_file_atomically("unet.mps", plan::programme_mps(problem, "checkmate", options));
/// UserError for a planner that has none, and where the planner itself refuses the problem.
std::string programme_mps(const Problem& problem, std::string_view planner, const Options& options);

/// UserError "planner '...' is not built, because ..." without a solver.
void require_solver(std::string_view planner);

class Staged {
 public:
  Staged(const Problem& problem, const StagedRules& rules, int turn);

  const milp::Model& model() const { return model_; }
  /// The steps that the values of the model say, freed as early as they allow.
  std::vector<Step> steps(const std::vector<double>& values) const;
  /// The values that say these steps, every value alive no longer than they need it; none where the steps have no place
  /// in the stages or break a row. A start for the solver.
  std::optional<std::vector<double>> values(const std::vector<Step>& steps) const;
  /// How much of value v (by buffer, version 0) the model holds at the end of stage t: [position][buffer].
  std::vector<std::vector<double>> kept(const std::vector<double>& values) const;
  /// The ops of the stages.
  const std::vector<OpId>& ops() const { return ops_; }

 private:
  struct Value {
    BufferId buffer;
    int version = 0;
    int until = -1;           // the last stage in which some run may want it
    std::vector<int> events;  // positions, ascending
  };
  struct Run {
    int stage, position, impl;
    milp::Var var;
  };
  struct Move {
    int stage, position;  // -1: between stages
    BufferId buffer;
    DeviceId from, to;
    milp::Var var;
  };
  struct Instant {  // what a variable `alive` stands for: the value after this position (-1: as the stage begins)
    int stage, position;
    std::size_t value;
    DeviceId device;
    milp::Var var;
  };
  struct Level {  // the row that says what the variable is
    milp::Var var;
    std::size_t row;
  };
  /// A variable, never (neither), or always (a home).
  struct Alive {
    std::optional<milp::Var> var;
    bool always = false;
  };

  void number_ops();
  void list_values();
  void find_until();
  void add_value_event(BufferId b, int version, int position);
  int value_of(BufferId b, int version) const;
  bool leaves_home_stale(OpId op, std::size_t k) const;
  bool takes_home_over(OpId op, std::size_t k) const;
  bool is_fixed_home(BufferId b, DeviceId d) const;
  bool may_run(int stage, int position, std::size_t k) const;
  bool is_wanted_after(const Value& value, int stage, int position) const;
  void add_stage(int stage);
  void add_page_copies(int stage);
  void add_position(int stage, int position);
  void add_loads(int stage, int position, const std::vector<std::pair<std::size_t, milp::Var>>& runs,
                 const std::vector<std::vector<milp::Term>>& extra);
  void add_reads(int stage, int position, const std::vector<std::pair<std::size_t, milp::Var>>& runs,
                 std::vector<std::vector<milp::Term>>& extra);
  void add_afterwards(int stage, int position, const std::vector<std::pair<std::size_t, milp::Var>>& runs);
  void add_end();
  void change_level(int stage, int position, DeviceId d, std::vector<milp::Term> change);
  void note_alive(int stage, int position, std::size_t value, DeviceId d, milp::Var var);
  bool mark_runs(const std::vector<Step>& steps, std::vector<double>& x) const;
  void mark_alive(std::vector<double>& x) const;
  /// Where a run finds a value: on its own device, or over a copy for this use.
  struct Source {
    std::size_t value;
    DeviceId device;
  };
  std::vector<std::vector<Source>> mark_sources(std::vector<double>& x, std::vector<DeviceId>& made_on) const;
  double scaled(Bytes bytes) const { return static_cast<double>(bytes) * scale_; }
  double fresh_bytes(int position, std::size_t k) const;
  const Impl& impl(int position, std::size_t k) const {
    return problem_.ops[ops_[static_cast<std::size_t>(position)]].impls[k];
  }
  Alive& alive(std::size_t value, DeviceId d) { return alive_[value * problem_.devices.size() + d.index()]; }

  const Problem& problem_;
  StagedRules rules_;
  int turn_;
  Choice choice_;
  Versions versions_;
  std::vector<OpId> ops_;
  std::vector<std::vector<std::size_t>> impls_;  // allowed, by position
  std::vector<bool> must_;                       // by position
  std::vector<Value> values_;
  std::vector<std::vector<int>> value_index_;  // [buffer][version]
  std::vector<std::vector<int>> overwritten_;  // [buffer][version]: position of the op that ends it, or n
  double scale_ = 1;
  std::vector<double> limit_;  // by device, scaled, homes taken off; infinite without a budget
  milp::Model model_;
  std::vector<Alive> alive_;                     // now, [value][device]
  std::vector<std::optional<milp::Var>> level_;  // bytes alive now, by device
  std::vector<Run> runs_;                        // by stage and position
  std::vector<Move> moves_;                      // the same
  std::vector<Instant> instants_;                // the same
  std::vector<Level> levels_;
  std::vector<std::vector<std::pair<int, milp::Var>>> ends_;  // [stage]: value and variable at its end
};

/// Plans of chen-greedy, chen-sqrt, dtr, griewank and last, to start from. Where the rules choose implementations: with
/// the first ones, the smallest workspaces, and what works in place; then each run as fast as the budgets allow.
std::vector<std::vector<Step>> simple_plans(const Problem& problem, const StagedRules& rules);

/// Seconds that a solver may take: those of the options; 600 where they set none and the problem has more than 100 ops.
Seconds solver_time_limit(const Problem& problem, const Options& options);

/// Solves the programme of the planner's rules, from the cheapest of simple_plans() and options.start that they can say
/// (else from a plan of `neaptide`; "started from" in the plan's options tells), and answers with its best plan. The
/// bound of the solver holds for these rules only, not for every sequence of steps; it goes into the plan's options as
/// "bound by these rules". Status time_limit where the time ended without a plan. UserError above 3000 ops.
Plan solve_staged(const Problem& problem, const Options& options, std::string_view planner);

}  // namespace neaptide::plan
