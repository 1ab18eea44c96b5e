// JSON in: checked access with messages that name the place ("ops[3].impls[0].seconds is not a number"). JSON out:
// nlohmann::ordered_json, numbers printed so that they read back to the same bits.
//
//   const Json root = parse_json(text, path);
//   JsonReader r(root, "problem.json");
//   for (JsonReader op : r.at("ops").items()) { op.at("name").string(); }
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace neaptide {

using Json = nlohmann::ordered_json;

/// Throws UserError("<name>: not JSON: <what, where>"). Depth is limited to 200.
Json parse_json(std::string_view text, std::string_view name);

/// A value and the path to it; every accessor throws UserError naming the path.
class JsonReader {
 public:
  JsonReader(const Json& value, std::string place) : value_(&value), place_(std::move(place)) {}

  bool has(const char* key) const;                       // present and not null
  JsonReader at(const char* key) const;                  // must be an object with this key
  std::vector<JsonReader> items() const;                 // must be an array
  std::vector<JsonReader> items(const char* key) const;  // at(key).items(), or none when absent
  std::string string() const;
  std::int64_t integer(std::int64_t least = INT64_MIN) const;
  double number(double least = -1e300) const;  // finite
  bool boolean() const;
  std::string string(const char* key) const { return at(key).string(); }
  std::int64_t integer(const char* key, std::int64_t least) const { return at(key).integer(least); }
  double number(const char* key, double least) const { return at(key).number(least); }
  bool boolean_or(const char* key, bool otherwise) const { return has(key) ? at(key).boolean() : otherwise; }

  const Json& value() const { return *value_; }
  const std::string& place() const { return place_; }

 private:
  const Json* value_;
  std::string place_;
};

/// Lines of about 100 characters, indented by two spaces, with a final newline: what fits on a line stands on one,
/// lists of numbers fill theirs.
std::string json_text(const Json& value);

}  // namespace neaptide
