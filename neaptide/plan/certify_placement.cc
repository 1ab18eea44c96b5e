// The placement of ops and copies between one device and all others: a flow through the network that
// placement_bound.hpp describes. The value of any flow that respects the capacities is at most the minimum cut.
#include <algorithm>
#include <tuple>

#include "neaptide/plan/certify_view.hpp"

namespace neaptide::plan::certificate {
namespace {

/// Ends of the arcs: the terminals, and four sorts of nodes.
enum class Sort { kSource, kSink, kOpHere, kOpOnlyHere, kValueHere, kValueOnlyHere };
using Node = std::tuple<Sort, int, int>;  // op, 0; or a value

constexpr Node kSource{Sort::kSource, 0, 0}, kSink{Sort::kSink, 0, 0};

/// What one side can do with an op.
struct Side {
  std::optional<Seconds> least;
  std::set<Value> reads;  // of every implementation that can run there
};

class PlacementChecker : public View {
 public:
  using View::View;

  Exact check(const Json& j) {
    const JsonReader r(j, "certificate");
    find_side(r.string("device"));
    step_ = r.integer("step", 1);
    mu_ = r.integer("mu", 0);
    Exact room = 0;
    if (mu_ > 0) {
      require(p_.devices[device_].budget.has_value(), "it puts a price on bytes of a device that has no budget");
      find_instant(r);
      room = std::max<Exact>(0, tau_ ? this->room() : room_at_end()) / step_;
    }
    const JsonReader flows = r.at("flow");
    for (const char* kind : {"here", "elsewhere", "cover", "once", "run"}) {
      for (const JsonReader& one : flows.items(kind)) take_op(kind, one);
    }
    for (const char* kind : {"need", "use"}) {
      for (const JsonReader& one : flows.items(kind)) take_read(kind == std::string("need"), one);
    }
    for (const char* kind : {"in", "out", "keep", "home"}) {
      for (const JsonReader& one : flows.items(kind)) take_value(kind, one);
    }
    Exact value = 0;
    for (const auto& [node, surplus] : surplus_) {
      if (node == kSource) value = -surplus;
      require(node == kSource || node == kSink || surplus == 0, "its flow is not conserved");
    }
    return value - static_cast<Exact>(mu_) * room;
  }

 private:
  void find_side(const std::string& name) {
    for (std::size_t d = 0; d < p_.devices.size(); ++d) {
      if (p_.devices[DeviceId(d)].name == name) device_ = DeviceId(d);
    }
    require(device_.valid(), "its device is unknown");
    if (p_.devices[device_].budget) find_device(name);
    for (std::size_t o = 0; o < ops_.size(); ++o) {
      here_.push_back(side(o, true));
      elsewhere_.push_back(side(o, false));
    }
  }

  /// The first run of an op that must run; none: the end.
  void find_instant(const JsonReader& r) {
    if (!r.has("op")) return;
    tau_ = find_op(r.string("op"));
    require(ops_[*tau_].necessary, "its op need not run");
    before_ = ancestors(*tau_);
    const std::vector<bool> after = followers(*tau_);
    for (std::size_t o = 0; o < ops_.size(); ++o) {
      if (o != *tau_ && after[o] && ops_[o].necessary) later_.insert(ops_[o].reads.begin(), ops_[o].reads.end());
    }
  }

  /// What tau reads and adds where it first runs on the device.
  Bytes own() const {
    std::optional<Bytes> least;
    const auto& impls = p_.ops[OpId(*tau_)].impls;
    for (std::size_t i = 0; i < impls.size(); ++i) {
      if (impls[i].device == device_ && can_run_(impls[i]))
        least = std::min(least.value_or(INT64_MAX), extra(*tau_, i));
    }
    Bytes sum = least.value_or(0);
    for (const Value& v : here_[*tau_].reads) sum += size(v);
    return sum;
  }

  /// Of a value that is never elsewhere, at the instant.
  Exact keep_limit(const Value& v) const {
    const bool home = p_.buffers[BufferId(v.first)].home.has_value();
    const bool kept = kept_at_end(v) && !home;
    const Exact price = static_cast<Exact>(mu_) * (size(v) / step_);
    const auto m = sole_maker(v);
    require(m.has_value(), "a value of several makers is kept at a price");
    if (!tau_) {
      require(kept, "a value need not be kept, or not here");
      return price;
    }
    require(*m != *tau_ && before_[*m] && (kept || later_.count(v) > 0), "a value need not be there at the instant");
    require(here_[*tau_].reads.count(v) == 0 && ops_[*m].writes.size() == 1,
            "a value is charged that is counted elsewhere");
    return p_.ops[OpId(*m)].once ? price : std::min(price, limit(here_[*m].least));
  }

  Side side(std::size_t op, bool on_device) const {
    Side out;
    const auto& impls = p_.ops[OpId(op)].impls;
    for (std::size_t k = 0; k < impls.size(); ++k) {
      if ((impls[k].device == device_) != on_device || !can_run_(impls[k])) continue;
      std::set<Value> reads;
      for (std::size_t n = 0; n < impls[k].reads.size(); ++n) {
        const int version = versions_.read[op][k][n];
        const Value v{impls[k].reads[n].value, version};
        if (version >= 0 && (!out.least || out.reads.count(v) > 0)) reads.insert(v);
      }
      out.reads = std::move(reads);
      out.least = std::min(out.least.value_or(impls[k].seconds), impls[k].seconds);
    }
    return out;
  }

