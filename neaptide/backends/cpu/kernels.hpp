// What the operator files of this backend are made of: the context, a candidate (an implementation that can be made),
// and the kernels that run a oneDNN primitive or own loops.
#pragma once

#include <dnnl.hpp>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "neaptide/backends/cpu/formats.hpp"
#include "neaptide/graph/format_rules.hpp"
#include "neaptide/runtime/backend.hpp"

namespace neaptide::backends::cpu {

struct Context {
  dnnl::engine engine;
  dnnl::stream stream;
  int threads = 1;
};

using KernelPtr = std::unique_ptr<runtime::Kernel>;

/// An implementation that this backend has for a node. `make` refers to nothing of the graph.
struct Candidate {
  graph::ImplSpec spec;
  std::function<KernelPtr()> make;
};
using Candidates = std::vector<Candidate>;

/// One operator of this backend. `formats`: null asks for plain. No candidates: the reference loops run it, on plain
/// tensors.
struct CpuOp {
  std::string_view name;
  graph::FormatChoice (*formats)(const Context&, const graph::NodeView&);
  Candidates (*candidates)(const Context&, const graph::NodeView&);
};

/// Where a memory argument of a primitive comes from.
enum class Place : std::uint8_t { kInput, kOutput, kWorkspace };
struct Slot {
  int arg = 0;  // DNNL_ARG_...
  Desc desc;
  Place place = Place::kInput;
  int index = 0;     // input or output
  Bytes offset = 0;  // in the workspace
};

/// A workspace laid out piece by piece.
class Workspace {
 public:
  /// Reserves `bytes`; the offset.
  Bytes take(Bytes bytes);
  Bytes bytes() const { return bytes_; }

 private:
  Bytes bytes_ = 0;
};

/// Attributes of every primitive: the caller gives the scratchpad.
dnnl::primitive_attr user_scratchpad();

/// Binds pointers, executes. `scratchpad` lies at `scratchpad_offset` of the workspace.
KernelPtr primitive_kernel(const Context& context, const dnnl::primitive& primitive, const std::vector<Slot>& slots,
                           const Desc& scratchpad, Bytes scratchpad_offset);
/// Own loops.
KernelPtr loop_kernel(graph::KernelFn fn);
/// One after the other, with the same arguments.
KernelPtr sequence_kernel(std::vector<KernelPtr> kernels);

template <class T>
const T* in(const graph::KernelArgs& args, int i) {
  return static_cast<const T*>(args.inputs[static_cast<std::size_t>(i)]);
}
template <class T>
T* out(const graph::KernelArgs& args, int k) {
  return static_cast<T*>(args.outputs[static_cast<std::size_t>(k)]);
}
template <class T = float>
T* scratch(const graph::KernelArgs& args, Bytes offset) {
  return reinterpret_cast<T*>(static_cast<std::byte*>(args.workspace) + offset);
}

/// Every value that the node has is f32?
bool all_f32(const graph::NodeView& node);
/// Are the node's inputs and outputs in plain format?
bool all_plain(const graph::NodeView& node);
/// A choice of plain for everything.
graph::FormatChoice plain_choice(const graph::NodeView& node);
Desc desc_of(const graph::Value& value);

/// A descriptor of its own: the library's handles share what next_impl() moves on.
template <class PrimitiveDesc>
PrimitiveDesc clone(const PrimitiveDesc& pd) {
  dnnl_primitive_desc_t copy = nullptr;
  dnnl::error::wrap_c_api(dnnl_primitive_desc_clone(&copy, pd.get()), "could not clone a primitive descriptor");
  return PrimitiveDesc(copy);
}

/// Moves `pd` through the library's implementations: calls `each(name)` for every one that is not a slow reference, or
/// for the reference when it is the only one. What `each` keeps it must clone.
template <class PrimitiveDesc, class Each>
void for_each_impl(PrimitiveDesc& pd, Each each) {
  if (pd.get(true) == nullptr) return;
  bool first = true;
  std::string last;
  do {
    const std::string name = pd.impl_info_str();
    if (!first && (name.starts_with("ref") || name == last)) continue;
    each(name);
    first = false;
    last = name;
  } while (pd.next_impl());
}

/// Is it one of oneDNN's slow implementations (or none)?
template <class PrimitiveDesc>
bool slow(const PrimitiveDesc& pd) {
  return pd.get(true) == nullptr || std::string_view(pd.impl_info_str()).starts_with("ref");
}
template <class PrimitiveDesc>
bool gemm_based(const PrimitiveDesc& pd) {
  return std::string_view(pd.impl_info_str()).find("gemm") != std::string_view::npos;
}

}  // namespace neaptide::backends::cpu
