#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "neaptide/base/files.hpp"
#include "neaptide/base/json.hpp"
#include "program.hpp"

namespace neaptide::testing_cli {
namespace {

using testing::HasSubstr;

/// lenet on 256 synthetic samples: 32 steps an epoch; within the least that works, which depends on the layouts of the
/// processor.
std::vector<std::string> train(std::vector<std::string> more) {
  std::vector<std::string> out = {"train", lenet(), "--data", "synthetic:256", "--budget", "min"};
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

TEST(Train, ReportsWhatWasPlannedAndMeasured) {
  const Result r =
      run(train({"--json", "--strict", "--save", "a.safetensors", "--trace", "a.json", "--export", "a.onnx"}));
  ASSERT_EQ(r.code, 0) << r.err;
  const Json root = parse_json(r.out, "train");
  EXPECT_EQ(root.at("planned_bytes"), root.at("measured_bytes"));
  EXPECT_LE(root.at("arena_bytes").get<std::int64_t>(), root.at("budget_bytes").get<std::int64_t>());
  EXPECT_EQ(root.at("steps"), 32);
  EXPECT_EQ(root.at("epochs"), 1);
  for (const char* name : {"a.safetensors", "a.json", "a.onnx"}) EXPECT_TRUE(file_exists(path(name))) << name;
  EXPECT_EQ(run({"inspect", "a.safetensors"}).code, 0);
  EXPECT_EQ(run({"export", lenet(), "--weights", "a.safetensors", "-o", "b.onnx"}).code, 0);
  EXPECT_EQ(read_file(path("a.onnx")), read_file(path("b.onnx")));
}

TEST(Train, AResumedRunHasTheSameBits) {
  ASSERT_EQ(
      run(train({"--epochs", "2", "--save", "whole.safetensors", "--optimizer", "adam", "--schedule", "cosine"})).code,
      0);
  ASSERT_EQ(run(train({"--epochs", "2", "--save", "part.safetensors", "--optimizer", "adam", "--schedule", "cosine",
                       "--steps", "41"}))
                .code,
            0);
  EXPECT_NE(read_file(path("part.safetensors")), read_file(path("whole.safetensors")));
  const Result r = run({"train", lenet(), "--resume", "part.safetensors"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_THAT(r.err, HasSubstr("resumed 'part.safetensors' after step 41"));
  EXPECT_EQ(read_file(path("part.safetensors")), read_file(path("whole.safetensors")));
}

TEST(Train, AnInterruptSavesTheState) {
  const Result r = run(train({"--epochs", "100000", "--save", "int.safetensors"}), {.interrupt_after = "epoch 2/"});
  EXPECT_EQ(r.code, 130) << r.err;
  EXPECT_THAT(r.err, HasSubstr("the state is in 'int.safetensors': go on with --resume int.safetensors"));
  const Result on = run({"train", lenet(), "--resume", "int.safetensors", "--steps", "1", "--no-eval"});
  EXPECT_EQ(on.code, 0) << on.err;
}

TEST(Train, ALossThatIsNoNumberKeepsTheLastCheckpoint) {
  ASSERT_EQ(run(train({"--save", "nan.safetensors"})).code, 0);
  const std::string before = read_file(path("nan.safetensors"));
  const Result r = run(train({"--save", "nan.safetensors", "--lr", "1e30"}));
  EXPECT_EQ(r.code, 2);
  EXPECT_THAT(r.err,
              HasSubstr("the last checkpoint in 'nan.safetensors' is kept; a smaller --lr or a warm-up may help"));
  EXPECT_EQ(read_file(path("nan.safetensors")), before);
}

TEST(Train, AFullDiskKeepsTheLastCheckpoint) {
  ASSERT_EQ(run(train({"--save", "full.safetensors"})).code, 0);
  const std::string before = read_file(path("full.safetensors"));
  const Result r = run(train({"--save", "full.safetensors", "--lr", "0.02"}), {.file_size_limit = 65536});
  EXPECT_EQ(r.code, 2);
  EXPECT_THAT(r.err, HasSubstr("cannot write 'full.safetensors': File too large; what was there before is untouched"));
  EXPECT_EQ(read_file(path("full.safetensors")), before);
}

TEST(Train, BadCheckpoints) {
  ASSERT_EQ(run(train({"--save", "good.safetensors", "--steps", "1"})).code, 0);
  const std::string whole = read_file(path("good.safetensors"));
  write_file_atomically(path("bad.safetensors"), whole.substr(0, whole.size() / 2));
  EXPECT_EQ(run({"train", lenet(), "--resume", "bad.safetensors"}).code, 2);
  std::string flipped = whole;
  flipped[whole.size() - 5] = static_cast<char>(flipped[whole.size() - 5] ^ 1);
  write_file_atomically(path("bad.safetensors"), flipped);
  EXPECT_THAT(run({"train", lenet(), "--resume", "bad.safetensors"}).err,
              HasSubstr("its content does not match its sha256; the file is damaged"));
  const Result other =
      run({"train", lenet(), "--resume", "good.safetensors", "--optimizer", "adam", "--budget", "1GiB"});
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("the checkpoint has no tensor"));
}

TEST(Train, DataThatAreMissingOrDoNotFit) {
  const Result missing = run({"train", lenet(), "--data", "/nowhere"});
  EXPECT_EQ(missing.code, 2);
  EXPECT_EQ(missing.err.substr(missing.err.find("neaptide:")),
            "neaptide: no data '/nowhere'; it is neither a known name (fashion-mnist, synthetic) nor a folder nor "
            "IMAGES,LABELS\n");
  const Result few = run({"train", lenet(), "--data", "synthetic:3"});
  EXPECT_EQ(few.code, 2);
  EXPECT_THAT(few.err, HasSubstr("the data set 'synthetic' has 3 samples, fewer than one batch of 8"));
}

TEST(Train, NoPlanFits) {
  const Result r = run({"train", lenet(), "--data", "synthetic", "--budget", "10kB", "--json"});
  EXPECT_EQ(r.code, 4);
  EXPECT_EQ(parse_json(r.out, "plan").at("status"), "infeasible");
}

TEST(Eval, SaysHowWellAModelDoes) {
  if (!file_exists("/usr/share/datasets/fashion-mnist/t10k-images-idx3-ubyte.gz")) {
    GTEST_SKIP() << "the Debian package dataset-fashion-mnist is not installed";
  }
  const Result r = run({"eval", lenet(), "--batch", "64", "--json"});
  ASSERT_EQ(r.code, 0) << r.err;
  const Json root = parse_json(r.out, "eval");
  EXPECT_EQ(root.at("samples"), 10000);
  EXPECT_EQ(root.at("planned_bytes"), root.at("measured_bytes"));
  const Result few = run({"infer", lenet(), "--count", "3", "--json"});
  ASSERT_EQ(few.code, 0) << few.err;
  EXPECT_EQ(parse_json(few.out, "infer").size(), 3U);
}

}  // namespace
}  // namespace neaptide::testing_cli
