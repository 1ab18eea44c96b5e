#include "bench/planner/synthetic.hpp"

#include <fmt/core.h>

#include <string>
#include <utility>
#include <vector>

namespace neaptide::bench {
namespace {

using namespace neaptide::plan;

Impl simple(Seconds seconds, std::vector<BufferId> reads, BufferId write) {
  Impl i;
  i.name = "i";
  i.device = DeviceId(0);
  i.seconds = seconds;
  i.reads = std::move(reads);
  i.writes = {write};
  return i;
}

Problem one_device(const char* name) {
  Problem p;
  p.name = name;
  p.devices.push_back({"d", std::nullopt, 1});
  return p;
}

void append(Problem* p, const std::string& name, bool once, Impl impl) {
  p->order.push_back(p->ops.push_back({name, once, {std::move(impl)}}));
}

}  // namespace

plan::Problem uniform_chain(int length) {
  Problem p = one_device("chain");
  const auto buffer = [&](const std::string& name, Bytes bytes) {
    return p.buffers.push_back({name, bytes, std::nullopt, false, false});
  };
  std::vector<BufferId> values{buffer("x", 1)};
  p.buffers[values[0]].home = DeviceId(0);
  for (int i = 1; i < length; ++i) {
    values.push_back(buffer(fmt::format("a{}", i), 1));
    append(&p, fmt::format("f{}", i), false, simple(1, {values[values.size() - 2]}, values.back()));
  }
  BufferId gradient;
  for (int i = length; i >= 1; --i) {
    const BufferId out = buffer(fmt::format("g{}", i), 0);
    std::vector<BufferId> reads{values[static_cast<std::size_t>(i) - 1]};
    if (gradient.valid()) reads.push_back(gradient);
    Impl step = simple(1, std::move(reads), out);
    step.workspace = 1;
    append(&p, fmt::format("b{}", i), true, std::move(step));
    gradient = out;
  }
  p.buffers[gradient].keep = true;
  return p;
}

std::int64_t binomial_seconds(std::int64_t length, std::int64_t slots) {
  const auto choose = [](std::int64_t n, std::int64_t k) {
    std::int64_t c = 1;
    for (std::int64_t i = 1; i <= k; ++i) c = c * (n - k + i) / i;
    return c;
  };
  std::int64_t r = 0;
  while (choose(slots + r, slots) < length) ++r;
  return r * length - choose(slots + r, slots + 1) + length;
}

plan::Problem transformer(int layers) {
  Problem p = one_device("transformer");
  const auto buffer = [&](const std::string& name, Bytes bytes) {
    return p.buffers.push_back({name, bytes, std::nullopt, false, false});
  };
  struct Forward {
    std::vector<BufferId> reads;
    BufferId out;
    Seconds seconds;
    Bytes bytes;
  };
  std::vector<Forward> forward;
  BufferId x = buffer("x", 4 << 20);
  p.buffers[x].home = DeviceId(0);
  const auto add = [&](const std::string& name, std::vector<BufferId> reads, Bytes bytes, Seconds seconds) {
    const BufferId out = buffer(name, bytes);
    append(&p, name, false, simple(seconds, reads, out));
    forward.push_back({std::move(reads), out, seconds, bytes});
    return out;
  };
  constexpr Bytes kHidden = 4 << 20, kScores = 16 << 20, kWide = 16 << 20;
  for (int l = 0; l < layers; ++l) {
    const std::string at = fmt::format("l{}.", l);
    const BufferId n1 = add(at + "norm1", {x}, kHidden, 2e-4);
    const BufferId q = add(at + "q", {n1}, kHidden, 1e-3), k = add(at + "k", {n1}, kHidden, 1e-3);
    const BufferId v = add(at + "v", {n1}, kHidden, 1e-3);
    const BufferId qt = add(at + "q.heads", {q}, kHidden, 1e-4), kt = add(at + "k.heads", {k}, kHidden, 1e-4);
    const BufferId vt = add(at + "v.heads", {v}, kHidden, 1e-4);
    const BufferId scores = add(at + "scores", {qt, kt}, kScores, 8e-4);
    const BufferId scaled = add(at + "scaled", {scores}, kScores, 4e-4);
    const BufferId soft = add(at + "softmax", {scaled}, kScores, 6e-4);
    const BufferId dropped = add(at + "dropout", {soft}, kScores, 4e-4);
    const BufferId mixed = add(at + "mixed", {dropped, vt}, kHidden, 8e-4);
    const BufferId merged = add(at + "merged", {mixed}, kHidden, 1e-4);
    const BufferId out = add(at + "out", {merged}, kHidden, 1e-3);
    const BufferId sum1 = add(at + "sum1", {x, out}, kHidden, 1e-4);
    const BufferId n2 = add(at + "norm2", {sum1}, kHidden, 2e-4);
    const BufferId up = add(at + "up", {n2}, kWide, 4e-3), act = add(at + "gelu", {up}, kWide, 5e-4);
    const BufferId down = add(at + "down", {act}, kHidden, 4e-3);
    x = add(at + "sum2", {sum1, down}, kHidden, 1e-4);
  }
  // Backward: the gradient of each forward op reads its inputs and the gradient of its output.
  std::vector<BufferId> gradient(p.buffers.size());
  gradient[x.index()] = buffer("loss.grad", 4 << 20);
  append(&p, "loss", true, simple(1e-4, {x}, gradient[x.index()]));
  for (auto it = forward.rbegin(); it != forward.rend(); ++it) {
    for (const BufferId in : it->reads) {
      const std::string name = fmt::format("{}.grad.{}", p.buffers[it->out].name, p.buffers[in].name);
      std::vector<BufferId> reads = it->reads;
      reads.push_back(gradient[it->out.index()]);
      BufferId part = buffer(name, p.buffers[in].bytes);
      append(&p, name, true, simple(it->seconds, std::move(reads), part));
      if (gradient[in.index()].valid()) {
        const BufferId sum = buffer(name + ".sum", p.buffers[in].bytes);
        append(&p, name + ".sum", true, simple(1e-4, {part, gradient[in.index()]}, sum));
        part = sum;
      }
      gradient[in.index()] = part;
    }
  }
  return p;
}

}  // namespace neaptide::bench
