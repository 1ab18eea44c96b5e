// ONNX files <-> Graph. The only folder that sees protobuf.
//
//   graph::Graph g = onnx::load("model.onnx", ops::all(), {.batch = 32});
//   onnx::save(g, "trained.onnx");
//
// Reading: opset 7 to the newest, for the forward operators of ops.hpp; differences between opsets are normalised away,
// arithmetic on shapes is folded, nameless nodes get stable names. Initialisers become parameters where a layer trains
// them, state where they are running statistics, and constants otherwise. The file may be hostile: every size is
// checked before it is used, and whatever is wrong is a UserError "<place>: ...".
// Writing: forward graphs with their current weights as opset 17 (training forms are written as their inference forms).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "neaptide/graph/op_def.hpp"

namespace neaptide::onnx {

struct LoadOptions {
  std::optional<std::int64_t> batch = {};      // rewrites the leading dimension of the inputs; default: as in the file,
                                               // 1 where it is symbolic
  Bytes folded_limit = std::int64_t{4} << 30;  // most bytes that computed constants may take altogether
};

/// UserError when the file is unreadable, not an ONNX model, or needs something unsupported: then all such nodes are
/// listed at once.
graph::Graph load(const std::string& path, const graph::OpSet& ops, const LoadOptions& options = {});

/// The same from memory. `place` is used in messages; external data is looked up in `directory`, and refused when that
/// is empty.
graph::Graph parse(std::string_view bytes, const graph::OpSet& ops, const LoadOptions& options,
                   const std::string& place, const std::string& directory = "");

struct SaveOptions {
  Bytes external_above = std::int64_t{2000} << 20;  // weights go to "<path>.data" when they take more than this
};

/// UserError when the graph holds nodes that have no inference form in ONNX (gradients, updates, losses), all listed.
void save(const graph::Graph& graph, const std::string& path, const SaveOptions& options = {});

/// The bytes of the file, weights inside. UserError above 2 GiB, protobuf's limit.
std::string serialise(const graph::Graph& graph);

}  // namespace neaptide::onnx
