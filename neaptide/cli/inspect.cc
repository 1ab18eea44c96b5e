// neaptide inspect: what is in a model, a problem or a safetensors file.
#include "neaptide/cli/model_flags.hpp"

namespace neaptide::cli {

namespace {

struct Flags {
  ModelFlags model;
  bool text = false, dot = false;
};

struct NodeRow {
  std::string name, op, type;
  double flops = 0;
};

std::vector<NodeRow> rows_of(const graph::Graph& g) {
  std::vector<NodeRow> out;
  for (const graph::Node& node : g.nodes) {
    NodeRow row = {node.name, node.op, "", 0};
    if (!node.outputs.empty() && node.outputs.front().valid())
      row.type = to_string(g.values[node.outputs.front()].type);
    const graph::OpDef& op = ops::all().at(node.op);
    if (op.work != nullptr) row.flops = op.work(graph::NodeView(g, node)).flops;
    out.push_back(std::move(row));
  }
  return out;
}

std::int64_t elements_of(const graph::Graph& g, graph::ValueKind kind) {
  std::int64_t n = 0;
  for (const graph::ValueId v : graph::values_of_kind(g, kind)) n += g.values[v].type.elements();
  return n;
}

std::string flops_text(double flops) {
  return flops >= 1e9   ? fmt::format("{:.3g} G", flops / 1e9)
         : flops >= 1e6 ? fmt::format("{:.3g} M", flops / 1e6)
                        : fmt::format("{:.0f}", flops);
}

Json model_json(const graph::Graph& g, const std::vector<NodeRow>& rows, double flops) {
  Json root{{"name", g.name},
            {"parameters", elements_of(g, graph::ValueKind::kParameter)},
            {"state", elements_of(g, graph::ValueKind::kState)},
            {"constants", elements_of(g, graph::ValueKind::kConstant)},
            {"forward_flops", flops},
            {"inputs", Json::array()},
            {"outputs", Json::array()},
            {"nodes", Json::array()},
            {"notes", g.notes}};
  const auto value = [&](graph::ValueId v) {
    return Json{{"name", g.values[v].name}, {"type", to_string(g.values[v].type)}};
  };
  for (const graph::ValueId v : graph::values_of_kind(g, graph::ValueKind::kInput)) root["inputs"].push_back(value(v));
  for (const graph::ValueId v : g.outputs) root["outputs"].push_back(value(v));
  for (const NodeRow& r : rows) {
    root["nodes"].push_back({{"name", r.name}, {"op", r.op}, {"output", r.type}, {"flops", r.flops}});
  }
  return root;
}

int inspect_model(const Flags& flags, Console& console) {
  const graph::Graph g = load(flags.model, options_of(flags.model, {}, console));
  if (flags.text || flags.dot) {
    console.data(flags.dot ? graph::to_dot(g) : graph::to_text(g));
    return kOk;
  }
  const std::vector<NodeRow> rows = rows_of(g);
  double flops = 0;
  for (const NodeRow& r : rows) flops += r.flops;
  if (console.json) {
    console.value(model_json(g, rows, flops));
    return kOk;
  }
  std::vector<std::vector<std::string>> table = {{"node", "operator", "output", "flops"}};
  for (const NodeRow& r : rows) table.push_back({r.name, r.op, r.type, flops_text(r.flops)});
  console.table(table);
  std::string text = fmt::format("\n{}: {} nodes, {} flops forward\n", g.name, g.nodes.size(), flops_text(flops));
  for (const graph::ValueId v : graph::values_of_kind(g, graph::ValueKind::kInput)) {
    text += fmt::format("input       {} {}\n", g.values[v].name, to_string(g.values[v].type));
  }
  for (const graph::ValueId v : g.outputs) {
    text += fmt::format("output      {} {}\n", g.values[v].name, to_string(g.values[v].type));
  }
  text += fmt::format("parameters  {}\nstate       {}\nconstants   {}\n", elements_of(g, graph::ValueKind::kParameter),
                      elements_of(g, graph::ValueKind::kState), elements_of(g, graph::ValueKind::kConstant));
  console.data(text);
  return kOk;
}

int inspect_problem(const std::string& path, Console& console) {
  std::string sha256;
  const plan::Problem p = session::load_problem(path, &sha256);
  std::size_t impls = 0, once = 0;
  for (const plan::Op& op : p.ops) {
    impls += op.impls.size();
    once += op.once ? 1 : 0;
  }
  Json devices = Json::array();
  std::string text =
      fmt::format("problem     {}\nsha256      {}\nops         {} ({} once, {} implementations)\nbuffers     {}\n",
                  p.name, sha256, p.ops.size(), once, impls, p.buffers.size());
  for (std::size_t i = 0; i < p.devices.size(); ++i) {
    const plan::DeviceId d(i);
    const Bytes keep_all = session::keep_all_peak(p, d);
    devices.push_back(
        {{"name", p.devices[d].name}, {"keep_all_peak", keep_all}, {"alignment", p.devices[d].alignment}});
    text += fmt::format("device      {}: keep-all peak {} ({})\n", p.devices[d].name, keep_all, format_bytes(keep_all));
  }
  if (console.json) {
    console.value({{"name", p.name},
                   {"sha256", sha256},
                   {"ops", p.ops.size()},
                   {"once", once},
                   {"implementations", impls},
                   {"buffers", p.buffers.size()},
                   {"devices", devices}});
  } else {
    console.data(text);
  }
  return kOk;
}

int inspect_tensors(const std::string& path, Console& console) {
  const session::TensorFile f = session::read_tensors(path);
  if (console.json) {
    Json root{{"metadata", Json::object()}, {"tensors", Json::array()}};
    for (const auto& [key, value] : f.metadata) root["metadata"][key] = value;
    for (const auto& [name, t] : f.tensors) root["tensors"].push_back({{"name", name}, {"type", to_string(t.type)}});
    console.value(root);
    return kOk;
  }
  std::vector<std::vector<std::string>> table = {{"tensor", "type", "bytes"}};
  for (const auto& [name, t] : f.tensors) table.push_back({name, to_string(t.type), std::to_string(t.type.bytes())});
  console.table(table);
  for (const auto& [key, value] : f.metadata) {
    console.data(fmt::format("{}  {}\n", key, key == "plan" ? fmt::format("({} characters)", value.size()) : value));
  }
  return kOk;
}

std::function<int()> declare(CLI::App& app, Console& console) {
  auto flags = std::make_shared<Flags>();
  app.add_option("FILE", flags->model.path, "an ONNX model, a problem file, a checkpoint or another safetensors file")
      ->required();
  app.add_option("--batch", flags->model.batch, "samples per step; default: the model's own")
      ->check(CLI::PositiveNumber);
  app.add_flag("--text", flags->text, "the graph in its text form");
  app.add_flag("--dot", flags->dot, "the graph for Graphviz");
  return [flags, &console] {
    switch (session::kind_of(flags->model.path)) {
      case session::InputKind::kJson:
        return inspect_problem(flags->model.path, console);
      case session::InputKind::kTensors:
        return inspect_tensors(flags->model.path, console);
      case session::InputKind::kOnnx:
        break;
    }
    return inspect_model(*flags, console);
  };
}

}  // namespace

const Verb kInspectVerb = {"inspect", "Shows what is in a model, a problem or a checkpoint.", declare};

}  // namespace neaptide::cli
