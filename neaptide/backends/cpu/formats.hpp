// Format tags <-> oneDNN memory descriptors.
//
//   ""              plain row-major
//   "aBcd16b"       oneDNN's own name of the layout
//   "g32:Abcde16a"  convolution weights {oc, ic/g, ...} seen as {g, oc/g, ic/g, ...} with g = 32 groups
//   "bits:aBcd16b"  one bit per stored element (padding included) of a tensor in that layout, in storage order
#pragma once

#include <dnnl.hpp>

#include "neaptide/graph/types.hpp"

namespace neaptide::backends::cpu {

using Dims = dnnl::memory::dims;
using Desc = dnnl::memory::desc;

/// Row-major descriptor; a scalar has one dimension of 1.
Desc plain_desc(const graph::Shape& shape, graph::DType dtype = graph::DType::kF32);
/// Any layout: the library chooses.
Desc any_desc(const graph::Shape& shape);
/// Descriptor of a tensor in a format. InternalError for a tag that is no layout.
Desc desc_of(const graph::TensorType& type, const graph::Format& format);
/// The same for named dimensions (a tensor seen with more dimensions of 1).
Desc tagged_desc(const Dims& dims, graph::DType dtype, const std::string& tag);

/// The format that describes `desc`; plain when it is row-major or the layout has no name (callers ask whether
/// `named`). `groups` > 0: weights with a leading group dimension.
graph::Format format_of(const Desc& desc, std::int64_t groups = 0);
/// Does the layout have a name that format_of can give?
bool named(const Desc& desc);

/// Sign or mask bits of a tensor in `format`: plain when that is plain.
graph::Format bits_format(const graph::TensorType& type, const graph::Format& format);
/// Elements as stored, padding included, in a 4-byte format.
std::int64_t stored_elements(const graph::TensorType& type, const graph::Format& format);

/// Weights {oc, ic/g, ...} as {g, oc/g, ic/g, ...}; unchanged when groups == 1.
Dims grouped(const graph::Shape& weights, std::int64_t groups);

dnnl::memory::data_type data_type_of(graph::DType dtype);  // undef when oneDNN does not know it

}  // namespace neaptide::backends::cpu
