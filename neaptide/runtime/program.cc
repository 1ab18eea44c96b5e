#include "neaptide/runtime/program.hpp"

#include <chrono>
#include <cstring>
#include <map>
#include <optional>

#include "neaptide/runtime/allocations.hpp"
#include "neaptide/runtime/arena.hpp"
#include "neaptide/runtime/ledger.hpp"

namespace neaptide::runtime {
namespace {

using Clock = std::chrono::steady_clock;
using graph::ValueId;
using plan::BufferId;

struct Block {
  Bytes offset = 0, bytes = 0;
};

struct HandOver {
  Bytes offset = 0, before = 0, after = 0;
};

/// A step with everything bound: executing it looks nothing up.
struct BoundStep {
  std::string name;
  Kernel* kernel = nullptr;  // null: a free
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  Block workspace;
  std::vector<Block> binds;     // blocks that begin with this step
  std::vector<HandOver> takes;  // in place: after the kernel
  std::vector<Block> releases;  // frees
};

}  // namespace

struct Program::State {
  State(const graph::Graph& g, Backend& b, const ProgramOptions& o, Bytes arena_bytes, std::size_t n_blocks)
      : values(g.values), backend(&b), options(o), arena(arena_bytes, o.strict), ledger(n_blocks, o.strict) {}

  IdVector<struct graph::ValueTag, graph::Value> values;
  Backend* backend;
  ProgramOptions options;
  Arena arena;
  Ledger ledger;
  Bytes planned_peak = 0;
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::vector<BoundStep> steps;
  std::vector<Block> homes;      // bound before step 0, never released
  std::vector<Block> left_over;  // held at the end beside the homes; released before the next run
  IdVector<struct graph::ValueTag, std::optional<Block>> at_rest;  // where a value lies between steps
  std::vector<StepEvent> events;
  bool ran = false;

  void begin_block(const Block& b);
  void end_block(const Block& b);
  Bytes run_step(const BoundStep& step);  // returns the bytes held while it ran
};

namespace {

/// Follows the plan once, at compile time, and writes down what every step binds and releases.
class Compiler {
 public:
  Compiler(const graph::Graph& graph, const graph::OpSet& ops, const lower::Lowered& lowered,
           const cost::CostTable& table, const plan::Plan& plan, Backend& backend, Program::State& out);
  void run();

 private:
  Block block_at(const std::string& name, int step, Bytes bytes) const;
  void compute(const plan::Compute& step, int index, BoundStep& out);
  Kernel* kernel_for(const plan::Compute& step, const graph::NodeView& node, const graph::ImplSpec& spec);
  void* address(BufferId buffer) const;
  void rest();

