// Safetensors and checkpoint bytes: read or refused with a sentence. What can be read can be written and read again.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "neaptide/base/errors.hpp"
#include "neaptide/session/checkpoint.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace neaptide;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    session::checkpoint_from(bytes, "input");
  } catch (const UserError&) {
  }
  session::TensorFile file;
  try {
    file = session::tensors_from(bytes, "input");
  } catch (const UserError&) {
    return 0;
  }
  file.metadata.erase("sha256");
  if (!(session::tensors_from(session::to_safetensors(file), "written").tensors == file.tensors)) __builtin_trap();
  return 0;
}
