// Dropout (inference), DropoutTrain and DropoutTrainGrad (see ops.hpp). Which elements survive is a pure function of
// (seed, step, stream, element), the same on every backend; a survivor is multiplied by 1 / (1 - ratio).
//
//   DropoutDraws draws(rng, stream, ratio);      // rng: {seed, step}, the node's input
//   for (i = 0; i < n; ++i) y[i] = draws.keeps(i) ? x[i] * scale : 0;
#pragma once

#include <cstdint>

#include "neaptide/graph/op_def.hpp"
#include "neaptide/ops/philox.hpp"

namespace neaptide::ops {

/// Element i is decided by word i % 4 of philox(counter {i / 4, stream, step}, key seed): it survives when the word is
/// at least ratio * 2^32. Asking in ascending order computes every block of four once.
class DropoutDraws {
 public:
  DropoutDraws(const std::int64_t* rng, std::int64_t stream, double ratio)
      : seed_(static_cast<std::uint64_t>(rng[0])),
        step_(static_cast<std::uint64_t>(rng[1])),
        stream_(static_cast<std::uint32_t>(stream)),
        threshold_(static_cast<std::uint32_t>(ratio * 0x1p32)) {}

  bool keeps(std::int64_t i) {
    if (i / 4 != block_) {
      block_ = i / 4;
      words_ =
          philox({static_cast<std::uint32_t>(block_), stream_, low(step_), high(step_)}, {low(seed_), high(seed_)});
    }
    return words_[static_cast<std::size_t>(i % 4)] >= threshold_;
  }

 private:
  static std::uint32_t low(std::uint64_t v) { return static_cast<std::uint32_t>(v); }
  static std::uint32_t high(std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); }

  std::uint64_t seed_, step_;
  std::uint32_t stream_, threshold_;
  std::int64_t block_ = -1;
  PhiloxWords words_{};
};

std::vector<graph::OpDef> dropout_ops();

}  // namespace neaptide::ops
