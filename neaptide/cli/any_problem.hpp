// What a verb plans: a problem file, or an ONNX model lowered to a problem.
#pragma once

#include "neaptide/cli/model_flags.hpp"

namespace neaptide::cli {

struct AnyProblem {
  plan::Problem problem;
  std::string sha256;     // of a problem file's text; "" for a model
  plan::Options options;  // of the flags, without budgets
};

/// `inference`: of a model itself, not of its training. ModelError when the file is neither.
AnyProblem load_any_problem(ModelFlags& model, PlanFlags& plan, bool inference, Console& console);

}  // namespace neaptide::cli
