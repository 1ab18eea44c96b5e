// What the default planner finds and proves on the public instances, beside the best known figures.
//
//   bench_planner [EFFORT]        # ticks per row; 0: the planner's default
//
// Reads ../shared/instances beside the repository, or $NEAPTIDE_SHARED/instances; says so and skips what is absent.
// Overheads are percent of the time without recomputation (keep-all); where implementations can be chosen, seconds.
#include <fmt/core.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/planner/max_batch.hpp"
#include "neaptide/base/errors.hpp"
#include "neaptide/plan/certify.hpp"
#include "neaptide/plan/planner.hpp"
#include "neaptide/plan/simulate.hpp"

namespace {

using namespace neaptide;
using namespace neaptide::plan;

std::int64_t effort = 0;

std::string shared_folder() {
  const char* given = std::getenv("NEAPTIDE_SHARED");
  return given != nullptr ? std::string(given) + "/instances/" : NEAPTIDE_SOURCE_DIR "/../shared/instances/";
}

enum class Unit { kOverhead, kSeconds };

void print_row(const std::string& name, const std::string& budget, const Problem& problem, const Options& options,
               Unit unit, const std::string& reference) {
  const Plan plan = make_plan(problem, "neaptide", options);
  if (plan.infeasible) {
    fmt::print("{:34} {:>9} {:>12} {:>12} {:>9} {:>7.2f}  {}\n", name, budget, "infeasible", "-", "-",
               plan.seconds_spent, reference);
    return;
  }
  const Seconds base = simulate(problem, keep_all_steps(problem)).cost.seconds;
  const auto show = [&](Seconds s) {
    return unit == Unit::kSeconds ? fmt::format("{:.6f}", s) : fmt::format("{:.4f}", 100 * (s / base - 1));
  };
  const bool certified = certify(with_options(problem, options), *plan.lower_bound).ok;
  fmt::print("{:34} {:>9} {:>12} {:>12} {:>8.4f}% {:>7.2f}  {}{}\n", name, budget, show(plan.cost.seconds),
             show(plan.lower_bound->seconds), 100 * plan.gap.value_or(0), plan.seconds_spent, reference,
             certified ? "" : "  (bound not certified)");
  std::fflush(stdout);
}

/// An instance of the shared folder; nothing when it is absent.
std::optional<Problem> instance(const std::string& name) {
  const std::string path = shared_folder() + name + ".json";
  if (std::filesystem::exists(path)) return read_problem(path);
  fmt::print("{:34} skipped: {} is absent\n", name, path);
  return std::nullopt;
}

Options with_budget(const Problem& problem, std::size_t device, Bytes budget) {
  Options o;
  o.budgets[problem.devices[DeviceId(device)].name] = budget;
  o.effort = effort;
  return o;
}

struct Row {
  const char* name;
  double budget;  // below 1: a part of the keep-all peak; below 100: GiB
  Unit unit;
  const char* reference;
  const char* order;  // "off" where the reference fixes the order
};

void run_instances() {
  const std::vector<Row> rows = {
      {"checkmate_VGG16_train", .90, Unit::kOverhead, "1.968", "off"},
      {"checkmate_VGG16_train", .80, Unit::kOverhead, "infeasible", "off"},
      {"checkmate_VGG19_train", .90, Unit::kOverhead, "0.104", "off"},
      {"checkmate_VGG19_train", .80, Unit::kOverhead, "2.756", "off"},
      {"checkmate_vgg_unet_train", .90, Unit::kOverhead, "1.129", "off"},
      {"checkmate_vgg_unet_train", .80, Unit::kOverhead, "1.984", "off"},
      {"checkmate_vgg_unet_train", .65, Unit::kOverhead, "3.661", "off"},
      {"checkmate_vgg_unet_train", .50, Unit::kOverhead, "6.967", "off"},
      {"checkmate_vgg_unet_train", .42, Unit::kOverhead, "11.256", "off"},
      {"checkmate_MobileNet_train", .80, Unit::kOverhead, "0.370", "off"},
      {"checkmate_MobileNet_train", .50, Unit::kOverhead, "1.635", "off"},
      {"checkmate_MobileNet_train", .30, Unit::kOverhead, "4.112", "off"},
      {"checkmate_ResNet50_train", .90, Unit::kOverhead, "0.108", "off"},
      {"checkmate_ResNet50_train", .80, Unit::kOverhead, "0.279", "off"},
      {"checkmate_ResNet50_train", .50, Unit::kOverhead, "1.499", "off"},
      {"checkmate_ResNet50_train", .30, Unit::kOverhead, "3.768", "off"},
      {"random_layered_n100", .90, Unit::kOverhead, "0.789", "off"},
      {"random_layered_n100", .80, Unit::kOverhead, "2.296", "off"},
      {"random_layered_n250", .90, Unit::kOverhead, "0.904", "off"},
      {"random_layered_n250", .80, Unit::kOverhead, "4.261", "off"},
      {"random_layered_n100", .80, Unit::kOverhead, "2.296 in the given order", "on"},
      {"random_layered_n250", .80, Unit::kOverhead, "4.261 in the given order", "on"},
      {"monet_resnet50_b184_full", 5, Unit::kSeconds, "0.98160", "on"},
      {"monet_resnet50_b184_full", 8, Unit::kSeconds, "0.92522", "on"},
      {"monet_resnet50_b184_full", 10, Unit::kSeconds, "0.90517", "on"},
      {"monet_resnet50_b184_plain", 5, Unit::kSeconds, "1.22812", "on"},
      {"monet_resnet50_b184_plain", 8, Unit::kSeconds, "1.10355", "on"},
      {"monet_vgg16_b176_full", 6, Unit::kSeconds, "1.49129", "on"},
      {"monet_vgg16_b176_full", 8, Unit::kSeconds, "1.38333", "on"},
      {"monet_vgg16_b176_plain", 8, Unit::kSeconds, "2.55828", "on"},
      {"dtr_resnet32_b56", .50, Unit::kOverhead, "9.072 (online DTR 10.678)", "on"},
      {"dtr_resnet32_b56", .30, Unit::kOverhead, "16.834 (online DTR 17.825)", "on"},
      {"dtr_densenet121_b84", .50, Unit::kOverhead, "13.559 (online DTR 17.635)", "on"},
      {"dtr_densenet121_b84", .30, Unit::kOverhead, "19.259 (online DTR 42.579)", "on"},
  };
  for (const Row& row : rows) {
    const std::optional<Problem> p = instance(row.name);
    if (!p) continue;
    const Bytes peak = simulate(*p, keep_all_steps(*p)).peak[DeviceId(0)];
    const bool part = row.budget < 1;
    const Bytes budget = static_cast<Bytes>(std::ceil(row.budget * (part ? static_cast<double>(peak) : 1073741824.0)));
    Options o = with_budget(*p, 0, budget);
    o.switches["order"] = row.order;
    print_row(row.name, part ? fmt::format("{:.2f}", row.budget) : fmt::format("{:g} GiB", row.budget), *p, o, row.unit,
              row.reference);
  }
  for (const auto& [name, reference] : {std::pair{"placement_bert24_layers_inference", "0.539319 (one window)"},
                                        std::pair{"placement_bert_l-3_ops_inference", "0.494602 (one window)"}}) {
    if (const auto p = instance(name)) {
      print_row(name, "600 MiB", *p, with_budget(*p, 1, 629145600), Unit::kSeconds, reference);
    }
  }
}

Impl simple(Seconds seconds, std::vector<BufferId> reads, BufferId write) {
  Impl i;
  i.name = "i";
  i.device = DeviceId(0);
  i.seconds = seconds;
  i.reads = std::move(reads);
  i.writes = {write};
  return i;
}

Problem one_device(const char* name) {
  Problem p;
  p.name = name;
  p.devices.push_back({"d", std::nullopt, 1});
  return p;
}

void append(Problem* p, const std::string& name, bool once, Impl impl) {
  p->order.push_back(p->ops.push_back({name, once, {std::move(impl)}}));
}

/// f1..fl from a homed input, then backward steps bl..b1; the step back over i reads what went into it. Unit sizes.
Problem uniform_chain(int length) {
  Problem p = one_device("chain");
  const auto buffer = [&](const std::string& name) {
    return p.buffers.push_back({name, 1, std::nullopt, false, false});
  };
  std::vector<BufferId> values{buffer("x")};
  p.buffers[values[0]].home = DeviceId(0);
  for (int i = 1; i < length; ++i) {
    values.push_back(buffer(fmt::format("a{}", i)));
    append(&p, fmt::format("f{}", i), false, simple(1, {values[values.size() - 2]}, values.back()));
  }
  BufferId gradient;
  for (int i = length; i >= 1; --i) {
    const BufferId out = buffer(fmt::format("g{}", i));
    std::vector<BufferId> reads{values[static_cast<std::size_t>(i) - 1]};
    if (gradient.valid()) reads.push_back(gradient);
    append(&p, fmt::format("b{}", i), true, simple(1, std::move(reads), out));
    gradient = out;
  }
  p.buffers[gradient].keep = true;
  return p;
}

/// Forward steps that binomial checkpointing needs for `length` steps with `slots` checkpoints, the input among them:
/// r l - C(s + r, s + 1) with the smallest r such that C(s + r, s) >= l; one advance per step back is part of the step.
std::int64_t binomial_steps(std::int64_t length, std::int64_t slots) {
  const auto choose = [](std::int64_t n, std::int64_t k) {
    std::int64_t c = 1;
    for (std::int64_t i = 1; i <= k; ++i) c = c * (n - k + i) / i;
    return c;
  };
  std::int64_t r = 0;
  while (choose(slots + r, slots) < length) ++r;
  return r * length - choose(slots + r, slots + 1);
}

void run_chains() {
  for (const auto& [length, slots] : {std::pair{20, 4}, std::pair{50, 5}, std::pair{100, 6}}) {
    const Problem p = uniform_chain(length);
    // The checkpoints (the input is one), the value a step back reads beside them is a checkpoint too, and two
    // gradients.
    const Options o = with_budget(p, 0, slots + 2);
    print_row(fmt::format("uniform chain, {} steps", length), fmt::format("{}", slots + 2), p, o, Unit::kSeconds,
              fmt::format("{} (binomial)", binomial_steps(length, slots) + length));
  }
}

/// Layers of attention and feed-forward ops as a training step; about 40 ops a layer.
Problem transformer(int layers) {
  Problem p = one_device("transformer");
  const auto buffer = [&](const std::string& name, Bytes bytes) {
    return p.buffers.push_back({name, bytes, std::nullopt, false, false});
  };
  struct Forward {
    std::vector<BufferId> reads;
    BufferId out;
    Seconds seconds;
    Bytes bytes;
  };
  std::vector<Forward> forward;
  BufferId x = buffer("x", 4 << 20);
  p.buffers[x].home = DeviceId(0);
  const auto add = [&](const std::string& name, std::vector<BufferId> reads, Bytes bytes, Seconds seconds) {
    const BufferId out = buffer(name, bytes);
    append(&p, name, false, simple(seconds, reads, out));
    forward.push_back({std::move(reads), out, seconds, bytes});
    return out;
  };
  constexpr Bytes kHidden = 4 << 20, kScores = 16 << 20, kWide = 16 << 20;
  for (int l = 0; l < layers; ++l) {
    const std::string at = fmt::format("l{}.", l);
    const BufferId n1 = add(at + "norm1", {x}, kHidden, 2e-4);
    const BufferId q = add(at + "q", {n1}, kHidden, 1e-3), k = add(at + "k", {n1}, kHidden, 1e-3);
    const BufferId v = add(at + "v", {n1}, kHidden, 1e-3);
    const BufferId qt = add(at + "q.heads", {q}, kHidden, 1e-4), kt = add(at + "k.heads", {k}, kHidden, 1e-4);
    const BufferId vt = add(at + "v.heads", {v}, kHidden, 1e-4);
    const BufferId scores = add(at + "scores", {qt, kt}, kScores, 8e-4);
    const BufferId scaled = add(at + "scaled", {scores}, kScores, 4e-4);
    const BufferId soft = add(at + "softmax", {scaled}, kScores, 6e-4);
    const BufferId dropped = add(at + "dropout", {soft}, kScores, 4e-4);
    const BufferId mixed = add(at + "mixed", {dropped, vt}, kHidden, 8e-4);
    const BufferId merged = add(at + "merged", {mixed}, kHidden, 1e-4);
    const BufferId out = add(at + "out", {merged}, kHidden, 1e-3);
    const BufferId sum1 = add(at + "sum1", {x, out}, kHidden, 1e-4);
    const BufferId n2 = add(at + "norm2", {sum1}, kHidden, 2e-4);
    const BufferId up = add(at + "up", {n2}, kWide, 4e-3), act = add(at + "gelu", {up}, kWide, 5e-4);
    const BufferId down = add(at + "down", {act}, kHidden, 4e-3);
    x = add(at + "sum2", {sum1, down}, kHidden, 1e-4);
  }
  // Backward: the gradient of each forward op reads its inputs and the gradient of its output.
  std::vector<BufferId> gradient(p.buffers.size());
  gradient[x.index()] = buffer("loss.grad", 4 << 20);
  append(&p, "loss", true, simple(1e-4, {x}, gradient[x.index()]));
  for (auto it = forward.rbegin(); it != forward.rend(); ++it) {
    for (const BufferId in : it->reads) {
      const std::string name = fmt::format("{}.grad.{}", p.buffers[it->out].name, p.buffers[in].name);
      std::vector<BufferId> reads = it->reads;
      reads.push_back(gradient[it->out.index()]);
      BufferId part = buffer(name, p.buffers[in].bytes);
      append(&p, name, true, simple(it->seconds, std::move(reads), part));
      if (gradient[in.index()].valid()) {
        const BufferId sum = buffer(name + ".sum", p.buffers[in].bytes);
        append(&p, name + ".sum", true, simple(1e-4, {part, gradient[in.index()]}, sum));
        part = sum;
      }
      gradient[in.index()] = part;
    }
  }
  return p;
}

void run_transformers() {
  for (const int layers : {24, 96, 200}) {
    const Problem p = transformer(layers);
    const Bytes peak = simulate(p, keep_all_steps(p)).peak[DeviceId(0)];
    for (const double part : {0.5, 0.2}) {
      const Options o = with_budget(p, 0, static_cast<Bytes>(part * static_cast<double>(peak)));
      print_row(fmt::format("transformer, {} ops", p.ops.size()), fmt::format("{:.2f}", part), p, o, Unit::kOverhead,
                "-");
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc > 1) effort = std::atoll(argv[1]);
    fmt::print("{:34} {:>9} {:>12} {:>12} {:>9} {:>7}  {}\n", "problem", "budget", "ours", "bound", "gap", "seconds",
               "best known");
    run_instances();
    run_chains();
    run_transformers();
    bench::run_max_batch(effort);
  } catch (const Error& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
