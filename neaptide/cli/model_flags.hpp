// Options that say which model is used, how it is trained and where it runs, shared by the verbs that take a model.
#pragma once

#include "neaptide/cli/plan_flags.hpp"

namespace neaptide::cli {

struct ModelFlags {
  std::string path, weights;
  std::int64_t batch = 0;  // 0: the model's own
  std::string backend = "cpu", costs;
  int threads = 0;
  bool estimate = false;
  std::string optimizer = "momentum", loss = "auto";
  double momentum = 0.9, weight_decay = 0, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  std::vector<std::string> frozen;
};

void declare_model_flags(CLI::App& app, ModelFlags& flags);
void declare_training_flags(CLI::App& app, ModelFlags& flags);

/// UserError for an unknown optimizer or loss.
session::ModelOptions options_of(const ModelFlags& flags, const PlanFlags& plan, Console& console);

/// The ONNX file, with the contents of --weights where given.
graph::Graph load(const ModelFlags& flags, const session::ModelOptions& options);

/// Tensors of a checkpoint or of any safetensors file.
std::vector<std::pair<std::string, graph::Tensor>> read_weights(const std::string& path);

/// Training data by name; "synthetic" or "synthetic:N" suits the model.
session::DataSet open_training_data(const std::string& what, const session::TrainingModel& model, std::uint64_t seed);

}  // namespace neaptide::cli
