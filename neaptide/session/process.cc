#include "neaptide/session/process.hpp"

#include <charconv>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/files.hpp"
#include "neaptide/base/text.hpp"

namespace neaptide::session {

namespace {

std::string content_of(const char* path) {
  try {
    return read_file(path);
  } catch (const UserError&) {
    return "";
  }
}

/// The text after "KEY:" in a file of such lines.
std::string field(const char* path, std::string_view key) {
  for (const std::string& line : split(content_of(path), '\n')) {
    const std::size_t colon = line.find(':');
    if (!line.starts_with(key) || colon == std::string::npos) continue;
    const std::size_t first = line.find_first_not_of(" \t", colon + 1);
    return first == std::string::npos ? "" : line.substr(first);
  }
  return "";
}

Bytes kilobytes(const std::string& text) {
  Bytes n = 0;
  std::from_chars(text.data(), text.data() + text.size(), n);
  return n * 1024;
}

}  // namespace

Bytes resident_bytes() { return kilobytes(field("/proc/self/status", "VmRSS")); }
Bytes peak_resident_bytes() { return kilobytes(field("/proc/self/status", "VmHWM")); }
Bytes machine_bytes() { return kilobytes(field("/proc/meminfo", "MemTotal")); }
std::string cpu_name() { return field("/proc/cpuinfo", "model name"); }

std::string huge_page_mode() {
  const std::string text = content_of("/sys/kernel/mm/transparent_hugepage/enabled");
  const std::size_t open = text.find('['), close = text.find(']');
  if (open == std::string::npos || close == std::string::npos) return "unknown";
  return text.substr(open + 1, close - open - 1);
}

}  // namespace neaptide::session
