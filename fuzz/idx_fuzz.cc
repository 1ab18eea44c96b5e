// IDX bytes, packed by gzip or not: read or refused with a sentence, never anything else.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/files.hpp"
#include "neaptide/session/idx.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace neaptide;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const int n_dims : {1, 3}) {
    try {
      session::idx_from_bytes(bytes, "input", n_dims);
      session::idx_from_bytes(gunzip(bytes, "input", 1 << 20), "input", n_dims);
    } catch (const UserError&) {
    }
  }
  return 0;
}
