#include "neaptide/backends/cpu/kernels.hpp"

#include <omp.h>

#include <utility>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/units.hpp"
#include "neaptide/runtime/allocations.hpp"

namespace neaptide::backends::cpu {
namespace {

class PrimitiveKernel : public runtime::Kernel {
 public:
  PrimitiveKernel(const Context& context, dnnl::primitive primitive, std::vector<Slot> slots)
      : context_(context), primitive_(std::move(primitive)), slots_(std::move(slots)) {
    for (const Slot& s : slots_) {
      memories_.emplace_back(s.desc, context_.engine, nullptr);
      args_.push_back({s.arg, memories_.back().get()});
    }
  }

  void run(const graph::KernelArgs& args) override {
    const runtime::LibraryScope scope;
    omp_set_num_threads(context_.threads);
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (dnnl_memory_set_data_handle(memories_[i].get(), pointer(slots_[i], args)) != dnnl_success)
        throw DeviceError("oneDNN refused a pointer");
    }
    const dnnl_status_t status =
        dnnl_primitive_execute(primitive_.get(), context_.stream.get(), static_cast<int>(args_.size()), args_.data());
    if (status != dnnl_success) throw DeviceError("oneDNN failed with status {}", static_cast<int>(status));
  }

 private:
  static void* pointer(const Slot& slot, const graph::KernelArgs& args) {
    const auto index = static_cast<std::size_t>(slot.index);
    switch (slot.place) {
      case Place::kInput:
        return const_cast<void*>(args.inputs[index]);
      case Place::kOutput:
        return args.outputs[index];
      case Place::kWorkspace:
        return static_cast<std::byte*>(args.workspace) + slot.offset;
    }
    return nullptr;
  }

  Context context_;
  dnnl::primitive primitive_;
  std::vector<Slot> slots_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> args_;
};

class LoopKernel : public runtime::Kernel {
 public:
  explicit LoopKernel(graph::KernelFn fn) : fn_(std::move(fn)) {}
  void run(const graph::KernelArgs& args) override { fn_(args); }

 private:
  graph::KernelFn fn_;
};

class SequenceKernel : public runtime::Kernel {
 public:
  explicit SequenceKernel(std::vector<KernelPtr> kernels) : kernels_(std::move(kernels)) {}
  void run(const graph::KernelArgs& args) override {
    for (const KernelPtr& k : kernels_) k->run(args);
  }

 private:
  std::vector<KernelPtr> kernels_;
};

template <class Test>
bool every_value(const graph::NodeView& node, Test test) {
  for (std::size_t i = 0; i < node.n_inputs(); ++i) {
    if (node.has_input(i) && !test(node.input_value(i))) return false;
  }
  for (std::size_t k = 0; k < node.n_outputs(); ++k) {
    if (node.has_output(k) && !test(node.output_value(k))) return false;
  }
  return true;
}

}  // namespace

Bytes Workspace::take(Bytes bytes) {
  const Bytes offset = bytes_;
  bytes_ += round_up(bytes, 64);
  return offset;
}

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

KernelPtr primitive_kernel(const Context& context, const dnnl::primitive& primitive, const std::vector<Slot>& slots,
                           const Desc& scratchpad, Bytes scratchpad_offset) {
  std::vector<Slot> all = slots;
  if (scratchpad.get_size() > 0)
    all.push_back({DNNL_ARG_SCRATCHPAD, scratchpad, Place::kWorkspace, 0, scratchpad_offset});
  return std::make_unique<PrimitiveKernel>(context, primitive, std::move(all));
}

KernelPtr loop_kernel(graph::KernelFn fn) { return std::make_unique<LoopKernel>(std::move(fn)); }

KernelPtr sequence_kernel(std::vector<KernelPtr> kernels) {
  return std::make_unique<SequenceKernel>(std::move(kernels));
}

bool all_f32(const graph::NodeView& node) {
  return every_value(node, [](const graph::Value& v) { return v.type.dtype == graph::DType::kF32; });
}

bool all_plain(const graph::NodeView& node) {
  return every_value(node, [](const graph::Value& v) { return v.format.plain(); });
}

graph::FormatChoice plain_choice(const graph::NodeView& node) {
  return {std::vector<graph::Format>(node.n_inputs()), std::vector<graph::Format>(node.n_outputs())};
}

Desc desc_of(const graph::Value& value) { return desc_of(value.type, value.format); }

}  // namespace neaptide::backends::cpu
