// The two memory heuristics of the MXNet paper, as a yardstick: blocks are assigned to buffers while the graph is
// walked once in order, and the cost is the sum of all blocks. No offsets, no recomputation, no budget.
//
//   memory::MxnetBlocks naive = memory::mxnet_blocks(problem, {});
//   memory::MxnetBlocks both = memory::mxnet_blocks(problem, {.in_place = true, .co_share = true});
//   both.total                                     // bytes
//
// Every op runs once in problem.order with its first implementation. Buffers with a home count nothing.
//
// T. Chen et al., "MXNet: A Flexible and Efficient Machine Learning Library for Heterogeneous Distributed Systems",
// 2015, section 3.1 and figure 7.
#pragma once

#include <vector>

#include "neaptide/plan/problem.hpp"

namespace neaptide::memory {

struct MxnetOptions {
  /// An output takes over the block of an input that has no other user left and the same size, where an implementation
  /// with the reads and writes of the first says it may.
  bool in_place = false;
  /// Blocks without users are free for others. A request for n bytes takes the smallest free block of n to 16 n bytes,
  /// else the largest of n/16 to n, which grows to n; else a new block is made.
  bool co_share = false;
};

struct MxnetBlocks {
  IdVector<plan::BufferTag, int> block;  // index into bytes; -1: never written here
  std::vector<Bytes> bytes;
  Bytes total = 0;
};

MxnetBlocks mxnet_blocks(const plan::Problem& problem, const MxnetOptions& options);

}  // namespace neaptide::memory
