// Where the shared instances and tools lie: NEAPTIDE_SHARED, else ../shared beside the source tree. Tests that need
// them skip with a printed reason when they are absent.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace neaptide::plan {

inline std::string shared_path(const std::string& relative) {
  const char* given = std::getenv("NEAPTIDE_SHARED");
  const std::filesystem::path base =
      given != nullptr ? std::filesystem::path(given) : std::filesystem::path(NEAPTIDE_SOURCE_DIR) / ".." / "shared";
  return (base / relative).lexically_normal().string();
}

inline bool shared_exists(const std::string& relative) { return std::filesystem::exists(shared_path(relative)); }

}  // namespace neaptide::plan

#define NEAPTIDE_NEEDS_SHARED(relative)           \
  if (!::neaptide::plan::shared_exists(relative)) \
  GTEST_SKIP() << ::neaptide::plan::shared_path(relative) << " is not there; set NEAPTIDE_SHARED"
