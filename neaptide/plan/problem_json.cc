// The JSON form of a problem: "neaptide.problem" version 1. Unknown keys are ignored.
#include <algorithm>
#include <unordered_map>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/files.hpp"
#include "neaptide/base/json.hpp"
#include "neaptide/base/sha256.hpp"
#include "neaptide/base/text.hpp"
#include "neaptide/plan/problem.hpp"

namespace neaptide::plan {
namespace {

constexpr const char* kFormat = "neaptide.problem";
constexpr std::size_t kMostComplaints = 12;

/// Names to ids, with a message that helps.
template <class IdType>
class Names {
 public:
  explicit Names(const char* kind) : kind_(kind) {}

  void add(const std::string& name) { ids_.emplace(name, IdType(ids_.size())); }

  IdType find(const JsonReader& r) const {
    const std::string name = r.string();
    const auto it = ids_.find(name);
    if (it != ids_.end()) return it->second;
    std::vector<std::string> known;
    for (const auto& [k, id] : ids_) known.push_back(k);
    std::sort(known.begin(), known.end());
    throw UserError("{}: unknown {} '{}'{}", r.place(), kind_, name, did_you_mean(name, known));
  }

 private:
  const char* kind_;
  std::unordered_map<std::string, IdType> ids_;
};

class Reader {
 public:
  Reader(const JsonReader& root, std::string_view place) : root_(root), place_(place) {}

  Problem run() {
    const bool known = root_.value().is_object() && root_.has("format") && root_.value()["format"] == kFormat &&
                       root_.has("version") && root_.value()["version"] == 1;
    if (!known) throw UserError("{}: not a problem; it needs \"format\": \"{}\", \"version\": 1", place_, kFormat);
    if (root_.has("name")) problem_.name = root_.string("name");
    for (const JsonReader& r : root_.items("devices")) read_device(r);
    for (const JsonReader& r : root_.items("buffers")) read_buffer(r);
    for (const JsonReader& r : root_.items("links")) read_link(r);
    for (const JsonReader& r : root_.items("copies")) read_copy(r);
    for (const JsonReader& r : root_.items("ops")) read_op(r);
    read_order();
    return std::move(problem_);
  }

 private:
  void read_device(const JsonReader& r) {
    Device d;
    d.name = r.string("name");
    if (r.has("budget")) d.budget = r.integer("budget", 0);
    if (r.has("alignment")) d.alignment = r.integer("alignment", 1);
    unique(r, problem_.devices, d.name);
    devices_.add(d.name);
    problem_.devices.push_back(std::move(d));
  }

  void read_buffer(const JsonReader& r) {
    Buffer b;
    b.name = r.string("name");
    b.bytes = r.integer("bytes", 0);
    if (r.has("home")) b.home = devices_.find(r.at("home"));
    b.keep = r.boolean_or("keep", false);
    b.pageable = r.boolean_or("pageable", false);
    if (buffer_names_.count(b.name) != 0) throw UserError("{}: the name '{}' is taken", r.place(), b.name);
    buffer_names_.emplace(b.name, true);
    buffers_.add(b.name);
    problem_.buffers.push_back(std::move(b));
  }

  void read_link(const JsonReader& r) {
    Link l;
    l.from = devices_.find(r.at("from"));
    l.to = devices_.find(r.at("to"));
    if (r.has("latency")) l.latency = r.number("latency", 0);
    l.bytes_per_second = r.number("bytes_per_second", 0);
    problem_.links.push_back(l);
  }

  void read_copy(const JsonReader& r) {
    CopyCost c;
    c.buffer = buffers_.find(r.at("buffer"));
    c.from = devices_.find(r.at("from"));
    c.to = devices_.find(r.at("to"));
    c.seconds = r.number("seconds", 0);
    if (r.has("joules")) c.joules = r.number("joules", 0);
    problem_.copies.push_back(c);
  }

  void read_op(const JsonReader& r) {
    Op op;
    op.name = r.string("name");
    op.once = r.boolean_or("once", false);
    for (const JsonReader& i : r.at("impls").items()) op.impls.push_back(read_impl(i));
    if (op_names_.count(op.name) != 0) throw UserError("{}: the name '{}' is taken", r.place(), op.name);
    op_names_.emplace(op.name, true);
    ops_.add(op.name);
    problem_.ops.push_back(std::move(op));
  }

  Impl read_impl(const JsonReader& r) const {
    Impl i;
    i.name = r.string("name");
    i.device = devices_.find(r.at("device"));
    i.seconds = r.number("seconds", 0);
    if (r.has("joules")) i.joules = r.number("joules", 0);
    if (r.has("workspace")) i.workspace = r.integer("workspace", 0);
    for (const JsonReader& b : r.items("reads")) i.reads.push_back(buffers_.find(b));
    for (const JsonReader& b : r.items("writes")) i.writes.push_back(buffers_.find(b));
    for (const JsonReader& pair : r.items("in_place")) {
      const std::vector<JsonReader> two = pair.items();
      if (two.size() != 2) throw UserError("{} is not a pair [input, output]", pair.place());
      i.in_place.push_back({buffers_.find(two[0]), buffers_.find(two[1])});
    }
    return i;
  }