  const graph::Graph& graph_;
  const graph::OpSet& ops_;
  const lower::Lowered& lowered_;
  const plan::Problem& problem_;
  const cost::CostTable& table_;
  const plan::Plan& plan_;
  Backend& backend_;
  Program::State& out_;
  plan::DeviceId device_{std::size_t{0}};
  std::map<std::pair<std::string, int>, Bytes> offset_;  // (name, first step) -> offset
  IdVector<struct plan::BufferTag, std::optional<Block>> resident_;
  std::map<std::pair<plan::OpId, int>, Kernel*> kernels_;
};

Compiler::Compiler(const graph::Graph& graph, const graph::OpSet& ops, const lower::Lowered& lowered,
                   const cost::CostTable& table, const plan::Plan& plan, Backend& backend, Program::State& out)
    : graph_(graph),
      ops_(ops),
      lowered_(lowered),
      problem_(lowered.problem),
      table_(table),
      plan_(plan),
      backend_(backend),
      out_(out),
      resident_(lowered.problem.buffers.size()) {
  for (const plan::Placement& p : plan.layout->blocks) offset_[{p.name, p.begin}] = p.offset;
}

Block Compiler::block_at(const std::string& name, int step, Bytes bytes) const {
  const auto found = offset_.find({name, step});
  if (found == offset_.end()) throw InternalError("the layout has no block '{}' that begins at step {}", name, step);
  if (found->second + bytes > out_.arena.bytes()) throw InternalError("block '{}' lies past the arena's end", name);
  return {.offset = found->second, .bytes = bytes};
}

void* Compiler::address(BufferId buffer) const {
  if (!resident_[buffer])
    throw InternalError("the plan uses '{}', which is not resident", problem_.buffers[buffer].name);
  return out_.arena.at(resident_[buffer]->offset);
}

Kernel* Compiler::kernel_for(const plan::Compute& step, const graph::NodeView& node, const graph::ImplSpec& spec) {
  Kernel*& known = kernels_[{step.op, step.impl}];
  if (known == nullptr) {
    out_.kernels.push_back(backend_.make_kernel(node, spec));
    known = out_.kernels.back().get();
  }
  return known;
}

void Compiler::compute(const plan::Compute& step, int index, BoundStep& out) {
  const plan::Op& op = problem_.ops[step.op];
  const plan::Impl& impl = op.impls.at(static_cast<std::size_t>(step.impl));
  const graph::NodeId node_id = lowered_.node_of_op[step.op];
  const graph::NodeView node(graph_, graph_.nodes[node_id]);
  const int row = lowered_.cost_of_impl[step.op].at(static_cast<std::size_t>(step.impl));
  const graph::ImplSpec& spec = table_[node_id].impls.at(static_cast<std::size_t>(row)).spec;
  out.name = fmt::format("{} ({})", op.name, impl.name);
  out.kernel = kernel_for(step, node, spec);
  out.inputs.assign(node.n_inputs(), nullptr);
  out.outputs.assign(node.n_outputs(), nullptr);
  for (const int i : spec.reads) {
    const auto at = static_cast<std::size_t>(i);
    out.inputs[at] = address(lowered_.buffer_of_value[node.node().inputs.at(at)]);
  }
  for (const plan::InPlace& pair : impl.in_place) {
    const Block from = *resident_[pair.in];
    const Bytes after = problem_.size_on(pair.out, device_);
    out.takes.push_back({.offset = from.offset, .before = from.bytes, .after = after});
    resident_[pair.out] = Block{.offset = from.offset, .bytes = after};
    resident_[pair.in].reset();
  }
  for (const BufferId b : impl.writes) {
    if (resident_[b]) continue;
    resident_[b] = block_at(problem_.buffers[b].name, index, problem_.size_on(b, device_));
    out.binds.push_back(*resident_[b]);
  }
  for (const int o : spec.writes) {
    const auto at = static_cast<std::size_t>(o);
    out.outputs[at] = address(lowered_.buffer_of_value[node.node().outputs.at(at)]);
  }
  if (impl.workspace > 0)
    out.workspace = block_at(op.name + "/workspace", index, problem_.rounded(impl.workspace, device_));
}

void Compiler::run() {
  for (std::size_t b = 0; b < problem_.buffers.size(); ++b) {
    const plan::Buffer& buffer = problem_.buffers[BufferId(b)];
    if (!buffer.home) continue;
    resident_[BufferId(b)] = block_at(buffer.name, 0, problem_.size_on(BufferId(b), device_));
    out_.homes.push_back(*resident_[BufferId(b)]);
  }
  for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
    BoundStep bound;
    if (const auto* c = std::get_if<plan::Compute>(&plan_.steps[s])) {
      compute(*c, static_cast<int>(s), bound);
    } else if (const auto* f = std::get_if<plan::Free>(&plan_.steps[s])) {
      bound.name = "free " + problem_.buffers[f->buffer].name;
      address(f->buffer);
      bound.releases.push_back(*resident_[f->buffer]);
      resident_[f->buffer].reset();
    } else {
      throw InternalError("step {} is a copy; a program of one device has none", s);
    }
    out_.steps.push_back(std::move(bound));
  }
  rest();
}

void Compiler::rest() {
  out_.at_rest.resize(graph_.values.size());
  for (std::size_t b = 0; b < problem_.buffers.size(); ++b) {
    if (resident_[BufferId(b)] && !problem_.buffers[BufferId(b)].home)
      out_.left_over.push_back(*resident_[BufferId(b)]);
  }
  for (std::size_t v = 0; v < graph_.values.size(); ++v) {
    const BufferId b = lowered_.buffer_of_value[ValueId(v)];
    if (b.valid()) out_.at_rest[ValueId(v)] = resident_[b];
  }
}

}  // namespace

static Block resting_block(const Program::State& state, ValueId value, std::size_t plain_bytes) {
  const graph::Value& v = state.values[value];
  if (!state.at_rest[value]) throw InternalError("'{}' is not resident between steps", v.name);
  if (static_cast<Bytes>(plain_bytes) != v.type.bytes())
    throw UserError("'{}' is {} and takes {} bytes, not {}", v.name, to_string(v.type), v.type.bytes(), plain_bytes);
  return *state.at_rest[value];
}

void Program::State::begin_block(const Block& b) {
  ledger.bind(b.offset, b.bytes);
  if (options.strict) arena.restore(b.offset, b.bytes);
}

