#include "neaptide/base/sha256.hpp"

#include <sys/types.h>
// sys/types.h first: sha2.h of libmd uses its integer names.
#include <sha2.h>

#include <array>

namespace neaptide {

std::string sha256_hex(std::string_view content) {
  std::array<char, SHA256_DIGEST_STRING_LENGTH> text{};
  SHA256Data(reinterpret_cast<const uint8_t*>(content.data()), content.size(), text.data());
  return std::string(text.data());
}

}  // namespace neaptide
