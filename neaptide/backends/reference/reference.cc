#include "neaptide/backends/reference/reference.hpp"

#include <cstring>

#include "neaptide/base/errors.hpp"
#include "neaptide/runtime/reference_kernels.hpp"

namespace neaptide::backends::reference {
namespace {

using graph::ImplSpec;
using graph::NodeView;
using graph::Value;

class ReferenceBackend : public runtime::Backend {
 public:
  std::string name() const override { return "reference"; }
  std::string version() const override { return "reference 1"; }
  int threads() const override { return 1; }
  runtime::Offer offer(const NodeView& node) override { return runtime::reference_offer(node); }
  std::unique_ptr<runtime::Kernel> make_kernel(const NodeView& node, const ImplSpec& spec) override {
    return runtime::reference_kernel(node, spec);
  }
  void from_plain(const Value& value, const void* plain, void* formatted) const override {
    copy(value, plain, formatted);
  }
  void to_plain(const Value& value, const void* formatted, void* plain) const override {
    copy(value, formatted, plain);
  }

 private:
  static void copy(const Value& value, const void* from, void* to) {
    ensure(value.format.plain(), "the reference backend sees plain tensors only");
    std::memcpy(to, from, static_cast<std::size_t>(value.type.bytes()));
  }
};

}  // namespace

std::unique_ptr<runtime::Backend> make(int /*threads*/) { return std::make_unique<ReferenceBackend>(); }

}  // namespace neaptide::backends::reference
