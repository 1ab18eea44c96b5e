// Random sound problems for property tests: small by default, with every feature that can be switched off.
//
//   for (int seed = 0; seed < 1000; ++seed) { const plan::Problem p = plan::random_problem(seed); ... }
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

#include "neaptide/plan/problem.hpp"

namespace neaptide::plan {

struct RandomProblem {
  int n_ops = 8;
  int n_devices = 1;
  bool host = false;            // one more device, which only holds buffers; every second home may leave for it
  bool implementations = true;  // up to 3 per op, with workspaces
  bool in_place = true;
  bool once = true;              // besides the last op
  bool homes = true;             // weights, some pageable when there are two devices
  bool versions = true;          // weight updates
  bool ways = true;              // a second op that writes the same value
  bool optional_outputs = true;  // a second output that only some implementation writes, and another op may read
  bool chain = false;            // op i reads only op i - 1 (forward and backward halves when even)
  bool copies = false;           // some buffers have copy seconds of their own, and links differ
  int slowest_link = 3;          // times slower than the fastest, where copies differ
  bool energy = false;           // joules everywhere
  bool zeros = false;            // one size in four and one cost in four is zero
  int most_bytes = 20;
  int most_seconds = 9;
  Bytes byte_unit = 1;  // sizes and costs are multiples of these
  Seconds second_unit = 1;
};

/// A problem that passes check(). Same seed, same problem.
class RandomProblemMaker {
 public:
  RandomProblemMaker(std::uint64_t seed, const RandomProblem& shape) : random_(seed), shape_(shape) {}

  Problem run() {
    for (int d = 0; d < shape_.n_devices; ++d)
      p_.devices.push_back({.name = "d" + std::to_string(d), .budget = std::nullopt, .alignment = chance(5) ? 4 : 1});
    if (shape_.host) p_.devices.push_back({.name = "host"});
    add_links();
    p_.name = "random";
    const int n_weights = shape_.homes ? below(3) : 0;
    for (int w = 0; w < n_weights; ++w) add_weight(w);
    for (int i = 0; i < shape_.n_ops; ++i) add_op(i);
    keep_something();
    if (shape_.copies) add_copies();
    for (std::size_t i = 0; i < p_.ops.size(); ++i) p_.order.emplace_back(i);
    return std::move(p_);
  }

