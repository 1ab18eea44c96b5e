#include "neaptide/session/trainer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "neaptide/base/files.hpp"
#include "neaptide/onnx/zoo.hpp"
#include "neaptide/session/evaluate.hpp"

namespace neaptide::session {
namespace {

using testing::HasSubstr;

ModelOptions reference_options() {
  ModelOptions o;
  o.backend = "reference";
  o.costs = testing::TempDir() + "trainer-costs.json";  // measured once
  o.planner = "keep-all";
  return o;
}

TrainingModel mlp(const ModelOptions& options) {
  TrainingModel m = make_training_model(onnx::make("mlp", 4), options);
  choose_plan(m.prepared, {}, options);
  return m;
}

Trainer mlp_trainer(TrainerOptions t = {}, ModelOptions o = reference_options()) {
  t.strict = true;
  t.schedule.rate = 0.01;
  return Trainer(mlp(o), std::move(t));
}

std::string message_of(const auto& action) {
  try {
    action();
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

TEST(Trainer, TheLossFallsAndThePeakIsThePlannedOne) {
  TrainerOptions t;
  t.n_epochs = 4;
  std::vector<double> losses;
  t.progress = [&](const TrainProgress& p) {
    EXPECT_GT(p.last.measured_peak, 0);
    if (p.ends_epoch) losses.push_back(p.means.loss());
    return true;
  };
  Trainer trainer = mlp_trainer(t);
  const DataSet data = synthetic_for(trainer.model(), 16, 3);
  EXPECT_EQ(trainer.run(data), Outcome::kFinished);
  ASSERT_EQ(losses.size(), 4U);
  EXPECT_LT(losses.back(), losses.front());
  EXPECT_EQ(trainer.largest_measured_peak(), trainer.program().planned_peak());
  EXPECT_EQ(trainer.steps_done(), 16);
}

TEST(Trainer, ResumingAtAnyStepGivesTheSameBits) {
  for (const auto optimizer : {autodiff::Optimizer::kMomentum, autodiff::Optimizer::kAdamW}) {
    ModelOptions o = reference_options();
    o.training.optimizer = optimizer;
    TrainerOptions whole;
    whole.n_epochs = 2;
    Trainer a = mlp_trainer(whole, o);
    const DataSet data = synthetic_for(a.model(), 12, 3);
    a.run(data);
    const Checkpoint end = a.checkpoint();
    for (const std::int64_t k : {1, 3, 5}) {
      TrainerOptions part = whole;
      part.most_steps = k;
      Trainer b = mlp_trainer(part, o);
      b.run(data);
      Trainer c = mlp_trainer(whole, o);
      c.restore(checkpoint_from(to_safetensors(b.checkpoint()), "f"));
      c.run(data);
      EXPECT_EQ(c.checkpoint().tensors, end.tensors) << "interrupted after step " << k;
    }
  }
}

TEST(Trainer, WhatIsSavedIsTheCheckpoint) {
  TrainerOptions t;
  t.checkpoint = testing::TempDir() + "trainer.safetensors";
  t.recorded = {{"--lr", "0.01"}};
  Trainer trainer = mlp_trainer(t);
  trainer.run(synthetic_for(trainer.model(), 8, 1));
  EXPECT_EQ(load_checkpoint(t.checkpoint), trainer.checkpoint());
}

TEST(Trainer, StoppingSavesFirst) {
  TrainerOptions t;
  t.checkpoint = testing::TempDir() + "stopped.safetensors";
  t.progress = [](const TrainProgress& p) { return p.step < 2; };
  Trainer trainer = mlp_trainer(t);
  EXPECT_EQ(trainer.run(synthetic_for(trainer.model(), 40, 1)), Outcome::kInterrupted);
  EXPECT_EQ(load_checkpoint(t.checkpoint).step, 2);
}

TEST(Trainer, ALossThatIsNoNumberStops) {
  Trainer trainer = mlp_trainer();
  DataSet data = synthetic_for(trainer.model(), 8, 1);
  data.values[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(
      message_of([&] { trainer.run(data); }),
      testing::MatchesRegex("the loss is -?nan at step [01] \\(epoch 1, learning rate 0.01\\); nothing was saved; a "
                            "smaller --lr or a warm-up may help"));
}

TEST(Trainer, DataThatDoNotSuit) {
  Trainer trainer = mlp_trainer();
  DataSet data = synthetic({.n = 8, .sample = {3, 5, 5}});
  EXPECT_THAT(message_of([&] { trainer.run(data); }), HasSubstr("the samples of 'synthetic' are 3x5x5, but input"));
  data = synthetic_for(trainer.model(), 8, 1);
  data.classes = 1000;
  EXPECT_EQ(message_of([&] { trainer.run(data); }),
            "the data set 'synthetic' has 1000 classes, but the model scores 10");
}

TEST(Trainer, ACheckpointOfAnotherModelIsRefused) {
  Trainer trainer = mlp_trainer();
  Checkpoint c = trainer.checkpoint();
  const std::string name = c.tensors.back().first;
  c.tensors.back().second = graph::zeros({graph::DType::kF32, {7}});
  EXPECT_THAT(message_of([&] { trainer.restore(c); }), HasSubstr("tensor '" + name + "' of the checkpoint is f32[7]"));
  c.tensors.pop_back();
  EXPECT_EQ(message_of([&] { trainer.restore(c); }),
            "the checkpoint has no tensor '" + name + "'; is it of another model or optimizer?");
}

TEST(Trainer, GivingTheArenaBackChangesNothing) {
  Trainer trainer = mlp_trainer();
  const DataSet data = synthetic_for(trainer.model(), 8, 1);
  trainer.run(data);
  const Checkpoint before = trainer.checkpoint();
  bool called = false;
  trainer.without_arena([&](const graph::Graph& g) { called = !g.data.empty(); });
  EXPECT_TRUE(called);
  EXPECT_EQ(trainer.checkpoint(), before);
}

TEST(Evaluator, CountsRealSamplesOnly) {
  const ModelOptions o = reference_options();
  InferenceModel m = make_inference_model(onnx::make("mlp", 4), o);
  choose_plan(m.prepared, {}, o);
  Evaluator evaluator(std::move(m));
  const TrainingModel t = mlp(o);
  const DataSet data = synthetic_for(t, 10, 5);
  const Evaluation r = evaluator.evaluate(data);
  EXPECT_EQ(r.samples, 10);
  EXPECT_EQ(r.planned_peak, r.measured_peak);
  EXPECT_NEAR(r.loss, std::log(10), 2);
  // By hand: sample after sample, each repeated over a whole batch.
  std::int64_t correct = 0;
  const auto width = static_cast<std::size_t>(data.sample_elements());
  std::vector<float> batch(4 * width);
  for (std::int64_t i = 0; i < 10; ++i) {
    for (std::size_t k = 0; k < 4; ++k) data.write_sample(i, std::span(batch).subspan(k * width, width));
    const std::vector<float> out = evaluator.infer(batch);
    const auto best = std::max_element(out.begin(), out.begin() + 10) - out.begin();
    correct += best == data.labels[static_cast<std::size_t>(i)] ? 1 : 0;
  }
  EXPECT_EQ(r.correct, correct);
}

}  // namespace
}  // namespace neaptide::session
