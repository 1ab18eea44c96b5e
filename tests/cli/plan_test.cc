#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chain.hpp"
#include "neaptide/base/files.hpp"
#include "neaptide/base/json.hpp"
#include "neaptide/base/sha256.hpp"
#include "program.hpp"

namespace neaptide::testing_cli {
namespace {

using testing::HasSubstr;

TEST(Plan, APlanIsWrittenAndVerifies) {
  const std::string problem = chain(8);
  const Result r = run({"plan", problem, "--planner", "keep-all", "-o", "plan.json", "--json"});
  EXPECT_EQ(r.code, 0) << r.err;
  const Json plan = parse_json(r.out, "plan");
  EXPECT_EQ(plan.at("status"), "optimal");
  EXPECT_EQ(plan.at("problem_sha256"), sha256_hex(read_file(problem)));
  EXPECT_EQ(read_file(path("plan.json")), r.out);
  const Result v = run({"verify", problem, "plan.json"});
  EXPECT_EQ(v.code, 0) << v.err;
}

TEST(Plan, AnIntegerProgrammeIsWrittenAsMps) {
  const std::string problem = chain(4);
  run({"plan", problem, "--planner", "checkmate-lp", "--mps", "chain.mps"});
  EXPECT_THAT(read_file(path("chain.mps")), HasSubstr("run["));
  EXPECT_EQ(run({"plan", problem, "--planner", "last", "--mps", "x.mps"}).err,
            "neaptide: planner 'last' solves no integer programme; checkmate, checkmate-lp, monet, poet and xengine "
            "do\n");
}

TEST(Plan, ABudgetIsEchoedInBytesAndKept) {
  const std::string problem = chain(8);
  const Result r = run({"plan", problem, "--budget", "80%", "--json"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_THAT(r.err, HasSubstr("budget of cpu:0: 8000 bytes (7.81 KiB)"));
  EXPECT_LE(parse_json(r.out, "plan").at("peak").at("cpu:0").get<int>(), 8000);
}

TEST(Plan, MinIsFeasibleAndOneByteLessIsNot) {
  const std::string problem = chain(8);
  const Result r = run({"plan", problem, "--budget", "min", "--json"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_THAT(r.err, HasSubstr("budget of cpu:0: 4000 bytes"));
  EXPECT_EQ(run({"plan", problem, "--budget", "3999"}).code, 4);
}

TEST(Plan, NothingFits) {
  const Result r = run({"plan", chain(8), "--budget", "1000"});
  EXPECT_EQ(r.code, 4);
  EXPECT_THAT(r.out, HasSubstr("infeasible: no plan fits"));
  EXPECT_THAT(r.out, HasSubstr("smallest feasible"));
  EXPECT_THAT(r.out, HasSubstr("forced by"));
  const Result json = run({"plan", chain(8), "--budget", "1000", "--json"});
  EXPECT_EQ(json.code, 4);
  EXPECT_EQ(parse_json(json.out, "plan").at("status"), "infeasible");
}

/// A planner that needs a solver, where none is built in.
bool lacks_solver(const Result& r) { return r.err.find("is not built") != std::string::npos; }

TEST(Plan, TheTimeEndsWithoutAPlan) {
  const std::vector<std::string> words = {"plan",     chain(60), "--planner",    "checkmate-lp",
                                          "--budget", "30%",     "--time-limit", "0"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), words.begin(), words.end());
    return run(more);
  };
  const Result r = with({"--json", "-o", "p.json"});
  if (lacks_solver(r)) GTEST_SKIP() << r.err;
  EXPECT_EQ(r.code, 5) << r.err;
  const Json plan = parse_json(r.out, "plan");
  EXPECT_EQ(plan.at("status"), "time_limit");
  EXPECT_EQ(plan.at("stopped_by"), "time");
  EXPECT_TRUE(plan.at("gap").is_null());
  EXPECT_GT(plan.at("lower_bound").at("seconds").get<double>(), 0);
  EXPECT_TRUE(plan.at("steps").empty());
  EXPECT_EQ(run({"certify", chain(60), "p.json"}).code, 0);
  EXPECT_THAT(with({}).out, HasSubstr("the time ended before a plan was found"));
}

TEST(Plan, TheTimeEndsWithAPlanOrAProof) {
  EXPECT_EQ(run({"plan", chain(60), "--time-limit", "0"}).code, 0);                      // no budget: any plan does
  EXPECT_EQ(run({"plan", chain(60), "--budget", "1000", "--time-limit", "0"}).code, 4);  // proved at once
}

TEST(Plan, ObjectiveEnergyNeedsJoules) {
  const Result r = run({"plan", chain(4), "--objective", "energy"});
  EXPECT_EQ(r.code, 2);
  EXPECT_EQ(r.err,
            "neaptide: objective 'energy' needs the joules of every implementation; 'plain' of op 'f0' has none\n");
  const std::string problem = chain(4);
  Json root = parse_json(read_file(problem), "problem");
  for (Json& op : root["ops"]) op["impls"][0]["joules"] = 2;
  write_file_atomically(problem, json_text(root));
  const Result joules = run({"plan", problem, "--objective", "energy", "--json", "-o", "p.json"});
  ASSERT_EQ(joules.code, 0) << joules.err;
  const Json plan = parse_json(joules.out, "plan");
  EXPECT_EQ(plan.at("objective"), "energy");
  EXPECT_EQ(plan.at("lower_bound").at("joules"), 16);
  EXPECT_EQ(plan.at("cost").at("seconds"), 8);
  EXPECT_EQ(run({"certify", problem, "p.json"}).code, 0);
}

TEST(Plan, MatricesAreShownAndWritten) {
  const std::string problem = chain(8);
  const Result r = run({"plan", problem, "--budget", "60%", "--matrices", "m.json"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("stages down, ops across, 16 of them\n"));
  EXPECT_THAT(r.out, HasSubstr("R"));
  const Json m = parse_json(read_file(path("m.json")), "matrices");
  EXPECT_EQ(m.at("ops").size(), 16);
  EXPECT_EQ(m.at("R").size(), 16);
  EXPECT_THAT(run({"plan", problem, "--matrices"}).out, HasSubstr("held (S)"));
}

TEST(Plan, TheLargestBatch) {
  const std::string problem = chain(8);
  const Result r = run({"plan", problem, "--max-batch", "--budget", "100000", "-o", "p.json", "--problem", "q.json"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("largest batch  33, proved\n"));  // the input stays; the rest is three values of a batch
  EXPECT_EQ(run({"verify", "q.json", "p.json"}).code, 0);
  const Result json = run({"plan", problem, "--max-batch", "--budget", "100000", "--max-cost", "1x", "--json"});
  ASSERT_EQ(json.code, 0) << json.err;
  const Json answer = parse_json(json.out, "answer");
  EXPECT_EQ(answer.at("format"), "neaptide.max_batch");
  EXPECT_LT(answer.at("batch"), 33);
  EXPECT_GE(answer.at("batch"), 11);  // keep-all holds nine values
  EXPECT_EQ(run({"plan", problem, "--max-batch", "--budget", "1000"}).code, 4);
  EXPECT_EQ(run({"plan", problem, "--max-batch", "--budget", "100000", "--time-limit", "0"}).code, 5);
}

TEST(Plan, TheLargestBatchAskedWrongly) {
  const std::string problem = chain(8);
  const auto error = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"plan", problem, "--max-batch"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words).err;
  };
  EXPECT_EQ(error({}), "neaptide: without a budget there is no largest batch; give one in bytes\n");
  EXPECT_EQ(error({"--budget", "60%"}),
            "neaptide: budget '60%' depends on the batch; with --max-batch write bytes, such as 800MiB\n");
  EXPECT_EQ(error({"--budget", "1MiB", "--max-cost", "twice"}),
            "neaptide: --max-cost 'twice' is not a multiple of the keep-all run; write 1.5x, 2x or none\n");
  EXPECT_EQ(error({"--budget", "1MiB", "--second", "q.json"}), "neaptide: --second 'q.json' is not FILE@BATCH\n");
}

TEST(Plan, AnInterruptGivesTheBestSoFar) {
  const std::string problem = chain(200);
  const std::vector<std::string> words = {"plan", problem, "--effort", "1000000000000", "-o", "p.json", "--json"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), words.begin(), words.end());
    return run(more, {.interrupt_after = "budget of cpu:0"});
  };
  const Result r = with({"--budget", "30%"});
  EXPECT_EQ(r.code, 130) << r.err;
  EXPECT_EQ(read_file(path("p.json")), r.out);
  const Json plan = parse_json(r.out, "plan");
  EXPECT_EQ(plan.at("stopped_by"), "interrupt");
  EXPECT_TRUE(plan.at("status") == (plan.at("steps").empty() ? "time_limit" : "feasible")) << plan.at("status");
  EXPECT_EQ(run({"certify", problem, "p.json"}).code, 0);
  const Result batch = with({"--budget", "60000", "--max-batch", "--max-cost", "1.1x"});
  EXPECT_EQ(batch.code, 130) << batch.err;
  EXPECT_TRUE(parse_json(batch.out, "answer").at("interrupted").get<bool>());
}

TEST(Plan, AbsurdBudgets) {
  const std::string problem = chain(2);
  const auto error = [&](const std::string& budget) { return run({"plan", problem, "--budget", budget}).err; };
  EXPECT_EQ(error("many"), "neaptide: budget 'many' is not a number of bytes; write 838860800, 800MiB or 0.8GB\n");
  EXPECT_EQ(error("9999999999TiB"), "neaptide: budget '9999999999TiB' is larger than 63 bits hold\n");
  EXPECT_EQ(error("x%"), "neaptide: budget 'x%' is not a percentage; write 60%\n");
  EXPECT_EQ(error("cpu:1=5"), "neaptide: there is no device 'cpu:1'; did you mean 'cpu:0'?; the devices are cpu:0\n");
  EXPECT_EQ(run({"plan", problem, "--budget", "60%", "--budget", "50%"}).err,
            "neaptide: device 'cpu:0' has two budgets; give one\n");
  EXPECT_EQ(run({"plan", problem, "--budget", "0"}).code, 4);
  EXPECT_EQ(run({"plan", problem, "--budget", "0%"}).code, 4);
}

TEST(Plan, BadProblemsAndPlans) {
  const Result missing = run({"plan", "nowhere.json"});
  EXPECT_EQ(missing.code, 3);
  EXPECT_EQ(missing.err, "neaptide: cannot read 'nowhere.json': No such file or directory\n");
  const std::string whole = read_file(chain(3));
  for (const std::size_t part : {1U, 2U, 3U}) {
    write_file_atomically(path("half.json"), whole.substr(0, whole.size() * part / 4));
    EXPECT_EQ(run({"plan", "half.json"}).code, 3);
  }
  write_file_atomically(path("half.json"), "{\"format\": \"neaptide.plan\"}");
  EXPECT_EQ(run({"verify", chain(3), "half.json"}).code, 3);
  const Result alone = run({"verify", chain(3)});
  EXPECT_EQ(alone.code, 2);
  EXPECT_THAT(alone.err, HasSubstr("is a problem; give the plan to verify as a second file"));
}

TEST(Plan, AForgedPlanIsFoundOut) {
  const std::string problem = chain(8);
  forge_plan(problem);
  const Result r = run({"verify", problem, "forged.json"});
  EXPECT_EQ(r.code, 6);
  EXPECT_THAT(r.err, HasSubstr("breaks"));
}

TEST(Plan, AFullDisk) {
  const Result r = run({"plan", chain(3), "-o", "/dev/full"});
  EXPECT_EQ(r.code, 2);
  EXPECT_THAT(r.err, HasSubstr("cannot write '/dev/full': No space left on device"));
}

TEST(Pack, GivesAddressesWithinTheCapacity) {
  write_file_atomically(path("b.csv"), "id,lower,upper,size\na,0,2,10\nb,1,3,5\nc,2,4,10\n");
  const Result r = run({"pack", "b.csv", "--capacity", "15", "-o", "packed.csv"});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_THAT(read_file(path("packed.csv")), HasSubstr("offset"));
  const Result none = run({"pack", "b.csv", "--capacity", "14"});
  EXPECT_EQ(none.code, 4);
  EXPECT_THAT(none.err, HasSubstr("no layout fits 14 bytes: 15 bytes are live at once"));
}

}  // namespace
}  // namespace neaptide::testing_cli
