// Runs the built program as a user would: arguments in; exit code, stdout and stderr out.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace neaptide::testing_cli {

struct Result {
  int code = -1;
  std::string out, err;
};

struct RunOptions {
  long file_size_limit = 0;          // bytes that a file may have (a full disk); 0: none
  std::string interrupt_after = {};  // SIGINT as soon as stderr holds this
};

/// Runs in a folder of its own kind: `folder()`. Measured costs are kept there, never in the user's cache.
Result run(const std::vector<std::string>& arguments, const RunOptions& options = {});

/// The test program's scratch folder, made on first use.
const std::string& folder();
std::string path(const std::string& name);

/// lenet with batch 8, written once.
std::string lenet();

}  // namespace neaptide::testing_cli
