#include "neaptide/session/checkpoint.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/files.hpp"

namespace neaptide::session {
namespace {

Checkpoint example() {
  Checkpoint c;
  c.tensors = {{"w", graph::tensor_of<float>(graph::DType::kF32, {4}, {1, 0.1F, 1e-30F, -0.0F})},
               {"w.m", graph::zeros({graph::DType::kF32, {4}})}};
  c.seed = 0xffffffffffffffffu;
  c.step = 12;
  c.cursor = {1, 352};
  c.means = {0.1 + 0.2, 3, 5, 96};
  c.options = {{"optimizer", "adam"}, {"batch", "32"}};
  c.plan = "{\n}\n";
  return c;
}

std::string message_of(const auto& action) {
  try {
    action();
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

TEST(Checkpoint, ReadsBackWhatItWrote) { EXPECT_EQ(checkpoint_from(to_safetensors(example()), "f"), example()); }

TEST(Checkpoint, OtherFilesAreRefused) {
  TensorFile f;
  EXPECT_EQ(message_of([&] { checkpoint_from(to_safetensors(f), "f"); }),
            "f is no checkpoint: its metadata has no \"format\": \"neaptide.checkpoint\"");
  f.metadata = {{"format", "neaptide.checkpoint"}, {"version", "2"}};
  EXPECT_EQ(message_of([&] { checkpoint_from(to_safetensors(f), "f"); }),
            "f is a checkpoint of version 2; this program reads version 1");
  f.metadata["version"] = "1";
  f.metadata["seed"] = "x";
  EXPECT_EQ(message_of([&] { checkpoint_from(to_safetensors(f), "f"); }),
            "f: its metadata has \"seed\": 'x', which is not a number");
  f.metadata["seed"] = "1";
  f.metadata["step"] = "-1";
  EXPECT_EQ(message_of([&] { checkpoint_from(to_safetensors(f), "f"); }),
            "f: its metadata has \"step\": -1; it must be at least 0");
}

TEST(Checkpoint, ADamagedFileIsRefused) {
  std::string content = to_safetensors(example());
  content.back() = static_cast<char>(content.back() ^ 1);
  EXPECT_EQ(message_of([&] { checkpoint_from(content, "f"); }),
            "f: its content does not match its sha256; the file is damaged");
}

TEST(Checkpoint, AFullDeviceIsSaid) {
  EXPECT_EQ(message_of([] { save_checkpoint("/dev/full", example()); }),
            "cannot write '/dev/full': No space left on device");
}

TEST(Checkpoint, AFullDiskLeavesTheOldFile) {
  const std::string path = testing::TempDir() + "full-disk.safetensors";
  save_checkpoint(path, example());
  Checkpoint larger = example();
  larger.tensors.emplace_back("big", graph::zeros({graph::DType::kU8, {1 << 20}}));
  // The limit on file sizes stands for a disk that is full half way through the write.
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {1 << 16, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string message = message_of([&] { save_checkpoint(path, larger); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_DFL);
  EXPECT_EQ(message, "cannot write '" + path + "': File too large; what was there before is untouched");
  EXPECT_EQ(load_checkpoint(path), example());
  for (const auto& entry : std::filesystem::directory_iterator(testing::TempDir())) {
    EXPECT_EQ(entry.path().string().find("full-disk.safetensors.tmp"), std::string::npos) << "a remnant lies about";
  }
}

}  // namespace
}  // namespace neaptide::session
