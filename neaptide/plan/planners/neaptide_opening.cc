#include "neaptide/plan/planners/neaptide_search.hpp"

#include <algorithm>

#include "neaptide/base/errors.hpp"

namespace neaptide::plan::tide {
namespace {

// Removes what nothing reads, last first.
void remove_useless(Schedule* s) {
  auto nodes = s->time().nodes();
  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
    const int action = s->action(*it);
    if (action < 0) continue;
    const Action& a = s->model().actions[action];
    if (a.once) continue;
    const bool used = std::any_of(a.writes.begin(), a.writes.end(), [&](int c) { return s->last_read(c, *it) >= 0; });
    if (!used) s->remove(*it);
  }
  s->commit();
}

// The device where everything starts: no budget, else the largest.
int main_device(const Model& m) {
  int best = 0;
  const auto room = [&](int d) {
    const auto& budget = m.problem->devices[DeviceId(d)].budget;
    return budget ? static_cast<double>(*budget) : 1e300;
  };
  std::vector<int> ops(m.n_devices);
  for (const auto& list : m.op_actions) {
    for (const int a : list) ++ops[m.actions[a].device];
  }
  const auto worth = [&](int d) { return ops[d] == 0 ? -1.0 : room(d); };
  for (int d = 1; d < m.n_devices; ++d) {
    if (worth(d) > worth(best)) best = d;
  }
  return best;
}

class Starter {
 public:
  explicit Starter(const Model& m)
      : m_(m), written_(m.cells.size()), busy_(m.cells.size()), chosen_(m.problem->ops.size(), -1) {
    for (std::size_t c = 0; c < m.cells.size(); ++c) written_[c] = m.cells[c].at_start;
  }

  std::vector<int> run() {
    const int home = main_device(m_);
    for (const OpId op : m_.problem->order) {
      std::vector<int> list = m_.op_actions[op.index()];
      std::stable_sort(list.begin(), list.end(), [&](int x, int y) {
        const Action &a = m_.actions[x], &b = m_.actions[y];
        if (a.takes_over.empty() != b.takes_over.empty()) return a.takes_over.empty();
        if ((a.device == home) != (b.device == home)) return a.device == home;
        return a.seconds < b.seconds;
      });
      if (!choose(list))
        throw UserError("op '{}' cannot run in the order of the problem: no implementation of it finds what it reads",
                        m_.problem->ops[op].name);
    }
    append_ends();
    return sequence_;
  }

 private:
  // What takes nothing in place comes first: another reader may follow. Then what fits on its device beside nothing
  // else, if need be with copies: no repair could make another one fit.
  bool choose(const std::vector<int>& list) {
    for (const bool consuming : {false, true}) {
      for (const bool fitting : {true, false}) {
        for (const bool really : {false, true}) {
          for (const int a : list) {
            if (m_.actions[a].takes_over.empty() == consuming || fits_alone(m_.actions[a]) != fitting) continue;
            const auto& reads = m_.actions[a].reads;
            const auto has = [&](int c) { return really ? supply(c, false) : written_[c] != 0; };
            if (!std::all_of(reads.begin(), reads.end(), has)) continue;
            for (const int c : reads) supply(c, true);
            append(a);
            return true;
          }
        }
      }
    }
    return false;
  }

  bool fits_alone(const Action& a) const {
    const int track = m_.cells[m_.cell(0, a.device)].track;
    if (track < 0) return true;
    Bytes bytes = a.extra;
    for (const auto* list : {&a.reads, &a.writes}) {
      for (const int c : *list) bytes += m_.cells[c].size;
    }
    return bytes <= m_.limit[track];
  }

  void append(int a) {
    if (m_.actions[a].op >= 0) chosen_[m_.actions[a].op] = a;
    sequence_.push_back(a);
    for (const auto& [in, out] : m_.actions[a].takes_over) written_[in] = false;
    for (const int c : m_.actions[a].writes) written_[c] = true;
  }

  int richer_run(int cell) const {
    for (const int way : m_.ways[cell]) {
      const int chosen = chosen_[m_.actions[way].op];
      if (chosen < 0) continue;
      const auto &now = m_.actions[chosen].writes, &then = m_.actions[way].writes;
      if (std::find(now.begin(), now.end(), cell) != now.end()) continue;  // it was taken in place since
      const auto& reads = m_.actions[way].reads;
      const bool covers = std::all_of(now.begin(), now.end(),
                                      [&](int c) { return std::find(then.begin(), then.end(), c) != then.end(); });
      if (covers && std::all_of(reads.begin(), reads.end(), [&](int c) { return written_[c]; })) return way;
    }
    return -1;
  }

  // Makes the cell be there: by a copy, by an earlier run that writes more, or by running its op again (what was taken
  // in place and is needed again). With `really` false only says whether that can be done.
  bool supply(int cell, bool really) {
    if (written_[cell]) return true;
    if (busy_[cell]) return false;
    busy_[cell] = true;
    const bool good = copy_in(cell, really) || upgrade(cell, really) || repeat(cell, really);
    busy_[cell] = false;
    return good;
  }

  bool copy_in(int cell, bool really) {
    const Cell& c = m_.cells[cell];
    for (int d = 0; d < m_.n_devices; ++d) {
      const int copy = d == c.device ? -1 : m_.copy(c.value, d, c.device);
      if (copy < 0 || !supply(m_.cell(c.value, d), false)) continue;
      if (really) {
        supply(m_.cell(c.value, d), true);
        append(copy);
      }
      return true;
    }
    return false;
  }

  bool upgrade(int cell, bool really) {
    const int way = richer_run(cell);
    if (way < 0 || !really) return way >= 0;
    int& chosen = chosen_[m_.actions[way].op];
    *std::find(sequence_.begin(), sequence_.end(), chosen) = way;
    chosen = way;
    for (const int c : m_.actions[way].writes) written_[c] = true;
    return true;
  }

  bool repeat(int cell, bool really) {
    for (const int way : m_.ways[cell]) {
      const Action& a = m_.actions[way];
      if (a.once || chosen_[a.op] != way) continue;
      if (!std::all_of(a.reads.begin(), a.reads.end(), [&](int c) { return supply(c, false); })) continue;
      if (really) {
        for (const int c : a.reads) supply(c, true);
        append(way);
      }
      return true;
    }
    return false;
  }

  // What must be on its home at the end and was made elsewhere.
  void append_ends() {
    for (std::size_t c = 0; c < m_.cells.size(); ++c) {
      if (!m_.cells[c].at_end || written_[c]) continue;
      ensure(supply(static_cast<int>(c), true), "a kept buffer cannot reach its home");
    }
  }

  const Model& m_;
  std::vector<char> written_, busy_;
  std::vector<int> chosen_;
  std::vector<int> sequence_;
};

}  // namespace

Sequence starting_actions(const Model& model) {
  Schedule s(model, Sequence{Starter(model).run(), {}});
  remove_useless(&s);
  return s.sequence();
}

}  // namespace neaptide::plan::tide
