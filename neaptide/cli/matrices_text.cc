#include "neaptide/cli/matrices_text.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "neaptide/plan/matrices.hpp"

namespace neaptide::cli {

namespace {

constexpr int kOtherwise = 80, kMargin = 2;

int terminal_width() {
  const char* columns = std::getenv("COLUMNS");
  const int given = columns == nullptr ? 0 : std::atoi(columns);
  if (given > 0) return given;
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return kOtherwise;
}

bool is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string_view locale = value;
    return locale.find("UTF-8") != std::string_view::npos || locale.find("utf8") != std::string_view::npos;
  }
  return false;
}

struct Look {
  const char* block;
  const char* letter;
  Paint paint;
};

/// By plan::Cell: nothing, held, freed, first run, run again.
constexpr std::array<Look, 5> kLooks = {{{" ", " ", Paint::kPlain},
                                         {"░", ".", Paint::kDim},
                                         {"▒", "o", Paint::kDim},
                                         {"█", "#", Paint::kGood},
                                         {"▓", "R", Paint::kBad}}};

const Look& look_of(plan::Cell cell) { return kLooks[static_cast<std::size_t>(cell)]; }

std::string row_text(const Console& console, const std::vector<plan::Cell>& row, bool blocks) {
  std::string text;
  for (std::size_t i = 0; i < row.size();) {
    std::size_t end = i;
    std::string same;
    for (; end < row.size() && row[end] == row[i]; ++end)
      same += blocks ? look_of(row[i]).block : look_of(row[i]).letter;
    text += row[i] == plan::Cell::kNothing ? same : console.painted(same, look_of(row[i]).paint);
    i = end;
  }
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

}  // namespace

void show_matrices(Console& console, const plan::Problem& problem, const plan::Plan& plan) {
  const plan::Matrices m = plan::matrices_of(problem, plan.steps);
  const auto rows = plan::picture(m, std::max(1, terminal_width() - kMargin));
  const bool blocks = is_utf8();
  const auto shown = [&](plan::Cell c) {
    return console.painted(blocks ? look_of(c).block : look_of(c).letter, look_of(c).paint);
  };
  std::string text =
      fmt::format("\n{} first run  {} run again (R)  {} held (S)  {} given up (F)\n", shown(plan::Cell::kFirst),
                  shown(plan::Cell::kAgain), shown(plan::Cell::kHeld), shown(plan::Cell::kFreed));
  const std::size_t n = m.ops.size(), side = rows.empty() ? 0 : rows[0].size();
  text += fmt::format("stages down, ops across, {} of them{}\n", n,
                      side < n ? fmt::format("; a cell stands for {0} x {0}", (n + side - 1) / side) : "");
  for (const auto& row : rows) text += "  " + row_text(console, row, blocks) + "\n";
  console.data(text);
}

}  // namespace neaptide::cli
