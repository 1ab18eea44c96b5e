// neaptide export: a model with the weights of a checkpoint, as ONNX.
#include "neaptide/cli/model_flags.hpp"

namespace neaptide::cli {

namespace {

struct Flags {
  ModelFlags model;
  std::string output;
};

int export_model(const Flags& flags, Console& console) {
  const graph::Graph g = load(flags.model, options_of(flags.model, {}, console));
  onnx::save(g, flags.output);
  if (console.json) {
    console.value({{"path", flags.output}, {"nodes", g.nodes.size()}});
  } else {
    console.data(flags.output + "\n");
  }
  return kOk;
}

std::function<int()> declare(CLI::App& app, Console& console) {
  auto flags = std::make_shared<Flags>();
  app.add_option("MODEL", flags->model.path, "an ONNX model")->required();
  app.add_option("--weights", flags->model.weights, "a checkpoint or safetensors file");
  app.add_option("--batch", flags->model.batch, "rewrites the batch")->check(CLI::PositiveNumber);
  app.add_option("-o,--output", flags->output, "the ONNX file to be written")->required();
  return [flags, &console] { return export_model(*flags, console); };
}

}  // namespace

const Verb kExportVerb = {"export", "Writes a model with the weights of a checkpoint as ONNX.", declare};

}  // namespace neaptide::cli
