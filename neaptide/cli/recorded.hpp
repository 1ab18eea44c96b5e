// Options that a checkpoint keeps, so that a resumed run has them without being told.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "neaptide/cli/verb.hpp"

namespace neaptide::cli {

class Recorded {
 public:
  using Target =
      std::variant<std::string*, std::vector<std::string>*, double*, std::int64_t*, std::uint64_t*, int*, bool*>;
  void add(const char* option, auto& target) { options_.emplace_back(option, &target); }

  /// Texts that read back exactly.
  std::map<std::string, std::string> texts() const;
  /// Sets every option that `app` was not given. UserError for a text that is no value of its option.
  void take_over(const std::map<std::string, std::string>& texts, const CLI::App& app) const;

 private:
  std::vector<std::pair<std::string, Target>> options_;
};

}  // namespace neaptide::cli
