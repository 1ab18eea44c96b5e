// Program: the steps of a plan bound to kernels and to slices of one arena. Running it allocates nothing, binds and
// releases exactly what the plan says, and measures the peak from what it really binds.
//
//   Program p = Program::compile(graph, lowered, plan, backend, {});
//   p.write(x, batch);  StepResult r = p.run();  p.read(loss, out);
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "neaptide/base/errors.hpp"
#include "neaptide/lower/lower.hpp"
#include "neaptide/plan/plan.hpp"
#include "neaptide/runtime/backend.hpp"

namespace neaptide::runtime {

/// Planned and measured peak differ (exit code 7). Never the user's fault.
class PeakMismatch : public InternalError {
 public:
  using InternalError::InternalError;
};

struct ProgramOptions {
  /// Poisons dead ranges of the arena, unmaps the pages past its end, checks that no two live blocks overlap and that
  /// nothing is allocated on the step path (DESIGN.md section 5).
  bool strict = false;
  bool trace = false;  // keep a StepEvent per step of the last run
};

struct StepEvent {
  int step = 0;
  Seconds begin = 0, end = 0;  // since the start of the run
  Bytes held = 0;              // bytes held while the step ran
};

struct StepResult {
  Seconds seconds = 0;
  Bytes measured_peak = 0;               // from bind and release
  std::int64_t allocations = 0;          // on the step path, ours; must be 0 (counted in strict mode)
  std::int64_t library_allocations = 0;  // inside library calls (oneDNN's argument maps), counted apart
};

/// One device for now; the plan must have a layout. Throws InternalError when plan, layout and graph do not fit
/// together.
class Program {
 public:
  static Program compile(const graph::Graph& graph, const graph::OpSet& ops, const lower::Lowered& lowered,
                         const cost::CostTable& table, const plan::Plan& plan, Backend& backend,
                         const ProgramOptions& options = {});
  Program(Program&&) noexcept;
  Program& operator=(Program&&) noexcept;
  ~Program();

  /// Plain contents into / out of the block of a homed value (or of a graph output after a run). Sizes must match.
  void write(graph::ValueId value, std::span<const std::byte> plain);
  void read(graph::ValueId value, std::span<std::byte> plain) const;
  graph::Tensor read(graph::ValueId value) const;

  /// One training step. Throws PeakMismatch when the measured peak is not the planned one.
  StepResult run();

  Bytes planned_peak() const;
  Bytes arena_bytes() const;
  const std::vector<StepEvent>& trace() const;  // of the last run, when options.trace
  std::string step_name(int step) const;        // "conv1 (direct)", "free a1"
  bool huge_pages() const;                      // did the system give them

  struct State;  // what a compiled program holds; defined in program.cc

 private:
  explicit Program(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace neaptide::runtime
