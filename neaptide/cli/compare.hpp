// neaptide plan compare: two plans of one problem, side by side.
#pragma once

#include "neaptide/cli/verb.hpp"

namespace neaptide::cli {

/// Adds the subcommand to `plan`; what it runs when it was parsed.
struct Subcommand {
  CLI::App* app;
  std::function<int()> run;
};
Subcommand declare_compare(CLI::App& plan, Console& console);

}  // namespace neaptide::cli
