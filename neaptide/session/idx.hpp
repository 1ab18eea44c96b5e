// IDX files (Y. LeCun's format of MNIST and its descendants): two zero bytes, the element type, the number of
// dimensions, each dimension as a big-endian u32, then the elements. Only unsigned bytes (0x08) are read.
//
//   session::Idx images = session::read_idx("train-images-idx3-ubyte.gz", 3);   // gzip accepted
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace neaptide::session {

struct Idx {
  std::vector<std::int64_t> dims;  // the first counts the samples
  std::string bytes;               // product of dims
  friend bool operator==(const Idx&, const Idx&) = default;
};

/// UserError naming `place` when the header or the length is not that of `n_dims` dimensions of unsigned bytes.
Idx idx_from_bytes(std::string_view content, std::string_view place, int n_dims);
Idx read_idx(const std::string& path, int n_dims);

}  // namespace neaptide::session
