// ONNX bytes: read or refused with a sentence, never anything else. What can be read can be written and read again.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "neaptide/base/errors.hpp"
#include "neaptide/onnx/onnx.hpp"
#include "neaptide/ops/ops.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace neaptide;
  const onnx::LoadOptions small{.folded_limit = 1 << 20};
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::string written;
  try {
    written = onnx::serialise(onnx::parse(bytes, ops::all(), small, "input"));
  } catch (const UserError&) {
    return 0;
  }
  onnx::parse(written, ops::all(), {.folded_limit = 1 << 22}, "written");
  return 0;
}
