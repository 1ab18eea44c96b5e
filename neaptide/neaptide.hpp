// Neaptide's public face: everything that a program needs to plan and to train under a byte budget. The command line is
// written against this header alone. examples/train.cpp is a whole program.
#pragma once

#include "neaptide/base/errors.hpp"
#include "neaptide/base/files.hpp"
#include "neaptide/base/json.hpp"
#include "neaptide/base/sha256.hpp"
#include "neaptide/base/text.hpp"
#include "neaptide/base/units.hpp"
#include "neaptide/graph/text.hpp"
#include "neaptide/memory/csv.hpp"
#include "neaptide/memory/memory.hpp"
#include "neaptide/onnx/onnx.hpp"
#include "neaptide/onnx/zoo.hpp"
#include "neaptide/ops/ops.hpp"
#include "neaptide/plan/certify.hpp"
#include "neaptide/plan/compare.hpp"
#include "neaptide/plan/explain.hpp"
#include "neaptide/plan/matrices.hpp"
#include "neaptide/plan/max_batch.hpp"
#include "neaptide/plan/planner.hpp"
#include "neaptide/plan/simulate.hpp"
#include "neaptide/plan/sweep.hpp"
#include "neaptide/plan/verify.hpp"
#include "neaptide/report/curve_svg.hpp"
#include "neaptide/session/backends.hpp"
#include "neaptide/session/batches.hpp"
#include "neaptide/session/budget.hpp"
#include "neaptide/session/checkpoint.hpp"
#include "neaptide/session/data.hpp"
#include "neaptide/session/evaluate.hpp"
#include "neaptide/session/input.hpp"
#include "neaptide/session/model.hpp"
#include "neaptide/session/process.hpp"
#include "neaptide/session/safetensors.hpp"
#include "neaptide/session/schedule.hpp"
#include "neaptide/session/trace.hpp"
#include "neaptide/session/trainer.hpp"
#include "neaptide/session/verify.hpp"

namespace neaptide {

inline constexpr const char* kVersion = "0.1.0";

}  // namespace neaptide
