#include "neaptide/milp/mps.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <unordered_map>

#include "neaptide/base/errors.hpp"

namespace neaptide::milp {
namespace {

constexpr const char* kObjective = "cost";

std::string one_word(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == ' ' || c == '\t' || c == '\n'; }, '_');
  return name.empty() ? "_" : name;
}

char kind_of(const Row& row) {
  if (row.lower == row.upper) return 'E';
  if (std::isinf(row.lower)) return std::isinf(row.upper) ? 'N' : 'L';
  return 'G';  // a finite upper side comes as a range
}

void write_bounds(const Column& c, const std::string& name, std::string& out) {
  const auto line = [&](const char* kind, double v) { out += fmt::format(" {} bounds {} {}\n", kind, name, v); };
  if (c.integer && c.lower == 0 && c.upper == 1) {
    out += fmt::format(" BV bounds {}\n", name);
  } else if (c.lower == c.upper) {
    line("FX", c.lower);
  } else if (std::isinf(c.lower) && std::isinf(c.upper)) {
    out += fmt::format(" FR bounds {}\n", name);
  } else {
    if (std::isinf(c.lower)) out += fmt::format(" MI bounds {}\n", name);
    if (!std::isinf(c.lower)) line("LO", c.lower);
    if (std::isinf(c.upper)) {
      out += fmt::format(" PL bounds {}\n", name);
    } else {
      line("UP", c.upper);
    }
  }
}

/// One section after another; lines that start in the first column open a section.
class MpsReader {
 public:
  MpsReader(std::string_view text, std::string_view place) : in_(std::string(text)), place_(place) {}

  Model run() {
    std::string line;
    while (!ended_ && std::getline(in_, line)) {
      ++line_;
      if (line.empty() || line[0] == '*') continue;
      std::istringstream words(line);
      std::vector<std::string> w;
      for (std::string word; words >> word;) w.push_back(word);
      if (w.empty()) continue;
      if (line[0] == ' ' || line[0] == '\t') {
        data(w);
      } else {
        section(w);
      }
    }
    if (!ended_) fail("ENDATA is missing");
    finish();
    return std::move(model_);
  }

 private:
  [[noreturn]] void fail(const std::string& why) const { throw UserError("{}, line {}: {}", place_, line_, why); }

  void section(const std::vector<std::string>& w) {
    section_ = w[0];
    if (section_ == "NAME") model_.name = w.size() > 1 ? w[1] : "";
    if (section_ == "ENDATA") ended_ = true;
    static const char* known[] = {"NAME", "OBJSENSE", "ROWS", "COLUMNS", "RHS", "RANGES", "BOUNDS", "ENDATA"};
    if (std::none_of(std::begin(known), std::end(known), [&](const char* k) { return section_ == k; }))
      fail("unknown section '" + section_ + "'");
  }

  void data(const std::vector<std::string>& w) {
    if (section_ == "OBJSENSE") {
      if (w[0] != "MIN" && w[0] != "MINIMIZE") fail("the objective must be minimised");
    } else if (section_ == "ROWS") {
      row(w);
    } else if (section_ == "COLUMNS") {
      column(w);
    } else if (section_ == "RHS" || section_ == "RANGES") {
      sides(w);
    } else if (section_ == "BOUNDS") {
      bound(w);
    } else {
      fail("data outside a section");
    }
  }

  void row(const std::vector<std::string>& w) {
    if (w.size() != 2 || w[0].size() != 1) fail("a row is a kind and a name");
    const char kind = w[0][0];
    if (kind == 'N' && objective_.empty()) {
      objective_ = w[1];
      return;
    }
    if (std::string("NLGE").find(kind) == std::string::npos) fail("unknown kind of row '" + w[0] + "'");
    if (!rows_.emplace(w[1], model_.rows.size()).second) fail("row '" + w[1] + "' is listed twice");
    Row r{.name = w[1]};
    if (kind == 'L' || kind == 'E') r.upper = 0;
    if (kind == 'G' || kind == 'E') r.lower = 0;
    model_.rows.push_back(std::move(r));
    kinds_.push_back(kind);
  }

  double number(const std::string& text) const {
    std::size_t used = 0;
    double value = 0;
    try {
      value = std::stod(text, &used);
    } catch (const std::exception&) {
      used = 0;
    }
    if (used != text.size() || std::isnan(value)) fail("'" + text + "' is not a number");
    return value;
  }

  std::size_t row_named(const std::string& name) const {
    const auto it = rows_.find(name);
    if (it == rows_.end()) fail("unknown row '" + name + "'");
    return it->second;
  }

  void column(const std::vector<std::string>& w) {
    if (w.size() == 3 && w[1] == "'MARKER'") {
      integer_ = w[2] == "'INTORG'";
      return;
    }
    if (w.size() != 3 && w.size() != 5) fail("a column line is a name and pairs of row and number");
    const auto [it, fresh] = columns_.emplace(w[0], model_.columns.size());
    if (fresh) model_.columns.push_back({.name = w[0], .integer = integer_});
    for (std::size_t i = 1; i < w.size(); i += 2) {
      const double value = number(w[i + 1]);
      if (w[i] == objective_) {
        model_.columns[it->second].cost = value;
      } else {
        model_.rows[row_named(w[i])].terms.push_back({Var{static_cast<int>(it->second)}, value});
      }
    }
  }

