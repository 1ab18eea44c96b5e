// Problem: what a planner sees. Ops, buffers, implementations, costs and budgets; no tensors, no names of networks.
// The rules are DESIGN.md section 4; the JSON form is "neaptide.problem" version 1.
//
//   const plan::Problem p = plan::read_problem("tiny.json");       // throws UserError naming the place
//   for (OpId op : p.order) std::puts(p.ops[op].name.c_str());
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "neaptide/base/ids.hpp"
#include "neaptide/base/units.hpp"

namespace neaptide::plan {

using DeviceId = Id<struct DeviceTag>;
using BufferId = Id<struct BufferTag>;
using OpId = Id<struct OpTag>;

/// A memory with a compute unit (or none: "host" only holds buffers).
struct Device {
  std::string name;
  std::optional<Bytes> budget = std::nullopt;  // none: no limit
  Bytes alignment = 1;                         // every resident buffer and workspace counts rounded up to it
  friend bool operator==(const Device&, const Device&) = default;
};

/// Directed. A copy over it takes latency + bytes / bytes_per_second.
struct Link {
  DeviceId from, to;
  Seconds latency = 0;
  double bytes_per_second = 0;
  friend bool operator==(const Link&, const Link&) = default;
};

/// Overrides the link (or stands for one) for one buffer.
struct CopyCost {
  BufferId buffer;
  DeviceId from, to;
  Seconds seconds = 0;
  std::optional<double> joules = std::nullopt;
  friend bool operator==(const CopyCost&, const CopyCost&) = default;
};

struct Buffer {
  std::string name;
  Bytes bytes = 0;
  std::optional<DeviceId> home = std::nullopt;  // resident there before step 0
  bool keep = false;                            // must exist in its last version at the end
  bool pageable = false;                        // may leave its home
  friend bool operator==(const Buffer&, const Buffer&) = default;
};

/// `out` takes over the block of `in`: bytes(out) <= bytes(in), `in` ends.
struct InPlace {
  BufferId in, out;
  friend bool operator==(const InPlace&, const InPlace&) = default;
};

struct Impl {
  std::string name;
  DeviceId device;
  Seconds seconds = 0;
  std::optional<double> joules = std::nullopt;
  Bytes workspace = 0;
  std::vector<BufferId> reads = {}, writes = {};  // no duplicates within each
  std::vector<InPlace> in_place = {};
  friend bool operator==(const Impl&, const Impl&) = default;
};

struct Op {
  std::string name;
  bool once = false;  // executed exactly once; others any number of times, or never if nothing needs them
  std::vector<Impl> impls;
  friend bool operator==(const Op&, const Op&) = default;
};

struct Problem {
  std::string name;
  IdVector<struct DeviceTag, Device> devices;
  std::vector<Link> links;
  std::vector<CopyCost> copies;
  IdVector<struct BufferTag, Buffer> buffers;
  IdVector<struct OpTag, Op> ops;
  std::vector<OpId> order;  // a permutation of the ops, executable with unlimited memory; defines the versions (rule 5)
  friend bool operator==(const Problem&, const Problem&) = default;

  /// Bytes that `bytes` count on `device` (rule 1).
  Bytes rounded(Bytes bytes, DeviceId device) const { return round_up(bytes, devices[device].alignment); }
  Bytes size_on(BufferId buffer, DeviceId device) const { return rounded(buffers[buffer].bytes, device); }
};

/// Seconds of a copy, from `copies`, else from the link; none when there is neither (rule 4).
std::optional<Seconds> copy_seconds(const Problem& problem, BufferId buffer, DeviceId from, DeviceId to);

/// Everything that is wrong with the problem, each a sentence that names its place; empty when it is sound: names
/// unique, ids in range, in-place pairs legal, `order` executable, further writers legal (rules 3 and 5).
std::vector<std::string> check(const Problem& problem);

/// Versions by rule 5, for a sound problem. Indexed like impl.reads / impl.writes.
struct Versions {
  std::vector<std::vector<std::vector<int>>> read;   // [op][impl][position in reads]; -1: written by another impl of op
  std::vector<std::vector<std::vector<int>>> write;  // [op][impl][position in writes]
  IdVector<struct BufferTag, int> last;              // version after the whole order; -1: never written, no home
};
Versions versions(const Problem& problem);

/// Parses and checks. `place` names the source in messages. Throws UserError listing what is wrong.
Problem problem_from_json(std::string_view text, std::string_view place);
std::string to_json(const Problem& problem);

/// Reads a file (gzip accepted). `sha256`, when given, receives the digest of the uncompressed text.
Problem read_problem(const std::string& path, std::string* sha256 = nullptr);

}  // namespace neaptide::plan
