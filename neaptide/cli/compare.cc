#include "neaptide/cli/compare.hpp"

#include <cmath>

namespace neaptide::cli {

namespace {

struct Flags {
  std::string problem, a, b;
  int top = 10;
};

using Rows = std::vector<std::vector<std::string>>;

std::string signed_bytes(Bytes bytes) { return bytes > 0 ? fmt::format("+{}", bytes) : std::to_string(bytes); }

std::string signed_seconds(Seconds a, Seconds b) {
  if (a == b) return "0";
  return (b > a ? "+" : "-") + format_seconds(std::abs(b - a));
}

void add_seconds(Rows& rows, const std::string& what, Seconds a, Seconds b) {
  rows.push_back({what, format_seconds(a), format_seconds(b), signed_seconds(a, b)});
}

void add_count(Rows& rows, const std::string& what, std::int64_t a, std::int64_t b) {
  rows.push_back({what, std::to_string(a), std::to_string(b), signed_bytes(b - a)});
}

Rows totals_table(const plan::Problem& problem, const plan::Comparison& c) {
  Rows rows = {{"", "A", "B", "B - A"}};
  add_seconds(rows, "seconds", c.a.seconds, c.b.seconds);
  add_seconds(rows, "overlapped", c.a.overlapped, c.b.overlapped);
  for (std::size_t d = 0; d < problem.devices.size(); ++d) {
    const plan::DeviceId id(d);
    add_count(rows, fmt::format("peak of {} (bytes)", problem.devices[id].name), c.a.peak[id], c.b.peak[id]);
  }
  add_count(rows, "computed", c.a.computes, c.b.computes);
  add_count(rows, "computed again", c.a.again, c.b.again);
  add_seconds(rows, "seconds of those", c.a.again_seconds, c.b.again_seconds);
  add_count(rows, "in place", c.a.in_place, c.b.in_place);
  add_count(rows, "copies", c.a.copies, c.b.copies);
  add_count(rows, "bytes copied", c.a.copied, c.b.copied);
  add_seconds(rows, "seconds of copies", c.a.copy_seconds, c.b.copy_seconds);
  return rows;
}

/// "direct", "direct x3", "direct, gemm".
std::string runs_text(const plan::Op& op, const std::vector<int>& runs) {
  if (runs.empty()) return "not run";
  std::string out;
  for (std::size_t i = 0; i < runs.size();) {
    std::size_t n = 1;
    while (i + n < runs.size() && runs[i + n] == runs[i]) ++n;
    out += (out.empty() ? "" : ", ") + op.impls[static_cast<std::size_t>(runs[i])].name;
    if (n > 1) out += fmt::format(" x{}", n);
    i += n;
  }
  return out;
}

template <class List, class Name>
std::string list_text(const std::string& title, const List& list, int top, Name name) {
  if (list.empty()) return "";
  std::string out = fmt::format("\n{} ({})\n", title, list.size());
  const std::size_t n = std::min(list.size(), static_cast<std::size_t>(top));
  for (std::size_t i = 0; i < n; ++i) out += "  " + name(list[i]) + "\n";
  if (n < list.size()) out += fmt::format("  and {} more\n", list.size() - n);
  return out;
}

void show(Console& console, const plan::Problem& problem, const plan::Comparison& c, int top) {
  console.table(totals_table(problem, c));
  if (c.same()) return console.data("\nboth plans do the same\n");
  const auto buffer = [&](plan::BufferId b) {
    return fmt::format("{} ({})", problem.buffers[b].name, format_bytes(problem.buffers[b].bytes));
  };
  if (!c.ops.empty()) {
    console.data(fmt::format("\nops that run differently ({})\n", c.ops.size()));
    Rows rows = {{"op", "A", "B", "B - A"}};
    const std::size_t n = std::min(c.ops.size(), static_cast<std::size_t>(top));
    for (std::size_t i = 0; i < n; ++i) {
      const plan::OpDifference& d = c.ops[i];
      const plan::Op& op = problem.ops[d.op];
      rows.push_back({op.name, runs_text(op, d.a), runs_text(op, d.b), signed_seconds(d.a_seconds, d.b_seconds)});
    }
    console.table(rows);
    if (n < c.ops.size()) console.data(fmt::format("and {} more\n", c.ops.size() - n));
  }
  std::string text = list_text("A keeps what B makes again", c.a_keeps, top, buffer);
  text += list_text("B keeps what A makes again", c.b_keeps, top, buffer);
  text += list_text("copied differently often", c.copies, top, [&](const plan::CopyDifference& d) {
    return fmt::format("{}: {} times by A, {} by B", buffer(d.buffer), d.a, d.b);
  });
  text += list_text("ops that run at another place in the order", c.moved, top,
                    [&](plan::OpId op) { return problem.ops[op].name; });
  console.data(text);
}

int compare(const Flags& flags, Console& console) {
  const plan::Problem problem = session::load_problem(flags.problem);
  const plan::Plan a = session::load_plan(problem, flags.a), b = session::load_plan(problem, flags.b);
  const plan::Comparison c = plan::compare(problem, a, b);
  if (console.json) {
    console.data(plan::to_json(problem, c));
  } else {
    show(console, problem, c, flags.top);
  }
  return kOk;
}

}  // namespace

Subcommand declare_compare(CLI::App& plan, Console& console) {
  auto flags = std::make_shared<Flags>();
  CLI::App* app = plan.add_subcommand("compare", "Says what two plans of a problem do differently.");
  app->add_option("PROBLEM", flags->problem, "a problem file")->required();
  app->add_option("A", flags->a, "a plan for it")->required();
  app->add_option("B", flags->b, "another one")->required();
  app->add_option("--top", flags->top, "how many differences of each kind are listed")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app->add_flag("--json", console.json, "data as JSON");
  return {app, [flags, &console] { return compare(*flags, console); }};
}

}  // namespace neaptide::cli
