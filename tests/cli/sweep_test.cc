#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chain.hpp"
#include "neaptide/base/files.hpp"
#include "neaptide/base/json.hpp"
#include "neaptide/base/text.hpp"
#include "program.hpp"

namespace neaptide::testing_cli {
namespace {

using testing::HasSubstr;

TEST(Sweep, WritesTheCurveInEveryForm) {
  const Result r =
      run({"sweep", chain(8), "--points", "5", "-o", "c.json", "--csv", "c.csv", "--svg", "c.svg", "--json"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(read_file(path("c.json")), r.out);
  const Json root = parse_json(r.out, "curve");
  EXPECT_EQ(root.at("smallest").at("bytes"), 4000);
  EXPECT_EQ(root.at("keep_all").at("bytes"), 10000);
  EXPECT_EQ(root.at("no_extra_time").at("bytes"), 10000);
  const Json& points = root.at("curves").at(0).at("points");
  ASSERT_EQ(points.size(), 5U);
  for (std::size_t i = 0; i < points.size(); ++i) {
    EXPECT_LE(points[i].at("bound").get<double>(), points[i].at("cost").get<double>());
    EXPECT_LE(points[i].at("peak").get<int>(), points[i].at("budget").get<int>());
    if (i == 0) continue;
    EXPECT_LE(points[i].at("cost").get<double>(), points[i - 1].at("cost").get<double>());
    EXPECT_LE(points[i].at("bound").get<double>(), points[i - 1].at("bound").get<double>());
  }
  const std::vector<std::string> lines = split(read_file(path("c.csv")), '\n');
  EXPECT_EQ(lines.size(), 7U);  // heading, five points, the end of the last line
  EXPECT_EQ(lines[0],
            "planner,budget_bytes,budget_percent,cost,overhead_percent,bound,gap_points,peak_bytes,recomputed");
  EXPECT_THAT(read_file(path("c.svg")), HasSubstr("smallest budget found: 3.91 KiB (40.0 %)"));
}

TEST(Sweep, TakesBudgetsAsPlanDoesAndSeveralPlanners) {
  const Result r = run({"sweep", chain(8), "--from", "50%", "--to", "9000", "--points", "3", "--planner", "neaptide",
                        "--planner", "chen-sqrt"});
  ASSERT_EQ(r.code, 0) << r.err;
  for (const char* part : {"neaptide", "chen-sqrt", "5000", "7000", "9000", "no extra cost"}) {
    EXPECT_THAT(r.out, HasSubstr(part));
  }
}

TEST(Sweep, SaysWhatIsWrong) {
  const std::string problem = chain(4);
  const Result swept = run({"sweep", problem, "--budget", "50%"});
  EXPECT_EQ(swept.code, 2);
  EXPECT_EQ(swept.err, "neaptide: the budget of 'cpu:0' is what is swept; give --from and --to instead\n");
  const Result device = run({"sweep", problem, "--device", "cpu:1"});
  EXPECT_EQ(device.code, 2);
  EXPECT_EQ(device.err, "neaptide: there is no device 'cpu:1'; did you mean 'cpu:0'?; the devices are cpu:0\n");
  const Result empty = run({"sweep", problem, "--from", "90%", "--to", "80%"});
  EXPECT_EQ(empty.code, 2);
  EXPECT_THAT(empty.err, HasSubstr("from must not be above to"));
  EXPECT_EQ(run({"sweep", problem, "--planner", "neaptid"}).code, 2);
  const Result none = run({"sweep", problem, "--from", "10", "--to", "20", "--points", "2"});
  EXPECT_EQ(none.code, 4);
  EXPECT_THAT(none.out, HasSubstr("impossible"));
}

TEST(Sweep, AnInterruptKeepsWhatIsKnown) {
  const std::vector<std::string> words = {"sweep",    chain(200),      "--from", "30%",    "--points", "4",
                                          "--effort", "1000000000000", "-o",     "c.json", "--json"};
  const Result r = run(words, {.interrupt_after = "sweeping the budget of cpu:0 from"});
  EXPECT_EQ(r.code, 130) << r.err;
  EXPECT_EQ(read_file(path("c.json")), r.out);
  const Json root = parse_json(r.out, "curve");
  EXPECT_EQ(root.at("stopped_by"), "interrupt");
  const Json& points = root.at("curves").at(0).at("points");
  ASSERT_EQ(points.size(), 4U);
  EXPECT_TRUE(points.at(3).at("feasible").get<bool>());  // the run without a budget comes first
}

TEST(Sweep, AModel) {
  const Result r = run({"sweep", lenet(), "--estimate", "--points", "3", "--json"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(parse_json(r.out, "curve").at("curves").at(0).at("points").size(), 3U);
}

}  // namespace
}  // namespace neaptide::testing_cli
