#include "neaptide/plan/planners/neaptide_schedule.hpp"

#include <algorithm>
#include <limits>

#include "neaptide/base/errors.hpp"

namespace neaptide::plan::tide {

Schedule::Schedule(const Model& model, const Sequence& sequence)
    : model_(&model),
      time_(model.n_tracks),
      events_(model.cells.size()),
      runs_(model.problem->ops.size()),
      end_device_(model.values.size(), -1),
      scratch_(model.n_tracks) {
  action_ = {-1, -1};
  alive_ = {true, true};
  time_.push_back(0);
  const std::vector<int>& actions = sequence.actions;
  for (const int a : actions) {
    const int node = static_cast<int>(action_.size());
    action_.push_back(a);
    alive_.push_back(true);
    time_.push_back(node);
  }
  time_.push_back(1);
  for (std::size_t c = 0; c < model_->cells.size(); ++c) {
    if (model_->cells[c].at_start) add_event(static_cast<int>(c), source(), true);
    if (model_->cells[c].at_end) add_event(static_cast<int>(c), sink(), false);
  }
  for (std::size_t i = 0; i < actions.size(); ++i) {
    link(static_cast<int>(i) + 2);
    seconds_ += model_->actions[actions[i]].seconds;
  }
  for (std::size_t v = 0; v < model_->values.size(); ++v) {
    if (!model_->values[v].keep_anywhere) continue;
    int device = 0;
    for (int d = 0; d < model_->n_devices; ++d) {
      if (!events_[model_->cell(static_cast<int>(v), d)].empty()) device = d;
    }
    if (v < sequence.ends.size() && sequence.ends[v] >= 0) device = sequence.ends[v];
    end_device_[v] = device;
    add_event(model_->cell(static_cast<int>(v), device), sink(), false);
  }
}

Sequence Schedule::sequence() const {
  Sequence out;
  for (const int node : time_.nodes()) {
    if (action_[node] >= 0) out.actions.push_back(action_[node]);
  }
  out.ends = end_device_;
  return out;
}

int Schedule::new_node(int action) {
  if (free_nodes_.empty()) {
    action_.push_back(action);
    alive_.push_back(false);
    return static_cast<int>(action_.size()) - 1;
  }
  const int node = free_nodes_.back();
  free_nodes_.pop_back();
  action_[node] = action;
  return node;
}

int Schedule::find(int cell, int node) const {
  const auto& list = events_[cell];
  if (list.size() <= 6) {
    std::size_t i = 0;
    while (i < list.size() && time_.before(list[i].node, node)) ++i;
    return static_cast<int>(i);
  }
  const auto it =
      std::partition_point(list.begin(), list.end(), [&](const Event& e) { return time_.before(e.node, node); });
  return static_cast<int>(it - list.begin());
}

// The load changes by the part of the residences that only exists with this event.
void Schedule::adjust(int cell, int node, bool write, bool adding) {
  const Cell& c = model_->cells[cell];
  if (c.size == 0) return;
  const auto& list = events_[cell];
  const int i = find(cell, node);  // the event itself when removing has been erased before
  const int n = static_cast<int>(list.size());
  int w = i - 1;
  while (w >= 0 && !list[w].write) --w;
  const bool reads_follow = i < n && !list[i].write;
  const Bytes size = adding ? c.size : -c.size;
  ++work_;
  if (!write) {
    if (w < 0 || reads_follow) return;
    time_.add(c.track, time_.next(list[i - 1].node), node, size);
    return;
  }
  if (!reads_follow) {
    time_.add(c.track, node, node, size);
  } else if (w >= 0) {
    const int begin = time_.next(list[i - 1].node);
    if (begin != node) time_.add(c.track, begin, time_.previous(node), -size);
  } else {
    int r = i;
    while (r + 1 < n && !list[r + 1].write) ++r;
    time_.add(c.track, node, list[r].node, size);
  }
}

void Schedule::add_event(int cell, int node, bool write) {
  adjust(cell, node, write, true);
  auto& list = events_[cell];
  list.insert(list.begin() + find(cell, node), Event{node, write});
}

void Schedule::remove_event(int cell, int node, bool write) {
  auto& list = events_[cell];
  list.erase(list.begin() + find(cell, node));
  adjust(cell, node, write, false);
}

void Schedule::link(int node) {
  const Action& a = model_->actions[action_[node]];
  for (const int c : a.reads) add_event(c, node, false);
  for (const int c : a.writes) add_event(c, node, true);
  if (a.extra != 0) {
    const int track = model_->cells[model_->cell(0, a.device)].track;
    time_.add(track, node, node, a.extra);
  }
  if (a.op >= 0) runs_[a.op].push_back(node);
}

void Schedule::unlink(int node) {
  const Action& a = model_->actions[action_[node]];
  for (const int c : a.writes) remove_event(c, node, true);
  for (const int c : a.reads) remove_event(c, node, false);
  if (a.extra != 0) {
    const int track = model_->cells[model_->cell(0, a.device)].track;
    time_.add(track, node, node, -a.extra);
  }
  if (a.op >= 0) {
    auto& list = runs_[a.op];
    list.erase(std::find(list.begin(), list.end(), node));
  }
}

Bytes Schedule::load_before(int track, int node) const {
  Bytes load = time_.load(track, node);
  if (action_[node] < 0) return load;
  const Action& a = model_->actions[action_[node]];
  for (const int c : a.writes) {
    if (model_->cells[c].track == track) load -= model_->cells[c].size;
  }
  if (a.extra != 0 && model_->cells[model_->cell(0, a.device)].track == track) load -= a.extra;
  return load;
}

void Schedule::place(int node, int before) {
  for (int t = 0; t < model_->n_tracks; ++t) scratch_[t] = load_before(t, before);
  time_.insert_before(node, before, scratch_);
  link(node);
  alive_[node] = true;
  seconds_ += model_->actions[action_[node]].seconds;
}

void Schedule::drop(int node) {
  alive_[node] = false;
  unlink(node);
  seconds_ -= model_->actions[action_[node]].seconds;
  time_.erase(node);
}

int Schedule::insert(int action, int before) {
  const int node = new_node(action);
  journal_.push_back({Kind::kInsert, node, action, before, seconds_});
  place(node, before);
  return node;
}

void Schedule::remove(int node) {
  journal_.push_back({Kind::kRemove, node, action_[node], time_.next(node), seconds_});
  drop(node);
}

void Schedule::swap(int node, int action) {
  journal_.push_back({Kind::kSwap, node, action_[node], -1, seconds_});
  unlink(node);
  seconds_ += model_->actions[action].seconds - model_->actions[action_[node]].seconds;
  action_[node] = action;
  link(node);
}

void Schedule::move(int node, int before) {
  remove(node);
  journal_.push_back({Kind::kInsert, node, action_[node], before, seconds_});
  place(node, before);
}

void Schedule::end_on(int value, int device) {
  journal_.push_back({Kind::kEnd, value, end_device_[value], device, seconds_});
  remove_event(model_->cell(value, end_device_[value]), sink(), false);
  end_device_[value] = device;
  add_event(model_->cell(value, device), sink(), false);
}

void Schedule::undo(std::size_t mark) {
  while (journal_.size() > mark) {
    const Change c = journal_.back();
    journal_.pop_back();
    switch (c.kind) {
      case Kind::kInsert:
        drop(c.node);
        if (journal_.size() <= mark || journal_.back().kind != Kind::kRemove || journal_.back().node != c.node) {
          free_nodes_.push_back(c.node);
        }
        break;
      case Kind::kRemove:
        place(c.node, c.next);
        break;
      case Kind::kSwap:
        unlink(c.node);
        action_[c.node] = c.action;
        link(c.node);
        break;
      case Kind::kEnd:
        remove_event(model_->cell(c.node, c.next), sink(), false);
        end_device_[c.node] = c.action;
        add_event(model_->cell(c.node, c.action), sink(), false);
        break;
    }
    seconds_ = c.seconds;
  }
}

void Schedule::commit() {
  for (std::size_t i = 0; i < journal_.size(); ++i) {
    if (journal_[i].kind != Kind::kRemove) continue;
    const bool moved =
        i + 1 < journal_.size() && journal_[i + 1].kind == Kind::kInsert && journal_[i + 1].node == journal_[i].node;
    if (!moved) free_nodes_.push_back(journal_[i].node);
  }
  journal_.clear();
}

std::vector<int> Schedule::changed_since(std::size_t mark) const {
  std::vector<int> out;
  for (std::size_t i = mark; i < journal_.size(); ++i) {
    const Change& c = journal_[i];
    if (c.kind == Kind::kInsert || c.kind == Kind::kSwap) out.push_back(c.node);
    if (c.kind == Kind::kRemove) std::erase(out, c.node);
  }
  return out;
}

bool Schedule::consumes(int node, int cell) const {
  if (action_[node] < 0) return false;
  for (const auto& [in, out] : model_->actions[action_[node]].takes_over) {
    if (in == cell) return true;
  }
  return false;
}

bool Schedule::cell_sound(int cell) const {
  const auto& list = events_[cell];
  bool written = false, consumed = false;
  for (const Event& e : list) {
    if (e.write) {
      written = true;
      consumed = false;
    } else if (!written || consumed) {
      return false;
    } else {
      consumed = consumes(e.node, cell);
    }
  }
  if (list.empty()) return true;
  const int killer = model_->values[model_->cells[cell].value].overwritten_by;
  if (killer < 0 || runs_[killer].empty()) return true;
  const int last = list.back().node;
  const int kill = runs_[killer][0];
  return last == kill || time_.before(last, kill);
}

bool Schedule::sound_since(std::size_t mark) {
  const auto check = [&](int action) {
    const Action& a = model_->actions[action];
    for (const int c : a.reads) {
      if (!cell_sound(c)) return false;
    }
    for (const int c : a.writes) {
      if (!cell_sound(c)) return false;
      const Value& v = model_->values[model_->cells[c].value];
      if (v.version == 0) continue;
      for (int d = 0; d < model_->n_devices; ++d) {  // the old version's events must come before
        if (!cell_sound(model_->cell(model_->cells[c].value - 1, d))) return false;
      }
    }
    return true;
  };
  for (std::size_t i = mark; i < journal_.size(); ++i) {
    const Change& c = journal_[i];
    if (c.kind == Kind::kEnd) {
      if (!cell_sound(model_->cell(c.node, end_device_[c.node]))) return false;
      continue;
    }
    if (!check(c.action)) return false;
    if (c.kind == Kind::kSwap && !check(action_[c.node])) return false;
  }
  return true;
}

bool Schedule::sound() {
  for (std::size_t c = 0; c < events_.size(); ++c) {
    if (!cell_sound(static_cast<int>(c))) return false;
  }
  return true;
}

int Schedule::supplier(int cell, int node) const {
  const auto& list = events_[cell];
  for (int i = find(cell, node) - 1; i >= 0; --i) {
    if (list[i].write) return list[i].node;
  }
  return -1;
}

bool Schedule::live_before(int cell, int node) const {
  const auto& list = events_[cell];
  const int i = find(cell, node);
  if (i == static_cast<int>(list.size()) || list[i].write) return false;
  for (int w = i - 1; w >= 0; --w) {
    if (list[w].write) return true;
  }
  return false;
}

int Schedule::extendable_from(int cell, int node) const {
  const auto& list = events_[cell];
  const int i = find(cell, node) - 1;
  if (i < 0 || (!list[i].write && consumes(list[i].node, cell))) return -1;
  for (int w = i; w >= 0; --w) {
    if (list[w].write) return list[i].node;
  }
  return -1;
}

Schedule::Presence Schedule::presence(int cell, int node) const {
  const auto& list = events_[cell];
  const int i = find(cell, node);
  int w = i - 1;
  while (w >= 0 && !list[w].write) --w;
  if (w < 0) return {};
  if (i < static_cast<int>(list.size()) && !list[i].write) return {true, list[i - 1].node};
  if (!list[i - 1].write && consumes(list[i - 1].node, cell)) return {false, -1, list[i - 1].node};
  return {false, list[i - 1].node};
}

bool Schedule::idle_at(int cell, int node, Gap* gap) const {
  const auto& list = events_[cell];
  if (list.size() < 2) return false;
  const int i = find(cell, node);
  if (i == 0 || i == static_cast<int>(list.size()) || list[i].write || list[i].node == node) return false;
  *gap = {cell, list[i - 1].node, list[i].node};
  return true;
}

int Schedule::last_read(int cell, int node) const {
  const auto& list = events_[cell];
  int last = -1, i = find(cell, node);
  if (i < static_cast<int>(list.size()) && list[i].node == node) ++i;
  for (; i < static_cast<int>(list.size()) && !list[i].write; ++i) last = list[i].node;
  return last;
}

Gap Schedule::until_written(int cell, int node) const {
  const auto& list = events_[cell];
  Gap gap{cell, node, -1};
  for (std::size_t i = static_cast<std::size_t>(find(cell, node)); i < list.size(); ++i) {
    if (list[i].write && list[i].node != node) {
      gap.to = list[i].node;
      break;
    }
    gap.from = list[i].node;
  }
  return gap;
}

Bytes Schedule::excess() const {
  Bytes worst = std::numeric_limits<Bytes>::min();
  for (int t = 0; t < model_->n_tracks; ++t) worst = std::max(worst, time_.highest(t) - model_->limit[t]);
  return model_->n_tracks == 0 ? 0 : worst;
}

}  // namespace neaptide::plan::tide
