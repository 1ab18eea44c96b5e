// What a file is, from its first bytes; and reading of problems and plans with the error that means "the input is bad".
#pragma once

#include <string>

#include "neaptide/base/errors.hpp"
#include "neaptide/plan/plan.hpp"

namespace neaptide::session {

/// A model, problem or plan file is unreadable, malformed or unsupported (exit code 3).
class ModelError : public UserError {
 public:
  using UserError::UserError;
};

enum class InputKind { kOnnx, kJson, kTensors };

/// JSON (also packed by gzip) and safetensors are recognised by their first bytes; all else counts as ONNX. ModelError
/// when the file cannot be read.
InputKind kind_of(const std::string& path);

/// ModelError instead of UserError. `sha256`: of the uncompressed text.
plan::Problem load_problem(const std::string& path, std::string* sha256 = nullptr);
plan::Plan load_plan(const plan::Problem& problem, const std::string& path);

}  // namespace neaptide::session
