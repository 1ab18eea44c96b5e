#include "neaptide/ops/ops.hpp"

#include <iterator>

#include "neaptide/ops/activation.hpp"
#include "neaptide/ops/arithmetic.hpp"
#include "neaptide/ops/batch_norm.hpp"
#include "neaptide/ops/convolution.hpp"
#include "neaptide/ops/dropout.hpp"
#include "neaptide/ops/loss.hpp"
#include "neaptide/ops/matmul.hpp"
#include "neaptide/ops/pooling.hpp"
#include "neaptide/ops/reduce.hpp"
#include "neaptide/ops/reorder.hpp"
#include "neaptide/ops/resize.hpp"
#include "neaptide/ops/shape.hpp"
#include "neaptide/ops/softmax.hpp"
#include "neaptide/ops/transposed.hpp"
#include "neaptide/ops/update.hpp"

namespace neaptide::ops {
namespace {

using Family = std::vector<graph::OpDef> (*)();

// Every family, sorted.
// clang-format off
constexpr Family kFamilies[] = {
    activation_ops,
    arithmetic_ops,
    batch_norm_ops,
    convolution_ops,
    dropout_ops,
    loss_ops,
    matmul_ops,
    pooling_ops,
    reduce_ops,
    reorder_ops,
    resize_ops,
    shape_ops,
    softmax_ops,
    transposed_ops,
    update_ops,
};
// clang-format on

}  // namespace

const graph::OpSet& all() {
  static const graph::OpSet set = [] {
    std::vector<graph::OpDef> ops;
    for (const Family family : kFamilies) {
      std::vector<graph::OpDef> more = family();
      std::move(more.begin(), more.end(), std::back_inserter(ops));
    }
    return graph::OpSet(std::move(ops));
  }();
  return set;
}

}  // namespace neaptide::ops
