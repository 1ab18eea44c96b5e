#include "neaptide/plan/certify.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/json.hpp"

namespace neaptide::plan {
namespace {

__extension__ typedef __int128 Wide;
using Value = std::pair<int, int>;  // buffer, version

constexpr std::int64_t kUnlimited = std::int64_t{1} << 61;  // more than all seconds of a problem together

/// One op as every plan sees it, whatever implementation it chooses.
struct OpFacts {
  std::set<Value> reads;   // of every implementation
  std::set<Value> writes;  // of some implementation
  Seconds least = 0;
  bool here = false;  // every implementation runs on the device
  bool necessary = false;
};

class Checker {
 public:
  Checker(const Problem& p, int unit_log2) : p_(p), unit_log2_(unit_log2), versions_(versions(p)) {
    gather();
    mark_necessary();
  }

  Wide floor() const {
    Wide sum = 0;
    for (const OpFacts& f : ops_) sum += f.necessary ? units(f.least) : 0;
    return sum;
  }

  /// Units proved beyond the floor by a cut certificate.
  Wide cut(const Json& j) {
    const JsonReader r(j, "certificate");
    find_device(r.string("device"));
    const std::string scope = r.string("scope");
    require(scope == "this order" || scope == "any order", "its scope is neither this order nor any order");
    place_ops(find_op(r.string("op")), scope == "any order");
    std::vector<Json> leaves;
    for (const JsonReader& leaf : r.items("leaves")) leaves.push_back(leaf.value());
    std::vector<const Json*> all;
    for (const Json& leaf : leaves) all.push_back(&leaf);
    require_complete(all, 0);
    std::optional<Wide> least;
    for (const Json& leaf : leaves) {
      const std::optional<Wide> proved = check_leaf(JsonReader(leaf, "leaf"));
      if (proved && (!least || *proved < *least)) least = proved;
    }
    require(least.has_value(), "all its leaves are impossible");
    return *least;
  }

 private:
  static void require(bool condition, const char* what) {
    if (!condition) throw UserError("{}", what);
  }

  Wide units(Seconds s) const {
    const double scaled = std::floor(std::ldexp(s, -unit_log2_));
    require(scaled < 4e18, "its unit of time is too small");
    return static_cast<Wide>(static_cast<std::int64_t>(scaled));
  }

  void gather() {
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
  }

  bool homed(const Value& v) const { return v.second == 0 && p_.buffers[BufferId(v.first)].home.has_value(); }

  /// The op that alone can make the value.
  std::optional<std::size_t> sole_maker(const Value& v) const {
    const auto it = makers_.find(v);
    if (homed(v) || it == makers_.end() || it->second.size() != 1) return std::nullopt;
    return it->second[0];
  }

  bool kept_at_end(const Value& v) const {
    return p_.buffers[BufferId(v.first)].keep && versions_.last[BufferId(v.first)] == v.second;
  }

