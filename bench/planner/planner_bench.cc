// What the default planner finds and proves on the public problems, beside the best known figures; a line per group
// says whether what is required of it was reached.
//
//   bench_planner [GROUP ...] [--time-limit SECONDS] [--effort TICKS] [--threads N] [--order kept|free]
//
// Groups: chains checkmate dtr max-batch minimalloc monet mxnet placement transformers; none named: all. The limits are
// per row. First runs keep the order of the file where the references do, unless said. Reads ../shared/instances beside
// the repository, or $NEAPTIDE_SHARED/instances, and skips what is absent. Overheads are percent of the time without
// recomputation (keep-all); "first" is the time until the first plan.
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/planner/groups.hpp"
#include "neaptide/base/errors.hpp"

namespace {

using namespace neaptide;

struct Command {
  bench::Settings settings;
  std::vector<std::string> groups;
};

Command parse(int argc, char** argv) {
  Command c;
  const char* given = std::getenv("NEAPTIDE_SHARED");
  c.settings.shared =
      given != nullptr ? std::string(given) + "/instances/" : NEAPTIDE_SOURCE_DIR "/../shared/instances/";
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&] {
      if (i + 1 == argc) throw UserError("'{}' needs a value", word);
      return std::string(argv[++i]);
    };
    if (word == "--time-limit") {
      c.settings.time_limit = std::atof(value().c_str());
    } else if (word == "--effort") {
      c.settings.effort = std::atoll(value().c_str());
    } else if (word == "--threads") {
      c.settings.threads = std::atoi(value().c_str());
    } else if (word == "--order") {
      const std::string how = value();
      if (how != "kept" && how != "free") throw UserError("--order is kept or free, not '{}'", how);
      c.settings.keep_order = how == "kept";
    } else {
      const auto all = bench::groups();
      const bool known = std::any_of(all.begin(), all.end(), [&](const bench::Group& g) { return g.name == word; });
      if (!known) throw UserError("there is no group '{}'", word);
      c.groups.push_back(word);
    }
  }
  return c;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Command c = parse(argc, argv);
    for (const bench::Group& g : bench::groups()) {
      const bool named = std::find(c.groups.begin(), c.groups.end(), g.name) != c.groups.end();
      if (c.groups.empty() || named) g.run(c.settings);
    }
  } catch (const Error& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
