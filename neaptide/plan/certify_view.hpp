// What the certificate checkers read off a problem, whatever the certificate. Written from DESIGN.md section 4, and not
// shared with whatever makes bounds.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/json.hpp"
#include "neaptide/plan/plan.hpp"

namespace neaptide::plan::certificate {

__extension__ using Exact = __int128;
using Value = std::pair<int, int>;  // buffer, version

constexpr std::int64_t kUnlimited = std::int64_t{1} << 61;  // more than all seconds of a problem together

/// One op as every plan sees it, whatever implementation it chooses.
struct OpFacts {
  std::set<Value> reads;   // of every implementation
  std::set<Value> writes;  // of some implementation
  Seconds least = 0;
  std::vector<bool> may_be_first;  // by implementation: it reads nothing that only the op itself makes
  Seconds least_first = 0;
  bool here = false;  // every implementation runs on the device
  bool necessary = false;
};

/// Throws UserError unless the condition holds: the certificate is bad.
inline void require(bool condition, const char* what) {
  if (!condition) throw UserError("{}", what);
}

/// A value in JSON: [buffer, version].
Value value_of(const JsonReader& r);

/// Whether a step fits on its device with nothing but the homes that never leave.
class RunsAlone {
 public:
  explicit RunsAlone(const Problem& p);
  bool operator()(const Impl& i) const;

 private:
  bool stays(BufferId b, DeviceId d) const;
  const Problem& p_;
  std::vector<std::optional<Bytes>> left_;  // by device
};

/// The problem without implementations that cannot run: alone they exceed their device's budget, or nothing makes what
/// they read. As it is where an op would have none left, or something kept would not be made.
Problem without_impossible(const Problem& p);

class View {
 public:
  View(const Problem& p, int unit_log2);
  /// Every necessary op once, in units of 2^unit_log2 seconds.
  Exact floor() const;

 protected:
  Exact units(Seconds s) const;
  /// Of a time, however long; very long ones are charged as less, which is valid.
  Exact units_at_most(Seconds s) const;
  bool homed(const Value& v) const { return v.second == 0 && p_.buffers[BufferId(v.first)].home.has_value(); }
  /// The op that alone can make the value.
  std::optional<std::size_t> sole_maker(const Value& v) const;
  bool kept_at_end(const Value& v) const;
  /// It must be on the device at the end.
  bool needed_at_end(const Value& v) const;
  void find_device(const std::string& name);
  std::size_t find_op(const std::string& name) const;
  Bytes size(const Value& v) const;
  /// `budget_` less the homes that never leave.
  Bytes room() const;
  /// Workspace and outputs of a first run that cannot have been there and take over no block.
  Bytes extra(std::size_t op, std::size_t impl) const;
  /// Ops that must have run before `op` runs, itself included; and that can only run after it has, itself included.
  std::vector<bool> ancestors(std::size_t op) const;
  std::vector<bool> followers(std::size_t op) const;
  /// Least seconds of a copy of the value onto the device, and off it when that must come first; kUnlimited: no way.
  Exact copy_in(const Value& v) const;
  Exact copy_out(const Value& v) const;

  const Problem& p_;
  int unit_log2_;
  Versions versions_;
  std::vector<OpFacts> ops_;
  std::map<Value, std::vector<std::size_t>> makers_;
  DeviceId device_;
  Bytes budget_ = 0;  // of the device, or a larger one that the certificate is about

 private:
  void gather();
  void find_first_runs(std::size_t op);
  void mark_necessary();
};

/// Units that a certificate of kind "cut" proves beyond the floor, or of kind "cuts", floor included, or of kind
/// "overlap" or "placement". UserError when it does not hold.
Exact check_cut(const Problem& p, int unit_log2, const Json& certificate);
Exact check_overlap(const Problem& p, int unit_log2, const Json& certificate);
Exact check_placement(const Problem& p, int unit_log2, const Json& certificate);
Exact check_cuts(const Problem& p, int unit_log2, const Json& certificate);

}  // namespace neaptide::plan::certificate
