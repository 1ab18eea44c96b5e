// A sequence of nodes, each with a load per track, under insertion, removal, range addition and range maximum. Nodes
// lie in blocks of at most 64; whole blocks carry their additions lazily, so each call costs about 64 + n/64 simple
// steps.
//
//   Timeline t(1); t.push_back(0, load); t.insert_before(1, 0, load); t.add(0, 1, 0, 100); t.highest(0);
#pragma once

#include <memory>
#include <vector>

#include "neaptide/base/units.hpp"

namespace neaptide::plan::tide {

class Timeline {
 public:
  explicit Timeline(int n_tracks) : n_tracks_(n_tracks), lazy_(n_tracks), top_(n_tracks) {}

  void push_back(int node);
  void insert_before(int node, int next, const std::vector<Bytes>& load);
  void erase(int node);

  bool before(int a, int b) const {
    const int ra = rank_[where_[a].block], rb = rank_[where_[b].block];
    return ra != rb ? ra < rb : where_[a].slot < where_[b].slot;
  }
  int first() const { return block(0).nodes[0]; }
  int next(int node) const;      // -1 after the last
  int previous(int node) const;  // -1 before the first
  Bytes load(int track, int node) const;
  void add(int track, int first, int last, Bytes bytes);  // both inclusive; first must not lie behind last
  Bytes highest(int track) const;
  Bytes highest(int track, int first, int last) const;  // both inclusive
  int highest_node(int track) const;                    // first node with the highest load
  int first_above(int track, Bytes limit) const;        // -1: none
  int random_above(int track, Bytes limit, unsigned random) const;
  /// About the sum over the nodes strictly between a and b of min(bytes, max(0, load - limit)); whole blocks by their
  /// maximum.
  double relief(int track, int a, int b, Bytes bytes, Bytes limit) const;
  double total_excess(int track, Bytes limit) const;
  std::vector<int> nodes() const;
  std::size_t n_blocks() const { return order_.size(); }
  int rank_distance(int a, int b) const;  // about how many nodes lie between

 private:
  static constexpr int kCapacity = 64;
  struct Block {
    int n = 0;
    int nodes[kCapacity];
    std::vector<Bytes> load;  // [track * kCapacity + slot]
  };
  struct Where {
    int block = -1;
    int slot = 0;
  };
  Block& block(int rank) { return *blocks_[order_[rank]]; }
  const Block& block(int rank) const { return *blocks_[order_[rank]]; }
  int new_block(int rank);
  void split(int rank);
  void refresh_top(int track, int rank);
  void place(int node, int block_id, int slot);
  void add_within(int track, int rank, int from, int to, Bytes bytes);

  int n_tracks_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<int> free_blocks_;
  std::vector<int> order_;                // block ids by rank
  std::vector<int> rank_;                 // by block id
  std::vector<Where> where_;              // by node
  std::vector<std::vector<Bytes>> lazy_;  // [track][rank]
  std::vector<std::vector<Bytes>> top_;   // [track][rank], without lazy
};

}  // namespace neaptide::plan::tide
