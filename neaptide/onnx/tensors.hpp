// TensorProto <-> Tensor. Internal to this folder.
#pragma once

#include <map>
#include <string>

#include "neaptide/graph/graph.hpp"
#include "onnx.pb.h"

namespace neaptide::onnx {

namespace pb = ::onnx;

/// The element type; UserError("<what> is <type>; ...") when we have none for it.
graph::DType dtype_of(int elem_type, const std::string& what);
bool known_dtype(int elem_type);
std::string type_name(int elem_type);  // "float16"
int elem_type_of(graph::DType dtype);

/// Reads tensors whose contents lie in other files. Keeps the files that it has read.
class ExternalFiles {
 public:
  explicit ExternalFiles(std::string directory) : directory_(std::move(directory)) {}
  /// `bytes` bytes for the tensor `what`. UserError when the location leaves the model's directory, or is too short.
  std::string_view read(const pb::TensorProto& tensor, Bytes bytes, const std::string& what);

 private:
  std::string directory_;
  std::map<std::string, std::string> files_;
};

/// The bytes of a type; UserError naming `what` when they do not fit 63 bits.
Bytes checked_bytes(const graph::TensorType& type, const std::string& what);

graph::Tensor decode(const pb::TensorProto& tensor, const std::string& what, ExternalFiles& files);

/// Raw little-endian contents.
pb::TensorProto encode(const graph::Tensor& tensor, const std::string& name);

/// An integer tensor's elements. UserError naming `what` when it holds no integers.
std::vector<std::int64_t> integers(const graph::Tensor& tensor, const std::string& what);
/// A floating or integer tensor's elements.
std::vector<double> numbers(const graph::Tensor& tensor, const std::string& what);

/// The double with the fewest digits that rounds to `x`: what was meant by a number that ONNX stores as float.
double shortest(float x);

}  // namespace neaptide::onnx
