#include "neaptide/session/model.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "neaptide/base/files.hpp"
#include "neaptide/memory/memory.hpp"
#include "neaptide/onnx/onnx.hpp"
#include "neaptide/ops/ops.hpp"
#include "neaptide/passes/passes.hpp"
#include "neaptide/plan/simulate.hpp"
#include "neaptide/plan/verify.hpp"
#include "neaptide/runtime/measure.hpp"
#include "neaptide/session/backends.hpp"
#include "neaptide/session/budget.hpp"

namespace neaptide::session {

namespace {

using graph::Graph;
using graph::ValueId;
using graph::ValueKind;

void note(const ModelOptions& options, std::string_view sentence) {
  if (options.note) options.note(sentence);
}

template <class Action>
auto as_model_error(Action action) {
  try {
    return action();
  } catch (const ModelError&) {
    throw;
  } catch (const UserError& e) {
    throw ModelError("{}", e.what());
  }
}

cost::CostCache load_costs(const std::string& path, const ModelOptions& options) {
  if (path.empty()) return {};
  try {
    return cost::CostCache::load(path);
  } catch (const UserError& e) {
    note(options, fmt::format("costs are measured anew: {}", e.what()));
    return {};
  }
}

void save_costs(const cost::CostCache& cache, const std::string& path, const ModelOptions& options) {
  if (path.empty()) return;
  try {
    if (options.costs.empty()) std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    cache.save(path);
  } catch (const std::exception& e) {
    note(options, fmt::format("measured costs are not kept: {}", e.what()));
  }
}

void measure(Prepared& p, const ModelOptions& options) {
  const std::string path = options.costs.empty() ? default_costs_path() : options.costs;
  cost::CostCache cache = load_costs(path, options);
  const std::size_t known = cache.size();
  runtime::MeasureOptions m;
  m.estimate = options.estimate;
  m.progress = options.measuring;
  p.table = runtime::measure(p.graph, ops::all(), p.machine.devices.front(), *p.backend, cache, m);
  if (cache.size() != known) save_costs(cache, path, options);
}

cost::MachineDevice device_of(runtime::Backend& backend, const ModelOptions& options) {
  const std::string name = backend.name() + ":0";
  if (options.estimate) return runtime::measure_host(name, backend);
  cost::MachineDevice d;
  d.name = name;
  d.backend = backend.name();
  d.threads = backend.threads();
  d.alignment = backend.alignment();
  return d;
}

Prepared prepare(const Graph& graph, std::unique_ptr<runtime::Backend> backend, const ModelOptions& options) {
  Prepared p;
  p.backend = std::move(backend);
  p.graph = passes::remove_dead(graph, ops::all());
  if (const graph::FormatRules* rules = p.backend->format_rules()) {
    p.graph = passes::assign_formats(p.graph, ops::all(), *rules);
  }
  p.machine.devices = {device_of(*p.backend, options)};
  measure(p, options);
  lower::LowerOptions lower_options;
  lower_options.pinned = options.pinned;
  p.lowered = lower::lower(p.graph, ops::all(), p.machine, p.table, lower_options);
  p.keep_all = keep_all_peak(p.lowered.problem, plan::DeviceId(std::size_t{0}));
  return p;
}

ValueId value_named(const Graph& graph, const std::string& name) {
  const ValueId v = find_value(graph, name);
  if (!v.valid()) throw InternalError("the value '{}' got lost on the way to the final graph", name);
  return v;
}

/// A value of an earlier graph in the final one. An output may have a Reorder behind it: then its position counts.
ValueId same_value(const Graph& from, ValueId value, const Graph& to) {
  const auto at = std::find(from.outputs.begin(), from.outputs.end(), value);
  if (at != from.outputs.end()) return to.outputs.at(static_cast<std::size_t>(at - from.outputs.begin()));
  return value_named(to, from.values[value].name);
}

std::vector<ValueId> persistent_of(const Graph& graph) {
  std::vector<ValueId> out = values_of_kind(graph, ValueKind::kParameter);
  for (const ValueId v : values_of_kind(graph, ValueKind::kState)) out.push_back(v);
  std::sort(out.begin(), out.end(), [&](ValueId a, ValueId b) { return graph.values[a].name < graph.values[b].name; });
  return out;
}

std::int64_t leading(const Graph& graph, ValueId value) {
  const graph::Value& v = graph.values[value];
  if (v.type.shape.empty()) throw ModelError("input '{}' is a scalar; its first dimension must be the batch", v.name);
  return v.type.shape.front();
}

autodiff::TrainingOptions training_options(const Graph& graph, const ModelOptions& options) {
  autodiff::TrainingOptions t = options.training;
  if (!options.loss_by_output || graph.outputs.empty()) return t;
  const graph::Shape& shape = graph.values[graph.outputs.front()].type.shape;
  const bool scores =
      shape.size() >= 2 && std::all_of(shape.begin() + 2, shape.end(), [](std::int64_t d) { return d == 1; });
  t.loss = scores ? autodiff::Loss::kSoftmaxCrossEntropy : autodiff::Loss::kMeanSquaredError;
  return t;
}

/// The plan of an earlier run, when it is one for this problem and these budgets.
bool reuse_plan(Prepared& p, const plan::Options& plan_options, const ModelOptions& options) {
  if (options.known_plan.empty()) return false;
  const plan::Problem problem = plan::with_options(p.lowered.problem, plan_options);
  try {
    plan::Plan plan = plan::plan_from_json(problem, options.known_plan, "the plan in the checkpoint");
    const plan::Simulation now = plan::simulate(problem, plan.steps);
    for (std::size_t i = 0; i < problem.devices.size(); ++i) {
      const plan::DeviceId d(i);
      if (plan.budgets[d] != problem.devices[d].budget) throw UserError("the budget is another one");
    }
    plan::Plan claims = plan;  // costs may have been measured anew: the steps count, not the old proof
    claims.cost = now.cost;
    claims.lower_bound.reset();
    claims.gap.reset();
    claims.status = plan::Status::kFeasible;
    plan::verify_or_throw(problem, claims);
    if (!plan.layout || !memory::verify(problem, plan, *plan.layout).empty()) throw UserError("it has no layout");
    p.plan = std::move(plan);
    return true;
  } catch (const Error& e) {
    note(options, fmt::format("planning anew, so the last bits may differ from an uninterrupted run: {}", e.what()));
    return false;
  }
}

}  // namespace

runtime::Program Prepared::compile(const runtime::ProgramOptions& options) const {
  ensure(feasible(), "only a plan with steps can run");
  runtime::Program program = runtime::Program::compile(graph, ops::all(), lowered, table, plan, *backend, options);
  for (const auto& [value, tensor] : graph.data) program.write(value, *tensor.data);
  return program;
}

Graph load_model(const std::string& path, const ModelOptions& options) {
  Graph g = as_model_error([&] {
    onnx::LoadOptions load;
    load.batch = options.batch;
    return onnx::load(path, ops::all(), load);
  });
  for (const std::string& n : g.notes) note(options, n);
  return g;
}

TrainingModel make_training_model(Graph forward, const ModelOptions& options) {
  std::unique_ptr<runtime::Backend> backend = make_backend(options.backend, options.threads);
  return as_model_error([&] {
    TrainingModel m;
    const std::size_t said = forward.notes.size();
    const Graph promoted = passes::promote_to_training(forward, ops::all());
    const Graph fused = passes::fuse_activations(promoted, ops::all());
    const autodiff::TrainingOptions training = training_options(fused, options);
    const autodiff::Training t = autodiff::make_training(fused, ops::all(), training);
    for (std::size_t i = said; i < t.graph.notes.size(); ++i) note(options, t.graph.notes[i]);
    m.prepared = prepare(t.graph, std::move(backend), options);
    const Graph& g = m.prepared.graph;
    for (const ValueId v : t.inputs) m.inputs.push_back(value_named(g, t.graph.values[v].name));
    if (m.inputs.empty()) throw ModelError("model '{}' has no input", forward.name);
    m.labels = value_named(g, "labels");
    m.lr = value_named(g, "lr");
    m.rng = find_value(g, "rng");
    m.loss = same_value(t.graph, t.loss, g);
    if (t.correct.valid()) {
      m.correct = same_value(t.graph, t.correct, g);
      m.classes = t.graph.values[t.output].type.shape[1];
    }
    m.persistent = persistent_of(g);
    m.batch = leading(g, m.inputs.front());
    m.forward = std::move(forward);
    return m;
  });
}

InferenceModel make_inference_model(const Graph& forward, const ModelOptions& options) {
  std::unique_ptr<runtime::Backend> backend = make_backend(options.backend, options.threads);
  return as_model_error([&] {
    InferenceModel m;
    const Graph fused = passes::fuse_activations(forward, ops::all());
    m.prepared = prepare(fused, std::move(backend), options);
    for (const ValueId v : values_of_kind(fused, ValueKind::kInput)) {
      m.inputs.push_back(value_named(m.prepared.graph, fused.values[v].name));
    }
    if (m.inputs.empty()) throw ModelError("model '{}' has no input", forward.name);
    m.output = m.prepared.graph.outputs.front();
    m.batch = leading(m.prepared.graph, m.inputs.front());
    return m;
  });
}

void choose_plan(Prepared& p, std::span<const std::string> budgets, const ModelOptions& options) {
  const plan::Problem& problem = p.lowered.problem;
  plan::Options o = options.plan;
  std::vector<std::string> words;
  for (const std::string& w : budgets) {
    if (!w.empty()) words.push_back(w);
  }
  o.budgets = resolve_budgets(problem, words, options.planner, o);
  p.budget.reset();
  if (const auto found = o.budgets.find(p.machine.devices.front().name); found != o.budgets.end()) {
    p.budget = found->second;
    note(options, fmt::format("budget of {}: {} bytes ({})", found->first, found->second, format_bytes(found->second)));
  }
  if (!reuse_plan(p, o, options)) p.plan = memory::plan_and_pack(problem, options.planner, o);
}

Graph with_weights(Graph forward, std::span<const std::pair<std::string, graph::Tensor>> weights) {
  for (const auto& [name, tensor] : weights) {
    const ValueId v = find_value(forward, name);
    if (!v.valid() ||
        !(forward.values[v].kind == ValueKind::kParameter || forward.values[v].kind == ValueKind::kState)) {
      continue;  // the optimizer's
    }
    if (tensor.type != forward.values[v].type) {
      throw UserError("the weights '{}' are {}; the model has {}", name, to_string(tensor.type),
                      to_string(forward.values[v].type));
    }
    forward.data[v] = tensor;
  }
  return forward;
}

std::string default_costs_path() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache != '\0') return std::string(cache) + "/neaptide/costs.json";
  const char* home = std::getenv("HOME");
  return home != nullptr && *home != '\0' ? std::string(home) + "/.cache/neaptide/costs.json" : "";
}

}  // namespace neaptide::session
