#include "neaptide/memory/mxnet.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "neaptide/base/units.hpp"

namespace neaptide::memory {

namespace {

constexpr Bytes kRange = 16;

class Walk {
 public:
  Walk(const plan::Problem& problem, const MxnetOptions& options);
  MxnetBlocks run();

 private:
  void run(const plan::Op& op);
  bool take_over(const plan::Op& op, plan::BufferId out);
  std::optional<std::pair<Bytes, int>> find_free(Bytes bytes) const;
  int request(Bytes bytes);
  void release(plan::BufferId buffer);

  const plan::Problem& problem_;
  MxnetOptions options_;
  IdVector<plan::BufferTag, int> uses_;  // reads still to come
  std::set<std::pair<Bytes, int>> free_;
  MxnetBlocks out_;
};

Walk::Walk(const plan::Problem& problem, const MxnetOptions& options)
    : problem_(problem), options_(options), uses_(problem.buffers.size(), 0) {
  out_.block.resize(problem.buffers.size(), -1);
  for (const plan::Op& op : problem.ops) {
    for (plan::BufferId b : op.impls.front().reads) ++uses_[b];
  }
}

bool in_range(Bytes small, Bytes large) { return large == small || (large - 1) / kRange < small; }

std::optional<std::pair<Bytes, int>> Walk::find_free(Bytes bytes) const {
  const auto above = free_.lower_bound({bytes, -1});
  if (above != free_.end() && in_range(bytes, above->first)) return *above;
  if (above != free_.begin() && in_range(std::prev(above)->first, bytes)) return *std::prev(above);
  return std::nullopt;
}

int Walk::request(Bytes bytes) {
  if (const auto found = find_free(bytes)) {
    free_.erase(*found);
    Bytes& size = out_.bytes[static_cast<std::size_t>(found->second)];
    size = std::max(size, bytes);
    return found->second;
  }
  out_.bytes.push_back(bytes);
  return static_cast<int>(out_.bytes.size()) - 1;
}

bool Walk::take_over(const plan::Op& op, plan::BufferId out) {
  const plan::Impl& first = op.impls.front();
  for (const plan::Impl& impl : op.impls) {
    if (impl.reads != first.reads || impl.writes != first.writes) continue;
    for (const plan::InPlace& pair : impl.in_place) {
      const bool same_size = problem_.buffers[pair.in].bytes == problem_.buffers[out].bytes;
      if (pair.out != out || !same_size || uses_[pair.in] != 1 || out_.block[pair.in] < 0) continue;
      out_.block[out] = out_.block[pair.in];
      uses_[pair.in] = 0;  // its block is not released
      return true;
    }
  }
  return false;
}

void Walk::release(plan::BufferId buffer) {
  const int block = out_.block[buffer];
  if (options_.co_share && block >= 0) free_.insert({out_.bytes[static_cast<std::size_t>(block)], block});
}

void Walk::run(const plan::Op& op) {
  const plan::Impl& impl = op.impls.front();
  for (plan::BufferId b : impl.writes) {
    if (problem_.buffers[b].home || out_.block[b] >= 0) continue;
    if (options_.in_place && take_over(op, b)) continue;
    out_.block[b] = request(problem_.buffers[b].bytes);
  }
  for (plan::BufferId b : impl.reads) {
    if (uses_[b] > 0 && --uses_[b] == 0) release(b);
  }
  for (plan::BufferId b : impl.writes) {
    if (uses_[b] == 0) release(b);
  }
}

MxnetBlocks Walk::run() {
  for (plan::OpId op : problem_.order) run(problem_.ops[op]);
  for (Bytes b : out_.bytes) out_.total = checked_add(out_.total, b, "the sum of all blocks");
  return std::move(out_);
}

}  // namespace

MxnetBlocks mxnet_blocks(const plan::Problem& problem, const MxnetOptions& options) {
  return Walk(problem, options).run();
}

}  // namespace neaptide::memory
