#include "neaptide/backends/cpu/reorder.hpp"

#include <omp.h>

#include <utility>

#include "neaptide/base/errors.hpp"

namespace neaptide::backends::cpu {
namespace {

using graph::FormatChoice;
using graph::ImplSpec;
using graph::NodeView;

bool is_layout(const graph::Value& value) {
  return !value.format.tag.starts_with("bits:") && data_type_of(value.type.dtype) != dnnl::memory::data_type::undef;
}

/// The two descriptors with the same dimensions: weights with groups have one more, and the plain side follows.
std::pair<Desc, Desc> matched(const graph::Value& from, const graph::Value& to) {
  Desc a = desc_of(from), b = desc_of(to);
  if (a.get_ndims() < b.get_ndims()) a = plain_desc(graph::Shape(b.get_dims()), from.type.dtype);
  if (b.get_ndims() < a.get_ndims()) b = plain_desc(graph::Shape(a.get_dims()), to.type.dtype);
  return {a, b};
}

}  // namespace

FormatChoice reorder_formats(const Context& /*context*/, const NodeView& node) {
  return {{node.input_value(0).format}, {node.output_value(0).format}};
}

Candidates reorder_candidates(const Context& context, const NodeView& node) {
  Candidates out;
  if (!is_layout(node.input_value(0)) || !is_layout(node.output_value(0))) return out;
  const auto [from, to] = matched(node.input_value(0), node.output_value(0));
  const dnnl::reorder::primitive_desc pd(context.engine, from, context.engine, to, user_scratchpad(), true);
  if (pd.get(true) == nullptr) return out;
  ImplSpec spec{.name = pd.impl_info_str(), .reads = {0}, .writes = {0}};
  spec.workspace = static_cast<Bytes>(pd.scratchpad_desc().get_size());
  const std::vector<Slot> slots = {{DNNL_ARG_FROM, from, Place::kInput, 0}, {DNNL_ARG_TO, to, Place::kOutput, 0}};
  out.push_back({std::move(spec), [context, pd, slots] {
                   return primitive_kernel(context, dnnl::reorder(pd), slots, pd.scratchpad_desc(), 0);
                 }});
  return out;
}

void convert(const Context& context, const Desc& from_desc, const void* from, const Desc& to_desc, void* to) {
  try {
    omp_set_num_threads(context.threads);
    dnnl::memory a(from_desc, context.engine, const_cast<void*>(from)), b(to_desc, context.engine, to);
    dnnl::reorder(a, b).execute(context.stream, a, b);
  } catch (const dnnl::error& e) {
    throw DeviceError("oneDNN cannot convert a tensor between layouts: {}", e.what());
  }
}

}  // namespace neaptide::backends::cpu