  void sides(const std::vector<std::string>& w) {
    if (w.size() % 2 == 0) fail("a line of " + section_ + " is a name and pairs of row and number");
    for (std::size_t i = 1; i < w.size(); i += 2) {
      const double value = number(w[i + 1]);
      if (section_ == "RHS" && w[i] == objective_) {
        model_.offset = -value;
        continue;
      }
      const std::size_t r = row_named(w[i]);
      if (section_ == "RHS") {
        if (kinds_[r] != 'G') model_.rows[r].upper = value;
        if (kinds_[r] != 'L') model_.rows[r].lower = value;
      } else {
        ranges_[r] = value;
      }
    }
  }

  void bound(const std::vector<std::string>& w) {
    if (w.size() < 3) fail("a bound is a kind, a name, a column and a number");
    const auto it = columns_.find(w[2]);
    if (it == columns_.end()) fail("unknown column '" + w[2] + "'");
    Column& c = model_.columns[it->second];
    const std::string& kind = w[0];
    if (kind == "FR" || kind == "MI") c.lower = -kInfinity;
    if (kind == "FR" || kind == "PL") c.upper = kInfinity;
    if (kind == "BV") c.integer = true;
    if (kind == "BV") c.upper = 1;
    if (kind == "FR" || kind == "MI" || kind == "PL" || kind == "BV") return;
    if (w.size() != 4) fail("a bound of kind " + kind + " needs a number");
    const double value = number(w[3]);
    if (kind == "LI" || kind == "UI") c.integer = true;
    if (kind == "LO" || kind == "LI" || kind == "FX") {
      c.lower = value;
    } else if (kind != "UP" && kind != "UI") {
      fail("unknown kind of bound '" + kind + "'");
    }
    if (kind == "UP" || kind == "UI" || kind == "FX") c.upper = value;
  }

  void finish() {
    for (const auto& [r, range] : ranges_) {
      Row& row = model_.rows[r];
      if (kinds_[r] == 'G') row.upper = row.lower + std::abs(range);
      if (kinds_[r] == 'L') row.lower = row.upper - std::abs(range);
      if (kinds_[r] == 'E') (range < 0 ? row.lower : row.upper) += range;
    }
  }

  std::istringstream in_;
  std::string_view place_;
  int line_ = 0;
  std::string section_, objective_;
  bool ended_ = false, integer_ = false;
  Model model_;
  std::vector<char> kinds_;
  std::unordered_map<std::string, std::size_t> rows_, columns_;
  std::map<std::size_t, double> ranges_;
};

}  // namespace

std::string to_mps(const Model& model) {
  std::string out = fmt::format("NAME {}\nROWS\n N {}\n", one_word(model.name), kObjective);
  for (const Row& row : model.rows) out += fmt::format(" {} {}\n", kind_of(row), one_word(row.name));
  std::vector<std::vector<std::pair<std::size_t, double>>> entries(model.columns.size());
  for (std::size_t r = 0; r < model.rows.size(); ++r) {
    for (const Term& t : model.rows[r].terms) entries[static_cast<std::size_t>(t.var.index)].emplace_back(r, t.factor);
  }
  out += "COLUMNS\n";
  bool integer = false;
  for (std::size_t j = 0; j < model.columns.size(); ++j) {
    const Column& c = model.columns[j];
    if (c.integer != integer) out += fmt::format(" marker 'MARKER' '{}'\n", c.integer ? "INTORG" : "INTEND");
    integer = c.integer;
    out += fmt::format(" {} {} {}\n", one_word(c.name), kObjective, c.cost);
    for (const auto& [r, factor] : entries[j])
      out += fmt::format(" {} {} {}\n", one_word(c.name), one_word(model.rows[r].name), factor);
  }
  if (integer) out += " marker 'MARKER' 'INTEND'\n";
  out += "RHS\n";
  if (model.offset != 0) out += fmt::format(" rhs {} {}\n", kObjective, -model.offset);
  for (const Row& row : model.rows) {
    const char kind = kind_of(row);
    if (kind != 'N') out += fmt::format(" rhs {} {}\n", one_word(row.name), kind == 'L' ? row.upper : row.lower);
  }
  out += "RANGES\n";
  for (const Row& row : model.rows) {
    if (kind_of(row) == 'G' && !std::isinf(row.upper))
      out += fmt::format(" ranges {} {}\n", one_word(row.name), row.upper - row.lower);
  }
  out += "BOUNDS\n";
  for (const Column& c : model.columns) write_bounds(c, one_word(c.name), out);
  return out + "ENDATA\n";
}

Model from_mps(std::string_view text, std::string_view place) { return MpsReader(text, place).run(); }

}  // namespace neaptide::milp
