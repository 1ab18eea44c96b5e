// The JSON form of a plan: "neaptide.plan" version 1.
#include <unordered_map>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/json.hpp"
#include "neaptide/base/text.hpp"
#include "neaptide/plan/plan.hpp"

namespace neaptide::plan {
namespace {

constexpr const char* kFormat = "neaptide.plan";
constexpr Status kStatuses[] = {Status::kOptimal, Status::kFeasible, Status::kInfeasible, Status::kTimeLimit};
constexpr Objective kObjectives[] = {Objective::kTime, Objective::kOverlap, Objective::kEnergy};
constexpr const char* kScopes[] = {"this order", "any order"};

// ---------------------------------------------------------------------------------------------------------- writing

struct StepJson {
  const Problem& p;
  Json operator()(const Compute& s) const {
    Json j;
    j["compute"] = p.ops[s.op].name;
    j["impl"] = p.ops[s.op].impls[static_cast<std::size_t>(s.impl)].name;
    return j;
  }
  Json operator()(const Copy& s) const {
    Json j;
    j["copy"] = p.buffers[s.buffer].name;
    j["from"] = p.devices[s.from].name;
    j["to"] = p.devices[s.to].name;
    return j;
  }
  Json operator()(const Free& s) const {
    Json j;
    j["free"] = p.buffers[s.buffer].name;
    j["device"] = p.devices[s.device].name;
    return j;
  }
};

/// An object with one number per device; devices beyond the vector are left out.
Json per_device(const Problem& problem, const IdVector<DeviceTag, Bytes>& values) {
  Json j = Json::object();
  for (std::size_t d = 0; d < values.size(); ++d) {
    if (values[DeviceId(d)] >= 0) j[problem.devices[DeviceId(d)].name] = values[DeviceId(d)];
  }
  return j;
}

Json budgets_json(const Problem& problem, const Plan& plan) {
  Json j = Json::object();
  for (std::size_t d = 0; d < plan.budgets.size(); ++d) {
    const auto& budget = plan.budgets[DeviceId(d)];
    j[problem.devices[DeviceId(d)].name] = budget ? Json(*budget) : Json(nullptr);
  }
  return j;
}

Json cost_json(const Cost& cost) {
  Json j = Json::object();
  if (cost.seconds >= 0) j["seconds"] = cost.seconds;
  if (cost.overlapped >= 0) j["overlapped"] = cost.overlapped;
  if (cost.joules) j["joules"] = *cost.joules;
  return j;
}

/// A bound has the unit of what it bounds.
const char* unit_of(Objective objective) { return objective == Objective::kEnergy ? "joules" : "seconds"; }

Json bound_json(const LowerBound& bound, Objective objective) {
  Json j;
  j[unit_of(objective)] = bound.seconds;
  j["valid_for"] = kScopes[static_cast<std::size_t>(bound.valid_for)];
  if (!bound.certificate.empty()) j["certificate"] = parse_json(bound.certificate, "certificate");
  if (!bound.vouched_by.empty()) j["vouched_by"] = bound.vouched_by;
  return j;
}

Json infeasible_json(const Problem& problem, const Infeasible& why) {
  Json j;
  j["device"] = problem.devices[why.device].name;
  j["smallest"] = why.smallest;
  j["proved"] = why.proved;
  j["step"] = why.step;
  j["buffers"] = why.buffers;
  j["advice"] = why.advice;
  return j;
}

Json layout_json(const Problem& problem, const Layout& layout) {
  Json j;
  j["top"] = per_device(problem, layout.top);
  j["load"] = per_device(problem, layout.load);
  j["blocks"] = Json::array();
  for (const Placement& b : layout.blocks) {
    Json block;
    block["name"] = b.name;
    block["device"] = problem.devices[b.device].name;
    block["begin"] = b.begin;
    block["end"] = b.end;
    block["bytes"] = b.bytes;
    block["offset"] = b.offset;
    j["blocks"].push_back(std::move(block));
  }
  return j;
}

// ---------------------------------------------------------------------------------------------------------- reading

class Reader {
 public:
  Reader(const Problem& problem, const JsonReader& root) : problem_(problem), root_(root) {
    for (std::size_t i = 0; i < problem.devices.size(); ++i) devices_[problem.devices[DeviceId(i)].name] = DeviceId(i);
    for (std::size_t i = 0; i < problem.buffers.size(); ++i) buffers_[problem.buffers[BufferId(i)].name] = BufferId(i);
    for (std::size_t i = 0; i < problem.ops.size(); ++i) ops_[problem.ops[OpId(i)].name] = OpId(i);
  }

