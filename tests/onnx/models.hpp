// The checked-in models that make_models.py writes.
#pragma once

#include <string>

#include "neaptide/base/errors.hpp"
#include "neaptide/onnx/onnx.hpp"
#include "neaptide/ops/ops.hpp"

namespace neaptide::onnx {

inline std::string model_path(const std::string& name) {
  return std::string(NEAPTIDE_SOURCE_DIR) + "/tests/onnx/models/" + name + ".onnx";
}

inline graph::Graph load_model(const std::string& name, const LoadOptions& options = {}) {
  return load(model_path(name), ops::all(), options);
}

/// The error's sentence after "<path>: ".
inline std::string error_of(const std::string& name, const LoadOptions& options = {}) {
  try {
    load_model(name, options);
  } catch (const UserError& e) {
    const std::string sentence = e.what(), place = model_path(name) + ": ";
    return sentence.starts_with(place) ? sentence.substr(place.size()) : "without its place: " + sentence;
  }
  return "no error";
}

}  // namespace neaptide::onnx
