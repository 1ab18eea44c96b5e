// From a file to something that can be planned and run: load, promote, fuse, differentiate, choose formats, measure,
// lower, plan, pack.
//
//   session::ModelOptions options;
//   options.batch = 32;
//   session::TrainingModel m = session::make_training_model(session::load_model("lenet.onnx", options), options);
//   session::choose_plan(m.prepared, {"50%"}, options);
//   if (!m.prepared.feasible()) ...  // m.prepared.plan.infeasible says why
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "neaptide/autodiff/autodiff.hpp"
#include "neaptide/cost/cost_table.hpp"
#include "neaptide/cost/machine.hpp"
#include "neaptide/lower/lower.hpp"
#include "neaptide/plan/planner.hpp"
#include "neaptide/runtime/program.hpp"
#include "neaptide/session/input.hpp"

namespace neaptide::session {

struct ModelOptions {
  std::optional<std::int64_t> batch;  // default: the model's own
  std::string backend = "cpu";
  int threads = 0;  // 0: all
  autodiff::TrainingOptions training;
  bool loss_by_output = true;  // cross entropy for a row of scores per sample, mean squared error otherwise
  std::string costs;           // file of measured costs; "": the user's cache
  bool estimate = false;       // roofline instead of measuring
  bool pinned = false;         // first implementations only: the same bits whatever the budget
  std::string planner = "neaptide";
  plan::Options plan;
  std::string known_plan;  // plan JSON (of a checkpoint), used again where it fits the problem and the budgets

  std::function<void(std::string_view)> note;          // what a user should know
  std::function<void(int done, int total)> measuring;  // progress
};

/// A graph measured on a device and lowered to a problem, then planned. Owns the backend.
struct Prepared {
  std::unique_ptr<runtime::Backend> backend;
  graph::Graph graph;  // with formats
  cost::Machine machine;
  cost::CostTable table;
  lower::Lowered lowered;
  Bytes keep_all = 0;  // peak of the keep-all reference

  std::optional<Bytes> budget;
  plan::Plan plan;  // of choose_plan
  bool feasible() const { return !plan.steps.empty(); }

  /// A program with the graph's initial contents written. The plan must be feasible.
  runtime::Program compile(const runtime::ProgramOptions& options) const;
};

struct TrainingModel {
  graph::Graph forward;  // as loaded
  Prepared prepared;
  std::vector<graph::ValueId> inputs;
  graph::ValueId labels, lr, rng, loss, correct;  // of prepared.graph; correct: invalid without classes
  std::vector<graph::ValueId> persistent;         // parameters and state, sorted by name
  std::int64_t batch = 0, classes = 0;            // classes 0: targets
};

struct InferenceModel {
  Prepared prepared;
  std::vector<graph::ValueId> inputs;
  graph::ValueId output;
  std::int64_t batch = 0;
};

/// An ONNX file as a graph. ModelError naming what is wrong.
graph::Graph load_model(const std::string& path, const ModelOptions& options);

/// ModelError when a node has no gradient or no device runs it.
TrainingModel make_training_model(graph::Graph forward, const ModelOptions& options);
InferenceModel make_inference_model(const graph::Graph& forward, const ModelOptions& options);

/// Resolves the budgets ("" or none: no limit), plans and packs. An infeasible budget is an answer: see
/// plan.infeasible.
void choose_plan(Prepared& prepared, std::span<const std::string> budgets, const ModelOptions& options);

/// The forward graph with other contents of its parameters and state, found by name.
graph::Graph with_weights(graph::Graph forward, std::span<const std::pair<std::string, graph::Tensor>> weights);

/// Where measured costs are kept: $XDG_CACHE_HOME or ~/.cache, then neaptide/costs.json; "" where neither is set.
std::string default_costs_path();

}  // namespace neaptide::session
