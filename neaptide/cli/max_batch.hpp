// neaptide plan --max-batch: the largest batch whose plan fits.
#pragma once

#include "neaptide/cli/model_flags.hpp"

namespace neaptide::cli {

struct MaxBatchFlags {
  bool asked = false;
  std::string most = "none";  // "2x": twice the keep-all run of the same batch
  std::string second;         // FILE@BATCH: the same problem at another batch
};

void declare_max_batch_flags(CLI::App& app, MaxBatchFlags& flags);

struct MaxBatchOutputs {
  std::string plan, problem;  // files, "" for none
  bool inference = false;
};

/// Exit code. UserError for a budget that is no number of bytes, or a malformed flag.
int plan_max_batch(const MaxBatchFlags& flags, const ModelFlags& model, const PlanFlags& plan,
                   const MaxBatchOutputs& outputs, Console& console);

}  // namespace neaptide::cli
