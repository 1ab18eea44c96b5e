// Running a model forward: accuracy and loss over a data set, or answers for given samples. The inference graph has a
// plan and an arena of its own.
//
//   session::Evaluator e(session::make_inference_model(graph, options));
//   session::Evaluation r = e.evaluate(data);
#pragma once

#include <functional>
#include <vector>

#include "neaptide/session/batches.hpp"
#include "neaptide/session/model.hpp"

namespace neaptide::session {

struct Evaluation {
  std::int64_t samples = 0, correct = 0;  // correct: 0 for targets
  double loss = 0;                        // mean over the samples: cross entropy, or mean squared error
  Seconds seconds = 0;
  Bytes planned_peak = 0, measured_peak = 0, arena = 0;
  double accuracy() const { return samples > 0 ? static_cast<double>(correct) / static_cast<double>(samples) : 0; }
};

class Evaluator {
 public:
  /// `model` must be planned and feasible.
  explicit Evaluator(InferenceModel model, const runtime::ProgramOptions& options = {});

  /// Every sample once; a last partial batch is padded and only real samples count. UserError when the data do not suit
  /// the model. `progress(done, total)` returns false to stop early.
  Evaluation evaluate(const DataSet& data, const std::function<bool(std::int64_t, std::int64_t)>& progress = {});

  /// The outputs for one batch of contents of the (only) input.
  std::vector<float> infer(std::span<const float> batch);

  const InferenceModel& model() const { return model_; }
  const runtime::Program& program() const { return program_; }

 private:
  void check(const DataSet& data) const;

  InferenceModel model_;
  runtime::Program program_;
  bool probabilities_ = false;  // the output is a Softmax
  Bytes measured_peak_ = 0;
};

}  // namespace neaptide::session
