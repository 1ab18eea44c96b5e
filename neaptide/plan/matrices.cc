#include "neaptide/plan/matrices.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/json.hpp"

namespace neaptide::plan {
namespace {

class Reading {
 public:
  Reading(const Problem& problem, const std::vector<Step>& steps)
      : p_(problem),
        column_(problem.ops.size(), -1),
        writer_(problem.buffers.size(), -1),
        held_(problem.devices.size()) {
    for (const Step& s : steps) {
      const auto* c = std::get_if<Compute>(&s);
      if (c == nullptr || column_[c->op.index()] >= 0) continue;
      column_[c->op.index()] = static_cast<int>(out_.ops.size());
      out_.ops.push_back(c->op);
    }
  }

  Matrices run(const std::vector<Step>& steps) {
    bool begins = true;  // the next run begins a stage
    for (const Step& s : steps) {
      if (const auto* c = std::get_if<Compute>(&s)) {
        if (begins) begin_stage();
        const int column = column_[c->op.index()];
        begins = compute(*c, column);
      } else if (const auto* k = std::get_if<Copy>(&s)) {
        hold(k->to, k->buffer);
      } else if (const auto* f = std::get_if<Free>(&s)) {
        drop(f->device, f->buffer);
      }
    }
    return std::move(out_);
  }

 private:
  void begin_stage() {
    out_.runs.emplace_back();
    out_.freed.emplace_back();
    std::set<int> anywhere;
    IdVector<DeviceTag, std::vector<int>> by_device(p_.devices.size());
    for (std::size_t d = 0; d < p_.devices.size(); ++d) {
      std::set<int> here;
      for (const BufferId b : held_[d]) here.insert(writer_[b.index()]);
      by_device[DeviceId(d)].assign(here.begin(), here.end());
      anywhere.insert(here.begin(), here.end());
    }
    out_.held.emplace_back(anywhere.begin(), anywhere.end());
    out_.held_on.push_back(std::move(by_device));
  }

  /// True when this was the op's first run: the stage ends with it.
  bool compute(const Compute& c, int column) {
    const Op& op = p_.ops[c.op];
    const Impl& impl = op.impls[static_cast<std::size_t>(c.impl)];
    const bool first = column == n_first_;
    if (first) ++n_first_;
    out_.runs.back().push_back(column);
    last_run_ = column;
    for (const InPlace& pair : impl.in_place) drop(impl.device, pair.in);
    for (const BufferId b : impl.writes) {
      for (std::size_t d = 0; d < held_.size() && writer_[b.index()] != column; ++d) drop(DeviceId(d), b);
      writer_[b.index()] = column;
      hold(impl.device, b);
    }
    return first;
  }

  void hold(DeviceId d, BufferId b) {
    const int column = writer_[b.index()];
    if (column >= 0 && held_[d.index()].insert(b).second) ++n_held_[column];
  }

  void drop(DeviceId d, BufferId b) {
    if (held_[d.index()].erase(b) == 0) return;
    const int column = writer_[b.index()];
    if (--n_held_[column] == 0) out_.freed.back().emplace_back(column, last_run_);
  }

  const Problem& p_;
  std::vector<int> column_;               // by op; -1: never runs
  std::vector<int> writer_;               // by buffer: column of its last writer; -1: none, or the value of its home
  std::vector<std::set<BufferId>> held_;  // by device: buffers with a value that some op made
  std::map<int, int> n_held_;             // by column: how many places hold one of its values
  int n_first_ = 0, last_run_ = -1;
  Matrices out_;
};

}  // namespace

Matrices matrices_of(const Problem& problem, const std::vector<Step>& steps) {
  return Reading(problem, steps).run(steps);
}

std::string to_json(const Problem& problem, const Matrices& m) {
  Json j;
  j["format"] = "neaptide.matrices";
  j["version"] = 1;
  j["ops"] = Json::array();
  for (const OpId op : m.ops) j["ops"].push_back(problem.ops[op].name);
  j["R"] = m.runs;
  j["S"] = m.held;
  j["F"] = m.freed;
  if (problem.devices.size() < 2) return json_text(j);
  for (std::size_t d = 0; d < problem.devices.size(); ++d) {
    Json rows = Json::array();
    for (const auto& stage : m.held_on) rows.push_back(stage[DeviceId(d)]);
    j["S_on"][problem.devices[DeviceId(d)].name] = std::move(rows);
  }
  return json_text(j);
}

std::vector<std::vector<Cell>> picture(const Matrices& m, int most) {
  ensure(most > 0, "a picture has at least one column");
  const int n = static_cast<int>(m.ops.size());
  const int fold = std::max(1, (n + most - 1) / most), side = (n + fold - 1) / fold;
  const auto cells = static_cast<std::size_t>(side);
  const int n_stages = static_cast<int>(m.runs.size());
  const auto rows = static_cast<std::size_t>((n_stages + fold - 1) / fold);
  std::vector<std::vector<Cell>> out(rows, std::vector<Cell>(cells, Cell::kNothing));
  std::vector<std::vector<int>> n_held(rows, std::vector<int>(cells, 0));
  for (int t = 0; t < n_stages; ++t) {
    const auto row = static_cast<std::size_t>(t / fold), stage = static_cast<std::size_t>(t);
    const auto mark = [&](int column, Cell cell) {
      Cell& at = out[row][static_cast<std::size_t>(column / fold)];
      at = std::max(at, cell);
    };
    for (const int i : m.held[stage]) {
      if (2 * ++n_held[row][static_cast<std::size_t>(i / fold)] >= fold * fold) mark(i, Cell::kHeld);
    }
    for (const auto& [i, after] : m.freed[stage]) mark(i, Cell::kFreed);
    for (const int i : m.runs[stage]) mark(i, i == t ? Cell::kFirst : Cell::kAgain);
  }
  return out;
}

}  // namespace neaptide::plan
