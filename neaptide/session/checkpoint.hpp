// Checkpoint: the whole state of a training run in one safetensors file, in plain format, so that any backend can
// resume it. Parameters, running statistics and optimizer state are tensors under their value's name; the rest stands
// in the metadata ("format": "neaptide.checkpoint", "version": "1").
//
//   session::Checkpoint c = trainer.checkpoint();
//   session::save_checkpoint("run.safetensors", c);          // atomically: old or new, never half
//   session::Checkpoint back = session::load_checkpoint("run.safetensors");
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "neaptide/graph/types.hpp"
#include "neaptide/session/batches.hpp"
#include "neaptide/session/safetensors.hpp"

namespace neaptide::session {

/// Sums over the samples of the current epoch, for its report.
struct RunningMeans {
  double loss_sum = 0;  // of the steps' mean losses
  std::int64_t steps = 0, correct = 0, samples = 0;
  friend bool operator==(const RunningMeans&, const RunningMeans&) = default;
  double loss() const { return steps > 0 ? loss_sum / static_cast<double>(steps) : 0; }
  double accuracy() const { return samples > 0 ? static_cast<double>(correct) / static_cast<double>(samples) : 0; }
};

struct Checkpoint {
  std::vector<std::pair<std::string, graph::Tensor>> tensors;
  std::uint64_t seed = 1;
  std::int64_t step = 0;  // steps done
  Cursor cursor;          // where the next batch begins
  RunningMeans means;
  std::map<std::string, std::string> options;  // of the run, as given
  std::string plan;                            // plan JSON, "" when not known: the same steps after a resume
  friend bool operator==(const Checkpoint&, const Checkpoint&) = default;
};

std::string to_safetensors(const Checkpoint& checkpoint);
/// The same with the tensors from elsewhere: `tensors` says names and types and fills their bytes; the checkpoint's own
/// are left out. Saves holding them twice.
std::string to_safetensors(const Checkpoint& checkpoint, TensorWriter tensors);
Checkpoint checkpoint_from(std::string_view content, std::string_view place);

/// UserError when the disk refuses; what was at `path` before is untouched then.
void save_checkpoint(const std::string& path, const Checkpoint& checkpoint);
/// UserError when the file is no checkpoint or damaged.
Checkpoint load_checkpoint(const std::string& path);

}  // namespace neaptide::session
