#include "neaptide/session/idx.hpp"

#include "neaptide/base/errors.hpp"
#include "neaptide/base/files.hpp"
#include "neaptide/base/units.hpp"

namespace neaptide::session {

namespace {

std::int64_t big_endian_u32(std::string_view text, std::size_t at) {
  std::int64_t v = 0;
  for (std::size_t i = 0; i < 4; ++i) v = v * 256 + static_cast<unsigned char>(text[at + i]);
  return v;
}

}  // namespace

Idx idx_from_bytes(std::string_view content, std::string_view place, int n_dims) {
  const std::size_t header = 4 + 4 * static_cast<std::size_t>(n_dims);
  if (content.size() < header) {
    throw UserError("'{}' is no IDX file: {} bytes, but the header of {} dimensions has {}", place, content.size(),
                    n_dims, header);
  }
  if (content[0] != 0 || content[1] != 0)
    throw UserError("'{}' is no IDX file: it does not begin with two zeros", place);
  const int type = static_cast<unsigned char>(content[2]), dims = static_cast<unsigned char>(content[3]);
  if (type != 0x08) {
    throw UserError("'{}' holds IDX elements of type 0x{:02x}; only unsigned bytes (0x08) are read", place, type);
  }
  if (dims != n_dims) throw UserError("'{}' has {} dimensions; expected {}", place, dims, n_dims);
  Idx out;
  std::int64_t total = 1;
  for (std::size_t i = 0; i < static_cast<std::size_t>(n_dims); ++i) {
    out.dims.push_back(big_endian_u32(content, 4 + 4 * i));
    total = checked_mul(total, out.dims.back(), "the size of an IDX file");
  }
  const auto got = static_cast<std::int64_t>(content.size() - header);
  if (got != total) throw UserError("'{}' holds {} elements; its header announces {}", place, got, total);
  out.bytes = content.substr(header);
  return out;
}

Idx read_idx(const std::string& path, int n_dims) { return idx_from_bytes(read_maybe_gzip(path), path, n_dims); }

}  // namespace neaptide::session
