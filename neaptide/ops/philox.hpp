// Philox 4x32-10: four random 32-bit words as a pure function of a 128-bit counter and a 64-bit key, so that a random
// tensor need not be stored to be known again.
//
//   PhiloxWords w = philox({block, stream, step, 0}, {seed, 0});
//
// J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw: Parallel random numbers: as easy as 1, 2, 3. SC 2011.
#pragma once

#include <array>
#include <cstdint>

namespace neaptide::ops {

using PhiloxWords = std::array<std::uint32_t, 4>;

constexpr PhiloxWords philox(PhiloxWords c, std::array<std::uint32_t, 2> key) {
  constexpr std::uint64_t kMultiply0 = 0xD2511F53, kMultiply1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = kMultiply0 * c[0], b = kMultiply1 * c[2];
    c = {static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ key[0], static_cast<std::uint32_t>(b),
         static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key = {key[0] + kWeyl0, key[1] + kWeyl1};
  }
  return c;
}

}  // namespace neaptide::ops
