#include "neaptide/session/verify.hpp"

#include <algorithm>
#include <bit>
#include <set>

#include "neaptide/session/trainer.hpp"

namespace neaptide::session {

namespace {

using Sabotage = VerifyOptions::Sabotage;

struct RunResult {
  std::vector<std::uint32_t> losses;  // bits
  std::vector<std::pair<std::string, graph::Tensor>> tensors;
};

/// "": equal; otherwise what differs first.
std::string difference(const RunResult& expected, const RunResult& got) {
  for (std::size_t i = 0; i < expected.losses.size(); ++i) {
    if (i >= got.losses.size() || expected.losses[i] != got.losses[i]) return fmt::format("the loss of step {}", i);
  }
  for (std::size_t i = 0; i < expected.tensors.size(); ++i) {
    if (!(expected.tensors[i] == got.tensors[i])) return fmt::format("tensor '{}'", expected.tensors[i].first);
  }
  return "";
}

int recomputed_steps(const plan::Plan& plan) {
  std::set<plan::OpId> seen;
  int again = 0;
  for (const plan::Step& step : plan.steps) {
    const auto* c = std::get_if<plan::Compute>(&step);
    if (c != nullptr && !seen.insert(c->op).second) ++again;
  }
  return again;
}

void flip_a_bit(graph::Tensor& tensor) {
  std::vector<std::byte> bytes = *tensor.data;
  bytes.front() ^= std::byte{1};
  tensor = graph::make_tensor(tensor.type, bytes);
}

class Verifier {
 public:
  Verifier(const graph::Graph& forward, const ModelOptions& options, const VerifyOptions& verify)
      : options_(options), verify_(verify) {
    if (verify.steps < 1) throw UserError("{} steps verify nothing; it must be at least 1", verify.steps);
    options_.pinned = true;
    model_ = make_training_model(forward, options_);
    data_ = verify.data
                ? *verify.data
                : synthetic_for(model_, checked_mul(verify.steps, model_.batch, "the synthetic data"), verify.seed);
  }

  Verification run() {
    out_.keep_all = model_.prepared.keep_all;
    std::string planner = std::exchange(options_.planner, "keep-all");
    reference_row();
    options_.planner = std::move(planner);
    for (const std::string& budget : verify_.budgets) {
      row(budget, false);
      if (verify_.interrupt && out_.rows.back().planned) row(budget, true);
    }
    return std::move(out_);
  }

 private:
  TrainerOptions trainer_options(RunResult& result, std::int64_t most_steps) const {
    TrainerOptions t;
    t.schedule.rate = verify_.rate;
    t.seed = verify_.seed;
    t.most_steps = most_steps;
    t.n_epochs = INT64_MAX;
    t.strict = true;
    t.progress = [&result](const TrainProgress& p) {
      result.losses.push_back(std::bit_cast<std::uint32_t>(p.last.loss));
      return true;
    };
    return t;
  }

  /// Trains up to `most_steps` from `start`; the state afterwards.
  Checkpoint train(const Checkpoint* start, std::int64_t most_steps, RunResult& result, VerifyRow& row) {
    Trainer trainer(std::move(model_), trainer_options(result, most_steps));
    row.planned_peak = trainer.program().planned_peak();
    row.arena = trainer.program().arena_bytes();
    if (start != nullptr) trainer.restore(*start);
    if (start == nullptr) initial_ = trainer.checkpoint();
    try {
      trainer.run(data_);
    } catch (const runtime::PeakMismatch& e) {
      row.peak_mismatch = e.what();
    }
    row.measured_peak = std::max(row.measured_peak, trainer.largest_measured_peak());
    Checkpoint end = trainer.checkpoint();
    model_ = std::move(trainer).release();
    return end;
  }

  VerifyRow planned_row(const std::string& budget, bool interrupted) {
    VerifyRow row;
    row.budget = budget.empty() ? "none" : budget;
    row.interrupted = interrupted;
    const std::vector<std::string> words = {budget};
    if (!interrupted) choose_plan(model_.prepared, words, options_);  // else: the plan of the row before
    row.bytes = model_.prepared.budget;
    row.planned = model_.prepared.feasible();
    row.cost = model_.prepared.plan.cost.seconds;
    row.recomputed = recomputed_steps(model_.prepared.plan);
    return row;
  }

  void reference_row() {
    say("without a budget");
    VerifyRow r = planned_row("", false);
    expected_.tensors = train(nullptr, verify_.steps, expected_, r).tensors;
    out_.rows.push_back(std::move(r));
  }

  void row(const std::string& budget, bool interrupted) {
    say(fmt::format("budget {}{}", budget, interrupted ? ", interrupted half way" : ""));
    VerifyRow r = planned_row(budget, interrupted);
    if (r.planned) {
      if (verify_.sabotage == Sabotage::kShiftPeak) model_.prepared.plan.peak[plan::DeviceId(std::size_t{0})] += 64;
      RunResult got;
      Checkpoint start = initial_;
      if (interrupted) {
        const Checkpoint half = train(&start, verify_.steps / 2, got, r);
        start = checkpoint_from(to_safetensors(half), "the checkpoint of the interrupted run");
      }
      got.tensors = train(&start, verify_.steps, got, r).tensors;
      if (verify_.sabotage == Sabotage::kFlipBit) flip_a_bit(got.tensors.front().second);
      if (r.peak_mismatch.empty()) r.difference = difference(expected_, got);
    }
    out_.rows.push_back(std::move(r));
  }

  void say(const std::string& what) const {
    if (verify_.progress) verify_.progress(what);
  }

  ModelOptions options_;
  VerifyOptions verify_;
  TrainingModel model_;
  DataSet data_;
  Checkpoint initial_;
  RunResult expected_;
  Verification out_;
};

}  // namespace

bool Verification::same_bits() const {
  return std::all_of(rows.begin(), rows.end(), [](const VerifyRow& r) { return r.difference.empty(); });
}

bool Verification::same_peaks() const {
  return std::all_of(rows.begin(), rows.end(), [](const VerifyRow& r) { return r.peak_mismatch.empty(); });
}

Verification verify_budgets(const graph::Graph& forward, const ModelOptions& options, const VerifyOptions& verify) {
  return Verifier(forward, options, verify).run();
}

}  // namespace neaptide::session
