// Batches of a data set, made ahead of time by a thread of their own.
//
//   session::BatchStream stream(data, {.batch = 32, .seed = 1, .n_epochs = 3});
//   while (const session::Batch* b = stream.next()) program.write(x, b->samples_bytes());
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "neaptide/session/data.hpp"

namespace neaptide::session {

/// Where a run stands in its data: the next sample is `position` in the order of `epoch`.
struct Cursor {
  std::int64_t epoch = 0, position = 0;
  friend bool operator==(const Cursor&, const Cursor&) = default;
};

struct Batch {
  std::vector<float> samples;
  std::vector<std::int64_t> labels;  // or
  std::vector<float> targets;
  std::int64_t n_real = 0;  // samples that count; the rest repeats the first one
  Cursor after;             // where the next batch begins
  bool ends_epoch = false;

  std::span<const std::byte> sample_bytes() const { return std::as_bytes(std::span(samples)); }
  std::span<const std::byte> label_bytes() const {
    return labels.empty() ? std::as_bytes(std::span(targets)) : std::as_bytes(std::span(labels));
  }
};

struct StreamOptions {
  std::int64_t batch = 1;
  std::uint64_t seed = 1;
  Cursor begin = {};
  std::int64_t n_epochs = 1;  // batches of epochs begin.epoch .. n_epochs - 1
  bool shuffle = true;
  bool drop_last = true;  // training: a last partial batch is left out; evaluation pads it
};

/// Batches that an epoch has.
std::int64_t batches_per_epoch(std::int64_t n, std::int64_t batch, bool drop_last);

/// `data` must outlive the stream. Memory: three batches, allocated at the start.
class BatchStream {
 public:
  BatchStream(const DataSet& data, const StreamOptions& options);
  BatchStream(BatchStream&&) noexcept;
  BatchStream& operator=(BatchStream&&) noexcept;
  ~BatchStream();

  /// The next batch, valid until the following call; null at the end. Rethrows what went wrong in the thread.
  const Batch* next();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace neaptide::session
