#include "neaptide/plan/planners/neaptide_start.hpp"

#include "neaptide/base/errors.hpp"

namespace neaptide::plan::tide {
namespace {

/// Follows the versions: only the newest one of a buffer exists (rule 5), so a copy copies that one.
class Reader {
 public:
  explicit Reader(const Model& model)
      : m_(model), newest_(model.problem->buffers.size(), -1), held_(model.values.size() * devices(), 0) {
    out_.ends.assign(m_.values.size(), -1);
    for (std::size_t c = 0; c < m_.cells.size(); ++c) {
      if (m_.cells[c].at_start) hold(static_cast<int>(c));
    }
  }

  void read(const Compute& s) {
    const bool known = s.op.valid() && s.op.index() < m_.op_actions.size() && s.impl >= 0 &&
                       static_cast<std::size_t>(s.impl) < m_.op_actions[s.op.index()].size();
    if (!known) refuse("names an implementation that the problem has not");
    const int action = m_.op_actions[s.op.index()][static_cast<std::size_t>(s.impl)];
    out_.actions.push_back(action);
    for (const auto& [in, out] : m_.actions[action].takes_over) held_[in] = 0;
    for (const int cell : m_.actions[action].writes) hold(cell);
  }

  void read(const Copy& s) {
    const int value = newest(s.buffer), from = s.from.value, to = s.to.value;
    const bool known = value >= 0 && from >= 0 && from < m_.n_devices && to >= 0 && to < m_.n_devices;
    const int action = known ? m_.copy(value, from, to) : -1;
    if (action < 0) refuse("copies what is not there, or over no link");
    out_.actions.push_back(action);
    hold(m_.cell(value, to));
  }

  void read(const Free& s) {
    const int value = newest(s.buffer);
    if (value < 0 || s.device.value < 0 || s.device.value >= m_.n_devices) refuse("frees what is not there");
    held_[m_.cell(value, s.device.value)] = 0;
  }

  Sequence sequence() {
    for (std::size_t v = 0; v < m_.values.size(); ++v) {
      for (int d = 0; d < m_.n_devices && m_.values[v].keep_anywhere; ++d) {
        if (held_[m_.cell(static_cast<int>(v), d)] != 0) out_.ends[v] = d;
      }
    }
    std::vector<int> n_runs(m_.problem->ops.size(), 0);
    for (const int a : out_.actions) {
      if (m_.actions[a].op >= 0) ++n_runs[m_.actions[a].op];
    }
    for (std::size_t o = 0; o < n_runs.size(); ++o) {
      if (m_.problem->ops[OpId(o)].once && n_runs[o] != 1) refuse("does not run once what must run once");
    }
    if (!Schedule(m_, out_).sound()) refuse("reads a value that is not there, or lacks one that must be kept");
    return std::move(out_);
  }

 private:
  std::size_t devices() const { return static_cast<std::size_t>(m_.n_devices); }

  int newest(BufferId buffer) const {
    return buffer.valid() && buffer.index() < newest_.size() ? newest_[buffer.index()] : -1;
  }

  void hold(int cell) {
    const int value = m_.cells[cell].value;
    newest_[m_.values[value].buffer.index()] = value;
    held_[cell] = 1;
  }

  [[noreturn]] static void refuse(const char* why) {
    throw UserError("the plan to start from is none for this problem: it {}", why);
  }

  const Model& m_;
  Sequence out_;
  std::vector<int> newest_;  // by buffer: the value of its newest version
  std::vector<char> held_;   // by cell
};

}  // namespace

Sequence sequence_of(const Model& model, const std::vector<Step>& steps) {
  Reader reader(model);
  for (const Step& step : steps) {
    std::visit([&](const auto& s) { reader.read(s); }, step);
  }
  return reader.sequence();
}

bool first_runs_in_order(const Model& model, const Sequence& sequence) {
  const Problem& p = *model.problem;
  std::vector<int> position(p.ops.size());
  for (std::size_t i = 0; i < p.order.size(); ++i) position[p.order[i].index()] = static_cast<int>(i);
  std::vector<char> ran(p.ops.size());
  int last = -1;
  for (const int action : sequence.actions) {
    const int op = model.actions[static_cast<std::size_t>(action)].op;
    if (op < 0 || ran[static_cast<std::size_t>(op)] != 0) continue;
    ran[static_cast<std::size_t>(op)] = 1;
    if (position[static_cast<std::size_t>(op)] < last) return false;
    last = position[static_cast<std::size_t>(op)];
  }
  return true;
}

}  // namespace neaptide::plan::tide
