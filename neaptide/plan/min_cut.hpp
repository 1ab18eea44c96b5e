// Minimum cuts by blocking flows (Dinic 1970), in exact integers.
//
//   Flow f;
//   f.reset(4);
//   const int arc = f.add(0, 2, 10);
//   const Wide cut = f.run(0, 1);       // then f.flow(arc), f.reached(node)
#pragma once

#include <cstdint>
#include <vector>

#include "neaptide/plan/facts.hpp"

namespace neaptide::plan {

/// Capacities and the total stay below 2^62.
class Flow {
 public:
  void reset(int n_nodes) {
    head_.assign(n_nodes, -1);
    arcs_.clear();
  }
  int add(int from, int to, Units capacity) {
    arcs_.push_back({to, head_[from], capacity});
    head_[from] = static_cast<int>(arcs_.size()) - 1;
    arcs_.push_back({from, head_[to], 0});
    head_[to] = static_cast<int>(arcs_.size()) - 1;
    return static_cast<int>(arcs_.size()) - 2;
  }
  Units flow(int arc) const { return arcs_[arc ^ 1].left; }
  Wide run(int source, int sink);
  bool reached(int node) const { return level_[node] >= 0; }  // after run: on the source's side
  std::int64_t work() const { return work_; }

 private:
  struct Arc {
    int to, next;
    Units left;
  };
  bool levels(int source, int sink);
  Wide push(int source, int sink);

  std::vector<int> head_, level_, at_, queue_;
  std::vector<int> path_;
  std::vector<Arc> arcs_;
  std::int64_t work_ = 0;
};

}  // namespace neaptide::plan