  void mark_necessary() {
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

  void find_device(const std::string& name) {
    for (std::size_t d = 0; d < p_.devices.size(); ++d) {
      if (p_.devices[DeviceId(d)].name == name) device_ = DeviceId(d);
    }
    require(device_.valid() && p_.devices[device_].budget.has_value(), "its device is unknown or has no budget");
    for (std::size_t o = 0; o < ops_.size(); ++o) {
      const auto& impls = p_.ops[OpId(o)].impls;
      ops_[o].here = std::all_of(impls.begin(), impls.end(), [&](const Impl& i) { return i.device == device_; });
    }
  }

  std::size_t find_op(const std::string& name) const {
    for (std::size_t o = 0; o < p_.ops.size(); ++o) {
      if (p_.ops[OpId(o)].name == name) return o;
    }
    throw UserError("its op '{}' is unknown", name);
  }

  Bytes size(const Value& v) const {
    const Buffer& b = p_.buffers[BufferId(v.first)];
    return b.home == device_ && !b.pageable ? 0 : p_.size_on(BufferId(v.first), device_);
  }

  /// Which ops have certainly run before the instant, and which certainly first run after it.
  void place_ops(std::size_t tau, bool any_order) {
    require(ops_[tau].necessary && ops_[tau].here, "its op need not run, or need not run on its device");
    tau_ = tau;
    before_.assign(ops_.size(), false);
    after_.assign(ops_.size(), false);
    if (any_order) {
      std::vector<bool> ancestor(ops_.size(), false), follows(ops_.size(), false);
      ancestor[tau] = follows[tau] = true;
      for (std::size_t i = p_.order.size(); i-- > 0;) {
        const std::size_t o = p_.order[i].index();
        if (!ancestor[o]) continue;
        for (const Value& v : ops_[o].reads) {
          if (const auto m = sole_maker(v)) ancestor[*m] = true;
        }
      }
      for (const OpId o : p_.order) {
        for (const Value& v : ops_[o.index()].reads) {
          if (const auto m = sole_maker(v); m && follows[*m]) follows[o.index()] = true;
        }
      }
      for (std::size_t o = 0; o < ops_.size(); ++o) {
        before_[o] = ancestor[o];
        after_[o] = follows[o] && !ancestor[o];
      }
    } else {
      bool passed = false;
      for (const OpId o : p_.order) {
        (passed ? after_ : before_)[o.index()] = true;
        passed = passed || o.index() == tau;
      }
    }
    room_ = *p_.devices[device_].budget;
    for (std::size_t b = 0; b < p_.buffers.size(); ++b) {
      const Buffer& buffer = p_.buffers[BufferId(b)];
      if (buffer.home == device_ && !buffer.pageable) room_ -= p_.size_on(BufferId(b), device_);
    }
    room_ -= least_extra(tau);
    for (const Value& v : ops_[tau].reads) room_ -= size(v);
    needed_.clear();
    for (const auto& [v, list] : makers_) {
      const auto& home = p_.buffers[BufferId(v.first)].home;
      if (kept_at_end(v) && (home ? *home == device_ : p_.devices.size() == 1)) needed_.insert(v);
    }
    for (std::size_t o = 0; o < ops_.size(); ++o) {
      if (after_[o] && ops_[o].necessary && ops_[o].here) needed_.insert(ops_[o].reads.begin(), ops_[o].reads.end());
    }
  }

  /// Beside what tau reads: workspace and those outputs that cannot have been there and take over no block.
  Bytes least_extra(std::size_t tau) const {
    std::optional<Bytes> least;
    const auto& impls = p_.ops[OpId(tau)].impls;
    for (std::size_t i = 0; i < impls.size(); ++i) {
      Bytes sum = p_.rounded(impls[i].workspace, device_);
      for (std::size_t k = 0; k < impls[i].writes.size(); ++k) {
        const Value v{impls[i].writes[k].value, versions_.write[tau][i][k]};
        bool reuses = v.second > 0;
        for (const InPlace& pair : impls[i].in_place) reuses = reuses || pair.out == impls[i].writes[k];
        if (!reuses && sole_maker(v)) sum += size(v);
      }
      if (!least || sum < *least) least = sum;
    }
    return *least;
  }

  static Value value_of(const JsonReader& r) {
    const auto parts = r.items();
    require(parts.size() == 2, "one of its values is not [buffer, version]");
    return {static_cast<int>(parts[0].integer(0)), static_cast<int>(parts[1].integer(0))};
  }

  static std::pair<Value, bool> decision(const Json& leaf, std::size_t depth) {
    const auto list = JsonReader(leaf, "leaf").items("fixed");
    require(depth < list.size(), "its tree lacks a branch");
    const auto parts = list[depth].items();
    require(parts.size() == 2, "one of its branches is not [value, way]");
    const std::string way = parts[1].string();
    require(way == "kept" || way == "gone", "one of its branches is neither kept nor gone");
    return {value_of(parts[0]), way == "kept"};
  }

  /// The leaves cover every choice: they split into kept and gone on one value, again and again.
  static void require_complete(const std::vector<const Json*>& leaves, std::size_t depth) {
    require(!leaves.empty(), "its tree lacks a branch");
    if (leaves.size() == 1 && JsonReader(*leaves[0], "leaf").items("fixed").size() == depth) return;
    const Value on = decision(*leaves[0], depth).first;
    std::vector<const Json*> kept, gone;
    for (const Json* leaf : leaves) {
      const auto [v, is_kept] = decision(*leaf, depth);
      require(v == on, "its tree branches on two values at once");
      (is_kept ? kept : gone).push_back(leaf);
    }
    require_complete(kept, depth + 1);
    require_complete(gone, depth + 1);
  }

  /// Whether making the value after the instant is part of the floor.
  bool free_later(std::size_t op) const { return op == tau_ || (after_[op] && ops_[op].necessary); }

  Wide run_limit(std::size_t op) const {
    if (ops_[op].necessary && !before_[op]) return 0;
    return p_.ops[OpId(op)].once ? kUnlimited : units(ops_[op].least);
  }

  /// A value that no op alone makes: its cheapest maker, if what that maker writes is charged nowhere else.
  Wide make_limit(const Value& v) const {
    Wide limit = kUnlimited;
    for (const std::size_t o : makers_.at(v)) {
      const bool apart = ops_[o].writes.size() == 1 && !ops_[o].necessary && !p_.ops[OpId(o)].once && !homed(v);
      limit = std::min(limit, apart ? units(ops_[o].least) : Wide{0});
    }
    return limit;
  }

  Wide copy_back(const Value& v) const {
    const BufferId b(v.first);
    std::optional<Seconds> in, out;
    for (std::size_t d = 0; d < p_.devices.size(); ++d) {
      if (DeviceId(d) == device_) continue;
      const auto from = copy_seconds(p_, b, DeviceId(d), device_), to = copy_seconds(p_, b, device_, DeviceId(d));
      if (from && (!in || *from < *in)) in = from;
      if (to && (!out || *to < *out)) out = to;
    }
    bool starts_here = !homed(v) || p_.buffers[b].home == device_;
    for (const std::size_t o : makers_.at(v)) starts_here = starts_here && ops_[o].here;
    if (!in || (starts_here && !out)) return kUnlimited;
    const double scaled = std::ldexp(*in + (starts_here ? *out : 0), -unit_log2_);
    return scaled >= 1e18 ? static_cast<Wide>(1e18) : static_cast<Wide>(static_cast<std::int64_t>(std::floor(scaled)));
  }

  struct Ledger {
    std::map<std::size_t, Wide> op_in, op_out;
    std::map<Value, Wide> value_in, value_out, maker_in, maker_out;
  };

  /// Flow value less the price of the room; nothing for a leaf that cannot happen.
  std::optional<Wide> check_leaf(const JsonReader& leaf) {
    std::set<Value> kept, gone;
    Bytes room = room_;
    for (std::size_t k = 0; k < leaf.items("fixed").size(); ++k) {
      const auto [v, is_kept] = decision(leaf.value(), k);
      require(makers_.count(v) == 1, "a branch names an unknown value");
      require(kept.count(v) + gone.count(v) == 0, "a branch decides a value twice");
      require(ops_[tau_].reads.count(v) == 0, "a branch decides a value that its op reads");
      (is_kept ? kept : gone).insert(v);
      if (is_kept) room -= size(v);
    }
    if (leaf.boolean_or("impossible", false)) {
      require(room < 0, "a branch called impossible fits");
      return std::nullopt;
    }
    const std::int64_t mu = leaf.integer("mu", 0);
    Ledger l;
    const Wide value = read_flows(leaf, mu, kept, gone, &l);
    for (const auto& [o, in] : l.op_in) require(in == l.op_out[o], "the flow through an op is not conserved");
    for (const auto& [o, out] : l.op_out) require(out == l.op_in[o], "the flow through an op is not conserved");
    for (const auto& [v, in] : l.value_in) require(in == l.value_out[v], "the flow through a value is not conserved");
    for (const auto& [v, out] : l.value_out) require(out == l.value_in[v], "the flow through a value is not conserved");
    for (const auto& [v, in] : l.maker_in)
      require(in == l.maker_out[v], "the flow through a value's makers is not conserved");
    for (const auto& [v, out] : l.maker_out)
      require(out == l.maker_in[v], "the flow through a value's makers is not conserved");
    return value - static_cast<Wide>(mu) * room;
  }

  Wide read_flows(const JsonReader& leaf, std::int64_t mu, const std::set<Value>& kept, const std::set<Value>& gone,
                  Ledger* l) {
    Wide value = 0;
    std::set<std::size_t> seen_runs;
    for (const JsonReader& r : leaf.items("run")) {
      const auto parts = r.items();
      require(parts.size() == 2, "a run is not [op, flow]");
      const auto o = static_cast<std::size_t>(parts[0].integer(0));
      const std::int64_t f = parts[1].integer(0);
      require(o < ops_.size() && !free_later(o) && seen_runs.insert(o).second, "a run names no op, or one twice");
      require(f <= run_limit(o), "a run carries more than the op's seconds");
      l->op_in[o] += f;
      value += f;
    }
    std::set<Value> seen_makes, seen_keeps, seen_needs;
    for (const JsonReader& r : leaf.items("make")) {
      const auto [v, f] = value_flow(r, &seen_makes);
      require(!sole_maker(v) && f <= make_limit(v), "a making carries more than its seconds");
      l->maker_in[v] += f;
      value += f;
    }
    for (const JsonReader& r : leaf.items("keep")) {
      const auto [v, f] = value_flow(r, &seen_keeps);
      const Wide price = gone.count(v) ? kUnlimited : static_cast<Wide>(mu) * size(v);
      require(kept.count(v) == 0 && f <= price && f <= copy_back(v), "a keeping carries more than its price");
      if (const auto maker = sole_maker(v)) {
        require(!free_later(*maker), "a keeping is charged for what is made later anyway");
        l->op_out[*maker] += f;
      } else {
        for (const std::size_t o : makers_.at(v))
          require(!free_later(o), "a keeping is charged for what is made later anyway");
        l->maker_out[v] += f;
      }
      l->value_in[v] += f;
    }
    for (const JsonReader& r : leaf.items("need")) {
      const auto [v, f] = value_flow(r, &seen_needs);
      require(needed_.count(v) == 1, "a need names a value that may be done without");
      l->value_out[v] += f;
    }
    std::set<std::pair<Value, std::size_t>> seen_reads;
    for (const JsonReader& r : leaf.items("read")) {
      const auto parts = r.items();
      require(parts.size() == 3, "a read is not [value, op, flow]");
      const Value v = value_of(parts[0]);
      const auto o = static_cast<std::size_t>(parts[1].integer(0));
      require(o < ops_.size() && ops_[o].here && ops_[o].reads.count(v) == 1,
              "a read names an op that may do without it");
      require(!free_later(o) && seen_reads.insert({v, o}).second, "a read is listed twice");
      const std::int64_t f = parts[2].integer(0);
      l->value_out[v] += f;
      l->op_in[o] += f;
    }
    for (const Value& v : ops_[tau_].reads) require(l->value_in.count(v) == 0, "what its op reads is charged");
    return value;
  }

  std::pair<Value, std::int64_t> value_flow(const JsonReader& r, std::set<Value>* seen) const {
    const auto parts = r.items();
    require(parts.size() == 2, "a flow is not [value, flow]");
    const Value v = value_of(parts[0]);
    require(makers_.count(v) == 1 && seen->insert(v).second, "a flow names no value, or one twice");
    return {v, parts[1].integer(0)};
  }

  const Problem& p_;
  int unit_log2_;
  Versions versions_;
  std::vector<OpFacts> ops_;
  std::map<Value, std::vector<std::size_t>> makers_;
  DeviceId device_;
  std::size_t tau_ = 0;
  std::vector<bool> before_, after_;
  std::set<Value> needed_;
  Bytes room_ = 0;
};

/// Small enough that rounding every op's seconds down loses nothing that a double shows.
int fine_unit(const Problem& p) {
  double total = 0;
  for (const Op& op : p.ops) {
    Seconds least = op.impls[0].seconds;
    for (const Impl& i : op.impls) least = std::min(least, i.seconds);
    total += least;
  }
  int exponent = 0;
  if (total > 0) std::frexp(total, &exponent);
  return exponent - 58;
}

}  // namespace

Certified certify(const Problem& problem, const LowerBound& bound) {
  Certified result;
  try {
    const Json j = parse_json(bound.certificate, "certificate");
    const std::string kind = JsonReader(j, "certificate").string("kind");
    int unit = fine_unit(problem);
    if (kind == "cut") {
      unit = static_cast<int>(JsonReader(j, "certificate").integer("unit_log2", -4000));
      const bool any = JsonReader(j, "certificate").string("scope") == "any order";
      if (!any && bound.valid_for == BoundScope::kAnyOrder) throw UserError("it holds for one order only");
    } else if (kind != "floor") {
      throw UserError("its kind '{}' is unknown", kind);
    }
    Checker checker(problem, unit);
    Wide units = checker.floor();
    if (kind == "cut") units += checker.cut(j);
    const double claimed = std::ceil(std::ldexp(bound.seconds, -unit));
    result.seconds = std::ldexp(static_cast<double>(static_cast<std::int64_t>(units)), unit);
    result.ok = claimed < 9e18 && static_cast<Wide>(static_cast<std::int64_t>(claimed)) <= units;
    if (!result.ok) result.reason = fmt::format("it proves {} seconds, not {}", result.seconds, bound.seconds);
  } catch (const Error& e) {
    result.reason = e.what();
  }
  return result;
}

}  // namespace neaptide::plan
