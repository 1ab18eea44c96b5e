#include "bench/planner/groups.hpp"

#include <fmt/core.h>

#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include "bench/planner/max_batch.hpp"
#include "bench/planner/synthetic.hpp"
#include "neaptide/base/errors.hpp"
#include "neaptide/memory/csv.hpp"
#include "neaptide/memory/memory.hpp"
#include "neaptide/memory/mxnet.hpp"
#include "neaptide/plan/forced.hpp"
#include "neaptide/plan/planners/neaptide.hpp"
#include "neaptide/plan/simulate.hpp"

namespace neaptide::bench {
namespace {

using plan::DeviceId;
using plan::Options;
using plan::Problem;

constexpr double kGib = 1073741824.0;

Bytes part_of_peak(const Problem& p, double part) {
  const Bytes peak = simulate(p, keep_all_steps(p)).peak[DeviceId(0)];
  return static_cast<Bytes>(std::ceil(part * static_cast<double>(peak)));
}

/// `keep_order`: whether the references do.
Options with_budget(const Settings& settings, const Problem& p, std::size_t device, Bytes budget,
                    bool keep_order = false) {
  Options o = settings.options();
  if (settings.keep_order.value_or(keep_order)) o.switches["order"] = "off";
  o.budgets[p.devices[DeviceId(device)].name] = budget;
  return o;
}

// ---------------------------------------------------------------------------------------------------------------------

struct CheckmateRow {
  const char* name;
  double budget;     // a part of the keep-all peak
  double reference;  // best known overhead in percent; negative: infeasible, NaN: none known
  bool proved;       // that is the optimum
};

void run_checkmate(const Settings& settings) {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  const std::vector<CheckmateRow> rows = {
      {"checkmate_VGG16_train", .90, 1.968, true},         {"checkmate_VGG16_train", .80, -1, true},
      {"checkmate_VGG19_train", .90, 0.104, true},         {"checkmate_VGG19_train", .80, 2.756, true},
      {"checkmate_vgg_unet_train", .90, 1.129, true},      {"checkmate_vgg_unet_train", .80, 1.984, true},
      {"checkmate_vgg_unet_train", .65, 3.661, true},      {"checkmate_vgg_unet_train", .50, 6.967, true},
      {"checkmate_vgg_unet_train", .42, 11.256, true},     {"checkmate_MobileNet_train", .90, kUnknown, false},
      {"checkmate_MobileNet_train", .80, 0.370, true},     {"checkmate_MobileNet_train", .70, kUnknown, false},
      {"checkmate_MobileNet_train", .60, kUnknown, false}, {"checkmate_MobileNet_train", .50, 1.635, true},
      {"checkmate_MobileNet_train", .40, kUnknown, false}, {"checkmate_MobileNet_train", .30, 4.112, false},
      {"checkmate_ResNet50_train", .90, 0.108, true},      {"checkmate_ResNet50_train", .80, 0.279, true},
      {"checkmate_ResNet50_train", .70, kUnknown, false},  {"checkmate_ResNet50_train", .60, kUnknown, false},
      {"checkmate_ResNet50_train", .50, 1.499, true},      {"checkmate_ResNet50_train", .40, kUnknown, false},
      {"checkmate_ResNet50_train", .30, 3.768, false},     {"random_layered_n100", .90, 0.789, true},
      {"random_layered_n100", .80, 2.296, true},           {"random_layered_n250", .90, 0.904, true},
      {"random_layered_n250", .80, 4.261, false},
  };
  Table t("checkmate", "every known optimum found and proved, these rows together in 2 s; other rows: gap at most 0.1");
  Seconds together = 0;
  for (const CheckmateRow& row : rows) {
    const auto p = settings.instance(row.name);
    if (!p) continue;
    const Result r = solve(*p, with_budget(settings, *p, 0, part_of_peak(*p, row.budget), true));
    if (row.proved) together += r.plan.seconds_spent;
    std::optional<bool> passed;
    std::string reference = "-";
    if (row.reference < 0) {
      passed = !r.found();
      reference = "infeasible";
    } else if (!std::isnan(row.reference)) {
      const bool good = r.found() && r.overhead() <= row.reference + 5.1e-4;
      passed = good && (row.proved ? r.plan.status == plan::Status::kOptimal : r.gap() <= 0.1);
      reference = fmt::format("{:.3f}{}", row.reference, row.proved ? " optimal" : "");
    }
    t.row(r, {row.name, fmt::format("{:.2f}", row.budget), Unit::kPercent, reference}, passed);
  }
  if (together > 0) t.line(fmt::format("rows with a known optimum: {:.2f} s together", together), together <= 2);
  t.verdict();
}

// ---------------------------------------------------------------------------------------------------------------------

struct MonetRow {
  const char* name;
  double gib;
  double objective;  // published; 0: infeasible
  double bound;      // of their formulation
};

void run_monet(const Settings& settings) {
  const std::vector<MonetRow> rows = {
      {"monet_resnet50_b184_full", 5, 0.98160, 0.94377},
      {"monet_resnet50_b184_full", 6, 0.96105, 0.93693},
      {"monet_resnet50_b184_full", 7, 0.94174, 0.92791},
      {"monet_resnet50_b184_full", 8, 0.92522, 0.91604},
      {"monet_resnet50_b184_full", 9, 0.91542, 0.90940},
      {"monet_resnet50_b184_full", 10, 0.90517, 0.90423},
      {"monet_resnet50_b184_plain", 5, 1.22812, 1.12518},
      {"monet_resnet50_b184_plain", 6, 1.13578, 1.12063},
      {"monet_resnet50_b184_plain", 7, 1.12154, 1.10773},
      {"monet_resnet50_b184_plain", 8, 1.10355, 1.09808},
      {"monet_resnet50_b184_plain", 9, 1.09042, 1.09042},
      {"monet_resnet50_b184_plain", 10, 1.08048, 1.08048},
      {"monet_vgg16_b176_full", 5.5, 1.54023, 1.54023},
      {"monet_vgg16_b176_full", 6, 1.49129, 1.49129},
      {"monet_vgg16_b176_full", 7, 1.43866, 1.43866},
      {"monet_vgg16_b176_full", 8, 1.38333, 1.38333},
      {"monet_vgg16_b176_full", 9, 1.32917, 1.32917},
      {"monet_vgg16_b176_full", 10, 1.32400, 1.32400},
      {"monet_vgg16_b176_plain", 7, 0, 0},
      {"monet_vgg16_b176_plain", 8, 2.55828, 2.55828},
      {"monet_vgg16_b176_plain", 9, 2.51383, 2.51383},
      {"monet_vgg16_b176_plain", 10, 2.50600, 2.50600},
  };
  constexpr Seconds kLimit = 55, kRounding = 5e-6;
  Table t("monet",
          "objective and, where the order is kept, bound at least as good as 24 h of Gurobi, within 60 s each");
  for (const MonetRow& row : rows) {
    const auto p = settings.instance(row.name);
    if (!p) continue;
    plan::Options o = with_budget(settings, *p, 0, static_cast<Bytes>(row.gib * kGib));
    if (settings.effort == 0) o.time_limit = std::min(o.time_limit, kLimit);
    const Result r = solve(*p, o);
    const bool bound = !settings.keep_order.value_or(false) || row.objective == 0 ||
                       r.plan.lower_bound->seconds >= row.bound - kRounding;
    const bool passed =
        bound && (row.objective == 0 ? !r.found() : r.found() && r.plan.cost.seconds <= row.objective + kRounding);
    t.row(r,
          {row.name, fmt::format("{:g} GiB", row.gib), Unit::kSeconds,
           row.objective == 0 ? "infeasible" : fmt::format("{:.5f}, their bound {:.5f}", row.objective, row.bound)},
          passed);
  }
  t.verdict();
}

// ---------------------------------------------------------------------------------------------------------------------

struct DtrRow {
  const char* name;
  double budget;
  double online, known;  // percent
};

void run_dtr(const Settings& settings) {
  const std::vector<DtrRow> rows = {
      {"dtr_resnet32_b56", .90, 1.314, 1.224},      {"dtr_resnet32_b56", .80, 2.483, 2.397},
      {"dtr_resnet32_b56", .70, 4.626, 3.657},      {"dtr_resnet32_b56", .50, 10.678, 9.072},
      {"dtr_resnet32_b56", .30, 17.825, 16.834},    {"dtr_densenet121_b84", .90, 2.582, 1.905},
      {"dtr_densenet121_b84", .80, 6.378, 3.601},   {"dtr_densenet121_b84", .70, 10.356, 5.256},
      {"dtr_densenet121_b84", .50, 17.635, 13.559}, {"dtr_densenet121_b84", .30, 42.579, 19.259},
  };
  Table t("dtr", "first plan within 2 s, no worse than the best known, gap at most 0.3 points at .50");
  for (const DtrRow& row : rows) {
    const auto p = settings.instance(row.name);
    if (!p) continue;
    const Result r = solve(*p, with_budget(settings, *p, 0, part_of_peak(*p, row.budget)));
    const bool close = row.budget != .50 || r.gap() <= 0.3;
    t.row(r,
          {row.name, fmt::format("{:.2f}", row.budget), Unit::kPercent,
           fmt::format("{:.3f} (online DTR {:.3f})", row.known, row.online)},
          r.found() && r.first_plan <= 2 && r.overhead() <= row.known + 5e-4 && close);
  }
  t.verdict();
}

void run_transformers(const Settings& settings) {
  Table t("transformers", "first plan within 2 s, gap at most 0.3 points at .50");
  for (const int layers : {42, 104, 209, 417}) {
    const Problem p = transformer(layers);
    for (const double part : {0.5, 0.3}) {
      const Result r = solve(p, with_budget(settings, p, 0, part_of_peak(p, part)));
      std::optional<bool> passed = r.found() && r.first_plan <= 2 && (part != 0.5 || r.gap() <= 0.3);
      if (layers > 209) passed = r.found();  // 20,000 ops: must work
      t.row(r, {fmt::format("transformer, {} ops", p.ops.size()), fmt::format("{:.2f}", part), Unit::kPercent, "-"},
            passed);
    }
  }
  t.verdict();
}

void run_chains(const Settings& settings) {
  Table t("chains", "the closed form of binomial checkpointing at every number of slots");
  constexpr std::int64_t kLongest = 500'000;  // steps
  for (const int length : {16, 64, 256, 1024, 4096}) {
    const Problem p = uniform_chain(length);
    int n = 0, n_equal = 0;
    Seconds slowest = 0;
    for (int slots = 1; slots < length; slots = slots < 8 ? slots + 1 : slots * 3 / 2) {
      const std::int64_t optimum = binomial_seconds(length, slots);
      if (optimum > kLongest) continue;
      Options o = with_budget(settings, p, 0, slots + 2);
      if (settings.effort == 0) o.effort = 200'000;
      o.switches["bound"] = "off";
      const Result r = solve(p, o);
      ++n;
      n_equal += r.found() && r.plan.cost.seconds == static_cast<double>(optimum) ? 1 : 0;
      slowest = std::max(slowest, r.plan.seconds_spent);
    }
    t.line(fmt::format("chain of {:4} steps, {:2} numbers of slots: {:2} equal, slowest {:.2f} s", length, n, n_equal,
                       slowest),
           n == n_equal);
  }
  t.verdict();
}

// ---------------------------------------------------------------------------------------------------------------------

/// Everything on one device; infinity where it does not fit or something cannot run there.
Seconds single_device(const Problem& p, std::size_t device) {
  Problem only = p;
  for (std::size_t i = 0; i < only.ops.size(); ++i) {
    std::erase_if(only.ops[plan::OpId(i)].impls, [&](const plan::Impl& k) { return k.device.index() != device; });
    if (only.ops[plan::OpId(i)].impls.empty()) return std::numeric_limits<double>::infinity();
  }
  const plan::Plan best = plan::make_plan(only, "neaptide", {});
  return best.infeasible ? std::numeric_limits<double>::infinity() : best.cost.seconds;
}

void run_placement(const Settings& settings) {
  constexpr Bytes kAccelerator = 629145600;
  constexpr Seconds kXengine = 20;
  Table t("placement", "never worse than the best single device, the best window, nor xengine; gap at most 0.1 points");
  for (const auto& [name, window] : {std::pair{"placement_bert24_layers_inference", 0.53931925},
                                     std::pair{"placement_bert_l-3_ops_inference", 0.49460194}}) {
    auto p = settings.instance(name);
    if (!p) continue;
    const Options o = with_budget(settings, *p, 1, kAccelerator);
    const Result r = solve(*p, o);
    const Problem bounded = plan::with_options(*p, o);
    const Seconds single = std::min(single_device(bounded, 0), single_device(bounded, 1));
    Options theirs = o;
    theirs.time_limit = std::min(settings.time_limit, kXengine);
    theirs.effort = 0;
    theirs.diagnose = false;
    const plan::Plan x = plan::make_plan(*p, "xengine", theirs);
    const Seconds xengine = x.infeasible ? std::numeric_limits<double>::infinity() : x.cost.seconds;
    t.row(r,
          {name, "600 MiB", Unit::kSeconds,
           fmt::format("window {:.5f}, single device {:.5f}, xengine {:.5f} after {:.0f} s", window, single, xengine,
                       x.seconds_spent)},
          r.found() && r.plan.cost.seconds <= std::min({window, single, xengine}) && r.gap() <= 0.1);
  }
  t.verdict();
}

// ---------------------------------------------------------------------------------------------------------------------

void run_minimalloc(const Settings& settings) {
  Table t("minimalloc", "all files solved, 5 s in total");
  Seconds total = 0;
  bool any = false;
  for (const char* name : {"A", "C", "D", "E", "J"}) {
    const auto path = settings.file(fmt::format("minimalloc/{}.1048576.csv", name));
    if (!path) continue;
    any = true;
    const memory::CsvBlocks csv = memory::read_csv(*path);
    memory::PackOptions o;
    o.capacity = 1048576;
    o.time_limit = 60;
    const auto begin = std::chrono::steady_clock::now();
    const memory::Offsets packed = memory::pack(csv.blocks, o);
    const double spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    total += spent;
    t.line(fmt::format("{:2} {:4} blocks, load {:7}, top {:7}, {:.2f} s", name, csv.blocks.size(),
                       memory::load(csv.blocks), packed.top, spent),
           packed.top <= 1048576);
  }
  if (any)
    t.line(fmt::format("total {:.2f} s (minimalloc itself, elsewhere, says the README of the instances: 9.4 s)", total),
           total <= 5);
  t.verdict();
}

struct MxnetRow {
  const char* name;
  double bars[4];  // GiB: naive, in place, co-share, both
  double to_beat;  // 0: none
};

void mxnet_bars(Table* t, const MxnetRow& row, const Problem& p) {
  const memory::MxnetOptions kinds[4] = {
      {}, {.in_place = true}, {.co_share = true}, {.in_place = true, .co_share = true}};
  std::string text = fmt::format("{:28}", row.name);
  bool close = true;
  for (int k = 0; k < 4; ++k) {
    const double gib = static_cast<double>(memory::mxnet_blocks(p, kinds[k]).total) / kGib;
    text += fmt::format("  {:.3f} ({:.3f})", gib, row.bars[k]);
    close = close && std::abs(gib / row.bars[k] - 1) <= 0.02;
  }
  t->line(text, close);
}

/// The smallest budget at which the plan also packs, from `least` up.
std::optional<std::pair<Bytes, plan::Plan>> smallest_packed(const Problem& p, const Options& options, Bytes least) {
  for (Bytes budget = least; budget < 2 * least; budget += least / 200) {
    Options o = options;
    o.budgets[p.devices[DeviceId(0)].name] = budget;
    plan::Plan packed = memory::plan_and_pack(p, "neaptide", o);
    if (!packed.infeasible) return std::pair{budget, std::move(packed)};
  }
  return std::nullopt;
}

/// Below what fits without recomputation, evenly down to what fits at all: extra time, and what is proved of it.
void mxnet_curve(Table* t, const Settings& settings, const Problem& p, Bytes most, Seconds base) {
  constexpr int kPoints = 6;
  Options o = settings.options();
  o.time_limit = std::min(settings.time_limit, 20.0);
  const Bytes least = plan::smallest_budget(p, o);
  std::string curve = "  with recomputation:";
  for (int k = 1; k <= kPoints; ++k) {
    const Bytes budget = most - (most - least) / kPoints * k;
    o.budgets[p.devices[DeviceId(0)].name] = budget;
    const plan::Plan plan = memory::plan_and_pack(p, "neaptide", o);
    curve += fmt::format("  {:.3f} GiB", static_cast<double>(budget) / kGib);
    curve += plan.infeasible ? " none"
                             : fmt::format(" +{:.1f} (>= {:.1f}) %", 100 * (plan.cost.seconds / base - 1),
                                           100 * (plan.lower_bound->seconds / base - 1));
  }
  curve += fmt::format("; proved: none below {:.3f}", static_cast<double>(smallest_peak(p, DeviceId(0)).bytes) / kGib);
  t->line(curve, std::nullopt);
}

void mxnet_ours(Table* t, const Settings& settings, const MxnetRow& row, const Problem& p) {
  Problem once = p;
  for (std::size_t i = 0; i < once.ops.size(); ++i) once.ops[plan::OpId(i)].once = true;
  Options o = settings.options();
  o.time_limit = std::min(settings.time_limit, 20.0);
  if (o.effort == 0) o.effort = 2'000'000;
  const auto found = smallest_packed(once, o, plan::smallest_budget(once, o));
  const Bytes top = found ? found->second.layout->top[DeviceId(0)] : 0;
  const Bytes proved = plan::smallest_peak(once, DeviceId(0)).bytes;
  t->line(fmt::format("{:28}  no recomputation, packed: {:.3f} GiB, to beat {:.3f}; proved: not below {:.3f}{}",
                      row.name, static_cast<double>(top) / kGib, row.to_beat, static_cast<double>(proved) / kGib,
                      proved == top ? ", so optimal" : ""),
          found && static_cast<double>(top) / kGib <= row.to_beat + 5e-4);
  if (found) mxnet_curve(t, settings, p, top, found->second.cost.seconds);
}

void run_mxnet(const Settings& settings) {
  const std::vector<MxnetRow> rows = {
      {"mxnet_googlenet_b64_forward", {2.167, 1.395, 0.498, 0.486}, 0},
      {"mxnet_vgga_b64_forward", {3.911, 2.136, 1.576, 0.978}, 0},
      {"mxnet_googlenet_b64_train", {5.259, 4.272, 2.496, 2.403}, 1.638},
      {"mxnet_vgga_b64_train", {7.867, 6.079, 5.439, 4.682}, 2.909},
  };
  Table t("mxnet", "the bars of figure 7 (naive, in-place, co-share, both; in GiB) within 2 %; ours below the best");
  for (const MxnetRow& row : rows) {
    const auto p = settings.instance(row.name);
    if (!p) continue;
    mxnet_bars(&t, row, *p);
    if (row.to_beat > 0) mxnet_ours(&t, settings, row, *p);
  }
  t.verdict();
}

void run_batches(const Settings& settings) { run_max_batch(settings.effort); }

}  // namespace

std::span<const Group> groups() {
  static constexpr Group kGroups[] = {
      {"chains", run_chains},     {"checkmate", run_checkmate},   {"dtr", run_dtr},
      {"max-batch", run_batches}, {"minimalloc", run_minimalloc}, {"monet", run_monet},
      {"mxnet", run_mxnet},       {"placement", run_placement},   {"transformers", run_transformers},
  };
  return kGroups;
}

}  // namespace neaptide::bench
