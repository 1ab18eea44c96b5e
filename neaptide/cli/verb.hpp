// A verb of the program: what it is called, what it does, which options it takes, what it then runs. One file per verb,
// one line per verb in the sorted list of cli.cc.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string_view>

#include "neaptide/cli/console.hpp"

namespace neaptide::cli {

/// DESIGN.md section 11.
enum Exit : int {
  kOk = 0,
  kInternal = 1,
  kUsage = 2,
  kBadModel = 3,
  kNoPlan = 4,
  kTimeLimit = 5,
  kNotVerified = 6,
  kPeakDiffers = 7,
  kInterrupted = 130  // after the best so far, or the state, has been written
};

struct Verb {
  std::string_view name;
  std::string_view what;  // one sentence
  /// Adds options to `app` and returns what runs after they are parsed; its result is the exit code.
  std::function<int()> (*declare)(CLI::App& app, Console& console);
};

extern const Verb kCertifyVerb, kDoctorVerb, kEvalVerb, kExplainVerb, kExportVerb, kInferVerb, kInspectVerb, kPackVerb,
    kPlanVerb, kProfileVerb, kSweepVerb, kTraceVerb, kTrainVerb, kVerifyVerb, kZooVerb;

}  // namespace neaptide::cli