  Plan run() {
    const bool known = root_.value().is_object() && root_.has("format") && root_.value()["format"] == kFormat &&
                       root_.has("version") && root_.value()["version"] == 1;
    if (!known) throw UserError("{}: not a plan; it needs \"format\": \"{}\", \"version\": 1", root_.place(), kFormat);
    Plan plan;
    if (root_.has("problem_sha256")) plan.problem_sha256 = root_.string("problem_sha256");
    plan.budgets = read_budgets();
    for (const JsonReader& r : root_.items("steps")) plan.steps.push_back(read_step(r));
    plan.cost = {.seconds = -1, .overlapped = -1};
    if (root_.has("cost")) plan.cost = read_cost(root_.at("cost"));
    if (root_.has("peak")) plan.peak = read_per_device(root_.at("peak"));
    if (root_.has("objective")) plan.objective = read_objective(root_.at("objective"));
    if (root_.has("lower_bound")) plan.lower_bound = read_bound(root_.at("lower_bound"), plan.objective);
    if (root_.has("gap")) plan.gap = root_.number("gap", 0);
    if (root_.has("status")) plan.status = read_status(root_.at("status"));
    if (root_.has("stopped_by")) plan.stopped_by = root_.string("stopped_by");
    if (root_.has("infeasible")) plan.infeasible = read_infeasible(root_.at("infeasible"));
    if (root_.has("planner")) plan.planner = root_.string("planner");
    if (root_.has("seed")) plan.seed = static_cast<std::uint64_t>(root_.integer("seed", 0));
    if (root_.has("options")) read_options(plan);
    if (root_.has("seconds_spent")) plan.seconds_spent = root_.number("seconds_spent", 0);
    if (root_.has("layout")) plan.layout = read_layout(root_.at("layout"));
    return plan;
  }

 private:
  template <class IdType>
  static IdType find(const std::unordered_map<std::string_view, IdType>& ids, const char* kind, const JsonReader& r) {
    const std::string name = r.string();
    const auto it = ids.find(name);
    if (it != ids.end()) return it->second;
    std::vector<std::string> known;
    for (const auto& [k, id] : ids) known.emplace_back(k);
    throw UserError("{}: the problem has no {} '{}'{}", r.place(), kind, name, did_you_mean(name, known));
  }
  DeviceId device(const JsonReader& r) const { return find(devices_, "device", r); }
  BufferId buffer(const JsonReader& r) const { return find(buffers_, "buffer", r); }

  Step read_step(const JsonReader& r) const {
    if (r.has("compute")) {
      const OpId op = find(ops_, "op", r.at("compute"));
      const std::string name = r.string("impl");
      const std::vector<Impl>& impls = problem_.ops[op].impls;
      for (std::size_t i = 0; i < impls.size(); ++i) {
        if (impls[i].name == name) return Compute{op, static_cast<int>(i)};
      }
      throw UserError("{}: op '{}' has no implementation '{}'", r.place(), problem_.ops[op].name, name);
    }
    if (r.has("copy")) return Copy{buffer(r.at("copy")), device(r.at("from")), device(r.at("to"))};
    if (r.has("free")) return Free{buffer(r.at("free")), device(r.at("device"))};
    throw UserError("{} is neither compute + impl, copy + from + to nor free + device", r.place());
  }

  IdVector<DeviceTag, std::optional<Bytes>> read_budgets() const {
    IdVector<DeviceTag, std::optional<Bytes>> out;
    for (const Device& d : problem_.devices) out.push_back(d.budget);
    if (!root_.has("budgets")) return out;
    for (const auto& [name, value] : entries(root_.at("budgets"))) {
      const DeviceId d = device_named(root_.at("budgets"), name);
      out[d] = value.value().is_null() ? std::nullopt : std::optional<Bytes>(value.integer(0));
    }
    return out;
  }

  IdVector<DeviceTag, Bytes> read_per_device(const JsonReader& r) const {
    IdVector<DeviceTag, Bytes> out(problem_.devices.size(), -1);
    for (const auto& [name, value] : entries(r)) out[device_named(r, name)] = value.integer(0);
    return out;
  }

  static std::vector<std::pair<std::string, JsonReader>> entries(const JsonReader& r) {
    if (!r.value().is_object()) throw UserError("{} is not an object", r.place());
    std::vector<std::pair<std::string, JsonReader>> out;
    for (const auto& [name, value] : r.value().items())
      out.emplace_back(name, JsonReader(value, r.place() + "." + name));
    return out;
  }

  DeviceId device_named(const JsonReader& r, const std::string& name) const {
    const auto it = devices_.find(name);
    if (it == devices_.end()) throw UserError("{}: the problem has no device '{}'", r.place(), name);
    return it->second;
  }

  static Cost read_cost(const JsonReader& r) {
    Cost cost{.seconds = -1, .overlapped = -1};
    if (r.has("seconds")) cost.seconds = r.number("seconds", 0);
    if (r.has("overlapped")) cost.overlapped = r.number("overlapped", 0);
    if (r.has("joules")) cost.joules = r.number("joules", 0);
    return cost;
  }

