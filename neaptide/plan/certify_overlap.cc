// Certificates of kind "overlap": see overlap_bound.hpp for what they say.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "neaptide/plan/certify_view.hpp"

namespace neaptide::plan::certificate {
namespace {

using Place = std::tuple<std::size_t, int, std::size_t>;  // buffer, version, device

class OverlapChecker : View {
 public:
  OverlapChecker(const Problem& p, int unit_log2) : View(p, unit_log2) {}

  /// Busy lanes: the ops that cannot run elsewhere, by their shortest seconds.
  std::int64_t lanes(const JsonReader& r) const {
    std::set<std::string> names;
    for (const JsonReader& d : r.items("devices")) names.insert(d.string());
    std::size_t known = 0;
    for (std::size_t d = 0; d < p_.devices.size(); ++d) known += names.count(p_.devices[DeviceId(d)].name);
    if (known == 0 || known != names.size()) throw UserError("its devices are none, or unknown ones");
    Exact load = 0;
    for (std::size_t o = 0; o < p_.ops.size(); ++o) {
      std::int64_t least = kUnlimited;
      for (const Impl& i : p_.ops[OpId(o)].impls) {
        least = names.count(p_.devices[i.device].name) != 0 ? std::min(least, whole(i.seconds)) : 0;
        if (least == 0) break;
      }
      if (ops_[o].necessary) load += least;
    }
    return static_cast<std::int64_t>(std::min<Exact>(load / static_cast<Exact>(known), kUnlimited));
  }

  /// Times before which values are not there: no way of making or copying one may be earlier. Then, going forward in
  /// time through any run, no value is ever there before its time.
  std::int64_t path(const JsonReader& r) {
    for (const JsonReader& entry : r.items("earliest")) {
      const auto parts = entry.items();
      if (parts.size() != 4) throw UserError("one of its times is not [buffer, version, device, units]");
      const auto buffer = static_cast<std::size_t>(parts[0].integer(0));
      const auto device = static_cast<std::size_t>(parts[2].integer(0));
      const int version = static_cast<int>(parts[1].integer(0));
      if (buffer >= p_.buffers.size() || device >= p_.devices.size())
        throw UserError("one of its times names no buffer or no device");
      times_[{buffer, version, device}] = std::min(kUnlimited, parts[3].integer(0));
    }
    for (const auto& [place, time] : times_) check_start_and_copies(place, time);
    std::int64_t latest = 0;
    for (std::size_t o = 0; o < p_.ops.size(); ++o) {
      const std::int64_t first = check_op(o);
      if (ops_[o].necessary) latest = std::max(latest, first);
    }
    for (std::size_t b = 0; b < p_.buffers.size(); ++b) {
      if (p_.buffers[BufferId(b)].keep) latest = std::max(latest, kept(b));
    }
    return latest;
  }

 private:
  /// At most "never".
  std::int64_t whole(Seconds s) const {
    const double scaled = std::floor(std::ldexp(s, -unit_log2_));
    return scaled < static_cast<double>(kUnlimited) ? static_cast<std::int64_t>(scaled) : kUnlimited;
  }

  std::int64_t time(std::size_t buffer, int version, std::size_t device) const {
    const auto it = times_.find({buffer, version, device});
    return it == times_.end() ? 0 : it->second;
  }

  void check_start_and_copies(const Place& place, std::int64_t time_there) const {
    const auto& [buffer, version, device] = place;
    const BufferId b(buffer);
    if (version == 0 && p_.buffers[b].home == DeviceId(device) && time_there > 0)
      throw UserError("'{}' is at home from the start", p_.buffers[b].name);
    for (std::size_t from = 0; from < p_.devices.size(); ++from) {
      if (from == device) continue;
      const auto seconds = copy_seconds(p_, b, DeviceId(from), DeviceId(device));
      if (seconds && time_there > time(buffer, version, from) + whole(*seconds))
        throw UserError("a copy can bring '{}' earlier", p_.buffers[b].name);
    }
  }

  /// No implementation makes anything before its time. Returns when the first one can have ended.
  std::int64_t check_op(std::size_t o) const {
    std::int64_t first = kUnlimited;
    for (std::size_t i = 0; i < p_.ops[OpId(o)].impls.size(); ++i) {
      const Impl& impl = p_.ops[OpId(o)].impls[i];
      const std::size_t d = impl.device.index();
      std::int64_t start = 0;
      for (std::size_t k = 0; k < impl.reads.size(); ++k) {
        const int version = versions_.read[o][i][k];
        if (version >= 0) start = std::max(start, time(impl.reads[k].index(), version, d));
      }
      const std::int64_t end = std::min(kUnlimited, start + whole(impl.seconds));
      for (std::size_t k = 0; k < impl.writes.size(); ++k) {
        if (time(impl.writes[k].index(), versions_.write[o][i][k], d) > end)
          throw UserError("op '{}' can make '{}' earlier", p_.ops[OpId(o)].name, p_.buffers[impl.writes[k]].name);
      }
      first = std::min(first, end);
    }
    return first;
  }

  /// When the last version of a kept buffer is where it must be.
  std::int64_t kept(std::size_t buffer) const {
    const BufferId b(buffer);
    const int version = versions_.last[b];
    if (version < 0) return 0;
    if (p_.buffers[b].home) return time(buffer, version, p_.buffers[b].home->index());
    std::int64_t first = kUnlimited;
    for (std::size_t d = 0; d < p_.devices.size(); ++d) first = std::min(first, time(buffer, version, d));
    return first;
  }

  std::map<Place, std::int64_t> times_;
};

}  // namespace

Exact check_overlap(const Problem& p, int unit_log2, const Json& certificate) {
  OverlapChecker checker(p, unit_log2);
  const JsonReader r(certificate, "certificate");
  return r.has("earliest") ? checker.path(r) : checker.lanes(r);
}

}  // namespace neaptide::plan::certificate