  void read_order() {
    for (const JsonReader& r : root_.items("order")) problem_.order.push_back(ops_.find(r));
    if (!problem_.order.empty()) return;
    for (std::size_t i = 0; i < problem_.ops.size(); ++i) problem_.order.emplace_back(i);
  }

  void unique(const JsonReader& r, const IdVector<DeviceTag, Device>& devices, const std::string& name) const {
    for (const Device& d : devices) {
      if (d.name == name) throw UserError("{}: the name '{}' is taken", r.place(), name);
    }
  }

  const JsonReader& root_;
  std::string_view place_;
  Problem problem_;
  Names<DeviceId> devices_{"device"};
  Names<BufferId> buffers_{"buffer"};
  Names<OpId> ops_{"op"};
  std::unordered_map<std::string, bool> buffer_names_, op_names_;
};

Json names_of(const Problem& problem, const std::vector<BufferId>& list) {
  Json out = Json::array();
  for (BufferId b : list) out.push_back(problem.buffers[b].name);
  return out;
}

Json impl_json(const Problem& problem, const Impl& impl) {
  Json j;
  j["name"] = impl.name;
  j["device"] = problem.devices[impl.device].name;
  j["seconds"] = impl.seconds;
  if (impl.joules) j["joules"] = *impl.joules;
  if (impl.workspace != 0) j["workspace"] = impl.workspace;
  j["reads"] = names_of(problem, impl.reads);
  j["writes"] = names_of(problem, impl.writes);
  for (const InPlace& pair : impl.in_place)
    j["in_place"].push_back({problem.buffers[pair.in].name, problem.buffers[pair.out].name});
  return j;
}

Json device_json(const Device& d) {
  Json j;
  j["name"] = d.name;
  if (d.budget) j["budget"] = *d.budget;
  if (d.alignment != 1) j["alignment"] = d.alignment;
  return j;
}

Json buffer_json(const Problem& problem, const Buffer& b) {
  Json j;
  j["name"] = b.name;
  j["bytes"] = b.bytes;
  if (b.home) j["home"] = problem.devices[*b.home].name;
  if (b.keep) j["keep"] = true;
  if (b.pageable) j["pageable"] = true;
  return j;
}

Json link_json(const Problem& problem, const Link& l) {
  Json j;
  j["from"] = problem.devices[l.from].name;
  j["to"] = problem.devices[l.to].name;
  j["latency"] = l.latency;
  j["bytes_per_second"] = l.bytes_per_second;
  return j;
}

Json copy_json(const Problem& problem, const CopyCost& c) {
  Json j;
  j["buffer"] = problem.buffers[c.buffer].name;
  j["from"] = problem.devices[c.from].name;
  j["to"] = problem.devices[c.to].name;
  j["seconds"] = c.seconds;
  if (c.joules) j["joules"] = *c.joules;
  return j;
}

bool is_default_order(const Problem& problem) {
  for (std::size_t i = 0; i < problem.order.size(); ++i) {
    if (problem.order[i].index() != i) return false;
  }
  return true;
}

}  // namespace

Problem problem_from_json(std::string_view text, std::string_view place) {
  const Json json = parse_json(text, place);
  Problem problem = Reader(JsonReader(json, std::string(place)), place).run();
  std::vector<std::string> errors = check(problem);
  if (errors.empty()) return problem;
  const std::size_t more = errors.size() > kMostComplaints ? errors.size() - kMostComplaints : 0;
  errors.resize(errors.size() - more);
  throw UserError("{}: {}{}", place, join(errors, "; "), more == 0 ? "" : fmt::format("; and {} more", more));
}

std::string to_json(const Problem& problem) {
  Json j;
  j["format"] = kFormat;
  j["version"] = 1;
  j["name"] = problem.name;
  j["devices"] = Json::array();
  for (const Device& d : problem.devices) j["devices"].push_back(device_json(d));
  for (const Link& l : problem.links) j["links"].push_back(link_json(problem, l));
  for (const CopyCost& c : problem.copies) j["copies"].push_back(copy_json(problem, c));
  j["buffers"] = Json::array();
  for (const Buffer& b : problem.buffers) j["buffers"].push_back(buffer_json(problem, b));
  j["ops"] = Json::array();
  for (const Op& op : problem.ops) {
    Json impls = Json::array();
    for (const Impl& impl : op.impls) impls.push_back(impl_json(problem, impl));
    Json o;
    o["name"] = op.name;
    o["once"] = op.once;
    o["impls"] = std::move(impls);
    j["ops"].push_back(std::move(o));
  }
  if (!is_default_order(problem)) {
    for (OpId op : problem.order) j["order"].push_back(problem.ops[op].name);
  }
  return json_text(j);
}

Problem read_problem(const std::string& path, std::string* sha256) {
  const std::string text = read_maybe_gzip(path);
  if (sha256 != nullptr) *sha256 = sha256_hex(text);
  return problem_from_json(text, path);
}

}  // namespace neaptide::plan