  static LowerBound read_bound(const JsonReader& r, Objective objective) {
    LowerBound bound;
    bound.seconds = r.number(unit_of(objective), 0);
    if (r.has("valid_for")) {
      const std::string scope = r.string("valid_for");
      if (scope != kScopes[0] && scope != kScopes[1])
        throw UserError("{}.valid_for is '{}'; it must be 'this order' or 'any order'", r.place(), scope);
      bound.valid_for = scope == kScopes[0] ? BoundScope::kThisOrder : BoundScope::kAnyOrder;
    }
    if (r.has("certificate")) bound.certificate = r.at("certificate").value().dump();
    if (r.has("vouched_by")) bound.vouched_by = r.string("vouched_by");
    return bound;
  }

  static Status read_status(const JsonReader& r) {
    const std::string text = r.string();
    for (Status s : kStatuses) {
      if (to_string(s) == text) return s;
    }
    throw UserError("{} is '{}'; it must be optimal, feasible, infeasible or time_limit", r.place(), text);
  }

  static Objective read_objective(const JsonReader& r) {
    const std::string text = r.string();
    for (Objective o : kObjectives) {
      if (to_string(o) == text) return o;
    }
    throw UserError("{} is '{}'; it must be time, overlap or energy", r.place(), text);
  }

  Infeasible read_infeasible(const JsonReader& r) const {
    Infeasible why;
    why.device = device(r.at("device"));
    why.smallest = r.integer("smallest", 0);
    why.proved = r.integer("proved", 0);
    why.step = r.string("step");
    for (const JsonReader& b : r.items("buffers")) why.buffers.push_back(b.string());
    why.advice = r.string("advice");
    return why;
  }

  void read_options(Plan& plan) const {
    for (const auto& [name, value] : entries(root_.at("options"))) plan.options.emplace_back(name, value.string());
  }

  static int step_number(const JsonReader& r) {
    const std::int64_t step = r.integer(0);
    if (step > INT32_MAX) throw UserError("{} is {}; no plan has so many steps", r.place(), step);
    return static_cast<int>(step);
  }

  Layout read_layout(const JsonReader& r) const {
    Layout layout;
    layout.top = read_per_device(r.at("top"));
    layout.load = read_per_device(r.at("load"));
    for (const JsonReader& b : r.items("blocks")) {
      Placement p;
      p.name = b.string("name");
      p.device = device(b.at("device"));
      p.begin = step_number(b.at("begin"));
      p.end = step_number(b.at("end"));
      p.bytes = b.integer("bytes", 0);
      p.offset = b.integer("offset", 0);
      layout.blocks.push_back(std::move(p));
    }
    return layout;
  }

  const Problem& problem_;
  const JsonReader& root_;
  std::unordered_map<std::string_view, DeviceId> devices_;
  std::unordered_map<std::string_view, BufferId> buffers_;
  std::unordered_map<std::string_view, OpId> ops_;
};

}  // namespace

std::string_view to_string(Status status) {
  switch (status) {
    case Status::kOptimal:
      return "optimal";
    case Status::kFeasible:
      return "feasible";
    case Status::kInfeasible:
      return "infeasible";
    case Status::kTimeLimit:
      return "time_limit";
  }
  return "unknown";
}

std::string_view to_string(Objective objective) {
  switch (objective) {
    case Objective::kTime:
      return "time";
    case Objective::kOverlap:
      return "overlap";
    case Objective::kEnergy:
      return "energy";
  }
  return "unknown";
}

double cost_by(const Cost& cost, Objective objective) {
  if (objective == Objective::kEnergy) return cost.joules.value_or(-1);
  return objective == Objective::kOverlap ? cost.overlapped : cost.seconds;
}

std::string to_json(const Problem& problem, const Plan& plan) {
  Json j;
  j["format"] = kFormat;
  j["version"] = 1;
  if (!plan.problem_sha256.empty()) j["problem_sha256"] = plan.problem_sha256;
  j["planner"] = plan.planner;
  j["status"] = to_string(plan.status);
  if (!plan.stopped_by.empty()) j["stopped_by"] = plan.stopped_by;
  j["objective"] = to_string(plan.objective);
  j["budgets"] = budgets_json(problem, plan);
  if (!plan.steps.empty()) {
    j["cost"] = cost_json(plan.cost);
    j["peak"] = per_device(problem, plan.peak);
  }
  j["lower_bound"] = plan.lower_bound ? bound_json(*plan.lower_bound, plan.objective) : Json(nullptr);
  j["gap"] = plan.gap ? Json(*plan.gap) : Json(nullptr);
  if (plan.infeasible) j["infeasible"] = infeasible_json(problem, *plan.infeasible);
  j["seed"] = plan.seed;
  j["options"] = Json::object();
  for (const auto& [name, value] : plan.options) j["options"][name] = value;
  j["seconds_spent"] = plan.seconds_spent;
  j["steps"] = Json::array();
  for (const Step& s : plan.steps) j["steps"].push_back(std::visit(StepJson{problem}, s));
  if (plan.layout) j["layout"] = layout_json(problem, *plan.layout);
  return json_text(j);
}

Plan plan_from_json(const Problem& problem, std::string_view text, std::string_view place) {
  const Json json = parse_json(text, place);
  const JsonReader root(json, std::string(place));
  return Reader(problem, root).run();
}

}  // namespace neaptide::plan
