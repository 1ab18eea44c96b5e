#include "neaptide/ops/elementwise.hpp"

namespace neaptide::ops {

std::vector<TensorType> infer_same(const NodeView& node) {
  require_number(node, 0);
  return {node.input(0)};
}

Work elementwise_work(const NodeView& node) { return work_of(node, static_cast<double>(node.output(0).elements())); }

void add_with_in_place(std::vector<Implementation>& list, Implementation plain, int in_at, int out_at) {
  Implementation twin = plain;
  twin.spec.name = plain.spec.name == "plain" ? "in-place" : plain.spec.name + "-in-place";
  twin.spec.in_place = {{in_at, out_at}};
  list.push_back(std::move(plain));
  list.push_back(std::move(twin));
}

}  // namespace neaptide::ops
