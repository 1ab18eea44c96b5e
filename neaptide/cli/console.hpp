// The terminal: data on stdout, commentary and progress on stderr, colour and animation only where someone looks.
#pragma once

#include <spdlog/logger.h>

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "neaptide/neaptide.hpp"

namespace neaptide::cli {

enum class Paint { kPlain, kBold, kGood, kBad, kDim };

class Console {
 public:
  Console(std::FILE* out, std::FILE* err);
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  bool json = false;   // data as one JSON value
  bool quiet = false;  // errors only on stderr

  void data(std::string_view text);  // as it is
  void value(const Json& root);
  /// Columns aligned, the first row is the heading; columns whose cells are numbers stand right.
  void table(const std::vector<std::vector<std::string>>& rows);
  void note(std::string_view sentence);
  void error(std::string_view sentence);

  /// A line that the next one overwrites; on no terminal it is printed only when `milestone`.
  void progress(const std::string& line, bool milestone);
  void end_progress();

  std::string painted(std::string_view text, Paint paint) const;  // for stdout

 private:
  std::FILE* out_;
  std::FILE* err_;
  bool colour_out_, colour_err_, animated_;
  bool line_open_ = false;
  std::shared_ptr<spdlog::logger> log_;
};

/// "[#####-----]", `width` cells.
std::string bar(double share, int width = 20);

}  // namespace neaptide::cli
