#include "neaptide/memory/csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <set>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/files.hpp"
#include "neaptide/base/text.hpp"

namespace neaptide::memory {

namespace {

const std::vector<std::string> kColumns = {"id", "lower", "upper", "size", "offset"};
constexpr std::size_t kRequired = 4;

struct Record {
  int line;  // of its first character, from 1
  std::vector<std::string> fields;
};

/// Splits text into records and fields; empty lines are skipped.
class Splitter {
 public:
  Splitter(std::string_view text, std::string_view place) : text_(text), place_(place) {}

  std::optional<Record> next();

 private:
  bool at_end() const { return i_ >= text_.size(); }
  bool at_break() const { return at_end() || text_[i_] == '\n' || text_.substr(i_, 2) == "\r\n"; }
  void skip_break();
  std::string field();
  std::string quoted();

  std::string_view text_, place_;
  std::size_t i_ = 0;
  int line_ = 1;
};

void Splitter::skip_break() {
  if (at_end()) return;
  i_ += text_[i_] == '\r' ? 2 : 1;
  ++line_;
}

std::string Splitter::quoted() {
  const int first = line_;
  std::string out;
  for (++i_; !at_end(); ++i_) {
    const char c = text_[i_];
    if (c == '"' && text_.substr(i_, 2) != "\"\"") {
      ++i_;
      return out;
    }
    if (c == '"') ++i_;
    if (c == '\n') ++line_;
    out += c;
  }
  throw UserError("{}:{}: a quoted field has no closing quote", place_, first);
}

std::string Splitter::field() {
  if (!at_end() && text_[i_] == '"') {
    std::string out = quoted();
    if (!at_break() && text_[i_] != ',') throw UserError("{}:{}: text follows a closing quote", place_, line_);
    return out;
  }
  const std::size_t begin = i_;
  while (!at_break() && text_[i_] != ',') ++i_;
  return std::string(text_.substr(begin, i_ - begin));
}

std::optional<Record> Splitter::next() {
  while (!at_end() && at_break()) skip_break();
  if (at_end()) return std::nullopt;
  Record out{.line = line_, .fields = {field()}};
  while (!at_break()) {
    ++i_;  // the comma
    out.fields.push_back(field());
  }
  skip_break();
  return out;
}

/// Turns records into blocks by the columns that the header names.
class Reader {
 public:
  Reader(const Record& header, std::string_view place);
  void add(const Record& record);
  CsvBlocks finish() { return std::move(out_); }

 private:
  std::int64_t integer(const Record& record, std::size_t column, std::int64_t least, std::int64_t most) const;

  std::string_view place_;
  std::size_t n_columns_;
  std::vector<std::size_t> where_;  // per kColumns: index of the field; n_columns_ when absent
  std::set<std::string> seen_;
  CsvBlocks out_;
};

Reader::Reader(const Record& header, std::string_view place)
    : place_(place), n_columns_(header.fields.size()), where_(kColumns.size(), n_columns_) {
  for (std::size_t f = 0; f < n_columns_; ++f) {
    const std::string& name = header.fields[f];
    const auto it = std::find(kColumns.begin(), kColumns.end(), name);
    if (it == kColumns.end()) {
      throw UserError("{}:{}: unknown column '{}'{}; the columns are id, lower, upper, size and, optionally, offset",
                      place, header.line, name, did_you_mean(name, kColumns));
    }
    std::size_t& where = where_[static_cast<std::size_t>(it - kColumns.begin())];
    if (where != n_columns_) throw UserError("{}:{}: column '{}' is named twice", place, header.line, name);
    where = f;
  }
  for (std::size_t c = 0; c < kRequired; ++c) {
    if (where_[c] == n_columns_) throw UserError("{}:{}: there is no column '{}'", place, header.line, kColumns[c]);
  }
  if (where_[kRequired] != n_columns_) out_.offset.emplace();
}

std::int64_t Reader::integer(const Record& record, std::size_t column, std::int64_t least, std::int64_t most) const {
  const std::string& text = record.fields[where_[column]];
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= least && value <= most) return value;
  throw UserError("{}:{}: {} '{}' is not a whole number from {} to {}", place_, record.line, kColumns[column], text,
                  least, most);
}

void Reader::add(const Record& record) {
  if (record.fields.size() != n_columns_) {
    throw UserError("{}:{}: {} fields; the header names {}", place_, record.line, record.fields.size(), n_columns_);
  }
  const std::string& id = record.fields[where_[0]];
  if (!seen_.insert(id).second) throw UserError("{}:{}: id '{}' appears twice", place_, record.line, id);
  constexpr std::int64_t kLatest = std::numeric_limits<int>::max(), kMost = std::numeric_limits<Bytes>::max();
  const std::int64_t lower = integer(record, 1, 0, kLatest - 1);
  out_.ids.push_back(id);
  out_.blocks.push_back({.begin = static_cast<int>(lower),
                         .end = static_cast<int>(integer(record, 2, lower + 1, kLatest)),
                         .bytes = integer(record, 3, 0, kMost)});
  if (out_.offset) out_.offset->push_back(integer(record, 4, 0, kMost - out_.blocks.back().bytes));
}

std::string quoted_if_needed(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos && !text.empty()) return text;
  std::string out = "\"";
  for (char c : text) {
    if (c == '"') out += c;
    out += c;
  }
  return out + "\"";
}

}  // namespace

CsvBlocks csv_from_text(std::string_view text, std::string_view place) {
  Splitter splitter(text, place);
  const std::optional<Record> header = splitter.next();
  if (!header) throw UserError("{} is empty; the first line names the columns id,lower,upper,size", place);
  Reader reader(*header, place);
  while (const std::optional<Record> record = splitter.next()) reader.add(*record);
  return reader.finish();
}

CsvBlocks read_csv(const std::string& path) { return csv_from_text(read_maybe_gzip(path), path); }

std::string to_csv(const CsvBlocks& blocks) {
  std::string out = blocks.offset ? "id,lower,upper,size,offset\n" : "id,lower,upper,size\n";
  for (std::size_t i = 0; i < blocks.blocks.size(); ++i) {
    const Block& b = blocks.blocks[i];
    out += fmt::format("{},{},{},{}", quoted_if_needed(blocks.ids[i]), b.begin, b.end, b.bytes);
    if (blocks.offset) out += fmt::format(",{}", (*blocks.offset)[i]);
    out += '\n';
  }
  return out;
}

}  // namespace neaptide::memory
