// neaptide zoo: well-known networks as ONNX files.
#include "neaptide/cli/verb.hpp"

namespace neaptide::cli {

namespace {

struct Flags {
  std::string name, output;
  std::int64_t batch = 1;
  onnx::ZooOptions zoo;
};

int list(Console& console) {
  if (console.json) {
    console.value(onnx::zoo_names());
    return kOk;
  }
  for (const std::string& name : onnx::zoo_names()) console.data(name + "\n");
  return kOk;
}

int zoo(const Flags& flags, Console& console) {
  if (flags.name.empty()) return list(console);
  const graph::Graph g = onnx::make(flags.name, flags.batch, flags.zoo);
  const std::string path = flags.output.empty() ? flags.name + ".onnx" : flags.output;
  onnx::save(g, path);
  Bytes weights = 0;
  for (const auto& [value, tensor] : g.data) weights += tensor.type.bytes();
  console.note(fmt::format("{}: {} nodes, batch {}, {} of weights with seed {}", flags.name, g.nodes.size(),
                           flags.batch, format_bytes(weights), flags.zoo.seed));
  if (console.json) {
    console.value({{"name", flags.name}, {"path", path}, {"nodes", g.nodes.size()}, {"weight_bytes", weights}});
  } else {
    console.data(path + "\n");
  }
  return kOk;
}

std::function<int()> declare(CLI::App& app, Console& console) {
  auto flags = std::make_shared<Flags>();
  app.add_option("NAME", flags->name, "which network; default: list them");
  app.add_option("--batch", flags->batch, "samples per step")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--image", flags->zoo.image, "height and width; default: the network's own")
      ->check(CLI::PositiveNumber);
  app.add_option("--classes", flags->zoo.classes, "default: the network's own")->check(CLI::PositiveNumber);
  app.add_option("--seed", flags->zoo.seed, "of the weights")->capture_default_str();
  app.add_option("-o,--output", flags->output, "default: NAME.onnx");
  return [flags, &console] { return zoo(*flags, console); };
}

}  // namespace

const Verb kZooVerb = {"zoo", "Writes a well-known network with seeded weights as an inference ONNX model.", declare};

}  // namespace neaptide::cli
