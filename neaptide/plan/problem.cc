#include "neaptide/plan/problem.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_set>

#include "neaptide/base/errors.hpp"

namespace neaptide::plan {

std::optional<Seconds> copy_seconds(const Problem& problem, BufferId buffer, DeviceId from, DeviceId to) {
  for (const CopyCost& c : problem.copies) {
    if (c.buffer == buffer && c.from == from && c.to == to) return c.seconds;
  }
  for (const Link& l : problem.links) {
    if (l.from != from || l.to != to) continue;
    const Seconds transfer = static_cast<double>(problem.buffers[buffer].bytes) / l.bytes_per_second;
    return l.latency + transfer;
  }
  return std::nullopt;
}

namespace {

bool has(const std::vector<BufferId>& list, BufferId buffer) {
  return std::find(list.begin(), list.end(), buffer) != list.end();
}

bool is_seconds(double value) { return std::isfinite(value) && value >= 0; }

/// Collects sentences about one problem. One member function per kind of thing.
class Checker {
 public:
  explicit Checker(const Problem& problem) : problem_(problem) {}

  std::vector<std::string> run() {
    check_devices();
    check_buffers();
    check_links();
    check_copies();
    for (const Op& op : problem_.ops) check_op(op);
    check_names(problem_.ops, "op");
    check_order();
    if (errors_.empty()) check_versions();
    return std::move(errors_);
  }

 private:
  template <class... A>
  void fail(fmt::format_string<A...> f, A&&... a) {
    errors_.push_back(fmt::format(f, std::forward<A>(a)...));
  }

  template <class Things>
  void check_names(const Things& things, const char* kind) {
    std::unordered_set<std::string_view> seen;
    for (const auto& thing : things) {
      if (thing.name.empty()) fail("a {} has no name", kind);
      if (!seen.insert(thing.name).second) fail("{} '{}' is listed twice; names must be unique", kind, thing.name);
    }
  }

  void check_devices() {
    if (problem_.devices.empty()) fail("the problem has no device");
    check_names(problem_.devices, "device");
    for (const Device& d : problem_.devices) {
      if (d.budget && *d.budget < 0) fail("device '{}': the budget is negative", d.name);
      if (d.alignment < 1) fail("device '{}': the alignment must be at least 1", d.name);
    }
  }

  void check_buffers() {
    check_names(problem_.buffers, "buffer");
    constexpr double kMost = 4e18;  // every sum of sizes, rounded up, stays within 63 bits
    double total = 0, alignment = 1;
    for (const Device& d : problem_.devices) alignment = std::max(alignment, static_cast<double>(d.alignment));
    for (const Buffer& b : problem_.buffers) {
      if (b.bytes < 0) fail("buffer '{}': bytes is negative", b.name);
      if (b.home && !problem_.devices.has(*b.home)) fail("buffer '{}': home is not a device", b.name);
      if (b.pageable && !b.home) fail("buffer '{}' is pageable but has no home", b.name);
      total += static_cast<double>(b.bytes) + alignment;
    }
    for (const Op& op : problem_.ops) {
      for (const Impl& i : op.impls) total += static_cast<double>(i.workspace) + alignment;
    }
    if (total > kMost) fail("the sizes add up to more than 63 bits hold");
  }

  bool two_devices(DeviceId from, DeviceId to) const {
    return problem_.devices.has(from) && problem_.devices.has(to) && from != to;
  }

  void check_links() {
    std::set<std::pair<DeviceId, DeviceId>> seen;
    for (std::size_t i = 0; i < problem_.links.size(); ++i) {
      const Link& l = problem_.links[i];
      if (!two_devices(l.from, l.to)) fail("links[{}] needs two different known devices", i);
      if (!seen.insert({l.from, l.to}).second) fail("links[{}] is listed twice", i);
      if (!is_seconds(l.latency)) fail("links[{}]: latency must be a number of seconds, at least 0", i);
      if (!(std::isfinite(l.bytes_per_second) && l.bytes_per_second > 0))
        fail("links[{}]: bytes_per_second must be more than 0", i);
    }
  }

  void check_copies() {
    std::set<std::tuple<BufferId, DeviceId, DeviceId>> seen;
    for (std::size_t i = 0; i < problem_.copies.size(); ++i) {
      const CopyCost& c = problem_.copies[i];
      if (!problem_.buffers.has(c.buffer) || !two_devices(c.from, c.to))
        fail("copies[{}] needs a known buffer and two different known devices", i);
      if (!seen.insert({c.buffer, c.from, c.to}).second) fail("copies[{}] is listed twice", i);
      if (!is_seconds(c.seconds)) fail("copies[{}]: seconds must be at least 0", i);
    }
  }

  void check_op(const Op& op) {
    if (op.impls.empty()) fail("op '{}' has no implementation", op.name);
    std::unordered_set<std::string_view> seen;
    for (const Impl& impl : op.impls) {
      const std::string where = fmt::format("op '{}' implementation '{}'", op.name, impl.name);
      if (!seen.insert(impl.name).second) fail("{} is listed twice; names must be unique within the op", where);
      check_impl(where, impl);
    }
  }

  void check_impl(const std::string& where, const Impl& impl) {
    if (!problem_.devices.has(impl.device)) return fail("{}: the device is unknown", where);
    if (!is_seconds(impl.seconds)) fail("{}: seconds must be at least 0", where);
    if (impl.workspace < 0) fail("{}: workspace is negative", where);
    if (!check_list(where, impl.reads, "reads") || !check_list(where, impl.writes, "writes")) return;
    std::set<BufferId> paired;
    for (const InPlace& pair : impl.in_place) {
      check_pair(where, impl, pair);
      if (!paired.insert(pair.in).second || !paired.insert(pair.out).second)
        fail("{}: in_place names a buffer twice", where);
    }
  }

