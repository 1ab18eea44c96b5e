#include "neaptide/cli/max_batch.hpp"

#include <charconv>
#include <cmath>

#include "neaptide/cli/any_problem.hpp"
#include "neaptide/cli/interrupt.hpp"
#include "neaptide/cli/plan_text.hpp"
#include "neaptide/plan/max_batch.hpp"

namespace neaptide::cli {

void declare_max_batch_flags(CLI::App& app, MaxBatchFlags& f) {
  app.add_flag("--max-batch", f.asked, "find the largest batch that fits the budgets, with a proof from above");
  app.add_option("--max-cost", f.most, "with --max-batch: NUMBERx of the keep-all run of the same batch, or none")
      ->capture_default_str();
  app.add_option("--second", f.second,
                 "with --max-batch and a problem file: the same problem at another batch; sizes lie on the line "
                 "through both (without it, all that has no home grows with the batch)")
      ->type_name("FILE@BATCH");
}

namespace {

template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [rest, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  return value;
}

/// The factor of "2x"; nothing for "none".
std::optional<double> factor_of(const std::string& word) {
  if (word == "none") return std::nullopt;
  const auto factor = word.empty() || word.back() != 'x'
                          ? std::nullopt
                          : number<double>(std::string_view(word).substr(0, word.size() - 1));
  if (!factor || !std::isfinite(*factor) || *factor <= 0)
    throw UserError("--max-cost '{}' is not a multiple of the keep-all run; write 1.5x, 2x or none", word);
  return factor;
}

plan::BatchFamily family_of(const MaxBatchFlags& flags, const ModelFlags& model) {
  const plan::Problem one = session::load_problem(model.path);
  const std::int64_t batch = model.batch > 0 ? model.batch : 1;
  if (flags.second.empty()) return plan::growing_from(one, batch);
  const std::size_t at = flags.second.rfind('@');
  const auto other = at == std::string::npos ? std::nullopt : number<std::int64_t>(flags.second.substr(at + 1));
  if (!other) throw UserError("--second '{}' is not FILE@BATCH", flags.second);
  return {one, session::load_problem(flags.second.substr(0, at)), batch, *other};
}

/// Builds the problem of any batch, budgets set.
std::function<plan::Problem(std::int64_t)> builder(const MaxBatchFlags& flags, const ModelFlags& model,
                                                   const PlanFlags& plan, bool inference,
                                                   const std::map<std::string, Bytes>& budgets, Console& console) {
  plan::Options limits;
  limits.budgets = budgets;
  if (session::kind_of(model.path) == session::InputKind::kJson) {
    const plan::BatchFamily family = family_of(flags, model);
    return [family, limits](std::int64_t batch) { return plan::with_options(plan::at_batch(family, batch), limits); };
  }
  if (model.batch > 0) throw UserError("--batch fixes the batch that --max-batch looks for; give one of them");
  if (!flags.second.empty()) throw UserError("--second is for problem files; a model is lowered again for each batch");
  console.note("costs are estimated while batches are tried; plan the batch found with --batch to measure them");
  return [model, plan, inference, limits, &console](std::int64_t batch) {
    ModelFlags at = model;
    PlanFlags with = plan;
    at.batch = batch;
    at.estimate = true;
    console.progress(fmt::format("lowering the model for batch {}", batch), false);
    return plan::with_options(load_any_problem(at, with, inference, console).problem, limits);
  };
}

std::map<std::string, Bytes> budgets_in_bytes(const plan::Problem& problem, const PlanFlags& flags) {
  for (const std::string& word : flags.budgets) {
    const std::string amount = word.substr(word.find('=') == std::string::npos ? 0 : word.find('=') + 1);
    if (amount == "min" || amount.ends_with('%'))
      throw UserError("budget '{}' depends on the batch; with --max-batch write bytes, such as 800MiB", word);
  }
  return session::resolve_budgets(problem, flags.budgets, flags.planner, {});
}

std::string sentence_of(const plan::BatchProbe& p) {
  switch (p.found) {
    case plan::BatchProbe::Found::kPlan:
      return fmt::format("batch {}: a plan of {}", p.batch, format_seconds(p.cost));
    case plan::BatchProbe::Found::kImpossible:
      return fmt::format("batch {}: impossible", p.batch);
    case plan::BatchProbe::Found::kNone:
      break;
  }
  return fmt::format("batch {}: no plan found", p.batch);
}

void show(const plan::MaxBatch& m, Console& console) {
  std::string text;
  if (m.batch > 0) {
    text = fmt::format("largest batch  {}{}\n", console.painted(std::to_string(m.batch), Paint::kBold),
                       m.proved() ? ", proved" : "");
  } else {
    text = fmt::format("largest batch  {}\n", console.painted("none found", Paint::kBad));
  }
  if (m.impossible) {
    text += fmt::format("proved         no plan for {} or more: {}\n", *m.impossible, m.proof);
  } else {
    text += "proved         nothing about larger batches\n";
  }
  text += fmt::format("assumed        {}\n", m.assumption);
  text += fmt::format("tried          {} batches in {}{}\n", m.probes.size(), format_seconds(m.seconds_spent),
                      m.interrupted   ? ", until interrupted"
                      : m.out_of_time ? ", until the time ended"
                                      : "");
  console.data(text);
  if (m.batch > 0) show_plan(console, m.problem, m.plan);
}

}  // namespace

int plan_max_batch(const MaxBatchFlags& flags, const ModelFlags& model, const PlanFlags& plan,
                   const MaxBatchOutputs& outputs, Console& console) {
  const InterruptFlag interrupt;
  const std::optional<double> factor = factor_of(flags.most);
  const auto unlimited = builder(flags, model, plan, outputs.inference, {}, console);
  plan::BatchQuestion q;
  q.options = options_of(plan, console);
  if (factor && q.options.objective != plan::Objective::kTime)
    throw UserError("--max-cost counts serial seconds; it goes with --objective time");
  q.options.budgets = budgets_in_bytes(unlimited(q.first), plan);
  for (const auto& [device, bytes] : q.options.budgets)
    console.note(fmt::format("budget of {}: {} bytes ({})", device, bytes, format_bytes(bytes)));
  plan::Options limits;
  limits.budgets = q.options.budgets;
  q.problem = [&](std::int64_t batch) { return plan::with_options(unlimited(batch), limits); };
  if (factor) q.most = [&](const plan::Problem& p) { return *factor * plan::keep_all_seconds(p); };
  q.make = [&](const plan::Problem& p, const plan::Options& o) { return memory::plan_and_pack(p, plan.planner, o); };
  q.told = [&](const plan::BatchProbe& p) { console.note(sentence_of(p)); };
  plan::MaxBatch m = plan::max_batch(q);
  console.end_progress();
  if (m.batch > 0) {
    const std::string text = plan::to_json(m.problem);
    m.plan.problem_sha256 = sha256_hex(text);
    if (!outputs.problem.empty()) write_file_atomically(outputs.problem, text);
    if (!outputs.plan.empty()) write_file_atomically(outputs.plan, plan::to_json(m.problem, m.plan));
  }
  if (console.json) {
    console.data(plan::to_json(m));
  } else {
    show(m, console);
  }
  if (m.interrupted) return kInterrupted;
  if (m.batch > 0) return kOk;
  return m.out_of_time ? kTimeLimit : kNoPlan;
}

}  // namespace neaptide::cli
