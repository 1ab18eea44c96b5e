// Trains an ONNX model within a budget that is drawn here, and saves what it learned:
//   train lenet.onnx 60% trained.onnx [fashion-mnist]
#include <fmt/core.h>

#include <array>
#include <neaptide/neaptide.hpp>

using namespace neaptide;

int train(const std::string& path, const std::string& budget, const std::string& to, const std::string& data_name) {
  session::ModelOptions options;
  session::TrainingModel model = session::make_training_model(session::load_model(path, options), options);
  session::choose_plan(model.prepared, std::array{budget}, options);
  if (!model.prepared.feasible()) {
    fmt::print("no plan fits {}; {} bytes would do\n", budget, model.prepared.plan.infeasible->smallest);
    return 4;
  }
  const session::DataSet data = data_name.empty() ? session::synthetic_for(model, 32 * model.batch, 1)
                                                  : session::open_data(data_name, session::Part::kTrain);
  session::TrainerOptions how;
  how.schedule.rate = 0.01;
  how.progress = [](const session::TrainProgress& p) {
    if (p.ends_epoch)
      fmt::print("epoch {}: loss {:.4f}, accuracy {:.4f}\n", p.epoch + 1, p.means.loss(), p.means.accuracy());
    return true;  // false stops
  };
  session::Trainer trainer(std::move(model), how);
  trainer.run(data);
  onnx::save(trainer.trained(), to);
  fmt::print("planned {} bytes, measured {} bytes; trained model in {}\n", trainer.program().planned_peak(),
             trainer.largest_measured_peak(), to);
  return 0;
}

int main(int argc, char** argv) try {
  if (argc < 4) return fmt::print("usage: train MODEL.onnx BUDGET TRAINED.onnx [DATA]\n"), 2;
  return train(argv[1], argv[2], argv[3], argc > 4 ? argv[4] : "");
} catch (const Error& e) {
  fmt::print(stderr, "{}\n", e.what());
  return 1;
}
