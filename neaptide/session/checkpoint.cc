#include "neaptide/session/checkpoint.hpp"

#include <fmt/format.h>

#include <charconv>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/files.hpp"
#include "neaptide/base/json.hpp"

namespace neaptide::session {

namespace {

/// Metadata values are text; numbers are read back exactly.
template <class T>
T number(const std::map<std::string, std::string>& metadata, const std::string& key, std::string_view place) {
  const auto found = metadata.find(key);
  if (found == metadata.end()) throw UserError("{}: its metadata has no \"{}\"", place, key);
  const std::string& text = found->second;
  T out{};
  const auto [rest, ec] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (ec != std::errc() || rest != text.data() + text.size()) {
    throw UserError("{}: its metadata has \"{}\": '{}', which is not a number", place, key, text);
  }
  if (out < T{}) throw UserError("{}: its metadata has \"{}\": {}; it must be at least 0", place, key, text);
  return out;
}

std::map<std::string, std::string> metadata_of(const Checkpoint& c) {
  std::map<std::string, std::string> m;
  m["format"] = "neaptide.checkpoint";
  m["version"] = "1";
  m["seed"] = std::to_string(c.seed);
  m["step"] = std::to_string(c.step);
  m["epoch"] = std::to_string(c.cursor.epoch);
  m["position"] = std::to_string(c.cursor.position);
  m["epoch_loss_sum"] = fmt::format("{}", c.means.loss_sum);
  m["epoch_steps"] = std::to_string(c.means.steps);
  m["epoch_correct"] = std::to_string(c.means.correct);
  m["epoch_samples"] = std::to_string(c.means.samples);
  Json options = Json::object();
  for (const auto& [key, value] : c.options) options[key] = value;
  m["options"] = options.dump();
  m["plan"] = c.plan;
  return m;
}

}  // namespace

std::string to_safetensors(const Checkpoint& c) {
  TensorFile file;
  file.tensors = c.tensors;
  file.metadata = metadata_of(c);
  return to_safetensors(file);
}

std::string to_safetensors(const Checkpoint& c, TensorWriter tensors) {
  tensors.metadata = metadata_of(c);
  return to_safetensors(tensors);
}

Checkpoint checkpoint_from(std::string_view content, std::string_view place) {
  TensorFile file = tensors_from(content, place);
  const auto& m = file.metadata;
  if (!m.contains("format") || m.at("format") != "neaptide.checkpoint") {
    throw UserError("{} is no checkpoint: its metadata has no \"format\": \"neaptide.checkpoint\"", place);
  }
  if (const auto v = number<std::int64_t>(m, "version", place); v != 1) {
    throw UserError("{} is a checkpoint of version {}; this program reads version 1", place, v);
  }
  Checkpoint c;
  c.seed = number<std::uint64_t>(m, "seed", place);
  c.step = number<std::int64_t>(m, "step", place);
  c.cursor = {number<std::int64_t>(m, "epoch", place), number<std::int64_t>(m, "position", place)};
  c.means.loss_sum = number<double>(m, "epoch_loss_sum", place);
  c.means.steps = number<std::int64_t>(m, "epoch_steps", place);
  c.means.correct = number<std::int64_t>(m, "epoch_correct", place);
  c.means.samples = number<std::int64_t>(m, "epoch_samples", place);
  if (!m.contains("options")) throw UserError("{}: its metadata has no \"options\"", place);
  const Json options = parse_json(m.at("options"), fmt::format("{}: options", place));
  if (!options.is_object()) throw UserError("{}: its options are not an object", place);
  for (const auto& [key, value] : options.items()) {
    c.options[key] = JsonReader(value, fmt::format("{}: option '{}'", place, key)).string();
  }
  if (m.contains("plan")) c.plan = m.at("plan");
  c.tensors = std::move(file.tensors);
  return c;
}

void save_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  write_file_atomically(path, to_safetensors(checkpoint));
}

Checkpoint load_checkpoint(const std::string& path) { return checkpoint_from(read_file(path), "'" + path + "'"); }

}  // namespace neaptide::session
