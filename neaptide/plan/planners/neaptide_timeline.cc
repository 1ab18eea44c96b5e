#include "neaptide/plan/planners/neaptide_timeline.hpp"

#include <algorithm>
#include <limits>

namespace neaptide::plan::tide {
namespace {
constexpr Bytes kNothing = std::numeric_limits<Bytes>::min() / 4;
}

int Timeline::new_block(int rank) {
  int id;
  if (free_blocks_.empty()) {
    id = static_cast<int>(blocks_.size());
    blocks_.push_back(std::make_unique<Block>());
    blocks_.back()->load.assign(n_tracks_ * kCapacity, 0);
    rank_.push_back(0);
  } else {
    id = free_blocks_.back();
    free_blocks_.pop_back();
    blocks_[id]->n = 0;
  }
  order_.insert(order_.begin() + rank, id);
  for (int t = 0; t < n_tracks_; ++t) {
    lazy_[t].insert(lazy_[t].begin() + rank, 0);
    top_[t].insert(top_[t].begin() + rank, kNothing);
  }
  for (int r = rank; r < static_cast<int>(order_.size()); ++r) rank_[order_[r]] = r;
  return id;
}

void Timeline::place(int node, int block_id, int slot) {
  if (node >= static_cast<int>(where_.size())) where_.resize(node + 1);
  where_[node] = {block_id, slot};
}

void Timeline::refresh_top(int track, int rank) {
  const Block& b = block(rank);
  Bytes top = kNothing;
  const Bytes* load = &b.load[track * kCapacity];
  for (int i = 0; i < b.n; ++i) top = std::max(top, load[i]);
  top_[track][rank] = top;
}

void Timeline::split(int rank) {
  const int id = new_block(rank + 1);
  Block& left = block(rank);
  Block& right = *blocks_[id];
  const int half = left.n / 2;
  right.n = left.n - half;
  for (int i = 0; i < right.n; ++i) {
    right.nodes[i] = left.nodes[half + i];
    place(right.nodes[i], id, i);
  }
  left.n = half;
  for (int t = 0; t < n_tracks_; ++t) {
    std::copy_n(&left.load[t * kCapacity + half], right.n, &right.load[t * kCapacity]);
    lazy_[t][rank + 1] = lazy_[t][rank];
    refresh_top(t, rank);
    refresh_top(t, rank + 1);
  }
}

void Timeline::push_back(int node) {
  if (order_.empty() || block(static_cast<int>(order_.size()) - 1).n >= kCapacity / 2) {
    new_block(static_cast<int>(order_.size()));
  }
  const int rank = static_cast<int>(order_.size()) - 1;
  Block& b = block(rank);
  place(node, order_[rank], b.n);
  b.nodes[b.n] = node;
  for (int t = 0; t < n_tracks_; ++t) {
    b.load[t * kCapacity + b.n] = -lazy_[t][rank];
    top_[t][rank] = std::max(top_[t][rank], -lazy_[t][rank]);
  }
  ++b.n;
}

void Timeline::insert_before(int node, int next, const std::vector<Bytes>& load) {
  if (blocks_[where_[next].block]->n == kCapacity) split(rank_[where_[next].block]);
  const int id = where_[next].block;
  const int slot = where_[next].slot, rank = rank_[id];
  Block& b = *blocks_[id];
  for (int i = b.n; i > slot; --i) {
    b.nodes[i] = b.nodes[i - 1];
    where_[b.nodes[i]].slot = i;
  }
  for (int t = 0; t < n_tracks_; ++t) {
    Bytes* l = &b.load[t * kCapacity];
    std::copy_backward(l + slot, l + b.n, l + b.n + 1);
    l[slot] = load[t] - lazy_[t][rank];
    top_[t][rank] = std::max(top_[t][rank], l[slot]);
  }
  b.nodes[slot] = node;
  ++b.n;
  place(node, id, slot);
}

void Timeline::erase(int node) {
  const auto [id, slot] = where_[node];
  const int rank = rank_[id];
  Block& b = *blocks_[id];
  for (int i = slot; i + 1 < b.n; ++i) {
    b.nodes[i] = b.nodes[i + 1];
    where_[b.nodes[i]].slot = i;
  }
  for (int t = 0; t < n_tracks_; ++t) {
    Bytes* l = &b.load[t * kCapacity];
    std::copy(l + slot + 1, l + b.n, l + slot);
  }
  --b.n;
  where_[node].block = -1;
  if (b.n > 0) {
    for (int t = 0; t < n_tracks_; ++t) refresh_top(t, rank);
    return;
  }
  free_blocks_.push_back(id);
  order_.erase(order_.begin() + rank);
  for (int t = 0; t < n_tracks_; ++t) {
    lazy_[t].erase(lazy_[t].begin() + rank);
    top_[t].erase(top_[t].begin() + rank);
  }
  for (int r = rank; r < static_cast<int>(order_.size()); ++r) rank_[order_[r]] = r;
}

int Timeline::next(int node) const {
  const auto [id, slot] = where_[node];
  if (slot + 1 < blocks_[id]->n) return blocks_[id]->nodes[slot + 1];
  const int rank = rank_[id] + 1;
  return rank < static_cast<int>(order_.size()) ? block(rank).nodes[0] : -1;
}

int Timeline::previous(int node) const {
  const auto [id, slot] = where_[node];
  if (slot > 0) return blocks_[id]->nodes[slot - 1];
  const int rank = rank_[id] - 1;
  return rank >= 0 ? block(rank).nodes[block(rank).n - 1] : -1;
}

Bytes Timeline::load(int track, int node) const {
  const auto [id, slot] = where_[node];
  return blocks_[id]->load[track * kCapacity + slot] + lazy_[track][rank_[id]];
}

void Timeline::add_within(int track, int rank, int from, int to, Bytes bytes) {
  Bytes* load = &block(rank).load[track * kCapacity];
  for (int i = from; i <= to; ++i) load[i] += bytes;
  refresh_top(track, rank);
}

void Timeline::add(int track, int first, int last, Bytes bytes) {
  const auto [fb, fs] = where_[first];
  const auto [lb, ls] = where_[last];
  const int from = rank_[fb], to = rank_[lb];
  if (from == to) return add_within(track, from, fs, ls, bytes);
  add_within(track, from, fs, blocks_[fb]->n - 1, bytes);
  add_within(track, to, 0, ls, bytes);
  Bytes* lazy = lazy_[track].data();
  for (int r = from + 1; r < to; ++r) lazy[r] += bytes;
}

Bytes Timeline::highest(int track) const {
  Bytes top = kNothing;
  const Bytes *lazy = lazy_[track].data(), *tops = top_[track].data();
  for (std::size_t r = 0; r < order_.size(); ++r) top = std::max(top, lazy[r] + tops[r]);
  return top;
}

Bytes Timeline::highest(int track, int first, int last) const {
  const auto part = [&](int rank, int from, int to) {
    const Bytes* load = &block(rank).load[track * kCapacity];
    Bytes top = kNothing;
    for (int i = from; i <= to; ++i) top = std::max(top, load[i]);
    return top + lazy_[track][rank];
  };
  const auto [fb, fs] = where_[first];
  const auto [lb, ls] = where_[last];
  const int from = rank_[fb], to = rank_[lb];
  if (from == to) return part(from, fs, ls);
  Bytes top = std::max(part(from, fs, blocks_[fb]->n - 1), part(to, 0, ls));
  for (int r = from + 1; r < to; ++r) top = std::max(top, lazy_[track][r] + top_[track][r]);
  return top;
}

int Timeline::highest_node(int track) const {
  const Bytes top = highest(track);
  return first_above(track, top - 1);
}

int Timeline::first_above(int track, Bytes limit) const {
  for (int r = 0; r < static_cast<int>(order_.size()); ++r) {
    if (lazy_[track][r] + top_[track][r] <= limit) continue;
    const Block& b = block(r);
    for (int i = 0; i < b.n; ++i) {
      if (b.load[track * kCapacity + i] + lazy_[track][r] > limit) return b.nodes[i];
    }
  }
  return -1;
}

int Timeline::random_above(int track, Bytes limit, unsigned random) const {
  std::vector<int> ranks;
  for (int r = 0; r < static_cast<int>(order_.size()); ++r) {
    if (lazy_[track][r] + top_[track][r] > limit) ranks.push_back(r);
  }
  if (ranks.empty()) return -1;
  const int r = ranks[random % ranks.size()];
  const Block& b = block(r);
  const int start = static_cast<int>((random / 7919) % static_cast<unsigned>(b.n));
  for (int k = 0; k < b.n; ++k) {
    const int i = (start + k) % b.n;
    if (b.load[track * kCapacity + i] + lazy_[track][r] > limit) return b.nodes[i];
  }
  return -1;
}

double Timeline::relief(int track, int a, int b, Bytes bytes, Bytes limit) const {
  const auto part = [&](int rank, int from, int to) {
    const Bytes* load = &block(rank).load[track * kCapacity];
    const Bytes level = limit - lazy_[track][rank];
    if (top_[track][rank] <= level) return 0.0;
    double sum = 0;
    for (int i = from; i <= to; ++i) sum += static_cast<double>(std::min(bytes, std::max<Bytes>(0, load[i] - level)));
    return sum;
  };
  const auto [fb, fs] = where_[a];
  const auto [lb, ls] = where_[b];
  const int from = rank_[fb], to = rank_[lb];
  if (from == to) return part(from, fs + 1, ls - 1);
  double sum = part(from, fs + 1, blocks_[fb]->n - 1) + part(to, 0, ls - 1);
  if (to - from < 12) {
    for (int r = from + 1; r < to; ++r) sum += part(r, 0, block(r).n - 1);
    return sum;
  }
  for (int r = from + 1; r < to; ++r) {
    const Bytes over = std::min(bytes, std::max<Bytes>(0, lazy_[track][r] + top_[track][r] - limit));
    sum += static_cast<double>(over) * block(r).n;
  }
  return sum;
}

double Timeline::total_excess(int track, Bytes limit) const {
  double sum = 0;
  for (int r = 0; r < static_cast<int>(order_.size()); ++r) {
    const Bytes level = limit - lazy_[track][r];
    if (top_[track][r] <= level) continue;
    const Block& b = block(r);
    for (int i = 0; i < b.n; ++i) {
      sum += static_cast<double>(std::max<Bytes>(0, b.load[track * kCapacity + i] - level));
    }
  }
  return sum;
}

std::vector<int> Timeline::nodes() const {
  std::vector<int> out;
  for (const int id : order_) out.insert(out.end(), blocks_[id]->nodes, blocks_[id]->nodes + blocks_[id]->n);
  return out;
}

int Timeline::rank_distance(int a, int b) const {
  const int ra = rank_[where_[a].block], rb = rank_[where_[b].block];
  if (ra == rb) return where_[b].slot - where_[a].slot;
  return (rb - ra) * (kCapacity / 2);
}

}  // namespace neaptide::plan::tide
