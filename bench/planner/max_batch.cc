#include "bench/planner/max_batch.hpp"

#include <fmt/core.h>

#include <cstdio>
#include <string>

#include "bench/planner/keras_networks.hpp"
#include "neaptide/plan/certify.hpp"
#include "neaptide/plan/max_batch.hpp"
#include "neaptide/plan/simulate.hpp"

namespace neaptide::bench {
namespace {

struct Row {
  Network network;
  const char* published;
};

plan::BatchQuestion question(const Network& n, const char* planner, std::int64_t effort) {
  plan::BatchQuestion q;
  q.problem = [&n](std::int64_t batch) { return training_problem(n, batch); };
  q.most = [&n](const plan::Problem&) { return static_cast<double>(cost_cap(n)); };
  q.make = [planner](const plan::Problem& p, const plan::Options& o) {
    plan::Options without_switches = o;
    if (planner != std::string("neaptide")) without_switches.switches.clear();
    return plan::make_plan(p, planner, without_switches);
  };
  q.options.effort = effort;
  q.options.time_limit = 120;
  q.options.switches["order"] = "off";  // the published figures keep the order
  return q;
}

/// The largest batch at which everything that a layer made is held to the end, as the published keep-all does.
std::int64_t keep_all_batch(const Network& n) {
  const plan::Problem one = held_problem(n, 1);
  const plan::DeviceId gpu(0);
  return *one.devices[gpu].budget / simulate(one, keep_all_steps(one)).peak[gpu];
}

void print_row(const Row& row, std::int64_t effort) {
  const Network& n = row.network;
  const auto baseline = [&](const char* planner) {
    plan::BatchQuestion q = question(n, planner, effort);
    return plan::max_batch(q).batch;
  };
  const plan::MaxBatch ours = plan::max_batch(question(n, "neaptide", effort));
  const auto overhead = [&](double cost) { return 100 * (cost / static_cast<double>(n.total()) - 1); };
  const double bound = ours.plan.lower_bound ? ours.plan.lower_bound->seconds : 0;
  const bool certified = ours.plan.lower_bound && plan::certify(ours.problem, *ours.plan.lower_bound).ok;
  fmt::print("{:10} {:>6} {:>11} {:>9} {:>9} {:>6} {:>6} {:>8.3f} {:>8.3f} {:>8.1f}{}\n", n.name, ours.batch,
             ours.impossible ? fmt::format("< {}", *ours.impossible) : "-", row.published, keep_all_batch(n),
             baseline("chen-sqrt"), baseline("chen-greedy"), overhead(ours.plan.cost.seconds), overhead(bound),
             ours.seconds_spent, certified ? "" : "  (bound not certified)");
  std::fflush(stdout);
}

}  // namespace

void run_max_batch(std::int64_t effort) {
  fmt::print("\nlargest batch in 16e9 bytes for at most two forward passes and one backward, 224x224\n");
  fmt::print("(layers as in Keras; MobileNet and ResNet50 are reconstructions, padding layers included)\n");
  fmt::print("{:10} {:>6} {:>11} {:>9} {:>9} {:>6} {:>6} {:>8} {:>8} {:>8}\n", "network", "ours", "proved", "published",
             "keep-all", "sqrt", "greedy", "ovhd %", "bound %", "seconds");
  for (const Row& row : {Row{vgg16(), "-"}, Row{vgg19(), "289"}, Row{mobilenet(), "1105"}, Row{resnet50(), "193"}}) {
    print_row(row, effort);
  }
}

}  // namespace neaptide::bench
