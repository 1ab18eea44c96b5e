// The training loop: one planned step per batch, with the planned peak checked against the measured one each time.
//
//   session::Trainer trainer(std::move(model), options);
//   trainer.run(data);                                   // a step loop with checkpoints
//   onnx::save(trainer.trained(), "trained.onnx");
//
// The library handles no signals: `progress` returns false to stop, after the state has been saved.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "neaptide/session/batches.hpp"
#include "neaptide/session/checkpoint.hpp"
#include "neaptide/session/model.hpp"
#include "neaptide/session/schedule.hpp"

namespace neaptide::session {

struct StepReport {
  float loss = 0, rate = 0;
  std::int64_t correct = 0;
  Seconds seconds = 0;
  Bytes measured_peak = 0;
};

struct TrainProgress {
  std::int64_t epoch = 0, n_epochs = 0;  // from 0
  std::int64_t step = 0;                 // steps done, over all epochs
  std::int64_t step_of_epoch = 0, steps_per_epoch = 0;
  StepReport last;
  RunningMeans means;
  double samples_per_second = 0;
  bool ends_epoch = false;
};

struct TrainerOptions {
  Schedule schedule;
  std::uint64_t seed = 1;
  std::int64_t n_epochs = 1;
  std::int64_t most_steps = INT64_MAX;  // stop after that many, over all epochs
  bool strict = false, trace = false;
  std::string checkpoint;                       // file; "": none
  std::int64_t checkpoint_every = 0;            // steps; an epoch's end and the run's end are saved always
  std::map<std::string, std::string> recorded;  // options kept in the checkpoint
  std::function<bool(const TrainProgress&)> progress;
};

/// Random data that suit the model.
DataSet synthetic_for(const TrainingModel& model, std::int64_t n, std::uint64_t seed);

enum class Outcome { kFinished, kInterrupted };

class Trainer {
 public:
  /// Compiles the plan (which must be feasible) and writes the model's initial contents. The graph's own copy of the
  /// weights is given up: from here on they lie in the arena.
  Trainer(TrainingModel model, TrainerOptions options);

  /// UserError when a tensor of the model is missing or has another shape.
  void restore(const Checkpoint& checkpoint);
  Checkpoint checkpoint() const;

  /// Trains from where the trainer stands. UserError when the data do not suit the model, and when the loss is no
  /// number any more: the last checkpoint is kept then.
  Outcome run(const DataSet& data);

  /// One step, outside of a run.
  StepReport step(const Batch& batch);

  /// The model with its current weights and statistics.
  graph::Graph trained() const;

  /// Calls `action` with trained() while the arena is given back, so that two arenas never exist at once.
  void without_arena(const std::function<void(const graph::Graph&)>& action);

  /// Gives the arena back and the model out, without its weights.
  TrainingModel release() &&;

  const TrainingModel& model() const { return model_; }
  const runtime::Program& program() const { return *program_; }
  std::int64_t steps_done() const { return step_; }
  Bytes largest_measured_peak() const { return largest_peak_; }

 private:
  void check(const DataSet& data) const;
  void account(const Batch& batch, const StepReport& report);
  void save() const;
  Checkpoint progress_only() const;  // without tensors
  std::vector<std::pair<std::string, graph::Tensor>> read_state() const;
  void write_state(const std::vector<std::pair<std::string, graph::Tensor>>& tensors);
  void compile();

  TrainingModel model_;
  TrainerOptions options_;
  std::optional<runtime::Program> program_;
  std::int64_t step_ = 0;
  Cursor cursor_;
  RunningMeans means_;
  Bytes largest_peak_ = 0;
};

}  // namespace neaptide::session
