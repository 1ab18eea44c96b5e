#include "neaptide/session/data.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/files.hpp"
#include "neaptide/session/idx.hpp"

namespace neaptide::session {
namespace {

using testing::HasSubstr;

std::string message_of(const auto& action) {
  try {
    action();
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

std::string idx_text(std::vector<unsigned> dims, const std::string& bytes) {
  std::string out("\0\0\x08", 3);
  out += static_cast<char>(dims.size());
  for (const unsigned d : dims) {
    for (const int shift : {24, 16, 8, 0}) out += static_cast<char>(d >> shift & 255);
  }
  return out + bytes;
}

std::string folder_of(const std::string& name) {
  const std::filesystem::path p = std::filesystem::path(testing::TempDir()) / name;
  std::filesystem::remove_all(p);
  std::filesystem::create_directories(p);
  return p.string();
}

TEST(Idx, ReadsDimensionsAndBytes) {
  const Idx idx = idx_from_bytes(idx_text({2, 1, 3}, "abcdef"), "x", 3);
  EXPECT_EQ(idx.dims, (std::vector<std::int64_t>{2, 1, 3}));
  EXPECT_EQ(idx.bytes, "abcdef");
}

TEST(Idx, EveryTruncationIsRefused) {
  const std::string whole = idx_text({2, 1, 3}, "abcdef");
  for (std::size_t n = 0; n < whole.size(); ++n) {
    EXPECT_THROW(idx_from_bytes(whole.substr(0, n), "x", 3), UserError) << n;
  }
}

TEST(Idx, SaysWhatIsWrong) {
  const std::string good = idx_text({2, 1, 3}, "abcdef");
  EXPECT_EQ(message_of([] { idx_from_bytes("abc", "f", 3); }),
            "'f' is no IDX file: 3 bytes, but the header of 3 dimensions has 16");
  std::string bad = good;
  bad[0] = 'P';
  EXPECT_EQ(message_of([&] { idx_from_bytes(bad, "f", 3); }), "'f' is no IDX file: it does not begin with two zeros");
  bad = good;
  bad[2] = 0x0d;
  EXPECT_EQ(message_of([&] { idx_from_bytes(bad, "f", 3); }),
            "'f' holds IDX elements of type 0x0d; only unsigned bytes (0x08) are read");
  EXPECT_EQ(message_of([&] { idx_from_bytes(good, "f", 2); }), "'f' has 3 dimensions; expected 2");
  EXPECT_EQ(message_of([&] { idx_from_bytes(good + "g", "f", 3); }), "'f' holds 7 elements; its header announces 6");
  EXPECT_THAT(message_of([] {
                idx_from_bytes(idx_text({~0U, ~0U, ~0U}, ""), "f", 3);
              }),
              HasSubstr("overflows 63 bits"));
}

TEST(Data, ReadsAFolderAndNormalises) {
  const std::string folder = folder_of("idx-data");
  write_file_atomically(folder + "/train-images-idx3-ubyte", idx_text({2, 1, 2}, std::string("\x00\xff\xff\x00", 4)));
  write_file_atomically(folder + "/train-labels-idx1-ubyte", idx_text({2}, std::string("\x03\x00", 2)));
  const DataSet data = open_data(folder, Part::kTrain);
  EXPECT_EQ(data.n, 2);
  EXPECT_EQ(data.sample, (graph::Shape{1, 1, 2}));
  EXPECT_EQ(data.labels, (std::vector<std::int64_t>{3, 0}));
  EXPECT_EQ(data.classes, 4);
  std::vector<float> sample(2);
  data.write_sample(0, sample);
  EXPECT_EQ(sample, (std::vector<float>{-1, 1}));
  EXPECT_EQ(message_of([&] { open_data(folder, Part::kTest); }),
            "no data in '" + folder +
                "': t10k-images-idx3-ubyte.gz is missing there; install the Debian package dataset-fashion-mnist, or "
                "name a folder that holds t10k-images-idx3-ubyte.gz");
}

TEST(Data, CountsMustAgree) {
  const std::string folder = folder_of("idx-counts");
  const std::string images = folder + "/i", labels = folder + "/l";
  write_file_atomically(images, idx_text({2, 1, 1}, "ab"));
  write_file_atomically(labels, idx_text({3}, "abc"));
  EXPECT_EQ(message_of([&] { open_data(images + "," + labels, Part::kTrain); }),
            "'" + images + "' has 2 images, but '" + labels + "' has 3 labels");
}

TEST(Data, UnknownNames) {
  EXPECT_EQ(message_of([] { open_data("fashion-minst", Part::kTrain); }),
            "no data 'fashion-minst'; did you mean 'fashion-mnist'?; it is neither a known name (fashion-mnist, "
            "synthetic) nor a folder nor IMAGES,LABELS");
  EXPECT_EQ(message_of([] { open_data("a,b,c", Part::kTrain); }), "data 'a,b,c' is not IMAGES,LABELS: it has 3 parts");
}

TEST(Data, FashionMnistIsWhole) {
  if (!file_exists("/usr/share/datasets/fashion-mnist/t10k-images-idx3-ubyte.gz")) {
    GTEST_SKIP() << "the Debian package dataset-fashion-mnist is not installed";
  }
  const DataSet data = open_data("fashion-mnist", Part::kTest);
  EXPECT_EQ(data.n, 10000);
  EXPECT_EQ(data.sample, (graph::Shape{1, 28, 28}));
  EXPECT_EQ(data.classes, 10);
  EXPECT_EQ(std::count(data.labels.begin(), data.labels.end(), 7), 1000);
}

TEST(Data, ShufflingIsAPermutationAndAPureFunction) {
  const std::vector<std::int64_t> order = shuffled(1000, 7, 3);
  EXPECT_EQ(order, shuffled(1000, 7, 3));
  EXPECT_NE(order, shuffled(1000, 7, 4));
  EXPECT_NE(order, shuffled(1000, 8, 3));
  std::vector<std::int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::int64_t> expected(1000);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(sorted, expected);
  const auto fixed = std::count_if(expected.begin(), expected.end(),
                                   [&](std::int64_t i) { return order[static_cast<std::size_t>(i)] == i; });
  EXPECT_LT(fixed, 10);
}

TEST(Data, SyntheticIsAPureFunction) {
  const SyntheticOptions o = {.n = 8, .sample = {3, 4, 4}, .classes = 5, .seed = 2};
  const DataSet a = synthetic(o), b = synthetic(o);
  EXPECT_EQ(a.values, b.values);
  EXPECT_EQ(a.labels, b.labels);
  EXPECT_THAT(a.values, testing::Each(testing::AllOf(testing::Ge(-1), testing::Lt(1))));
  EXPECT_THAT(a.labels, testing::Each(testing::AllOf(testing::Ge(0), testing::Lt(5))));
  EXPECT_EQ(synthetic({.n = 8, .sample = {2}, .n_target = 3}).targets.size(), 24U);
}

}  // namespace
}  // namespace neaptide::session
