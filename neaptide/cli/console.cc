#include "neaptide/cli/console.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace neaptide::cli {

namespace {

bool colours(std::FILE* file) {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool dumb = term == nullptr || std::string_view(term) == "dumb";
  return (no_colour == nullptr || *no_colour == '\0') && !dumb && ::isatty(::fileno(file)) != 0;
}

const char* code_of(Paint paint) {
  switch (paint) {
    case Paint::kPlain:
      return "";
    case Paint::kBold:
      return "\033[1m";
    case Paint::kGood:
      return "\033[32m";
    case Paint::kBad:
      return "\033[1;31m";
    case Paint::kDim:
      return "\033[2m";
  }
  return "";
}

std::string paint_if(bool wanted, std::string_view text, Paint paint) {
  if (!wanted || paint == Paint::kPlain) return std::string(text);
  return fmt::format("{}{}\033[0m", code_of(paint), text);
}

bool numeric(const std::string& cell) {
  return cell.empty() || cell == "-" || (cell[0] >= '0' && cell[0] <= '9') ||
         ((cell[0] == '-' || cell[0] == '+') && cell.size() > 1 && cell[1] >= '0' && cell[1] <= '9');
}

}  // namespace

Console::Console(std::FILE* out, std::FILE* err)
    : out_(out),
      err_(err),
      colour_out_(colours(out)),
      colour_err_(colours(err)),
      animated_(::isatty(::fileno(err)) != 0) {
  log_ = std::make_shared<spdlog::logger>("neaptide", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  log_->set_pattern("%v");
  log_->flush_on(spdlog::level::info);
}

Console::~Console() { end_progress(); }

void Console::data(std::string_view text) {
  end_progress();
  std::fwrite(text.data(), 1, text.size(), out_);
  std::fflush(out_);
}

void Console::value(const Json& root) { data(json_text(root)); }

void Console::table(const std::vector<std::vector<std::string>>& rows) {
  if (rows.empty()) return;
  std::vector<std::size_t> width(rows[0].size(), 0);
  std::vector<bool> right(rows[0].size(), true);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t c = 0; c < rows[r].size(); ++c) {
      width[c] = std::max(width[c], rows[r][c].size());
      if (r > 0 && !numeric(rows[r][c])) right[c] = false;
    }
  }
  std::string text;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::string line;
    for (std::size_t c = 0; c < rows[r].size(); ++c) {
      if (c > 0) line += "  ";
      line += right[c] ? fmt::format("{:>{}}", rows[r][c], width[c]) : fmt::format("{:<{}}", rows[r][c], width[c]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += (r == 0 ? painted(line, Paint::kBold) : line) + "\n";
  }
  data(text);
}

void Console::note(std::string_view sentence) {
  if (quiet) return;
  end_progress();
  log_->info("{}", sentence);
}

void Console::error(std::string_view sentence) {
  end_progress();
  log_->error("{} {}", paint_if(colour_err_, "neaptide:", Paint::kBad), sentence);
}

void Console::progress(const std::string& line, bool milestone) {
  if (quiet) return;
  if (!animated_) {
    if (milestone) log_->info("{}", line);
    return;
  }
  std::fprintf(err_, "\r\033[K%s", line.c_str());
  std::fflush(err_);
  line_open_ = true;
  if (milestone) end_progress();
}

void Console::end_progress() {
  if (!line_open_) return;
  std::fputc('\n', err_);
  std::fflush(err_);
  line_open_ = false;
}

std::string Console::painted(std::string_view text, Paint paint) const { return paint_if(colour_out_, text, paint); }

std::string bar(double share, int width) {
  const int full = static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * width));
  return "[" + std::string(static_cast<std::size_t>(full), '#') +
         std::string(static_cast<std::size_t>(width - full), '-') + "]";
}

}  // namespace neaptide::cli
