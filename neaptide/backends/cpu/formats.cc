#include "neaptide/backends/cpu/formats.hpp"

#include <dnnl_debug.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <map>
#include <string_view>
#include <vector>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/units.hpp"

namespace neaptide::backends::cpu {
namespace {

using graph::DType;
using graph::Format;
using graph::Shape;
using graph::TensorType;
using Tag = dnnl::memory::format_tag;

struct NamedTag {
  std::string name;
  Tag tag;
};

/// Number of dimensions that a tag speaks of: its highest letter.
std::size_t n_dims(std::string_view name) {
  int most = 0;
  for (const char c : name) {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0)
      most = std::max(most, std::tolower(static_cast<unsigned char>(c)) - 'a' + 1);
  }
  return static_cast<std::size_t>(most);
}

/// All layouts with a name, by number of dimensions; the usual ones first, so that equal layouts get one name.
const std::vector<NamedTag>& tags_of(std::size_t dims) {
  static const std::map<std::size_t, std::vector<NamedTag>> table = [] {
    std::map<std::size_t, std::vector<NamedTag>> out;
    for (int t = dnnl_format_tag_any + 1; t < dnnl_format_tag_last; ++t) {
      const std::string name = dnnl_fmt_tag2str(static_cast<dnnl_format_tag_t>(t));
      out[n_dims(name)].push_back({name, static_cast<Tag>(t)});
    }
    constexpr std::array<std::string_view, 5> usual = {"a", "aB", "aBc16b", "aBcd16b", "aBcde16b"};
    for (auto& [n, tags] : out) {
      const std::string_view plain = std::string_view("abcdefghijkl").substr(0, n);
      std::stable_sort(tags.begin(), tags.end(), [&](const NamedTag& a, const NamedTag& b) {
        const auto rank = [&](const NamedTag& tag) {
          if (tag.name == plain) return 0;
          return std::find(usual.begin(), usual.end(), tag.name) != usual.end() ? 1 : 2;
        };
        return rank(a) < rank(b);
      });
    }
    return out;
  }();
  static const std::vector<NamedTag> none;
  const auto found = table.find(dims);
  return found == table.end() ? none : found->second;
}

/// The name of the layout; "" when it has none. The library calls layouts equal that differ in the stride of a
/// dimension of size one only, but its fast implementations look at that stride: a name with the same strides comes
/// first.
std::string name_of(const Desc& desc) {
  if (desc.get_format_kind() != dnnl::memory::format_kind::blocked) return "";
  const Dims dims = desc.get_dims(), strides = desc.get_strides();
  std::string equal;
  for (const NamedTag& t : tags_of(dims.size())) {
    const Desc candidate(dims, desc.get_data_type(), t.tag, true);
    if (candidate.get(true) == nullptr || candidate != desc) continue;
    if (candidate.get_strides() == strides) return t.name;
    if (equal.empty()) equal = t.name;
  }
  return equal;
}

std::string plain_name(std::size_t dims) { return std::string("abcdefghijkl").substr(0, dims); }

Dims dims_of(const Shape& shape) { return shape.empty() ? Dims{1} : Dims(shape.begin(), shape.end()); }

/// "g32:Abcde16a" -> 32 and the rest; 0 when there is no group prefix.
std::int64_t take_groups(std::string_view& tag) {
  if (tag.empty() || tag[0] != 'g') return 0;
  const std::size_t colon = tag.find(':');
  if (colon == std::string_view::npos) return 0;
  std::int64_t groups = 0;
  std::from_chars(tag.data() + 1, tag.data() + colon, groups);
  tag.remove_prefix(colon + 1);
  return groups;
}

}  // namespace

dnnl::memory::data_type data_type_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return dnnl::memory::data_type::f32;
    case DType::kI32:
      return dnnl::memory::data_type::s32;
    case DType::kU8:
      return dnnl::memory::data_type::u8;
    default:
      return dnnl::memory::data_type::undef;
  }
}

Desc tagged_desc(const Dims& dims, DType dtype, const std::string& tag) {
  for (const NamedTag& t : tags_of(dims.size())) {
    if (t.name == tag) return Desc(dims, data_type_of(dtype), t.tag);
  }
  throw InternalError("'{}' is no layout of {} dimensions", tag, dims.size());
}

Desc plain_desc(const Shape& shape, DType dtype) {
  const Dims dims = dims_of(shape);
  return tagged_desc(dims, dtype, plain_name(dims.size()));
}

Desc any_desc(const Shape& shape) { return Desc(dims_of(shape), dnnl::memory::data_type::f32, Tag::any); }

Dims grouped(const Shape& weights, std::int64_t groups) {
  Dims dims(weights.begin(), weights.end());
  if (groups == 1) return dims;
  dims[0] /= groups;
  dims.insert(dims.begin(), groups);
  return dims;
}

Desc desc_of(const TensorType& type, const Format& format) {
  if (format.plain()) return plain_desc(type.shape, type.dtype);
  std::string_view tag = format.tag;
  const std::int64_t groups = take_groups(tag);
  return tagged_desc(groups > 0 ? grouped(type.shape, groups) : dims_of(type.shape), type.dtype, std::string(tag));
}

bool named(const Desc& desc) { return !name_of(desc).empty(); }

Format format_of(const Desc& desc, std::int64_t groups) {
  const std::string name = name_of(desc);
  if (name.empty() || name == plain_name(static_cast<std::size_t>(desc.get_ndims()))) return {};
  return {groups > 1 ? fmt::format("g{}:{}", groups, name) : name, static_cast<Bytes>(desc.get_size())};
}

std::int64_t stored_elements(const TensorType& type, const Format& format) {
  return format.plain() ? type.elements() : format.bytes / graph::size_of(type.dtype);
}

Format bits_format(const TensorType& type, const Format& format) {
  if (format.plain()) return {};
  return {"bits:" + format.tag, (stored_elements(type, format) + 7) / 8};
}

}  // namespace neaptide::backends::cpu