  /// What kept values without a home may fill.
  Exact room_at_end() const {
    Exact left = *p_.devices[device_].budget;
    for (std::size_t b = 0; b < p_.buffers.size(); ++b) {
      const Buffer& buffer = p_.buffers[BufferId(b)];
      if (buffer.home == device_ && (buffer.keep || !buffer.pageable)) left -= p_.size_on(BufferId(b), device_);
    }
    return left;
  }

  Exact limit(std::optional<Seconds> s) const { return s ? units_at_most(*s) : Exact{kUnlimited}; }

  /// The cheapest copy of the value between the device and another one.
  Exact copy_limit(const Value& v, bool inwards) const {
    std::optional<Seconds> least;
    for (std::size_t d = 0; d < p_.devices.size(); ++d) {
      const DeviceId other(d);
      if (other == device_) continue;
      const auto s = inwards ? copy_seconds(p_, BufferId(v.first), other, device_)
                             : copy_seconds(p_, BufferId(v.first), device_, other);
      if (s) least = std::min(least.value_or(*s), *s);
    }
    return limit(least);
  }

  void carry(const Node& from, const Node& to, Exact flow, Exact most) {
    require(flow <= most, "an arc carries more than it may");
    require(arcs_.insert({from, to}).second, "an arc is listed twice");
    surplus_[from] -= flow;
    surplus_[to] += flow;
  }

  int op_of(const JsonReader& r) const {
    const auto o = r.integer(0);
    require(o < static_cast<std::int64_t>(ops_.size()), "a flow names no op");
    return static_cast<int>(o);
  }

  Value known(const JsonReader& r) const {
    const Value v = value_of(r);
    require(makers_.count(v) == 1, "a flow names no value");
    return v;
  }

  void take_op(const std::string& kind, const JsonReader& r) {
    const auto parts = r.items();
    require(parts.size() == 2, "a flow is not [op, flow]");
    const int o = op_of(parts[0]);
    const auto i = static_cast<std::size_t>(o);
    const Exact f = parts[1].integer(0);
    const Node runs{Sort::kOpHere, o, 0}, only{Sort::kOpOnlyHere, o, 0};
    if (kind == "here") {
      carry(runs, kSink, f, limit(here_[i].least));
    } else if (kind == "elsewhere") {
      carry(kSource, only, f, limit(elsewhere_[i].least));
    } else if (kind == "cover") {
      require(ops_[i].necessary, "an op is to run that need not");
      carry(only, runs, f, kUnlimited);
    } else if (kind == "run") {
      require(tau_ == i, "an op is charged for room at another one's instant");
      carry(only, kSink, f, static_cast<Exact>(mu_) * (own() / step_));
    } else {
      require(p_.ops[OpId(i)].once, "an op is said to run once that may run twice");
      carry(runs, only, f, kUnlimited);
    }
  }

  void take_read(bool on_device, const JsonReader& r) {
    const auto parts = r.items();
    require(parts.size() == 3, "a flow is not [op, value, flow]");
    const int o = op_of(parts[0]);
    const Value v = known(parts[1]);
    const Side& s = (on_device ? here_ : elsewhere_)[static_cast<std::size_t>(o)];
    require(s.reads.count(v) == 1, "an op is said to read what it may do without");
    const Exact f = parts[2].integer(0);
    if (on_device) {
      carry({Sort::kOpHere, o, 0}, {Sort::kValueHere, v.first, v.second}, f, kUnlimited);
    } else {
      carry({Sort::kValueOnlyHere, v.first, v.second}, {Sort::kOpOnlyHere, o, 0}, f, kUnlimited);
    }
  }

  void take_value(const std::string& kind, const JsonReader& r) {
    const auto parts = r.items();
    require(parts.size() == 2, "a flow is not [value, flow]");
    const Value v = known(parts[0]);
    const Exact f = parts[1].integer(0);
    const auto& home = p_.buffers[BufferId(v.first)].home;
    const bool home_here = home && *home == device_;
    const Node here{Sort::kValueHere, v.first, v.second}, only{Sort::kValueOnlyHere, v.first, v.second};
    Node maker_here = home_here ? kSource : kSink, maker_only = maker_here;  // of what lies at home from the start
    const bool made = !homed(v);
    if (made && kind != "home") {
      const auto m = sole_maker(v);
      require(m.has_value(), "a value of several makers is charged");
      maker_here = {Sort::kOpHere, static_cast<int>(*m), 0};
      maker_only = {Sort::kOpOnlyHere, static_cast<int>(*m), 0};
    }
    if (kind == "in") {
      require(made || !home_here, "a copy is charged of what is at home");
      carry(here, maker_here, f, copy_limit(v, true));
    } else if (kind == "out") {
      require(made || home_here, "a copy is charged of what is at home");
      carry(maker_only, only, f, copy_limit(v, false));
    } else if (kind == "keep") {
      carry(only, kSink, f, keep_limit(v));
    } else {
      require(kept_at_end(v) && home, "a value need not be at a home at the end");
      if (home_here) {
        carry(kSource, here, f, kUnlimited);
      } else {
        carry(only, kSink, f, kUnlimited);
      }
    }
  }

  const RunsAlone can_run_{p_};
  std::vector<Side> here_, elsewhere_;
  std::int64_t step_ = 1, mu_ = 0;
  std::optional<std::size_t> tau_;
  std::vector<bool> before_;
  std::set<Value> later_;
  std::set<std::pair<Node, Node>> arcs_;
  std::map<Node, Exact> surplus_;
};

}  // namespace

Exact check_placement(const Problem& p, int unit_log2, const Json& certificate) {
  PlacementChecker checker(p, unit_log2);
  return checker.check(certificate);
}

}  // namespace neaptide::plan::certificate
