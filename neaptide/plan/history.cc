#include "neaptide/plan/history.hpp"

#include <algorithm>
#include <tuple>

#include "neaptide/base/errors.hpp"

namespace neaptide::plan {
namespace {

class Recorder {
 public:
  explicit Recorder(const Problem& problem) : p_(problem), open_(problem.devices.size() * problem.buffers.size(), -1) {
    out_.runs.resize(problem.ops.size());
    out_.of.resize(problem.buffers.size());
    for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
      const BufferId b(i);
      if (problem.buffers[b].home) begin(b, *problem.buffers[b].home, Residence::Made::kHome, -1);
    }
  }

  History run(const std::vector<Step>& steps) {
    out_.n_steps = static_cast<int>(steps.size());
    for (const Step& step : steps) {
      std::visit([this](const auto& s) { read(s); }, step);
      ++now_;
    }
    for (Residence& r : out_.residences) {
      if (r.ended == Residence::Ended::kLasts) r.end = now_;
    }
    std::stable_sort(out_.residences.begin(), out_.residences.end(), [](const Residence& a, const Residence& b) {
      return std::tie(a.begin, a.buffer, a.device) < std::tie(b.begin, b.buffer, b.device);
    });
    for (std::size_t i = 0; i < out_.residences.size(); ++i) {
      out_.of[out_.residences[i].buffer].push_back(static_cast<int>(i));
    }
    return std::move(out_);
  }

 private:
  int& slot(BufferId b, DeviceId d) { return open_[d.index() * p_.buffers.size() + b.index()]; }

  Residence& at(BufferId b, DeviceId d) {
    ensure(slot(b, d) >= 0, "a step touches what is not resident");
    return out_.residences[static_cast<std::size_t>(slot(b, d))];
  }

  void begin(BufferId b, DeviceId d, Residence::Made made, int step) {
    slot(b, d) = static_cast<int>(out_.residences.size());
    Residence r;
    r.made = made;
    r.buffer = b;
    r.device = d;
    r.begin = step;
    out_.residences.push_back(std::move(r));
  }

  void end(BufferId b, DeviceId d, Residence::Ended how) {
    Residence& r = at(b, d);
    r.ended = how;
    r.end = now_;
    slot(b, d) = -1;
  }

  void read(const Compute& s) {
    out_.runs[s.op].push_back(now_);
    const Op& op = p_.ops[s.op];
    const Impl& impl = op.impls[static_cast<std::size_t>(s.impl)];
    for (const BufferId b : impl.reads) at(b, impl.device).reads.push_back(now_);
    for (const InPlace& pair : impl.in_place) end(pair.in, impl.device, Residence::Ended::kTakenOver);
    for (const BufferId b : impl.writes) write(op, impl, b);
  }

  void write(const Op& op, const Impl& impl, BufferId b) {
    if (slot(b, impl.device) >= 0) {
      at(b, impl.device).writes.push_back(now_);
    } else {
      begin(b, impl.device, Residence::Made::kRun, now_);
      at(b, impl.device).in_place =
          std::any_of(impl.in_place.begin(), impl.in_place.end(), [&](const InPlace& pair) { return pair.out == b; });
    }
    for (std::size_t i = 0; i < p_.devices.size() && op.once; ++i) {
      const DeviceId other(i);
      const bool stays = p_.buffers[b].home == other && !p_.buffers[b].pageable;
      if (other != impl.device && !stays && slot(b, other) >= 0) end(b, other, Residence::Ended::kOverwritten);
    }
  }

  void read(const Copy& s) {
    out_.copies.push_back(now_);
    at(s.buffer, s.from).reads.push_back(now_);
    if (slot(s.buffer, s.to) >= 0) {
      at(s.buffer, s.to).writes.push_back(now_);
    } else {
      begin(s.buffer, s.to, Residence::Made::kCopy, now_);
    }
  }

  void read(const Free& s) { end(s.buffer, s.device, Residence::Ended::kFreed); }

  const Problem& p_;
  std::vector<int> open_;  // [device][buffer]: index of the residence, -1: none
  History out_;
  int now_ = 0;
};

}  // namespace

int Residence::last_use() const {
  int last = begin;
  if (!reads.empty()) last = std::max(last, reads.back());
  if (!writes.empty()) last = std::max(last, writes.back());
  return last;
}

History history(const Problem& problem, const std::vector<Step>& steps) { return Recorder(problem).run(steps); }

}  // namespace neaptide::plan
