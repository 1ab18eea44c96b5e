// Backend: one SDK. It answers per node with implementations or a reason why not, makes kernels before the first step,
// and knows its storage formats. Memory of the backends here is host memory; the arena belongs to the Program.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "neaptide/graph/format_rules.hpp"
#include "neaptide/graph/op_def.hpp"

namespace neaptide::runtime {

/// A prepared implementation of one node. run() allocates nothing itself and gives the same bits for the same inputs.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void run(const graph::KernelArgs& args) = 0;
};

/// Implementations of a node, the default first; or none and a reason.
struct Offer {
  std::vector<graph::ImplSpec> impls;
  std::string why_not;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;     // "cpu"
  virtual std::string version() const = 0;  // library, its version, threads, instruction set: part of a cost's key
  virtual int threads() const = 0;
  virtual Bytes alignment() const { return 64; }

  virtual Offer offer(const graph::NodeView& node) = 0;
  /// `spec` is one of the offer's. The kernel does not refer to the graph afterwards.
  virtual std::unique_ptr<Kernel> make_kernel(const graph::NodeView& node, const graph::ImplSpec& spec) = 0;

  /// Null when the backend knows only plain tensors.
  virtual const graph::FormatRules* format_rules() const { return nullptr; }
  /// Converts the contents of a value between plain and its format. Sizes: value.type.bytes() and value.bytes().
  virtual void from_plain(const graph::Value& value, const void* plain, void* formatted) const = 0;
  virtual void to_plain(const graph::Value& value, const void* formatted, void* plain) const = 0;
};

/// "cpu" -> the backend, with that many threads. The list is backends.cc; an entry that is not built says why.
struct BackendEntry {
  std::string_view name;
  std::string_view what;
  std::unique_ptr<Backend> (*make)(int threads);  // null when not built
  std::string_view not_built_because;
};

}  // namespace neaptide::runtime
