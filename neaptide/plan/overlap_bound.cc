#include "neaptide/plan/overlap_bound.hpp"

#include <algorithm>
#include <cmath>

#include "neaptide/base/json.hpp"
#include "neaptide/plan/facts.hpp"

namespace neaptide::plan {
namespace {

constexpr std::size_t kMostDevicesForAllSets = 8;

class Bounding {
 public:
  explicit Bounding(const Problem& problem) : p_(problem), facts_(problem), n_devices_(problem.devices.size()) {}

  LowerBound run() {
    find_earliest();
    const Units path = end_of_path();
    Units lanes = 0;
    const std::vector<std::size_t> set = busiest(&lanes);
    LowerBound bound;
    bound.valid_for = BoundScope::kAnyOrder;
    Json j{{"kind", "overlap"}, {"unit_log2", facts_.unit_log2}};
    if (path > lanes) {
      j["earliest"] = Json::array();
      for (std::size_t v = 0; v < facts_.values.size(); ++v) {
        for (std::size_t d = 0; d < n_devices_; ++d) {
          if (at(v, d) > 0)
            j["earliest"].push_back({facts_.values[v].buffer.value, facts_.values[v].version, d, at(v, d)});
        }
      }
    } else {
      j["devices"] = Json::array();
      for (const std::size_t d : set) j["devices"].push_back(p_.devices[DeviceId(d)].name);
    }
    bound.seconds = seconds_down(std::max(path, lanes), facts_.unit_log2);
    bound.certificate = j.dump();
    return bound;
  }

 private:
  Units& at(std::size_t value, std::size_t device) { return earliest_[value * n_devices_ + device]; }

  Units units(Seconds s) const {
    const double u = std::floor(std::ldexp(s, -facts_.unit_log2));
    return u >= static_cast<double>(kNoLimit) ? kNoLimit : static_cast<Units>(u);
  }
  static Units sum(Units a, Units b) { return std::min(kNoLimit, a + b); }  // both at most 2^61

  std::size_t value(BufferId b, int version) const {
    return static_cast<std::size_t>(facts_.value_of[b.index()][static_cast<std::size_t>(version)]);
  }

  /// When an implementation can have ended at the earliest.
  Units end_of(std::size_t op, std::size_t impl) {
    const Impl& i = p_.ops[OpId(op)].impls[impl];
    Units start = 0;
    for (std::size_t k = 0; k < i.reads.size(); ++k) {
      const int version = facts_.versions_.read[op][impl][k];
      if (version >= 0) start = std::max(start, at(value(i.reads[k], version), i.device.index()));
    }
    return sum(start, units(i.seconds));
  }

  bool lower(std::size_t value, std::size_t device, Units to) {
    if (to >= at(value, device)) return false;
    at(value, device) = to;
    return true;
  }

  /// From "never" downwards until no way is earlier: one round along the order, more only where ways go against it.
  void find_earliest() {
    earliest_.assign(facts_.values.size() * n_devices_, kNoLimit);
    for (std::size_t b = 0; b < p_.buffers.size(); ++b) {
      if (const auto& home = p_.buffers[BufferId(b)].home) at(value(BufferId(b), 0), home->index()) = 0;
    }
    for (std::size_t v = 0; v < facts_.values.size(); ++v) copy_around(v);
    for (bool changed = true; changed;) {
      changed = false;
      for (const OpId op : p_.order) {
        const std::size_t o = op.index();
        for (std::size_t i = 0; i < p_.ops[op].impls.size(); ++i) {
          const Units end = end_of(o, i);
          const Impl& impl = p_.ops[op].impls[i];
          for (std::size_t k = 0; k < impl.writes.size(); ++k) {
            const std::size_t v = value(impl.writes[k], facts_.versions_.write[o][i][k]);
            if (!lower(v, impl.device.index(), end)) continue;
            copy_around(v);
            changed = true;
          }
        }
      }
    }
  }

  void copy_around(std::size_t v) {
    for (bool changed = n_devices_ > 1; changed;) {
      changed = false;
      for (std::size_t d = 0; d < n_devices_; ++d) {
        for (std::size_t e = 0; e < n_devices_; ++e) {
          if (d == e || at(v, d) >= at(v, e)) continue;
          const auto seconds = copy_seconds(p_, facts_.values[v].buffer, DeviceId(d), DeviceId(e));
          changed = (seconds && lower(v, e, sum(at(v, d), units(*seconds)))) || changed;
        }
      }
    }
  }

  Units end_of_path() {
    Units latest = 0;
    for (std::size_t o = 0; o < p_.ops.size(); ++o) {
      if (facts_.necessary[o] == 0) continue;
      Units first = kNoLimit;
      for (std::size_t i = 0; i < p_.ops[OpId(o)].impls.size(); ++i) first = std::min(first, end_of(o, i));
      latest = std::max(latest, first);
    }
    for (std::size_t v = 0; v < facts_.values.size(); ++v) {
      if (!facts_.values[v].at_end) continue;
      const auto& home = p_.buffers[facts_.values[v].buffer].home;
      Units there = kNoLimit;
      for (std::size_t d = 0; d < n_devices_; ++d) {
        if (!home || home->index() == d) there = std::min(there, at(v, d));
      }
      latest = std::max(latest, there);
    }
    return latest >= kNoLimit ? 0 : latest;
  }

  /// The set of devices whose own ops load it most; all sets where the devices are few.
  std::vector<std::size_t> busiest(Units* most) const {
    const std::size_t n = std::min(n_devices_, kMostDevicesForAllSets);
    std::vector<std::size_t> best;
    for (std::size_t set = 1; set < std::size_t{1} << n; ++set) {
      std::vector<std::size_t> members;
      for (std::size_t d = 0; d < n; ++d) {
        if ((set >> d & 1) != 0) members.push_back(d);
      }
      const Units load = load_of(members);
      if (best.empty() || load > *most) best = members, *most = load;
    }
    return best;
  }

  Units load_of(const std::vector<std::size_t>& devices) const {
    Wide load = 0;
    for (std::size_t o = 0; o < p_.ops.size(); ++o) {
      const auto& impls = p_.ops[OpId(o)].impls;
      const bool inside = std::all_of(impls.begin(), impls.end(), [&](const Impl& i) {
        return std::find(devices.begin(), devices.end(), i.device.index()) != devices.end();
      });
      if (facts_.necessary[o] != 0 && inside) load += units(facts_.least[o]);
    }
    return static_cast<Units>(load / static_cast<Wide>(devices.size()));
  }

  const Problem& p_;
  Facts facts_;
  std::size_t n_devices_;
  std::vector<Units> earliest_;  // [value][device]
};

}  // namespace

LowerBound overlap_bound(const Problem& problem) { return Bounding(problem).run(); }

}  // namespace neaptide::plan
