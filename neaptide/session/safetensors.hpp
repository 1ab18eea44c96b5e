// Safetensors: an 8-byte little-endian header length, a JSON header that gives each tensor's dtype, shape and byte
// range, then the bytes. Text in "__metadata__". Everything is checked before use: untrusted files are expected.
//
//   std::string file = session::to_safetensors({{{"w", w}}, {{"step", "12"}}});
//   session::TensorFile back = session::tensors_from(file, "model.safetensors");
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "neaptide/graph/types.hpp"

namespace neaptide::session {

struct TensorFile {
  std::vector<std::pair<std::string, graph::Tensor>> tensors;  // in file order
  std::map<std::string, std::string> metadata;
  friend bool operator==(const TensorFile&, const TensorFile&) = default;
};

/// UserError naming `place` and the tensor whose dtype, shape or range is not legal. Files of ours (metadata "format"
/// begins with "neaptide.") carry a digest, which is checked and left out of the result.
TensorFile tensors_from(std::string_view content, std::string_view place);
TensorFile read_tensors(const std::string& path);

/// What is written: names and types first; `fill` is then called for each in turn with the bytes to be set.
struct TensorWriter {
  std::vector<std::pair<std::string, graph::TensorType>> tensors;
  std::map<std::string, std::string> metadata;
  std::function<void(std::size_t, std::span<std::byte>)> fill;
};

/// The file's content. `metadata` gets "sha256": the digest of the whole content with the digest's own 64 characters
/// read as zeros ('0').
std::string to_safetensors(const TensorWriter& writer);
std::string to_safetensors(const TensorFile& file);

}  // namespace neaptide::session
