#include <algorithm>
#include <map>

#include "neaptide/base/errors.hpp"
#include "neaptide/memory/memory.hpp"

namespace neaptide::memory {

namespace {

/// Replays the steps and keeps one open block per (buffer, device) that is resident.
class Replay {
 public:
  Replay(const plan::Problem& problem, int n_steps);

  void run(const plan::Compute& step, int t);
  void run(const plan::Copy& step, int t);
  void run(const plan::Free& step, int t) { close(step.buffer, step.device, t + 1); }
  std::vector<Lifetimes> finish();

 private:
  int open(plan::BufferId b, plan::DeviceId d) const { return open_[b][d]; }
  void begin(plan::BufferId b, plan::DeviceId d, int t);
  void close(plan::BufferId b, plan::DeviceId d, int t);
  void take_over(const plan::InPlace& pair, plan::DeviceId d);
  void drop_copies_elsewhere(plan::BufferId b, plan::DeviceId d, int t);
  bool overwrites(plan::OpId op, plan::BufferId b) const;
  bool pinned(plan::BufferId b, plan::DeviceId d) const;
  int add(plan::DeviceId d, std::string name, Block block);

  const plan::Problem& problem_;
  int n_steps_;
  std::vector<Lifetimes> devices_;
  IdVector<plan::BufferTag, IdVector<plan::DeviceTag, int>> open_;  // block index, -1: not resident
  IdVector<plan::BufferTag, plan::OpId> first_writer_;
};

Replay::Replay(const plan::Problem& problem, int n_steps) : problem_(problem), n_steps_(std::max(n_steps, 1)) {
  devices_.resize(problem.devices.size());
  for (std::size_t d = 0; d < devices_.size(); ++d) devices_[d].device = plan::DeviceId(d);
  open_.resize(problem.buffers.size(), IdVector<plan::DeviceTag, int>(problem.devices.size(), -1));
  first_writer_.resize(problem.buffers.size());
  for (plan::OpId op : problem.order) {
    for (const plan::Impl& impl : problem.ops[op].impls) {
      for (plan::BufferId b : impl.writes) {
        if (!first_writer_[b].valid()) first_writer_[b] = op;
      }
    }
  }
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const plan::BufferId b(i);
    if (problem.buffers[b].home) begin(b, *problem.buffers[b].home, 0);
  }
}

int Replay::add(plan::DeviceId d, std::string name, Block block) {
  Lifetimes& on = devices_[d.index()];
  on.blocks.push_back(block);
  on.names.push_back(std::move(name));
  return static_cast<int>(on.blocks.size()) - 1;
}

void Replay::begin(plan::BufferId b, plan::DeviceId d, int t) {
  if (open(b, d) >= 0) return;
  open_[b][d] = add(d, problem_.buffers[b].name, {.begin = t, .end = n_steps_, .bytes = problem_.size_on(b, d)});
}

bool Replay::pinned(plan::BufferId b, plan::DeviceId d) const {
  const plan::Buffer& buffer = problem_.buffers[b];
  return buffer.home == d && !buffer.pageable;
}

void Replay::close(plan::BufferId b, plan::DeviceId d, int t) {
  const int block = open(b, d);
  ensure(block >= 0, "a buffer that is not resident ends");
  ensure(!pinned(b, d), "a buffer leaves its home without being pageable");
  devices_[d.index()].blocks[static_cast<std::size_t>(block)].end = t;
  open_[b][d] = -1;
}

bool Replay::overwrites(plan::OpId op, plan::BufferId b) const {
  return problem_.ops[op].once && (problem_.buffers[b].home || first_writer_[b] != op);
}

void Replay::drop_copies_elsewhere(plan::BufferId b, plan::DeviceId d, int t) {
  for (std::size_t i = 0; i < problem_.devices.size(); ++i) {
    const plan::DeviceId other(i);
    if (other != d && open(b, other) >= 0 && !pinned(b, other)) close(b, other, t);
  }
}

void Replay::take_over(const plan::InPlace& pair, plan::DeviceId d) {
  ensure(open(pair.in, d) >= 0, "an in-place input is not resident");
  ensure(open(pair.out, d) < 0, "an in-place output is resident before");
  ensure(!pinned(pair.in, d), "an in-place input is pinned to its home");
  ensure(problem_.size_on(pair.out, d) <= problem_.size_on(pair.in, d), "an in-place output is larger than its input");
  open_[pair.out][d] = open(pair.in, d);
  open_[pair.in][d] = -1;
}

void Replay::run(const plan::Compute& step, int t) {
  const plan::Op& op = problem_.ops[step.op];
  const plan::Impl& impl = op.impls.at(static_cast<std::size_t>(step.impl));
  for (const plan::InPlace& pair : impl.in_place) take_over(pair, impl.device);
  for (plan::BufferId b : impl.writes) {
    begin(b, impl.device, t);
    if (overwrites(step.op, b)) drop_copies_elsewhere(b, impl.device, t + 1);
  }
  if (impl.workspace == 0) return;
  add(impl.device, op.name + "/workspace",
      {.begin = t, .end = t + 1, .bytes = problem_.rounded(impl.workspace, impl.device)});
}

void Replay::run(const plan::Copy& step, int t) {
  ensure(open(step.buffer, step.from) >= 0, "a copied buffer is not resident at its source");
  begin(step.buffer, step.to, t);
}

std::vector<Lifetimes> Replay::finish() { return std::move(devices_); }

}  // namespace

std::vector<Lifetimes> lifetimes(const plan::Problem& problem, const std::vector<plan::Step>& steps) {
  Replay replay(problem, static_cast<int>(steps.size()));
  for (int t = 0; t < static_cast<int>(steps.size()); ++t) {
    std::visit([&](const auto& step) { replay.run(step, t); }, steps[static_cast<std::size_t>(t)]);
  }
  return replay.finish();
}

Bytes load(std::span<const Block> blocks) {
  std::map<int, Bytes> change;  // at a time: bytes that begin minus bytes that end
  for (const Block& b : blocks) {
    if (b.begin >= b.end) continue;
    change[b.begin] = checked_add(change[b.begin], b.bytes, "the sum of live bytes");
    change[b.end] = checked_add(change[b.end], -b.bytes, "the sum of live bytes");
  }
  Bytes live = 0, most = 0;
  for (const auto& [time, bytes] : change) {
    live = checked_add(live, bytes, "the sum of live bytes");
    most = std::max(most, live);
  }
  return most;
}

}  // namespace neaptide::memory
