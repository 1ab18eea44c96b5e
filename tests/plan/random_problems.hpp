// Small random problems that use every feature of the format: several implementations with workspaces and in place,
// saved outputs, once ops, updates of homed buffers, fused ways, two devices, paging.
#pragma once

#include <random>
#include <string>

#include "neaptide/plan/problem.hpp"

namespace neaptide::plan {

struct RandomOptions {
  int n_ops = 7;
  bool two_devices = false;
  bool host = false;  // a second device that only holds buffers; homes are pageable
  bool implementations = true;
  bool updates = true;
};

inline Problem random_problem(std::uint64_t seed, const RandomOptions& options) {
  std::mt19937_64 rng(seed);
  const auto below = [&](int n) { return static_cast<int>(rng() % static_cast<std::uint64_t>(n)); };
  Problem p;
  p.name = "random";
  p.devices.push_back({"d", std::nullopt, below(3) == 0 ? 4 : 1});
  const bool two = options.two_devices || options.host;
  if (two) {
    p.devices.push_back({options.host ? "host" : "e", std::nullopt, 1});
    p.links.push_back({DeviceId(0), DeviceId(1), 1.0, 8.0});
    p.links.push_back({DeviceId(1), DeviceId(0), 1.0, 8.0});
  }
  const auto buffer = [&](const std::string& name, Bytes bytes) {
    return p.buffers.push_back({name, bytes, std::nullopt, false, false});
  };
  const int n_weights = options.updates ? 2 : 0;
  std::vector<BufferId> weights, values;
  for (int w = 0; w < n_weights; ++w) {
    const BufferId b = buffer("w" + std::to_string(w), 1 + below(6));
    p.buffers[b].home = DeviceId(0);
    p.buffers[b].keep = true;
    p.buffers[b].pageable = options.host && below(2) == 0;
    weights.push_back(b);
  }
  const auto device = [&] { return DeviceId(options.two_devices ? below(2) : 0); };
  for (int o = 0; o < options.n_ops; ++o) {
    Op op;
    op.name = "op" + std::to_string(o);
    const BufferId out = buffer("v" + std::to_string(o), 1 + below(12));
    std::vector<BufferId> reads;
    for (int k = 0; k < 2 && !values.empty(); ++k) {
      const int back = below(3) == 0 ? below(static_cast<int>(values.size()))
                                     : below(std::min<int>(3, static_cast<int>(values.size())));
      const BufferId b = values[values.size() - 1 - static_cast<std::size_t>(back)];
      if (std::find(reads.begin(), reads.end(), b) == reads.end()) reads.push_back(b);
    }
    if (!weights.empty() && below(2) == 0) reads.push_back(weights[static_cast<std::size_t>(below(n_weights))]);
    Impl plain;
    plain.name = "plain";
    plain.device = device();
    plain.seconds = 1 + below(9);
    plain.workspace = below(3) == 0 ? below(5) : 0;
    plain.reads = reads;
    plain.writes = {out};
    op.impls.push_back(plain);
    if (options.implementations && below(2) == 0) {
      Impl lean = plain;
      lean.name = "lean";
      lean.workspace = 0;
      lean.seconds += below(4);
      if (options.two_devices) lean.device = device();
      for (const BufferId in : reads) {
        const Buffer& b = p.buffers[in];
        if (!b.home && b.bytes >= p.buffers[out].bytes && lean.in_place.empty()) lean.in_place = {{in, out}};
      }
      op.impls.push_back(lean);
    }
    if (options.implementations && below(3) == 0) {  // leaves something from which it can be repeated
      const BufferId saved = buffer("s" + std::to_string(o), 1);
      op.impls[0].writes.push_back(saved);
      Impl again = op.impls[0];
      again.name = "again";
      again.in_place.clear();
      again.writes = {out};
      again.reads.push_back(saved);
      again.seconds = 1;
      op.impls.push_back(again);
    }
    if (o + 1 == options.n_ops || below(6) == 0) op.once = true;
    if (o + 1 == options.n_ops || below(7) == 0) p.buffers[out].keep = true;
    values.push_back(out);
    p.ops.push_back(op);
    if (!weights.empty() && below(4) == 0) {
      const BufferId w = weights[static_cast<std::size_t>(below(n_weights))];
      Op update;
      update.name = "update" + std::to_string(o);
      update.once = true;
      Impl i;
      i.name = "plain";
      i.device = DeviceId(0);
      i.seconds = 1;
      i.reads = {w, out};
      i.writes = {w};
      update.impls = {i};
      p.ops.push_back(update);
    }
  }
  for (std::size_t o = 0; o < p.ops.size(); ++o) p.order.emplace_back(o);
  return p;
}

}  // namespace neaptide::plan
