#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

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
  const Result r = run({"plan", lenet(), "--budget", "min", "--problem", "p.json", "-o", "plan.json"});
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

TEST(PlanModel, TheLargestBatch) {
  const std::string budget = "4MiB";
  const Result r =
      run({"plan", lenet(), "--max-batch", "--budget", budget, "--json", "-o", "b.json", "--problem", "bp.json"});
  ASSERT_EQ(r.code, 0) << r.err;
  const Json answer = parse_json(r.out, "answer");
  EXPECT_EQ(answer.at("format"), "neaptide.max_batch");
  EXPECT_EQ(answer.at("version"), 1);
  EXPECT_FALSE(answer.at("out_of_time").get<bool>());
  EXPECT_FALSE(answer.at("interrupted").get<bool>());
  EXPECT_GT(answer.at("seconds_spent").get<double>(), 0);
  EXPECT_THAT(answer.at("assumption").get<std::string>(), HasSubstr("sizes grow with the batch"));
  const auto batch = answer.at("batch").get<std::int64_t>();
  const auto impossible = answer.at("impossible_from").get<std::int64_t>();
  EXPECT_GT(batch, 8);  // 8 takes 1.7 MiB when everything is kept
  EXPECT_LT(batch, impossible);
  EXPECT_EQ(answer.at("proved").get<bool>(), impossible == batch + 1);
  EXPECT_FALSE(answer.at("proof").get<std::string>().empty());
  std::set<std::int64_t> planned, tried;
  for (const Json& probe : answer.at("probes")) {
    tried.insert(probe.at("batch").get<std::int64_t>());
    if (probe.at("found") == "plan") planned.insert(probe.at("batch").get<std::int64_t>());
    EXPECT_EQ(probe.at("found") == "plan", probe.contains("cost"));
  }
  EXPECT_EQ(*planned.rbegin(), batch);
  EXPECT_TRUE(batch + 1 == impossible || tried.count(batch + 1) > 0) << "nobody asked whether one more fits";
  EXPECT_EQ(run({"verify", "bp.json", "b.json"}).code, 0);
  EXPECT_EQ(parse_json(read_file(path("b.json")), "plan").at("steps"), answer.at("plan").at("steps"));
  const auto plan_of = [&](std::int64_t n) {
    return run({"plan", lenet(), "--estimate", "--batch", std::to_string(n), "--budget", budget});
  };
  EXPECT_EQ(plan_of(batch).code, 0);
  EXPECT_EQ(plan_of(batch + 1).code, 4);
  EXPECT_EQ(plan_of(impossible).code, 4);
}

TEST(PlanModel, TheLargestBatchAskedWrongly) {
  const auto error = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"plan", lenet(), "--max-batch", "--budget", "4MiB"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words).err;
  };
  EXPECT_EQ(error({"--batch", "8"}),
            "neaptide: --batch fixes the batch that --max-batch looks for; give one of them\n");
  EXPECT_EQ(error({"--second", "q.json@2"}),
            "neaptide: --second is for problem files; a model is lowered again for each batch\n");
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
