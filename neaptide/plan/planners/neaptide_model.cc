#include "neaptide/plan/planners/neaptide_model.hpp"

#include <algorithm>

#include "neaptide/base/errors.hpp"

namespace neaptide::plan::tide {

Model::Model(const Problem& p) : problem(&p), n_devices(static_cast<int>(p.devices.size())) {
  add_values(p);
  add_actions(p);
  if (n_devices > 1) add_copies(p);
  for (Action& a : actions) {
    for (const int c : a.writes) a.closes = a.closes || values[cells[c].value].overwritten_by >= 0;
  }
}

void Model::add_values(const Problem& p) {
  std::vector<int> track_of(p.devices.size(), -1);
  for (int d = 0; d < n_devices; ++d) {
    const Device& device = p.devices[DeviceId(d)];
    if (!device.budget) continue;
    track_of[d] = n_tracks++;
    track_device.push_back(d);
    limit.push_back(*device.budget);
  }
  const Versions v = versions(p);
  value_of_.resize(p.buffers.size());
  for (std::size_t b = 0; b < p.buffers.size(); ++b) {
    const Buffer& buffer = p.buffers[BufferId(b)];
    const int last = v.last[BufferId(b)];
    for (int version = 0; version <= last; ++version) {
      const int id = static_cast<int>(values.size());
      value_of_[b].push_back(id);
      Value value;
      value.buffer = BufferId(b);
      value.version = version;
      value.keep_anywhere = buffer.keep && !buffer.home && version == last;
      values.push_back(value);
      for (int d = 0; d < n_devices; ++d) {
        Cell c;
        c.value = id;
        c.device = d;
        c.track = track_of[d];
        const bool home = buffer.home && *buffer.home == DeviceId(d);
        c.at_start = home && version == 0;
        c.at_end = home && buffer.keep && version == last;
        if (c.track >= 0 && (!home || buffer.pageable)) c.size = p.size_on(BufferId(b), DeviceId(d));
        if (c.track >= 0 && home && !buffer.pageable && version == 0) {
          limit[c.track] -= p.size_on(BufferId(b), DeviceId(d));
        }
        cells.push_back(c);
      }
    }
  }
}

void Model::add_actions(const Problem& p) {
  const Versions v = versions(p);
  ways.resize(cells.size());
  for (std::size_t o = 0; o < p.ops.size(); ++o) {
    const Op& op = p.ops[OpId(o)];
    op_actions.emplace_back();
    for (std::size_t i = 0; i < op.impls.size(); ++i) {
      const Impl& impl = op.impls[i];
      const int id = static_cast<int>(actions.size());
      Action a;
      a.op = static_cast<int>(o);
      a.impl = static_cast<int>(i);
      a.device = impl.device.value;
      a.seconds = impl.seconds;
      a.once = op.once;
      const bool tracked = p.devices[impl.device].budget.has_value();
      a.extra = tracked ? p.rounded(impl.workspace, impl.device) : 0;
      const auto value_at = [&](BufferId b, int version) { return value_of_[b.index()][version]; };
      for (std::size_t r = 0; r < impl.reads.size(); ++r) {
        const int version = std::max(0, v.read[o][i][r]);
        a.reads.push_back(cell(value_at(impl.reads[r], version), a.device));
      }
      for (std::size_t w = 0; w < impl.writes.size(); ++w) {
        const int version = v.write[o][i][w];
        const int value = value_at(impl.writes[w], version);
        const int written = cell(value, a.device);
        a.writes.push_back(written);
        auto& makers = values[value].makers;
        if (makers.empty() || makers.back() != a.op) makers.push_back(a.op);
        ways[written].push_back(id);
        if (version == 0) continue;
        const int old_value = value_at(impl.writes[w], version - 1);
        values[old_value].overwritten_by = a.op;
        const int old_cell = cell(old_value, a.device);
        if (std::find(a.reads.begin(), a.reads.end(), old_cell) != a.reads.end()) {
          a.extra -= cells[written].size;  // the new version lies in the old one's block
        }
      }
      for (const InPlace& pair : impl.in_place) {
        const auto in = std::find(impl.reads.begin(), impl.reads.end(), pair.in) - impl.reads.begin();
        const auto out = std::find(impl.writes.begin(), impl.writes.end(), pair.out) - impl.writes.begin();
        const int out_cell = a.writes[out];
        a.takes_over.emplace_back(a.reads[in], out_cell);
        a.extra -= cells[out_cell].size;
      }
      actions.push_back(std::move(a));
      op_actions.back().push_back(id);
    }
    const auto& list = op_actions.back();
    fastest.push_back(*std::min_element(list.begin(), list.end(),
                                        [&](int x, int y) { return actions[x].seconds < actions[y].seconds; }));
  }
}

void Model::add_copies(const Problem& p) {
  const auto d = static_cast<std::size_t>(n_devices);
  copies_.assign(values.size() * d * d, -1);
  // copy_seconds searches linearly; links are few, overrides may be many, so look those up once.
  std::vector<double> link_latency(d * d, -1), link_rate(d * d, 1);
  for (const Link& l : p.links) {
    link_latency[l.from.index() * d + l.to.index()] = l.latency;
    link_rate[l.from.index() * d + l.to.index()] = l.bytes_per_second;
  }
  std::vector<std::vector<std::size_t>> overrides(p.buffers.size());
  for (std::size_t i = 0; i < p.copies.size(); ++i) overrides[p.copies[i].buffer.index()].push_back(i);
  for (std::size_t v = 0; v < values.size(); ++v) {
    const BufferId b = values[v].buffer;
    for (std::size_t from = 0; from < d; ++from) {
      for (std::size_t to = 0; to < d; ++to) {
        if (from == to) continue;
        double seconds = -1;
        if (link_latency[from * d + to] >= 0) {
          seconds = link_latency[from * d + to] + static_cast<double>(p.buffers[b].bytes) / link_rate[from * d + to];
        }
        for (const std::size_t i : overrides[b.index()]) {
          const CopyCost& c = p.copies[i];
          if (c.from == DeviceId(from) && c.to == DeviceId(to)) seconds = c.seconds;
        }
        if (seconds < 0) continue;
        Action a;
        a.device = static_cast<int>(to);
        a.seconds = seconds;
        a.reads = {cell(static_cast<int>(v), static_cast<int>(from))};
        a.writes = {cell(static_cast<int>(v), static_cast<int>(to))};
        copies_[copy_index(static_cast<int>(v), static_cast<int>(from), static_cast<int>(to))] =
            static_cast<int>(actions.size());
        actions.push_back(std::move(a));
      }
    }
  }
}

Step Model::step(int action) const {
  const Action& a = actions[action];
  if (a.op >= 0) return Compute{OpId(a.op), a.impl};
  const Cell& from = cells[a.reads[0]];
  const Cell& to = cells[a.writes[0]];
  return Copy{values[from.value].buffer, DeviceId(from.device), DeviceId(to.device)};
}

}  // namespace neaptide::plan::tide
