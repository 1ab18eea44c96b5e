#include "neaptide/base/json.hpp"

#include <cmath>

#include "neaptide/base/errors.hpp"

namespace neaptide {
namespace {

constexpr std::size_t kWidth = 100;

/// Appends the value on one line; false, and part of it, when that takes more than `most` characters.
bool flat(const Json& value, std::size_t most, std::string* out) {
  const std::size_t end = out->size() + most;
  const auto left = [&] { return end > out->size() ? end - out->size() : 0; };
  if (value.is_object()) {
    *out += '{';
    for (auto it = value.begin(); it != value.end(); ++it) {
      *out += (it == value.begin() ? "" : ", ") + Json(it.key()).dump() + ": ";
      if (!flat(it.value(), left(), out)) return false;
    }
    *out += '}';
  } else if (value.is_array()) {
    *out += '[';
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (i > 0) *out += ',';
      if (!flat(value[i], left(), out)) return false;
    }
    *out += ']';
  } else {
    *out += value.dump();
  }
  return out->size() <= end;
}

/// What fits on a line stands on one; members and objects in a list otherwise have lines of their own, other items of
/// a list fill lines.
void write(const Json& value, std::size_t indent, std::string* out) {
  const std::size_t begin = out->size(), line = out->rfind('\n') + 1;  // 0 on the first
  const std::size_t used = begin - std::min(begin, line);
  const bool split = (value.is_object() || value.is_array()) && !value.empty();
  if (flat(value, split ? kWidth - std::min(kWidth, used) : std::string::npos / 2, out)) return;
  out->resize(begin);
  const std::string start = "\n" + std::string(indent + 2, ' ');
  *out += value.is_object() ? '{' : '[';
  for (auto it = value.begin(); it != value.end(); ++it) {
    if (it != value.begin()) *out += ',';
    if (value.is_object()) {
      *out += start + Json(it.key()).dump() + ": ";
      write(it.value(), indent + 2, out);
      continue;
    }
    const std::size_t at = out->size(), here = at - out->rfind('\n') - 1;
    const bool joins = it != value.begin() && !it->is_object() && here < kWidth && flat(*it, kWidth - here, out);
    if (joins) continue;
    out->resize(at);
    *out += start;
    write(*it, indent + 2, out);
  }
  *out += "\n" + std::string(indent, ' ') + (value.is_object() ? '}' : ']');
}

}  // namespace

Json parse_json(std::string_view text, std::string_view name) {
  constexpr int kMaxDepth = 200;
  const auto limit = [&](int depth, Json::parse_event_t, Json&) {
    if (depth > kMaxDepth) throw UserError("{}: JSON nested deeper than {}", name, kMaxDepth);
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), limit);
  } catch (const nlohmann::json::exception& e) {
    throw UserError("{}: not JSON: {}", name, e.what());
  }
}

bool JsonReader::has(const char* key) const {
  return value_->is_object() && value_->contains(key) && !value_->at(key).is_null();
}

JsonReader JsonReader::at(const char* key) const {
  if (!value_->is_object()) throw UserError("{} is not an object", place_);
  const auto found = value_->find(key);
  if (found == value_->end()) throw UserError("{} has no \"{}\"", place_, key);
  return JsonReader(*found, place_ + "." + key);
}

std::vector<JsonReader> JsonReader::items() const {
  if (!value_->is_array()) throw UserError("{} is not a list", place_);
  std::vector<JsonReader> out;
  out.reserve(value_->size());
  for (std::size_t i = 0; i < value_->size(); ++i) out.emplace_back((*value_)[i], fmt::format("{}[{}]", place_, i));
  return out;
}

std::vector<JsonReader> JsonReader::items(const char* key) const {
  return has(key) ? at(key).items() : std::vector<JsonReader>{};
}

std::string JsonReader::string() const {
  if (!value_->is_string()) throw UserError("{} is not a string", place_);
  return value_->get<std::string>();
}

std::int64_t JsonReader::integer(std::int64_t least) const {
  if (!value_->is_number_integer()) throw UserError("{} is not an integer", place_);
  if (value_->is_number_unsigned() && value_->get<std::uint64_t>() > INT64_MAX)
    throw UserError("{} does not fit 63 bits", place_);
  const auto v = value_->get<std::int64_t>();
  if (v < least) throw UserError("{} is {}; it must be at least {}", place_, v, least);
  return v;
}

double JsonReader::number(double least) const {
  if (!value_->is_number()) throw UserError("{} is not a number", place_);
  const auto v = value_->get<double>();
  if (!std::isfinite(v)) throw UserError("{} is not finite", place_);
  if (v < least) throw UserError("{} is {}; it must be at least {}", place_, v, least);
  return v;
}

bool JsonReader::boolean() const {
  if (!value_->is_boolean()) throw UserError("{} is neither true nor false", place_);
  return value_->get<bool>();
}

std::string json_text(const Json& value) {
  std::string out;
  write(value, 0, &out);
  return out + "\n";
}

}  // namespace neaptide
