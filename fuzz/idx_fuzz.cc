// IDX bytes, packed by gzip or not: read or refused with a sentence, never anything else.
#include "neaptide/session/idx.hpp"

#include "fuzz/input.hpp"
#include "neaptide/base/files.hpp"

using namespace neaptide;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (const int n_dims : {1, 3}) {
    fuzz::offer(data, size, [&](std::string_view bytes) { session::idx_from_bytes(bytes, "input", n_dims); });
    fuzz::offer(data, size, [&](std::string_view bytes) {
      session::idx_from_bytes(gunzip(bytes, "input", 1 << 20), "input", n_dims);
    });
  }
  return 0;
}
