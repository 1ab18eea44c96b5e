#include "neaptide/plan/min_cut.hpp"

#include <algorithm>

namespace neaptide::plan {

bool Flow::levels(int source, int sink) {
  level_.assign(head_.size(), -1);
  queue_.clear();
  queue_.push_back(source);
  level_[source] = 0;
  for (std::size_t i = 0; i < queue_.size(); ++i) {
    const int u = queue_[i];
    for (int a = head_[u]; a >= 0; a = arcs_[a].next) {
      ++work_;
      if (arcs_[a].left > 0 && level_[arcs_[a].to] < 0) {
        level_[arcs_[a].to] = level_[u] + 1;
        queue_.push_back(arcs_[a].to);
      }
    }
  }
  return level_[sink] >= 0;
}

Wide Flow::push(int source, int sink) {
  Wide total = 0;
  path_.clear();
  int u = source;
  while (true) {
    if (u == sink) {
      Units amount = kNoLimit * 2 - 1;
      for (const int a : path_) amount = std::min(amount, arcs_[a].left);
      std::size_t cut = 0;
      for (std::size_t i = path_.size(); i-- > 0;) {
        arcs_[path_[i]].left -= amount;
        arcs_[path_[i] ^ 1].left += amount;
        if (arcs_[path_[i]].left == 0) cut = i;
      }
      work_ += static_cast<std::int64_t>(path_.size());
      total += amount;
      u = arcs_[path_[cut] ^ 1].to;
      path_.resize(cut);
      continue;
    }
    int& a = at_[u];
    while (a >= 0 && (arcs_[a].left == 0 || level_[arcs_[a].to] != level_[u] + 1)) {
      a = arcs_[a].next;
      ++work_;
    }
    if (a >= 0) {
      path_.push_back(a);
      u = arcs_[a].to;
    } else if (u == source) {
      return total;
    } else {
      level_[u] = -1;
      u = arcs_[path_.back() ^ 1].to;
      path_.pop_back();
    }
  }
}

Wide Flow::run(int source, int sink) {
  Wide total = 0;
  while (levels(source, sink)) {
    at_ = head_;
    total += push(source, sink);
  }
  return total;
}

}  // namespace neaptide::plan
