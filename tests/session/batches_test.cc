#include "neaptide/session/batches.hpp"

#include <gtest/gtest.h>

#include "neaptide/base/errors.hpp"

namespace neaptide::session {
namespace {

/// Sample i is the number i, its label too.
DataSet counting(std::int64_t n) {
  DataSet out;
  out.name = "counting";
  out.n = n;
  out.sample = {1};
  out.classes = n;
  for (std::int64_t i = 0; i < n; ++i) {
    out.values.push_back(static_cast<float>(i));
    out.labels.push_back(i);
  }
  return out;
}

std::vector<std::int64_t> labels_of(const DataSet& data, const StreamOptions& options) {
  BatchStream stream(data, options);
  std::vector<std::int64_t> out;
  while (const Batch* b = stream.next()) {
    out.insert(out.end(), b->labels.begin(), b->labels.begin() + b->n_real);
    for (std::size_t i = 0; i < b->labels.size(); ++i) EXPECT_EQ(b->samples[i], static_cast<float>(b->labels[i]));
  }
  return out;
}

TEST(Batches, TrainingDropsTheRestAndFollowsTheOrderOfEachEpoch) {
  const DataSet data = counting(10);
  const auto got = labels_of(data, {.batch = 4, .seed = 3, .n_epochs = 2});
  std::vector<std::int64_t> expected;
  for (const std::int64_t epoch : {0, 1}) {
    const auto order = shuffled(10, 3, epoch);
    expected.insert(expected.end(), order.begin(), order.begin() + 8);
  }
  EXPECT_EQ(got, expected);
}

TEST(Batches, ResumingAtACursorGivesTheSameRest) {
  const DataSet data = counting(50);
  const StreamOptions whole = {.batch = 4, .seed = 3, .n_epochs = 3};
  const auto all = labels_of(data, whole);
  BatchStream stream(data, whole);
  std::size_t done = 0;
  while (const Batch* b = stream.next()) {
    done += b->labels.size();
    StreamOptions rest = whole;
    rest.begin = b->after;
    EXPECT_EQ(labels_of(data, rest),
              std::vector<std::int64_t>(all.begin() + static_cast<std::ptrdiff_t>(done), all.end()));
  }
  EXPECT_EQ(done, all.size());
}

TEST(Batches, EvaluationPadsAndCountsOnlyWhatIsThere) {
  const DataSet data = counting(10);
  const StreamOptions o = {.batch = 4, .shuffle = false, .drop_last = false};
  EXPECT_EQ(labels_of(data, o), data.labels);
  BatchStream stream(data, o);
  stream.next();
  stream.next();
  const Batch* last = stream.next();
  EXPECT_EQ(last->n_real, 2);
  EXPECT_EQ(last->labels, (std::vector<std::int64_t>{8, 9, 8, 8}));
  EXPECT_TRUE(last->ends_epoch);
  EXPECT_EQ(stream.next(), nullptr);
  EXPECT_EQ(batches_per_epoch(10, 4, false), 3);
  EXPECT_EQ(batches_per_epoch(10, 4, true), 2);
}

TEST(Batches, TooFewSamplesForOneBatch) {
  const DataSet data = counting(3);
  try {
    BatchStream(data, {.batch = 4});
    FAIL();
  } catch (const UserError& e) {
    EXPECT_STREQ(e.what(), "the data set 'counting' has 3 samples, fewer than one batch of 4");
  }
}

TEST(Batches, MayBeLeftEarly) {
  const DataSet data = counting(1000);
  for (int i = 0; i < 20; ++i) {
    BatchStream stream(data, {.batch = 1, .n_epochs = 1000});
    stream.next();
  }
}

}  // namespace
}  // namespace neaptide::session
