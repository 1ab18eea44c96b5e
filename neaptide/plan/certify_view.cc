#include "neaptide/plan/certify_view.hpp"

#include <algorithm>
#include <cmath>

namespace neaptide::plan::certificate {

Value value_of(const JsonReader& r) {
  const auto parts = r.items();
  require(parts.size() == 2, "one of its values is not [buffer, version]");
  return {static_cast<int>(parts[0].integer(0)), static_cast<int>(parts[1].integer(0))};
}

RunsAlone::RunsAlone(const Problem& p) : p_(p) {
  for (std::size_t d = 0; d < p.devices.size(); ++d) {
    left_.push_back(p.devices[DeviceId(d)].budget);
    for (std::size_t b = 0; b < p.buffers.size() && left_[d]; ++b) {
      if (stays(BufferId(b), DeviceId(d))) *left_[d] -= p.size_on(BufferId(b), DeviceId(d));
    }
  }
}

bool RunsAlone::stays(BufferId b, DeviceId d) const { return p_.buffers[b].home == d && !p_.buffers[b].pageable; }

bool RunsAlone::operator()(const Impl& i) const {
  const auto& left = left_[i.device.index()];
  if (!left) return true;
  Bytes sum = p_.rounded(i.workspace, i.device);
  std::set<BufferId> there(i.reads.begin(), i.reads.end());
  there.insert(i.writes.begin(), i.writes.end());
  for (const BufferId b : there) {
    const bool reuses =
        std::any_of(i.in_place.begin(), i.in_place.end(), [&](const InPlace& pair) { return pair.out == b; });
    if (!reuses && !stays(b, i.device)) sum += p_.size_on(b, i.device);
  }
  return sum <= *left;
}

namespace {

std::set<BufferId> makeable(const Problem& p) {
  std::set<BufferId> out;
  for (std::size_t b = 0; b < p.buffers.size(); ++b) {
    if (p.buffers[BufferId(b)].home) out.insert(BufferId(b));
  }
  for (const Op& op : p.ops) {
    for (const Impl& i : op.impls) out.insert(i.writes.begin(), i.writes.end());
  }
  return out;
}

}  // namespace

Problem without_impossible(const Problem& p) {
  Problem left = p;
  const RunsAlone can_run(p);
  for (std::size_t before = 1, after = 0; before != after;) {
    const std::set<BufferId> there = makeable(left);
    before = after = 0;
    for (std::size_t o = 0; o < left.ops.size(); ++o) {
      auto& impls = left.ops[OpId(o)].impls;
      before += impls.size();
      std::erase_if(impls, [&](const Impl& i) {
        const auto made = [&](BufferId b) { return there.count(b) > 0; };
        return !can_run(i) || !std::all_of(i.reads.begin(), i.reads.end(), made);
      });
      after += impls.size();
      if (impls.empty()) return p;
    }
  }
  const std::set<BufferId> there = makeable(left);
  for (std::size_t b = 0; b < left.buffers.size(); ++b) {
    if (left.buffers[BufferId(b)].keep && there.count(BufferId(b)) == 0) return p;
  }
  return left;
}

View::View(const Problem& p, int unit_log2) : p_(p), unit_log2_(unit_log2), versions_(versions(p)) {
  gather();
  mark_necessary();
}

Exact View::floor() const {
  Exact sum = 0;
  for (const OpFacts& f : ops_) sum += f.necessary ? units(f.least_first) : 0;
  return sum;
}

Exact View::units(Seconds s) const {
  const double scaled = std::floor(std::ldexp(s, -unit_log2_));
  require(scaled < 4e18, "its unit of time is too small");
  return static_cast<Exact>(static_cast<std::int64_t>(scaled));
}

void View::gather() {
  for (std::size_t o = 0; o < p_.ops.size(); ++o) {
    const auto& impls = p_.ops[OpId(o)].impls;
    OpFacts f;
    f.least = impls[0].seconds;
    std::map<Value, std::size_t> n;
    for (std::size_t i = 0; i < impls.size(); ++i) {
      f.least = std::min(f.least, impls[i].seconds);
      for (std::size_t k = 0; k < impls[i].reads.size(); ++k) {
        const int version = versions_.read[o][i][k];
        if (version >= 0) ++n[{impls[i].reads[k].value, version}];
      }
      for (std::size_t k = 0; k < impls[i].writes.size(); ++k) {
        const Value v{impls[i].writes[k].value, versions_.write[o][i][k]};
        f.writes.insert(v);
        if (makers_[v].empty() || makers_[v].back() != o) makers_[v].push_back(o);
      }
    }
    for (const auto& [v, count] : n) {
      if (count == impls.size()) f.reads.insert(v);
    }
    ops_.push_back(std::move(f));
  }
  for (std::size_t b = 0; b < p_.buffers.size(); ++b) {
    if (p_.buffers[BufferId(b)].home) makers_[{static_cast<int>(b), 0}];
  }
  for (std::size_t o = 0; o < ops_.size(); ++o) find_first_runs(o);
}

void View::find_first_runs(std::size_t o) {
  OpFacts& f = ops_[o];
  std::optional<Seconds> least;
  const auto& impls = p_.ops[OpId(o)].impls;
  for (std::size_t i = 0; i < impls.size(); ++i) {
    bool may = true;
    for (std::size_t k = 0; k < impls[i].reads.size(); ++k) {
      if (versions_.read[o][i][k] >= 0) continue;  // else: another implementation of the op writes it
      const bool others = std::any_of(f.writes.begin(), f.writes.end(), [&](const Value& v) {
        return v.first == impls[i].reads[k].value && makers_.at(v).size() > 1;
      });
      if (!others) may = false;
    }
    f.may_be_first.push_back(may);
    if (may) least = std::min(least.value_or(impls[i].seconds), impls[i].seconds);
  }
  f.least_first = least.value_or(f.least);
}

std::optional<std::size_t> View::sole_maker(const Value& v) const {
  const auto it = makers_.find(v);
  if (homed(v) || it == makers_.end() || it->second.size() != 1) return std::nullopt;
  return it->second[0];
}

bool View::kept_at_end(const Value& v) const {
  return p_.buffers[BufferId(v.first)].keep && versions_.last[BufferId(v.first)] == v.second;
}

bool View::needed_at_end(const Value& v) const {
  const auto& home = p_.buffers[BufferId(v.first)].home;
  return kept_at_end(v) && (home ? *home == device_ : p_.devices.size() == 1);
}

void View::mark_necessary() {
  bool grew = true;
  const auto mark = [&](std::size_t o) {
    grew = grew || !ops_[o].necessary;
    ops_[o].necessary = true;
  };
  for (std::size_t o = 0; o < ops_.size(); ++o) {
    if (p_.ops[OpId(o)].once) mark(o);
  }
  for (const auto& [v, list] : makers_) {
    if (kept_at_end(v) && sole_maker(v)) mark(*sole_maker(v));
  }
  while (grew) {
    grew = false;
    for (std::size_t i = p_.order.size(); i-- > 0;) {
      const OpFacts& f = ops_[p_.order[i].index()];
      if (!f.necessary) continue;
      for (const Value& v : f.reads) {
        if (const auto maker = sole_maker(v)) mark(*maker);
      }
    }
  }
}

void View::find_device(const std::string& name) {
  for (std::size_t d = 0; d < p_.devices.size(); ++d) {
    if (p_.devices[DeviceId(d)].name == name) device_ = DeviceId(d);
  }
  require(device_.valid() && p_.devices[device_].budget.has_value(), "its device is unknown or has no budget");
  budget_ = *p_.devices[device_].budget;
  for (std::size_t o = 0; o < ops_.size(); ++o) {
    const auto& impls = p_.ops[OpId(o)].impls;
    ops_[o].here = std::all_of(impls.begin(), impls.end(), [&](const Impl& i) { return i.device == device_; });
  }
}

std::size_t View::find_op(const std::string& name) const {
  for (std::size_t o = 0; o < p_.ops.size(); ++o) {
    if (p_.ops[OpId(o)].name == name) return o;
  }
  throw UserError("its op '{}' is unknown", name);
}

Bytes View::size(const Value& v) const {
  const Buffer& b = p_.buffers[BufferId(v.first)];
  return b.home == device_ && !b.pageable ? 0 : p_.size_on(BufferId(v.first), device_);
}

Bytes View::room() const {
  Bytes left = budget_;
  for (std::size_t b = 0; b < p_.buffers.size(); ++b) {
    const Buffer& buffer = p_.buffers[BufferId(b)];
    if (buffer.home == device_ && !buffer.pageable) left -= p_.size_on(BufferId(b), device_);
  }
  return left;
}

Bytes View::extra(std::size_t op, std::size_t impl) const {
  const Impl& one = p_.ops[OpId(op)].impls[impl];
  Bytes sum = p_.rounded(one.workspace, device_);
  for (std::size_t k = 0; k < one.writes.size(); ++k) {
    const Value v{one.writes[k].value, versions_.write[op][impl][k]};
    bool reuses = v.second > 0;
    for (const InPlace& pair : one.in_place) reuses = reuses || pair.out == one.writes[k];
    if (!reuses && sole_maker(v)) sum += size(v);
  }
  return sum;
}

std::vector<bool> View::ancestors(std::size_t op) const {
  std::vector<bool> in(ops_.size(), false);
  in[op] = true;
  for (std::size_t i = p_.order.size(); i-- > 0;) {
    const std::size_t o = p_.order[i].index();
    if (!in[o]) continue;
    for (const Value& v : ops_[o].reads) {
      if (const auto m = sole_maker(v)) in[*m] = true;
    }
  }
  return in;
}

std::vector<bool> View::followers(std::size_t op) const {
  std::vector<bool> in(ops_.size(), false);
  in[op] = true;
  for (const OpId o : p_.order) {
    for (const Value& v : ops_[o.index()].reads) {
      if (const auto m = sole_maker(v); m && in[*m]) in[o.index()] = true;
    }
  }
  return in;
}

Exact View::units_at_most(Seconds s) const { return units(std::min(s, std::ldexp(1.0, unit_log2_ + 59))); }

Exact View::copy_in(const Value& v) const {
  std::optional<Seconds> least;
  for (std::size_t d = 0; d < p_.devices.size(); ++d) {
    if (DeviceId(d) == device_) continue;
    const auto s = copy_seconds(p_, BufferId(v.first), DeviceId(d), device_);
    if (s && (!least || *s < *least)) least = s;
  }
  return least && copy_out(v) != kUnlimited ? units_at_most(*least) : Exact{kUnlimited};
}

Exact View::copy_out(const Value& v) const {
  bool starts_here = !homed(v) || p_.buffers[BufferId(v.first)].home == device_;
  for (const std::size_t o : makers_.at(v)) starts_here = starts_here && ops_[o].here;
  if (!starts_here) return 0;
  std::optional<Seconds> least;
  for (std::size_t d = 0; d < p_.devices.size(); ++d) {
    if (DeviceId(d) == device_) continue;
    const auto s = copy_seconds(p_, BufferId(v.first), device_, DeviceId(d));
    if (s && (!least || *s < *least)) least = s;
  }
  return least ? units_at_most(*least) : Exact{kUnlimited};
}

}  // namespace neaptide::plan::certificate
