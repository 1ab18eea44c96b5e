// The only way to files. Every function throws UserError naming the path and the system's reason.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace neaptide {

/// The whole file as it is on disk.
std::string read_file(const std::string& path);

/// The whole file; gzip content (recognised by its first two bytes) is unpacked. `limit`: largest unpacked size
/// accepted.
std::string read_maybe_gzip(const std::string& path, std::int64_t limit = std::int64_t{1} << 36);

/// Unpacks gzip content held in memory. `name` is used in messages.
std::string gunzip(std::string_view packed, std::string_view name, std::int64_t limit = std::int64_t{1} << 36);

/// Writes to a temporary file beside `path`, syncs, and renames it over `path`: readers see the old or the new content,
/// and a full disk leaves the old one. A device or pipe (/dev/stdout) is written to as it is.
void write_file_atomically(const std::string& path, std::string_view content);

bool file_exists(const std::string& path);

}  // namespace neaptide
