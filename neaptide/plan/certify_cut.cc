// The single cut: a flow through the network of one instant, as bounds.hpp draws it. The value of any flow that
// respects the capacities is at most the minimum cut, so nobody has to believe that it is the best one.
#include "neaptide/plan/certify_view.hpp"

#include <algorithm>

namespace neaptide::plan::certificate {
namespace {

class CutChecker : public View {
 public:
  using View::View;

  /// Units proved beyond the floor by a cut certificate.
  Exact cut(const Json& j) {
    const JsonReader r(j, "certificate");
    find_device(r.string("device"));
    const std::string scope = r.string("scope");
    require(scope == "this order" || scope == "any order", "its scope is neither this order nor any order");
    place_ops(find_op(r.string("op")), scope == "any order");
    return check_flow(r.at("flow"));
  }

 private:
  /// Which ops have certainly run before the instant, and which certainly first run after it.
  void place_ops(std::size_t tau, bool any_order) {
    require(ops_[tau].necessary && ops_[tau].here, "its op need not run, or need not run on its device");
    tau_ = tau;
    before_.assign(ops_.size(), false);
    after_.assign(ops_.size(), false);
    if (any_order) {
      before_ = ancestors(tau);
      after_ = followers(tau);
      for (std::size_t o = 0; o < ops_.size(); ++o) after_[o] = after_[o] && !before_[o];
    } else {
      bool passed = false;
      for (const OpId o : p_.order) {
        (passed ? after_ : before_)[o.index()] = true;
        passed = passed || o.index() == tau;
      }
    }
    Bytes least = extra(tau, 0);
    for (std::size_t i = 1; i < p_.ops[OpId(tau)].impls.size(); ++i) least = std::min(least, extra(tau, i));
    room_ = room() - least;
    for (const Value& v : ops_[tau].reads) room_ -= size(v);
    needed_.clear();
    for (const auto& [v, list] : makers_) {
      if (needed_at_end(v)) needed_.insert(v);
    }
    for (std::size_t o = 0; o < ops_.size(); ++o) {
      if (after_[o] && ops_[o].necessary && ops_[o].here) needed_.insert(ops_[o].reads.begin(), ops_[o].reads.end());
    }
  }

  /// Whether making the value after the instant is part of the floor.
  bool free_later(std::size_t op) const { return op == tau_ || (after_[op] && ops_[op].necessary); }

  Exact run_limit(std::size_t op) const {
    if (ops_[op].necessary && !before_[op]) return 0;
    return p_.ops[OpId(op)].once ? kUnlimited : units(ops_[op].least);
  }

  /// A value that no op alone makes: its cheapest maker, if what that maker writes is charged nowhere else.
  Exact make_limit(const Value& v) const {
    Exact limit = kUnlimited;
    for (const std::size_t o : makers_.at(v)) {
      const bool apart = ops_[o].writes.size() == 1 && !ops_[o].necessary && !p_.ops[OpId(o)].once && !homed(v);
      limit = std::min(limit, apart ? units(ops_[o].least) : Exact{0});
    }
    return limit;
  }

  struct Ledger {
    std::map<std::size_t, Exact> op_in, op_out;
    std::map<Value, Exact> value_in, value_out, maker_in, maker_out;
  };

  /// Flow value less the price of the room.
  Exact check_flow(const JsonReader& leaf) {
    const std::int64_t mu = leaf.integer("mu", 0);
    Ledger l;
    const Exact value = read_flows(leaf, mu, &l);
    for (const auto& [o, in] : l.op_in) require(in == l.op_out[o], "the flow through an op is not conserved");
    for (const auto& [o, out] : l.op_out) require(out == l.op_in[o], "the flow through an op is not conserved");
    for (const auto& [v, in] : l.value_in) require(in == l.value_out[v], "the flow through a value is not conserved");
    for (const auto& [v, out] : l.value_out) require(out == l.value_in[v], "the flow through a value is not conserved");
    for (const auto& [v, in] : l.maker_in)
      require(in == l.maker_out[v], "the flow through a value's makers is not conserved");
    for (const auto& [v, out] : l.maker_out)
      require(out == l.maker_in[v], "the flow through a value's makers is not conserved");
    return value - static_cast<Exact>(mu) * room_;
  }

  Exact read_flows(const JsonReader& leaf, std::int64_t mu, Ledger* l) const {
    Exact value = 0;
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
      const Exact in = copy_in(v);
      const Exact back = in == kUnlimited ? in : in + copy_out(v);
      require(f <= static_cast<Exact>(mu) * size(v) && f <= back, "a keeping carries more than its price");
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

  std::size_t tau_ = 0;
  std::vector<bool> before_, after_;
  std::set<Value> needed_;
  Bytes room_ = 0;
};

}  // namespace

Exact check_cut(const Problem& p, int unit_log2, const Json& certificate) {
  CutChecker checker(p, unit_log2);
  return checker.floor() + checker.cut(certificate);
}

}  // namespace neaptide::plan::certificate
