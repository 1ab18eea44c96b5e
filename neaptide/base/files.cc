#include "neaptide/base/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "neaptide/base/errors.hpp"

namespace neaptide {
namespace {

std::string reason() { return std::strerror(errno); }

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() { close(); }
  int get() const { return fd_; }
  int close() {
    const int r = fd_ >= 0 ? ::close(fd_) : 0;
    fd_ = -1;
    return r;
  }

 private:
  int fd_;
};

}  // namespace

std::string read_file(const std::string& path) {
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) throw UserError("cannot read '{}': {}", path, reason());
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) throw UserError("cannot read '{}': {}", path, reason());
  if (S_ISDIR(info.st_mode)) throw UserError("cannot read '{}': it is a folder", path);
  std::string content;
  if (info.st_size > 0) content.reserve(static_cast<std::size_t>(info.st_size));
  std::string chunk(1 << 20, '\0');
  for (;;) {
    const ssize_t n = ::read(file.get(), chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw UserError("cannot read '{}': {}", path, reason());
    if (n == 0) return content;
    content.append(chunk.data(), static_cast<std::size_t>(n));
  }
}

std::string gunzip(std::string_view packed, std::string_view name, std::int64_t limit) {
  z_stream stream{};
  if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) throw InternalError("zlib does not start");
  std::string out;
  std::string chunk(1 << 18, '\0');
  std::size_t fed = 0;
  int status = Z_OK;
  while (status != Z_STREAM_END) {
    if (stream.avail_in == 0 && fed < packed.size()) {
      const std::size_t n = std::min<std::size_t>(packed.size() - fed, 1 << 30);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + fed));
      stream.avail_in = static_cast<uInt>(n);
      fed += n;
    }
    stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
    stream.avail_out = static_cast<uInt>(chunk.size());
    status = inflate(&stream, Z_NO_FLUSH);
    const std::size_t got = chunk.size() - stream.avail_out;
    const bool stuck = status == Z_BUF_ERROR || (status == Z_OK && got == 0 && stream.avail_in == 0);
    if ((status != Z_OK && status != Z_STREAM_END) || (stuck && fed == packed.size())) {
      inflateEnd(&stream);
      throw UserError("'{}' is not a whole gzip file: unpacking stops after {} bytes", name, out.size() + got);
    }
    out.append(chunk.data(), got);
    if (static_cast<std::int64_t>(out.size()) > limit) {
      inflateEnd(&stream);
      throw UserError("'{}' unpacks to more than {} bytes", name, limit);
    }
  }
  inflateEnd(&stream);
  return out;
}

std::string read_maybe_gzip(const std::string& path, std::int64_t limit) {
  std::string raw = read_file(path);
  const bool gzip =
      raw.size() >= 2 && static_cast<unsigned char>(raw[0]) == 0x1f && static_cast<unsigned char>(raw[1]) == 0x8b;
  return gzip ? gunzip(raw, path, limit) : raw;
}

static bool write_all(int fd, std::string_view content) {
  std::size_t done = 0;
  while (done < content.size()) {
    const ssize_t n = ::write(fd, content.data() + done, content.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

/// Pipes and devices cannot be replaced by a rename.
static void write_device(const std::string& path, std::string_view content) {
  FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.get() < 0 || !write_all(file.get(), content) || file.close() != 0) {
    throw UserError("cannot write '{}': {}", path, reason());
  }
}

void write_file_atomically(const std::string& path, std::string_view content) {
  if (std::error_code ignored; std::filesystem::is_other(path, ignored)) return write_device(path, content);
  const std::string temporary = path + ".tmp" + std::to_string(::getpid());
  const auto fail = [&](const char* what) {
    const std::string why = reason();
    ::unlink(temporary.c_str());
    throw UserError("cannot {} '{}': {}; what was there before is untouched", what, path, why);
  };
  FileDescriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (file.get() < 0) fail("write");
  if (!write_all(file.get(), content)) fail("write");
  if (::fsync(file.get()) != 0 || file.close() != 0) fail("write");
  if (::rename(temporary.c_str(), path.c_str()) != 0) fail("replace");
}

bool file_exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

}  // namespace neaptide