void Program::State::end_block(const Block& b) {
  ledger.release(b.offset, b.bytes);
  if (options.strict) arena.poison(b.offset, b.bytes);
}

Bytes Program::State::run_step(const BoundStep& step) {
  for (const Block& b : step.binds) begin_block(b);
  if (step.workspace.bytes > 0) begin_block(step.workspace);
  const Bytes held = ledger.held();
  if (step.kernel != nullptr) {
    void* workspace = step.workspace.bytes > 0 ? arena.at(step.workspace.offset) : nullptr;
    step.kernel->run({.inputs = step.inputs, .outputs = step.outputs, .workspace = workspace});
  }
  if (step.workspace.bytes > 0) end_block(step.workspace);
  for (const HandOver& h : step.takes) ledger.hand_over(h.offset, h.before, h.after);
  for (const Block& b : step.releases) end_block(b);
  return held;
}

Program Program::compile(const graph::Graph& graph, const graph::OpSet& ops, const lower::Lowered& lowered,
                         const cost::CostTable& table, const plan::Plan& plan, Backend& backend,
                         const ProgramOptions& options) {
  if (lowered.problem.devices.size() != 1)
    throw InternalError("the plan is for {} devices; a program runs on one", lowered.problem.devices.size());
  if (!plan.layout) throw InternalError("the plan of '{}' has no layout", graph.name);
  const plan::DeviceId device(std::size_t{0});
  auto state = std::make_unique<State>(graph, backend, options, plan.layout->top[device], plan.layout->blocks.size());
  state->planned_peak = plan.peak[device];
  Compiler(graph, ops, lowered, table, plan, backend, *state).run();
  if (options.strict) state->arena.poison(0, state->arena.bytes());
  for (const Block& b : state->homes) state->begin_block(b);
  if (options.strict)
    for (const Block& b : state->homes) std::memset(state->arena.at(b.offset), 0, static_cast<std::size_t>(b.bytes));
  state->events.resize(options.trace ? state->steps.size() : 0);
  return Program(std::move(state));
}

Program::Program(std::unique_ptr<State> state) : state_(std::move(state)) {}
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;
Program::~Program() = default;

void Program::write(ValueId value, std::span<const std::byte> plain) {
  const Block block = resting_block(*state_, value, plain.size());
  state_->backend->from_plain(state_->values[value], plain.data(), state_->arena.at(block.offset));
}

void Program::read(ValueId value, std::span<std::byte> plain) const {
  const Block block = resting_block(*state_, value, plain.size());
  state_->backend->to_plain(state_->values[value], state_->arena.at(block.offset), plain.data());
}

graph::Tensor Program::read(ValueId value) const {
  std::vector<std::byte> bytes(static_cast<std::size_t>(state_->values[value].type.bytes()));
  read(value, bytes);
  return graph::make_tensor(state_->values[value].type, bytes);
}

StepResult Program::run() {
  State& s = *state_;
  if (s.ran)
    for (const Block& b : s.left_over) s.end_block(b);
  s.ran = true;
  s.ledger.start();
  StepResult result;
  const auto start = Clock::now();
  const auto now = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  {
    std::optional<AllocationProbe> probe;
    if (s.options.strict) probe.emplace();
    for (std::size_t i = 0; i < s.steps.size(); ++i) {
      const Seconds begin = s.options.trace ? now() : 0;
      const Bytes held = s.run_step(s.steps[i]);
      if (s.options.trace) s.events[i] = {static_cast<int>(i), begin, now(), held};
    }
    if (probe) {
      result.allocations = probe->ours();
      result.library_allocations = probe->library();
    }
  }
  result.seconds = now();
  result.measured_peak = s.ledger.peak();
  if (result.measured_peak != s.planned_peak)
    throw PeakMismatch("the plan's peak is {} bytes and the measured one {} bytes", s.planned_peak,
                       result.measured_peak);
  if (result.allocations != 0)
    throw InternalError("{} heap allocations on the step path; there must be none", result.allocations);
  return result;
}

Bytes Program::planned_peak() const { return state_->planned_peak; }
Bytes Program::arena_bytes() const { return state_->arena.bytes(); }
const std::vector<StepEvent>& Program::trace() const { return state_->events; }
std::string Program::step_name(int step) const { return state_->steps.at(static_cast<std::size_t>(step)).name; }
bool Program::huge_pages() const { return state_->arena.huge_pages(); }

}  // namespace neaptide::runtime