 private:
  int below(int n) { return n <= 1 ? 0 : static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  bool chance(int one_in) { return below(one_in) == 0; }

  Bytes bytes(int least) {
    if (shape_.zeros && chance(4)) return 0;
    return (least + below(shape_.most_bytes)) * shape_.byte_unit;
  }

  Seconds seconds() {
    if (shape_.zeros && chance(4)) return 0;
    return below(shape_.most_seconds + 1) * shape_.second_unit;
  }

  void add_links() {
    const int n = static_cast<int>(p_.devices.size());
    for (int a = 0; a < n; ++a) {
      for (int b = 0; b < n; ++b) {
        if (a == b) continue;
        const int slower = shape_.copies ? 1 + below(shape_.slowest_link) : 1;
        Link link{.from = DeviceId(a), .to = DeviceId(b), .latency = 0.5 * slower * shape_.second_unit};
        link.bytes_per_second = 4.0 * static_cast<double>(shape_.byte_unit) / (slower * shape_.second_unit);
        p_.links.push_back(link);
      }
    }
  }

  void add_copies() {
    const int n = static_cast<int>(p_.devices.size());
    for (std::size_t b = 0; b < p_.buffers.size() && n > 1; ++b) {
      if (!chance(4)) continue;
      const int from = below(n), to = (from + 1 + below(n - 1)) % n;
      CopyCost copy{.buffer = BufferId(b), .from = DeviceId(from), .to = DeviceId(to), .seconds = seconds()};
      if (shape_.energy) copy.joules = below(5);
      p_.copies.push_back(copy);
    }
  }

  BufferId add_buffer(const std::string& name) {
    Buffer b;
    b.name = name;
    b.bytes = bytes(1);
    return p_.buffers.push_back(b);
  }

  void add_weight(int w) {
    const BufferId b = add_buffer("w" + std::to_string(w));
    p_.buffers[b].home = DeviceId(0);
    p_.buffers[b].pageable = (shape_.n_devices > 1 && chance(3)) || (shape_.host && chance(2));
    p_.buffers[b].keep = chance(2);
    values_.push_back(b);
    weights_.push_back(b);
  }

  void add_op(int i) {
    Op op;
    op.name = "op" + std::to_string(i);
    const bool update = shape_.versions && !weights_.empty() && i > 2 && chance(5);
    op.once = update || i + 1 == shape_.n_ops || (shape_.once && chance(6));
    Impl first;
    first.name = "i0";
    first.device = DeviceId(below(shape_.n_devices));
    first.seconds = seconds();
    if (shape_.energy) first.joules = below(shape_.most_seconds + 1);
    pick_reads(first, i);
    if (update) {
      add_update(op, first);
      return;
    }
    if (shape_.ways && !op.once && !made_.empty() && chance(7) && add_second_way(op, first)) return;
    const BufferId out = add_buffer("v" + std::to_string(i));
    first.writes = {out};
    op.impls.push_back(first);
    if (shape_.optional_outputs && chance(4)) add_optional_output(op, out, i);
    if (shape_.implementations) add_variants(op, out);
    made_.push_back(out);
    values_.push_back(out);
    p_.ops.push_back(std::move(op));
  }

  void pick_reads(Impl& impl, int i) {
    if (shape_.chain) {
      if (!made_.empty()) impl.reads.push_back(made_.back());
      const int mirror = shape_.n_ops - 1 - i;
      if (i > mirror && mirror >= 0 && mirror < static_cast<int>(made_.size()) &&
          made_[static_cast<std::size_t>(mirror)] != made_.back()) {
        impl.reads.push_back(made_[static_cast<std::size_t>(mirror)]);
      }
      return;
    }
    const int n = values_.empty() ? 0 : below(3) + (i > 0 ? 1 : 0);
    for (int k = 0; k < n; ++k) {
      const auto at = static_cast<int>(values_.size()) - 1 - std::min(below(6), below(6));
      add_unique(impl.reads, values_[static_cast<std::size_t>(std::max(0, at))]);
    }
  }

  static void add_unique(std::vector<BufferId>& list, BufferId b) {
    if (std::find(list.begin(), list.end(), b) == list.end()) list.push_back(b);
  }

  void add_update(Op& op, Impl& impl) {
    const BufferId w = weights_[static_cast<std::size_t>(below(static_cast<int>(weights_.size())))];
    add_unique(impl.reads, w);
    impl.writes = {w};
    op.impls.push_back(impl);
    p_.ops.push_back(std::move(op));
  }

  bool add_second_way(Op& op, Impl& impl) {
    const BufferId b = made_[static_cast<std::size_t>(below(static_cast<int>(made_.size())))];
    if (std::find(impl.reads.begin(), impl.reads.end(), b) != impl.reads.end()) return false;
    impl.writes = {b};
    op.impls.push_back(impl);
    p_.ops.push_back(std::move(op));
    return true;
  }

  void add_optional_output(Op& op, BufferId out, int i) {
    const BufferId extra = add_buffer("x" + std::to_string(i));
    Impl more = op.impls.front();
    more.name = "extra";
    more.seconds += below(3) * shape_.second_unit;
    more.writes = {out, extra};
    op.impls.push_back(more);
    if (chance(2)) {  // repeats itself from what it saved
      Impl again = op.impls.front();
      again.name = "again";
      again.seconds = std::floor(again.seconds / 2);
      again.reads = {extra};
      op.impls.push_back(again);
    }
    optional_.push_back(extra);
  }

  void add_variants(Op& op, BufferId out) {
    const int n = below(3);
    for (int k = 0; k < n; ++k) {
      Impl other = op.impls.front();
      other.name = "i" + std::to_string(k + 1);
      other.device = DeviceId(below(shape_.n_devices));
      other.seconds = seconds();
      if (shape_.energy) other.joules = below(shape_.most_seconds + 1);
      other.workspace = chance(2) ? bytes(0) : 0;
      if (shape_.in_place && !other.reads.empty() && chance(2)) try_in_place(other, out);
      if (!optional_.empty() && chance(3)) {
        const BufferId extra = optional_[static_cast<std::size_t>(below(static_cast<int>(optional_.size())))];
        if (std::find(other.writes.begin(), other.writes.end(), extra) == other.writes.end()) {
          other.reads = {extra};
          other.in_place.clear();
        }
      }
      op.impls.push_back(other);
    }
  }

  void try_in_place(Impl& impl, BufferId out) {
    const BufferId in = impl.reads.front();
    const Buffer& buffer = p_.buffers[in];
    if (buffer.bytes < p_.buffers[out].bytes || (buffer.home == impl.device && !buffer.pageable)) return;
    impl.in_place = {{in, out}};
  }

  void keep_something() {
    for (BufferId b : made_) p_.buffers[b].keep = chance(6);
  }

  std::mt19937_64 random_;
  RandomProblem shape_;
  Problem p_;
  std::vector<BufferId> values_, weights_, made_, optional_;
};

inline Problem random_problem(std::uint64_t seed, const RandomProblem& shape = {}) {
  return RandomProblemMaker(seed, shape).run();
}

/// How many to try: `otherwise`, or more where NEAPTIDE_PROBLEMS in the environment says so (the long tests).
inline int n_problems(int otherwise) {
  const char* given = std::getenv("NEAPTIDE_PROBLEMS");
  return given == nullptr ? otherwise : std::max(otherwise, std::atoi(given));
}

inline Problem all_once(Problem p) {
  for (std::size_t i = 0; i < p.ops.size(); ++i) p.ops[OpId(i)].once = true;
  return p;
}

}  // namespace neaptide::plan
