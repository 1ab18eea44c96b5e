// Runs a Python script of this folder in the environment that the build was configured with.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace neaptide::onnx {

/// Why the scripts cannot be run here; empty when they can.
inline std::string no_python() {
  const std::string python = std::string(NEAPTIDE_VENV) + "/bin/python";
  if (!std::filesystem::exists(python)) return "there is no Python environment at " NEAPTIDE_VENV;
  if (std::system((python + " -c 'import onnx, numpy' 2>/dev/null").c_str()) != 0)
    return python + " lacks the packages onnx and numpy";
  return "";
}

/// The exit status of `script` with `folder` as its argument; what it prints goes to `log`.
inline int run_python(const std::string& script, const std::string& folder, const std::string& log) {
  const std::string command = std::string(NEAPTIDE_VENV) + "/bin/python '" NEAPTIDE_SOURCE_DIR "/tests/onnx/" + script +
                              "' '" + folder + "' >'" + log + "' 2>&1";
  return std::system(command.c_str());
}

/// An empty folder below the build folder.
inline std::string fresh_folder(const std::string& name) {
  const std::string out = std::string(NEAPTIDE_BUILD_DIR) + "/tests/onnx/" + name;
  std::filesystem::remove_all(out);
  std::filesystem::create_directories(out);
  return out;
}

}  // namespace neaptide::onnx