  bool check_list(const std::string& where, const std::vector<BufferId>& list, const char* kind) {
    std::set<BufferId> seen;
    for (BufferId b : list) {
      if (!problem_.buffers.has(b)) return fail("{} {} an unknown buffer", where, kind), false;
      if (!seen.insert(b).second) fail("{} {} '{}' twice", where, kind, problem_.buffers[b].name);
    }
    return true;
  }

  void check_pair(const std::string& where, const Impl& impl, const InPlace& pair) {
    if (!has(impl.reads, pair.in) || has(impl.writes, pair.in) || !has(impl.writes, pair.out) ||
        has(impl.reads, pair.out)) {
      return fail("{}: in_place needs an input that is only read and an output that is only written", where);
    }
    const Buffer &in = problem_.buffers[pair.in], &out = problem_.buffers[pair.out];
    if (out.bytes > in.bytes) fail("{}: in_place output '{}' is larger than input '{}'", where, out.name, in.name);
    if (in.home == impl.device && !in.pageable) fail("{}: in_place would drop '{}' from its home", where, in.name);
  }

  void check_order() {
    std::vector<int> seen(problem_.ops.size(), 0);
    for (OpId op : problem_.order) {
      if (!problem_.ops.has(op)) return fail("the order names an unknown op");
      ++seen[op.index()];
    }
    if (std::any_of(seen.begin(), seen.end(), [](int n) { return n != 1; }))
      fail("the order is not a permutation of the ops");
  }

  void check_versions() {
    std::vector<int> version(problem_.buffers.size(), -1);
    for (std::size_t b = 0; b < problem_.buffers.size(); ++b) {
      if (problem_.buffers[BufferId(b)].home) version[b] = 0;
    }
    for (OpId id : problem_.order) {
      const Op& op = problem_.ops[id];
      check_reads(op, version);
      check_writes(op, version);
    }
    for (std::size_t b = 0; b < version.size(); ++b) {
      const Buffer& buffer = problem_.buffers[BufferId(b)];
      if (buffer.keep && version[b] < 0) fail("buffer '{}' must be kept but nothing writes it", buffer.name);
    }
  }

  /// An implementation may read what another implementation of the same op leaves behind.
  static bool is_own_output(const Op& op, BufferId buffer) {
    bool written = false;
    for (const Impl& i : op.impls) {
      if (has(i.writes, buffer) && has(i.reads, buffer)) return false;
      written |= has(i.writes, buffer);
    }
    return written;
  }

  void check_reads(const Op& op, const std::vector<int>& version) {
    for (const Impl& impl : op.impls) {
      for (BufferId b : impl.reads) {
        if (version[b.index()] >= 0 || is_own_output(op, b)) continue;
        fail("op '{}' reads '{}', which nothing earlier in the order writes and no home holds", op.name,
             problem_.buffers[b].name);
      }
    }
  }

  void check_writes(const Op& op, std::vector<int>& version) {
    std::set<BufferId> written;
    for (const Impl& impl : op.impls) written.insert(impl.writes.begin(), impl.writes.end());
    for (BufferId b : written) {
      int& v = version[b.index()];
      const Buffer& buffer = problem_.buffers[b];
      if (v < 0) {
        v = 0;
      } else if (!op.once) {
        const bool both = std::any_of(op.impls.begin(), op.impls.end(),
                                      [&](const Impl& i) { return has(i.reads, b) && has(i.writes, b); });
        if (v > 0 || buffer.home || both)
          fail("op '{}' overwrites '{}' but is not once: it could not be repeated", op.name, buffer.name);
      } else {
        if (!std::all_of(op.impls.begin(), op.impls.end(), [&](const Impl& i) { return has(i.writes, b); }))
          fail("op '{}' overwrites '{}' in some of its implementations only", op.name, buffer.name);
        ++v;
      }
    }
  }

  const Problem& problem_;
  std::vector<std::string> errors_;
};

}  // namespace

std::vector<std::string> check(const Problem& problem) { return Checker(problem).run(); }

Versions versions(const Problem& problem) {
  Versions out;
  out.read.resize(problem.ops.size());
  out.write.resize(problem.ops.size());
  out.last = IdVector<BufferTag, int>(problem.buffers.size(), -1);
  for (std::size_t b = 0; b < problem.buffers.size(); ++b) {
    if (problem.buffers[BufferId(b)].home) out.last[BufferId(b)] = 0;
  }
  for (OpId id : problem.order) {
    const Op& op = problem.ops[id];
    auto& read = out.read[id.index()];
    auto& write = out.write[id.index()];
    for (const Impl& impl : op.impls) {
      read.emplace_back();
      for (BufferId b : impl.reads) read.back().push_back(out.last[b]);
    }
    std::set<BufferId> written;
    for (const Impl& impl : op.impls) written.insert(impl.writes.begin(), impl.writes.end());
    for (BufferId b : written) {
      if (out.last[b] < 0 || op.once) ++out.last[b];
    }
    for (const Impl& impl : op.impls) {
      write.emplace_back();
      for (BufferId b : impl.writes) write.back().push_back(out.last[b]);
    }
  }
  return out;
}

}  // namespace neaptide::plan
