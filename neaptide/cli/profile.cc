// neaptide profile: what every implementation of every node costs.
#include <algorithm>

#include "neaptide/cli/model_flags.hpp"

namespace neaptide::cli {

namespace {

struct Flags {
  ModelFlags model;
  bool inference = false;
};

void show(Console& console, const session::Prepared& p) {
  std::map<std::string, Seconds> by_op;
  std::vector<std::vector<std::string>> table = {{"node", "operator", "implementation", "time", "workspace"}};
  Seconds total = 0;
  for (std::size_t i = 0; i < p.graph.nodes.size(); ++i) {
    const graph::Node& node = p.graph.nodes[graph::NodeId(i)];
    for (const cost::ImplCost& c : p.table[graph::NodeId(i)].impls) {
      table.push_back({node.name, node.op, c.spec.name, format_seconds(c.seconds), std::to_string(c.spec.workspace)});
    }
    if (p.table[graph::NodeId(i)].impls.empty()) continue;
    by_op[node.op] += p.table[graph::NodeId(i)].impls.front().seconds;
    total += p.table[graph::NodeId(i)].impls.front().seconds;
  }
  console.table(table);
  std::vector<std::pair<Seconds, std::string>> sorted;
  for (const auto& [op, seconds] : by_op) sorted.emplace_back(-seconds, op);
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::vector<std::string>> sums = {{"operator", "time", "share"}};
  for (const auto& [seconds, op] : sorted) {
    sums.push_back({op, format_seconds(-seconds), fmt::format("{:.1f}%", total > 0 ? -100 * seconds / total : 0)});
  }
  sums.push_back({"all, first implementations", format_seconds(total), "100.0%"});
  console.data("\n");
  console.table(sums);
}

int profile(const Flags& flags, Console& console) {
  const session::ModelOptions options = options_of(flags.model, {}, console);
  graph::Graph g = load(flags.model, options);
  const session::Prepared p = flags.inference ? std::move(session::make_inference_model(g, options).prepared)
                                              : std::move(session::make_training_model(std::move(g), options).prepared);
  console.end_progress();
  console.note(fmt::format("device {}: {}", p.machine.devices.front().name, p.backend->version()));
  if (console.json) {
    console.data(cost::to_json(p.graph, p.table));
  } else {
    show(console, p);
  }
  return kOk;
}

std::function<int()> declare(CLI::App& app, Console& console) {
  auto flags = std::make_shared<Flags>();
  app.add_option("MODEL", flags->model.path, "an ONNX model")->required();
  app.add_flag("--inference", flags->inference, "the model itself, not its training");
  declare_model_flags(app, flags->model);
  declare_training_flags(app, flags->model);
  return [flags, &console] { return profile(*flags, console); };
}

}  // namespace

const Verb kProfileVerb = {"profile", "Measures every implementation of every operator on the device.", declare};

}  // namespace neaptide::cli
