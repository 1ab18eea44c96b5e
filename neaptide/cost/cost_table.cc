#include "neaptide/cost/cost_table.hpp"

#include <fmt/format.h>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/files.hpp"
#include "neaptide/base/json.hpp"
#include "neaptide/base/sha256.hpp"

namespace neaptide::cost {
namespace {

template <class T>
std::string list_text(const std::vector<T>& items) {
  std::string out = "[";
  for (const T& item : items) out += fmt::format("{},", item);
  return out + "]";
}

std::string attr_text(const graph::Attr& attr) {
  struct {
    std::string operator()(std::int64_t v) const { return fmt::format("{}", v); }
    std::string operator()(double v) const { return fmt::format("{}", v); }
    std::string operator()(const std::string& v) const { return v; }
    std::string operator()(const std::vector<std::int64_t>& v) const { return list_text(v); }
    std::string operator()(const std::vector<double>& v) const { return list_text(v); }
    std::string operator()(const std::vector<std::string>& v) const { return list_text(v); }
    std::string operator()(const graph::Tensor& v) const {
      const std::string_view bytes(reinterpret_cast<const char*>(v.data->data()), v.data->size());
      return to_string(v.type) + sha256_hex(bytes);
    }
  } text;
  return std::visit(text, attr);
}

std::string values_text(const graph::Graph& graph, const std::vector<graph::ValueId>& values) {
  std::string out;
  for (const graph::ValueId id : values) {
    if (!id.valid()) {
      out += "_,";
      continue;
    }
    const graph::Value& v = graph.values[id];
    out += to_string(v.type) + (v.format.plain() ? "," : ":" + v.format.tag + ",");
  }
  return out;
}

}  // namespace

std::string signature(const graph::NodeView& node) {
  std::string attrs;
  for (const auto& [key, value] : node.node().attrs) {
    if (key != "stream") attrs += key + "=" + attr_text(value) + ";";  // a dropout's stream number costs nothing
  }
  return fmt::format("{}({}){{{}}}->{}", node.node().op, values_text(node.graph(), node.node().inputs), attrs,
                     values_text(node.graph(), node.node().outputs));
}

std::string cache_key(const std::string& signature, const std::string& impl, const std::string& device,
                      const std::string& version) {
  return fmt::format("{}|{}|{}|{}", signature, impl, device, version);
}

CostCache CostCache::load(const std::string& path) {
  CostCache cache;
  if (!file_exists(path)) return cache;
  const Json root = parse_json(read_file(path), path);
  const JsonReader r(root, path);
  if (r.string("format") != "neaptide.costs" || r.integer("version", 1) != 1)
    throw UserError("{} is not a \"neaptide.costs\" file of version 1", path);
  const JsonReader seconds = r.at("seconds");
  if (!seconds.value().is_object()) throw UserError("{} is not an object", seconds.place());
  for (const auto& [key, value] : seconds.value().items())
    cache.seconds_[key] = JsonReader(value, seconds.place() + "." + key).number(0);
  return cache;
}

void CostCache::save(const std::string& path) const {
  Json root;
  root["format"] = "neaptide.costs";
  root["version"] = 1;
  root["seconds"] = Json::object();
  for (const auto& [key, seconds] : seconds_) root["seconds"][key] = seconds;
  write_file_atomically(path, json_text(root));
}

std::optional<Seconds> CostCache::find(const std::string& key) const {
  const auto found = seconds_.find(key);
  if (found == seconds_.end()) return std::nullopt;
  return found->second;
}

void CostCache::put(const std::string& key, Seconds seconds) { seconds_[key] = seconds; }

std::string to_json(const graph::Graph& graph, const CostTable& table) {
  Json root;
  root["format"] = "neaptide.cost-table";
  root["version"] = 1;
  root["nodes"] = Json::array();
  for (std::size_t n = 0; n < table.size(); ++n) {
    const NodeCosts& costs = table[graph::NodeId(n)];
    const graph::Node& node = graph.nodes[graph::NodeId(n)];
    Json entry{{"node", node.name}, {"op", node.op}, {"implementations", Json::array()}};
    for (const ImplCost& i : costs.impls)
      entry["implementations"].push_back(
          {{"device", i.device}, {"name", i.spec.name}, {"seconds", i.seconds}, {"workspace", i.spec.workspace}});
    for (const auto& [device, reason] : costs.why_not) entry["why_not"][device] = reason;
    root["nodes"].push_back(std::move(entry));
  }
  return json_text(root);
}

}  // namespace neaptide::cost
