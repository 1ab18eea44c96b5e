// A problem file for tests of the verbs that plan.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "neaptide/base/files.hpp"
#include "neaptide/base/json.hpp"
#include "program.hpp"

namespace neaptide::testing_cli {

/// A chain of n ops of a thousand bytes each and a way back that reads everything: recomputation pays.
inline std::string chain(int n) {
  Json root{{"format", "neaptide.problem"}, {"version", 1}, {"name", "chain"}};
  root["devices"] = Json::array({{{"name", "cpu:0"}, {"alignment", 1}}});
  root["buffers"] = Json::array({{{"name", "x"}, {"bytes", 1000}, {"home", "cpu:0"}}});
  root["ops"] = Json::array();
  const auto op = [&](const std::string& name, std::vector<std::string> reads, const std::string& write) {
    root["buffers"].push_back({{"name", write}, {"bytes", 1000}});
    root["ops"].push_back(
        {{"name", name},
         {"impls",
          Json::array(
              {{{"name", "plain"}, {"device", "cpu:0"}, {"seconds", 1}, {"reads", reads}, {"writes", {write}}}})}});
  };
  std::string before = "x";
  for (int i = 0; i < n; ++i) {
    op("f" + std::to_string(i), {before}, "a" + std::to_string(i));
    before = "a" + std::to_string(i);
  }
  op("b" + std::to_string(n - 1), {before}, "g" + std::to_string(n - 1));
  before = "g" + std::to_string(n - 1);
  for (int i = n - 1; i-- > 0;) {
    op("b" + std::to_string(i), {before, "a" + std::to_string(i)}, "g" + std::to_string(i));
    before = "g" + std::to_string(i);
  }
  root["buffers"].back()["keep"] = true;
  root["ops"].back()["once"] = true;
  const std::string to = path("chain.json");
  write_file_atomically(to, json_text(root));
  return to;
}

/// "forged.json": the keep-all plan in "plan.json" without its fourth step, so that something reads what is not there.
inline void forge_plan(const std::string& problem) {
  ASSERT_EQ(run({"plan", problem, "--planner", "keep-all", "-o", "plan.json"}).code, 0);
  Json plan = parse_json(read_file(path("plan.json")), "plan");
  plan["steps"].erase(3);
  write_file_atomically(path("forged.json"), json_text(plan));
}

}  // namespace neaptide::testing_cli
