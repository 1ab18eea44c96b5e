#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chain.hpp"
#include "neaptide/base/files.hpp"
#include "neaptide/base/json.hpp"
#include "program.hpp"

namespace neaptide::testing_cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(Explain, ThePlanThatItMakes) {
  const Result r = run({"explain", chain(8), "--budget", "60%", "--json"});
  ASSERT_EQ(r.code, 0) << r.err;
  const Json root = parse_json(r.out, "explanation");
  EXPECT_EQ(root.at("kind"), "plan");
  const Json& peak = root.at("peaks").at(0);
  EXPECT_EQ(peak.at("budget"), 6000);
  EXPECT_LE(peak.at("bytes").get<int>(), 6000);
  int sum = peak.at("workspace").get<int>();
  for (const Json& held : peak.at("held")) sum += held.at("bytes").get<int>();
  EXPECT_EQ(sum, peak.at("bytes").get<int>());
  EXPECT_EQ(root.at("no_extra_time").at("bytes"), 10000);
  ASSERT_EQ(root.at("one_more_mib").size(), 1U);
  EXPECT_GE(root.at("one_more_mib").at(0).at("saves").get<double>(), 1);  // a MiB holds everything
  double again = 0;
  for (const Json& op : root.at("recomputed")) again += op.at("again_seconds").get<double>();
  EXPECT_EQ(again, root.at("again").at("seconds").get<double>());
}

TEST(Explain, OneValueAndOneOp) {
  const std::string problem = chain(8);
  ASSERT_EQ(run({"plan", problem, "--budget", "60%", "-o", "plan.json"}).code, 0);
  const Json root = parse_json(run({"explain", problem, "plan.json", "--quick", "--json"}).out, "explanation");
  const std::string op = root.at("recomputed").at(0).at("op");  // f3, say: it makes a3
  const Result of_op = run({"explain", problem, "plan.json", "--of", op});
  EXPECT_EQ(of_op.code, 0) << of_op.err;
  EXPECT_THAT(of_op.out, HasSubstr("of it again"));
  EXPECT_THAT(of_op.out, HasSubstr("no implementation is faster"));
  const Result of_value = run({"explain", problem, "plan.json", "--of", "a" + op.substr(1)});
  EXPECT_EQ(of_value.code, 0) << of_value.err;
  EXPECT_THAT(of_value.out, HasSubstr("computed again"));
  EXPECT_THAT(of_value.out, HasSubstr("over the budget"));
  EXPECT_EQ(run({"explain", problem, "plan.json", "--of", "zzz"}).err,
            "neaptide: the problem has no value and no op 'zzz'\n");
}

TEST(Explain, WhyNothingFits) {
  const Result r = run({"explain", chain(8), "--budget", "2000"});
  EXPECT_EQ(r.code, 4);
  for (const char* part : {"infeasible: no plan fits cpu:0 with 2000 bytes", "proved: no plan in less than 4000 bytes",
                           "found:  a plan in 4000 bytes", "forced by", "what would help", "of the batch would fit"}) {
    EXPECT_THAT(r.out, HasSubstr(part));
  }
  const Result json = run({"explain", chain(8), "--budget", "2000", "--json"});
  EXPECT_EQ(json.code, 4);
  EXPECT_EQ(parse_json(json.out, "refusal").at("proved"), 4000);
}

TEST(Explain, APlanThatBreaksARule) {
  const std::string problem = chain(8);
  forge_plan(problem);
  EXPECT_EQ(run({"explain", problem, "forged.json"}).code, 6);
  const Result both = run({"explain", problem, "plan.json", "--budget", "50%"});
  EXPECT_EQ(both.code, 2);
  EXPECT_EQ(both.err, "neaptide: a plan has its budgets; give a plan or --budget, not both\n");
}

TEST(Explain, AnInterruptLeavesTheQuestionsOut) {
  const std::string problem = chain(200);
  ASSERT_EQ(run({"plan", problem, "--budget", "30%", "--effort", "1", "-o", "plan.json"}).code, 0);
  const Result r = run({"explain", problem, "plan.json", "--effort", "1000000000000", "--json"},
                       {.interrupt_after = "one more MiB on cpu:0"});
  EXPECT_EQ(r.code, 130) << r.err;
  const Json root = parse_json(r.out, "explanation");
  EXPECT_FALSE(root.at("recomputed").empty());
  EXPECT_TRUE(root.at("one_more_mib").empty());
  EXPECT_TRUE(root.at("no_extra_time").is_null());
}

TEST(Compare, APlanWithItselfAndWithAnother) {
  const std::string problem = chain(8);
  ASSERT_EQ(run({"plan", problem, "--planner", "keep-all", "-o", "a.json"}).code, 0);
  ASSERT_EQ(run({"plan", problem, "--budget", "60%", "-o", "b.json"}).code, 0);
  const Result same = run({"plan", "compare", problem, "a.json", "a.json"});
  EXPECT_EQ(same.code, 0) << same.err;
  EXPECT_THAT(same.out, HasSubstr("both plans do the same"));
  const Result text = run({"plan", "compare", problem, "a.json", "b.json"});
  EXPECT_THAT(text.out, HasSubstr("A keeps what B makes again"));
  const Json root = parse_json(run({"plan", "compare", problem, "a.json", "b.json", "--json"}).out, "comparison");
  EXPECT_FALSE(root.at("same").get<bool>());
  EXPECT_EQ(root.at("b").at("seconds").get<double>() - root.at("a").at("seconds").get<double>(),
            root.at("b").at("again").get<double>());  // every op takes a second
  const Json alike = parse_json(run({"plan", "compare", problem, "b.json", "b.json", "--json"}).out, "comparison");
  EXPECT_TRUE(alike.at("same").get<bool>());
  EXPECT_TRUE(alike.at("ops").empty() && alike.at("moved").empty());
}

TEST(Compare, NeedsItsArguments) {
  EXPECT_EQ(run({"plan", "compare"}).code, 2);
  const Result nothing = run({"plan"});
  EXPECT_EQ(nothing.code, 2);
  EXPECT_EQ(nothing.err, "neaptide: plan: FILE is required; see 'neaptide plan --help'\n");
  const Result missing = run({"plan", "compare", chain(4), "nowhere.json", "nowhere.json"});
  EXPECT_EQ(missing.code, 3);
  EXPECT_THAT(missing.err, StartsWith("neaptide: cannot read 'nowhere.json'"));
}

}  // namespace
}  // namespace neaptide::testing_cli
