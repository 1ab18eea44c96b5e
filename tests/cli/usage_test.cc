#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "neaptide/base/json.hpp"
#include "program.hpp"

namespace neaptide::testing_cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(Usage, VersionAndHelp) {
  EXPECT_EQ(run({"--version"}).out, "0.1.0\n");
  const Result help = run({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.out, HasSubstr("verify"));
  const Result verb = run({"train", "--help"});
  EXPECT_EQ(verb.code, 0);
  EXPECT_THAT(verb.out, HasSubstr("--budget"));
  EXPECT_EQ(run({}).code, 2);
}

TEST(Usage, UnknownWordsGetASuggestion) {
  const Result verb = run({"tran"});
  EXPECT_EQ(verb.code, 2);
  EXPECT_EQ(verb.err, "neaptide: there is no verb 'tran'; did you mean 'train'?; see 'neaptide --help'\n");
  const Result flag = run({"train", "x.onnx", "--budgt", "1"});
  EXPECT_EQ(flag.code, 2);
  EXPECT_EQ(flag.err, "neaptide: 'train' has no option '--budgt'; did you mean '--budget'?\n");
  const Result network = run({"zoo", "lenett"});
  EXPECT_EQ(network.code, 2);
  EXPECT_THAT(network.err, HasSubstr("did you mean 'lenet'?"));
  const Result planner = run({"plan", lenet(), "--planner", "keep-al"});
  EXPECT_EQ(planner.code, 2);
  EXPECT_THAT(planner.err, HasSubstr("there is no planner 'keep-al'; did you mean 'keep-all'?"));
  const Result optimizer = run({"plan", lenet(), "--optimizer", "adm"});
  EXPECT_EQ(optimizer.code, 2);
  EXPECT_EQ(
      optimizer.err,
      "neaptide: there is no optimizer 'adm'; did you mean 'adam'?; there are sgd, momentum, nesterov, adam, adamw\n");
  const Result backend = run({"plan", lenet(), "--backend", "gpu"});
  EXPECT_EQ(backend.code, 2);
  EXPECT_THAT(backend.err, StartsWith("neaptide: there is no backend 'gpu'"));
}

TEST(Usage, MissingAndSuperfluousArguments) {
  EXPECT_EQ(run({"train"}).err, "neaptide: train: MODEL is required; see 'neaptide train --help'\n");
  EXPECT_EQ(run({"plan", "a", "b"}).err, "neaptide: 'plan' takes no further argument 'b'\n");
  EXPECT_EQ(run({"train", "x.onnx", "--epochs", "-1"}).code, 2);
}

TEST(Usage, DoctorSaysWhatIsNotBuilt) {
  const Result text = run({"doctor"});
  EXPECT_EQ(text.code, 0);
  EXPECT_THAT(text.out, HasSubstr("not built"));
  const Json root = parse_json(run({"doctor", "--json"}).out, "doctor");
  EXPECT_TRUE(root.at("backend reference").at("ok").get<bool>());
  EXPECT_FALSE(root.at("backend cuda").at("ok").get<bool>());
}

TEST(Usage, NoColourWithoutATerminal) { EXPECT_EQ(run({"doctor"}).out.find('\033'), std::string::npos); }

}  // namespace
}  // namespace neaptide::testing_cli
