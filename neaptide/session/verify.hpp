// The two promises, checked on a model: the bits of a training run do not depend on the budget or on an interruption,
// and the measured peak is the planned one, byte for byte, on every step.
//
//   session::Verification v = session::verify_budgets(graph, options, {});
//   if (!v.same_bits()) ...  // v.rows[i].difference names the first tensor that differs
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "neaptide/session/data.hpp"
#include "neaptide/session/model.hpp"

namespace neaptide::session {

struct VerifyOptions {
  std::vector<std::string> budgets = {"100%", "60%", "40%", "min"};
  std::int64_t steps = 5;
  std::uint64_t seed = 1;
  double rate = 0.01;           // learning rate
  bool interrupt = false;       // also stop half way, write a checkpoint, and go on from it
  std::optional<DataSet> data;  // default: synthetic
  std::function<void(const std::string&)> progress;

  /// Breaks a promise on purpose, so that a test can see it noticed.
  enum class Sabotage { kNone, kFlipBit, kShiftPeak } sabotage = Sabotage::kNone;
};

struct VerifyRow {
  std::string budget;  // as given; "none" for the unconstrained run
  bool interrupted = false;
  std::optional<Bytes> bytes;
  bool planned = false;  // a plan fits
  Bytes planned_peak = 0, measured_peak = 0, arena = 0;
  Seconds cost = 0;           // of the plan
  int recomputed = 0;         // steps that run an op again
  std::string difference;     // "": the same bits as the unconstrained run
  std::string peak_mismatch;  // "": planned == measured on every step
  friend bool operator==(const VerifyRow&, const VerifyRow&) = default;
};

struct Verification {
  std::vector<VerifyRow> rows;  // the unconstrained run first
  Bytes keep_all = 0;
  bool same_bits() const;
  bool same_peaks() const;
};

/// Trains `steps` steps under every budget with pinned implementations. ModelError as make_training_model.
Verification verify_budgets(const graph::Graph& forward, const ModelOptions& options, const VerifyOptions& verify);

}  // namespace neaptide::session
