#include "neaptide/session/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <set>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/files.hpp"
#include "neaptide/base/json.hpp"
#include "neaptide/base/sha256.hpp"

namespace neaptide::session {

namespace {

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian");

constexpr std::size_t kLengthBytes = 8;
constexpr std::uint64_t kMaxHeader = 100'000'000;  // the format's own limit
const std::string kNoDigest(64, '0');

constexpr std::array<std::pair<std::string_view, graph::DType>, 6> kDTypes = {{{"F32", graph::DType::kF32},
                                                                               {"F64", graph::DType::kF64},
                                                                               {"I64", graph::DType::kI64},
                                                                               {"I32", graph::DType::kI32},
                                                                               {"BOOL", graph::DType::kBool},
                                                                               {"U8", graph::DType::kU8}}};

std::string_view name_of(graph::DType dtype) {
  for (const auto& [name, d] : kDTypes) {
    if (d == dtype) return name;
  }
  throw InternalError("a dtype has no safetensors name");
}

graph::DType dtype_of(const JsonReader& place) {
  const std::string word = place.string();
  for (const auto& [name, d] : kDTypes) {
    if (name == word) return d;
  }
  throw UserError("{} is '{}'; this program reads F32, F64, I64, I32, BOOL and U8", place.place(), word);
}

struct Entry {
  std::string name;
  graph::TensorType type;
  std::int64_t begin = 0, end = 0;
};

Entry entry_from(const std::string& name, const JsonReader& r) {
  Entry e;
  e.name = name;
  e.type.dtype = dtype_of(r.at("dtype"));
  for (const JsonReader& d : r.at("shape").items()) e.type.shape.push_back(d.integer(0));
  const std::vector<JsonReader> offsets = r.at("data_offsets").items();
  if (offsets.size() != 2) throw UserError("{}.data_offsets has {} numbers; it must have 2", r.place(), offsets.size());
  e.begin = offsets[0].integer(0);
  e.end = offsets[1].integer(0);
  const Bytes bytes = e.type.bytes();
  if (e.end < e.begin || e.end - e.begin != bytes) {
    throw UserError("{}: the range {} to {} is not the {} bytes of {}", r.place(), e.begin, e.end, bytes,
                    graph::to_string(e.type));
  }
  return e;
}

/// The ranges must cover the data without a hole or an overlap.
void check_cover(const std::vector<Entry>& entries, std::int64_t n_data, std::string_view place) {
  std::vector<const Entry*> sorted;
  for (const Entry& e : entries) sorted.push_back(&e);
  std::sort(sorted.begin(), sorted.end(),
            [](const Entry* a, const Entry* b) { return std::pair(a->begin, a->end) < std::pair(b->begin, b->end); });
  std::int64_t at = 0;
  for (const Entry* e : sorted) {
    if (e->begin != at) {
      throw UserError("{}: tensor '{}' begins at byte {} of the data; byte {} is next", place, e->name, e->begin, at);
    }
    at = e->end;
  }
  if (at != n_data) throw UserError("{}: its tensors take {} bytes, but {} follow the header", place, at, n_data);
}

void check_digest(std::string_view content, std::string_view header, const std::string& digest,
                  std::string_view place) {
  std::string copy(content);
  const std::size_t at = header.find("\"" + digest + "\"");
  if (digest.size() != kNoDigest.size() || at == std::string_view::npos) {
    throw UserError("{}: its sha256 is not 64 digits", place);
  }
  copy.replace(kLengthBytes + at + 1, digest.size(), kNoDigest);
  if (sha256_hex(copy) != digest) {
    throw UserError("{}: its content does not match its sha256; the file is damaged", place);
  }
}

std::string_view header_of(std::string_view content, std::string_view place) {
  if (content.size() < kLengthBytes) {
    throw UserError("{} is no safetensors file: {} bytes, fewer than the 8 of the header's length", place,
                    content.size());
  }
  std::uint64_t length = 0;
  std::memcpy(&length, content.data(), kLengthBytes);
  if (length > kMaxHeader || length > content.size() - kLengthBytes) {
    throw UserError("{} is no whole safetensors file: it announces a header of {} bytes, {} follow", place, length,
                    content.size() - kLengthBytes);
  }
  return content.substr(kLengthBytes, length);
}

std::string header_text(const TensorWriter& w) {
  Json root = Json::object();
  Json meta = Json::object();
  for (const auto& [key, value] : w.metadata) {
    if (key != "sha256") meta[key] = value;
  }
  meta["sha256"] = kNoDigest;
  root["__metadata__"] = std::move(meta);
  std::int64_t at = 0;
  std::set<std::string> seen;
  for (const auto& [name, type] : w.tensors) {
    ensure(name != "__metadata__" && seen.insert(name).second, "tensor names in a file are unique");
    const std::int64_t end = checked_add(at, type.bytes());
    root[name] = {{"dtype", name_of(type.dtype)}, {"shape", type.shape}, {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = root.dump();
  text.append((8 - text.size() % 8) % 8, ' ');  // tensors begin aligned
  return text;
}

}  // namespace

TensorFile tensors_from(std::string_view content, std::string_view place) {
  const std::string_view header = header_of(content, place);
  if (header.empty() || header[0] != '{') throw UserError("{}: its header does not begin with '{{'", place);
  const Json root = parse_json(header, place);
  const std::string_view data = content.substr(kLengthBytes + header.size());
  TensorFile out;
  std::vector<Entry> entries;
  for (const auto& [name, value] : root.items()) {
    const JsonReader r(value, fmt::format("{}: '{}'", place, name));
    if (name != "__metadata__") {
      entries.push_back(entry_from(name, r));
      continue;
    }
    if (!value.is_object()) throw UserError("{}: its metadata is not an object", place);
    for (const auto& [key, text] : value.items()) {
      out.metadata[key] = JsonReader(text, fmt::format("{}: metadata '{}'", place, key)).string();
    }
  }
  check_cover(entries, static_cast<std::int64_t>(data.size()), place);
  if (const auto format = out.metadata.find("format");
      format != out.metadata.end() && format->second.starts_with("neaptide.")) {
    const auto digest = out.metadata.find("sha256");
    if (digest == out.metadata.end()) throw UserError("{}: its metadata has no \"sha256\"", place);
    check_digest(content, header, digest->second, place);
    out.metadata.erase(digest);
  }
  for (const Entry& e : entries) {
    const std::string_view range =
        data.substr(static_cast<std::size_t>(e.begin), static_cast<std::size_t>(e.end - e.begin));
    out.tensors.emplace_back(e.name, graph::make_tensor(e.type, std::as_bytes(std::span(range))));
  }
  return out;
}

TensorFile read_tensors(const std::string& path) { return tensors_from(read_file(path), "'" + path + "'"); }

std::string to_safetensors(const TensorWriter& w) {
  const std::string header = header_text(w);
  std::size_t total = kLengthBytes + header.size();
  for (const auto& [name, type] : w.tensors) total += static_cast<std::size_t>(type.bytes());
  std::string out(total, '\0');
  const std::uint64_t length = header.size();
  std::memcpy(out.data(), &length, kLengthBytes);
  std::copy(header.begin(), header.end(), out.begin() + kLengthBytes);
  std::size_t at = kLengthBytes + header.size();
  for (std::size_t i = 0; i < w.tensors.size(); ++i) {
    const auto bytes = static_cast<std::size_t>(w.tensors[i].second.bytes());
    w.fill(i, std::as_writable_bytes(std::span(out.data() + at, bytes)));
    at += bytes;
  }
  const std::size_t slot = header.find("\"sha256\":\"" + kNoDigest) + 10;
  const std::string digest = sha256_hex(out);
  out.replace(kLengthBytes + slot, digest.size(), digest);
  return out;
}

std::string to_safetensors(const TensorFile& file) {
  TensorWriter w;
  w.metadata = file.metadata;
  for (const auto& [name, tensor] : file.tensors) w.tensors.emplace_back(name, tensor.type);
  w.fill = [&](std::size_t i, std::span<std::byte> out) {
    std::copy(file.tensors[i].second.data->begin(), file.tensors[i].second.data->end(), out.begin());
  };
  return to_safetensors(w);
}

}  // namespace neaptide::session
