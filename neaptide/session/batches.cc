#include "neaptide/session/batches.hpp"

#include <array>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "neaptide/base/errors.hpp"

namespace neaptide::session {

std::int64_t batches_per_epoch(std::int64_t n, std::int64_t batch, bool drop_last) {
  return drop_last ? n / batch : (n + batch - 1) / batch;
}

namespace {

/// Makes batch after batch; knows no threads.
class Maker {
 public:
  Maker(const DataSet& data, const StreamOptions& options) : data_(data), o_(options), at_(options.begin) {
    if (o_.batch < 1) throw UserError("a batch of {} samples is none; it must be at least 1", o_.batch);
    if (o_.drop_last && data.n < o_.batch) {
      throw UserError("the data set '{}' has {} samples, fewer than one batch of {}", data.name, data.n, o_.batch);
    }
    if (data.n < 1) throw UserError("the data set '{}' is empty", data.name);
  }

  bool make(Batch& out) {
    const std::int64_t end = o_.drop_last ? data_.n / o_.batch * o_.batch : data_.n;
    if (at_.position >= end) at_ = {at_.epoch + 1, 0};
    if (at_.epoch >= o_.n_epochs) return false;
    if (o_.shuffle && order_epoch_ != at_.epoch) {
      order_ = shuffled(data_.n, o_.seed, at_.epoch);
      order_epoch_ = at_.epoch;
    }
    out.n_real = std::min(o_.batch, end - at_.position);
    fill(out);
    at_.position += out.n_real;
    out.ends_epoch = at_.position >= end;
    out.after = out.ends_epoch ? Cursor{at_.epoch + 1, 0} : at_;
    return true;
  }

 private:
  void fill(Batch& out) {
    const auto batch = static_cast<std::size_t>(o_.batch);
    const auto width = static_cast<std::size_t>(data_.sample_elements());
    const auto target = static_cast<std::size_t>(data_.n_target);
    out.samples.resize(batch * width);
    out.labels.resize(data_.labels.empty() ? 0 : batch);
    out.targets.resize(batch * target);
    for (std::size_t i = 0; i < batch; ++i) {
      const auto k = static_cast<std::int64_t>(i);
      const std::int64_t place = at_.position + (k < out.n_real ? k : 0);
      const std::int64_t index = o_.shuffle ? order_[static_cast<std::size_t>(place)] : place;
      data_.write_sample(index, std::span(out.samples).subspan(i * width, width));
      if (!out.labels.empty()) out.labels[i] = data_.labels[static_cast<std::size_t>(index)];
      for (std::size_t j = 0; j < target; ++j) {
        out.targets[i * target + j] = data_.targets[static_cast<std::size_t>(index) * target + j];
      }
    }
  }

  const DataSet& data_;
  StreamOptions o_;
  Cursor at_;
  std::vector<std::int64_t> order_;
  std::int64_t order_epoch_ = -1;
};

}  // namespace

/// A ring of batches: the thread fills ahead of `taken`, the caller reads one behind it.
struct BatchStream::State {
  static constexpr std::size_t kSlots = 3;

  State(const DataSet& data, const StreamOptions& options) : maker(data, options) {
    thread = std::jthread([this](const std::stop_token& stop) { work(stop); });
  }

  void work(const std::stop_token& stop) {
    std::unique_lock lock(mutex);
    for (;;) {
      if (!changed.wait(lock, stop, [this] { return made - taken < kSlots - 1; })) return;
      lock.unlock();
      bool more = false;
      std::exception_ptr trouble;
      try {
        more = maker.make(slots[made % kSlots]);
      } catch (...) {
        trouble = std::current_exception();
      }
      lock.lock();
      error = trouble;
      if (more) ++made;
      if (!more) ended = true;
      changed.notify_all();
      if (!more) return;
    }
  }

  Maker maker;
  std::array<Batch, kSlots> slots;
  std::mutex mutex;
  std::condition_variable_any changed;
  std::size_t made = 0, taken = 0;
  bool ended = false;
  std::exception_ptr error;
  std::jthread thread;  // last: stops first
};

BatchStream::BatchStream(const DataSet& data, const StreamOptions& options)
    : state_(std::make_unique<State>(data, options)) {}
BatchStream::BatchStream(BatchStream&&) noexcept = default;
BatchStream& BatchStream::operator=(BatchStream&&) noexcept = default;
BatchStream::~BatchStream() = default;

const Batch* BatchStream::next() {
  State& s = *state_;
  std::unique_lock lock(s.mutex);
  s.changed.wait(lock, [&] { return s.made > s.taken || s.ended; });
  if (s.made == s.taken) {
    if (s.error) std::rethrow_exception(s.error);
    return nullptr;
  }
  const Batch* batch = &s.slots[s.taken % State::kSlots];
  ++s.taken;  // the slot behind it may be filled now; this one stays until the next call
  s.changed.notify_all();
  return batch;
}

}  // namespace neaptide::session
