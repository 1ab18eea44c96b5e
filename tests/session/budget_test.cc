#include "neaptide/session/budget.hpp"

#include <gtest/gtest.h>

#include "neaptide/base/errors.hpp"

namespace neaptide::session {
namespace {

/// Two ops; keep-all holds x, y and z at once on cpu:0.
plan::Problem example() {
  return plan::problem_from_json(R"({
    "format": "neaptide.problem", "version": 1, "name": "two",
    "devices": [{"name": "cpu:0"}, {"name": "host"}],
    "links": [],
    "buffers": [{"name": "x", "bytes": 100, "home": "cpu:0"}, {"name": "y", "bytes": 200}, {"name": "z", "bytes": 50, "keep": true}],
    "ops": [
      {"name": "f", "impls": [{"name": "p", "device": "cpu:0", "seconds": 1, "reads": ["x"], "writes": ["y"]}]},
      {"name": "g", "impls": [{"name": "p", "device": "cpu:0", "seconds": 1, "reads": ["y"], "writes": ["z"]}]}]})",
                                 "two");
}

std::map<std::string, Bytes> resolve(const std::vector<std::string>& words) {
  return resolve_budgets(example(), words, "keep-all", {});
}

std::string message_of(const std::vector<std::string>& words) {
  try {
    resolve(words);
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

using Budgets = std::map<std::string, Bytes>;

TEST(Budget, Words) {
  EXPECT_EQ(resolve({}), (Budgets{}));
  EXPECT_EQ(resolve({"1KiB"}), (Budgets{{"cpu:0", 1024}}));
  EXPECT_EQ(resolve({"50%"}), (Budgets{{"cpu:0", 175}}));
  EXPECT_EQ(resolve({"min"}), (Budgets{{"cpu:0", 350}}));
  EXPECT_EQ(resolve({"cpu:0=100%", "host=7"}), (Budgets{{"cpu:0", 350}, {"host", 7}}));
}

TEST(Budget, SaysWhatWouldBeRight) {
  EXPECT_EQ(message_of({"lots"}), "budget 'lots' is not a number of bytes; write 838860800, 800MiB or 0.8GB");
  EXPECT_EQ(message_of({"x%"}), "budget 'x%' is not a percentage; write 60%");
  EXPECT_EQ(message_of({"-5%"}), "budget '-5%' is not a percentage; write 60%");
  EXPECT_EQ(message_of({"hots=1"}), "there is no device 'hots'; did you mean 'host'?; the devices are cpu:0, host");
  EXPECT_EQ(message_of({"1", "cpu:0=2"}), "device 'cpu:0' has two budgets; give one");
}

}  // namespace
}  // namespace neaptide::session
