// The public instances: keep-all must have the peak and the time that each file states as its reference.
#include <gtest/gtest.h>

#include "neaptide/base/files.hpp"
#include "neaptide/base/json.hpp"
#include "neaptide/plan/forced.hpp"
#include "neaptide/plan/planner.hpp"
#include "neaptide/plan/simulate.hpp"
#include "tests/plan/shared_data.hpp"
#include "tests/plan/tight.hpp"

namespace neaptide::plan {
namespace {

class Instance : public ::testing::TestWithParam<const char*> {};

TEST_P(Instance, KeepAllHasTheStatedPeakAndTime) {
  const std::string file = std::string("instances/") + GetParam() + ".json";
  NEAPTIDE_NEEDS_SHARED(file);
  const std::string text = read_maybe_gzip(shared_path(file));
  const Json reference = parse_json(text, file)["reference"];
  Problem problem = problem_from_json(text, file);
  for (Device& d : problem.devices) d.budget.reset();
  const Simulation sim = simulate(problem, keep_all_steps(problem));
  if (reference.contains("peak") && reference["peak"].is_number()) {
    EXPECT_EQ(sim.peak[DeviceId(0)], reference["peak"].get<Bytes>());
  }
  if (reference.contains("total_seconds") && reference["total_seconds"].is_number()) {
    EXPECT_NEAR(sim.cost.seconds, reference["total_seconds"].get<double>(), 1e-9);
  }
  if (reference.contains("min_need") && reference["min_need"].is_number()) {
    EXPECT_LE(largest_working_set(problem), reference["min_need"].get<Bytes>());
    EXPECT_GE(smallest_peak(problem, DeviceId(0)).bytes, largest_working_set(problem));
    EXPECT_LE(smallest_peak(problem, DeviceId(0)).bytes, sim.peak[DeviceId(0)]);
  }
}

std::string test_name(const ::testing::TestParamInfo<const char*>& instance) {
  std::string name = instance.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Public, Instance,
                         ::testing::Values("checkmate_VGG16_train", "checkmate_VGG19_train", "checkmate_vgg_unet_train",
                                           "checkmate_MobileNet_train", "checkmate_ResNet50_train",
                                           "random_layered_n100", "random_layered_n250", "monet_resnet50_b184_plain",
                                           "monet_resnet50_b184_full", "monet_vgg16_b176_full",
                                           "monet_vgg16_b176_plain", "dtr_resnet32_b56", "dtr_densenet121_b84",
                                           "placement_bert24_layers_inference", "placement_bert_l-3_ops_inference",
                                           "mxnet_googlenet_b64_train", "mxnet_vgga_b64_forward"),
                         test_name);

}  // namespace
}  // namespace neaptide::plan
