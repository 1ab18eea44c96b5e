#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "neaptide/base/files.hpp"
#include "neaptide/base/json.hpp"
#include "program.hpp"

namespace neaptide::testing_cli {
namespace {

using testing::HasSubstr;

TEST(Zoo, ListsAndWrites) {
  EXPECT_THAT(run({"zoo"}).out, HasSubstr("resnet50\n"));
  const Result r = run({"zoo", "mlp", "--batch", "4", "-o", "mlp.onnx", "--json"});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(file_exists(path("mlp.onnx")));
  EXPECT_EQ(parse_json(r.out, "zoo").at("path"), "mlp.onnx");
}

TEST(Inspect, AModel) {
  const Result text = run({"inspect", lenet()});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("Conv"));
  const Json root = parse_json(run({"inspect", lenet(), "--json", "--batch", "2"}).out, "inspect");
  EXPECT_GT(root.at("parameters").get<std::int64_t>(), 10000);
  EXPECT_EQ(root.at("inputs").at(0).at("type").get<std::string>().substr(0, 6), "f32[2x");
  EXPECT_THAT(run({"inspect", lenet(), "--dot"}).out, HasSubstr("digraph"));
}

TEST(Inspect, BadModels) {
  EXPECT_EQ(run({"inspect", "nowhere.onnx"}).code, 3);
  EXPECT_EQ(run({"inspect", "nowhere.onnx"}).err, "neaptide: cannot read 'nowhere.onnx': No such file or directory\n");
  const std::string whole = read_file(lenet());
  for (const std::size_t part : {1U, 2U, 3U}) {
    write_file_atomically(path("half.onnx"), whole.substr(0, whole.size() * part / 4));
    const Result r = run({"inspect", "half.onnx"});
    EXPECT_EQ(r.code, 3) << r.err;
    EXPECT_THAT(r.err, HasSubstr("half.onnx"));
  }
  write_file_atomically(path("text.onnx"), "this is no model");
  const Result json = run({"inspect", "text.onnx", "--json"});
  EXPECT_EQ(json.code, 3);
  EXPECT_EQ(parse_json(json.out, "error").at("exit"), 3);
}

TEST(Profile, EveryImplementationHasATime) {
  const Result r = run({"profile", lenet(), "--json"});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("neaptide.cost-table"));
  EXPECT_THAT(run({"profile", lenet(), "--estimate"}).out, HasSubstr("all, first implementations"));
}

TEST(PlanModel, WritesProblemAndPlan) {
  const Result r = run({"plan", lenet(), "--budget", "80%", "--problem", "p.json", "-o", "plan.json"});
  EXPECT_EQ(r.code, 0) << r.err;
  const Result v = run({"verify", "p.json", "plan.json"});
  EXPECT_EQ(v.code, 0) << v.err;
  EXPECT_EQ(run({"plan", lenet(), "--budget", "10kB"}).code, 4);
  EXPECT_EQ(run({"plan", lenet(), "--inference"}).code, 0);
}

TEST(PlanModel, ClassicPlannersTakeNormalisationAndUpdates) {
  ASSERT_EQ(run({"zoo", "resnet8", "--batch", "8", "-o", "resnet8.onnx"}).code, 0);
  ASSERT_EQ(run({"plan", "resnet8.onnx", "--estimate", "--planner", "keep-all", "--problem", "r.json"}).code, 0);
  for (const auto& [planner, budget] :
       {std::pair{"chen-greedy", "70%"}, {"chen-sqrt", "90%"}, {"dtr", "70%"}, {"rotor", "90%"}}) {
    const Result r = run({"plan", "r.json", "--planner", planner, "--budget", budget, "-o", "r_plan.json"});
    EXPECT_EQ(r.code, 0) << planner << r.err << r.out;
    EXPECT_EQ(run({"verify", "r.json", "r_plan.json"}).code, 0) << planner;
  }
}

TEST(Export, KeepsTheModel) {
  const Result r = run({"export", lenet(), "-o", "again.onnx", "--batch", "3"});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(parse_json(run({"inspect", "again.onnx", "--json"}).out, "inspect").at("parameters"),
            parse_json(run({"inspect", lenet(), "--json"}).out, "inspect").at("parameters"));
  const Result full = run({"export", lenet(), "-o", "/dev/full"});
  EXPECT_EQ(full.code, 2);
}

TEST(Trace, IsInTheEventFormat) {
  const Result r = run({"trace", lenet(), "--steps", "1"});
  ASSERT_EQ(r.code, 0) << r.err;
  const Json root = parse_json(r.out, "trace");
  int computes = 0, counters = 0;
  std::int64_t most = 0;
  for (const Json& e : root.at("traceEvents")) {
    if (e.at("ph") == "X") ++computes;
    if (e.at("ph") != "C") continue;
    ++counters;
    most = std::max(most, e.at("args").at("bytes").get<std::int64_t>());
  }
  EXPECT_GT(computes, 20);
  EXPECT_GT(counters, computes);
  EXPECT_EQ(most, root.at("otherData").at("planned_peak").get<std::int64_t>());
}

}  // namespace
}  // namespace neaptide::testing_cli
