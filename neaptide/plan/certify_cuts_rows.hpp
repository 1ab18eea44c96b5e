// Columns and rows of the model of several instants as the checker derives them from a problem. They bound every plan:
// see cuts_model.hpp and cuts_inequalities.hpp for what they mean; nothing is shared with what makes them.
#pragma once

#include <compare>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "neaptide/plan/certify_view.hpp"

namespace neaptide::plan::certificate {

Exact times(Exact a, Exact b);  // UserError when it does not fit
Exact plus(Exact a, Exact b);

class CutsRows : public View {
 public:
  using View::View;

  struct Row {
    Exact least = 0;
    std::vector<std::pair<int, Exact>> terms;  // column, factor; sum of them >= least
    bool bytes = false;
  };

 protected:
  /// Device, scope, instants and representatives.
  void read_frame(const JsonReader& r);
  /// By their keys in JSON.
  int column_of(const JsonReader& key);
  Row row_of(const JsonReader& key);
  Row cover_of(const JsonReader& r);
  Row path_of(const JsonReader& r);
  Exact cost(int column) const { return cost_[static_cast<std::size_t>(column)]; }
  std::size_t n_columns() const { return cost_.size(); }

 private:
  struct Column {
    enum Kind : char { kHeld, kRun, kFirst, kBack, kAway, kCarried, kBy, kAgain } kind;
    Value value{-1, -1};
    int a = -1, b = -1, c = -1;
    friend auto operator<=>(const Column&, const Column&) = default;
  };
  int number(const Column& column);
  void add(const Column& column, Exact factor, Row* row);

  void read_instants(const JsonReader& r, bool any_order);
  std::set<Value> impl_values(std::size_t op, std::size_t impl, bool reads) const;
  void read_representatives(const JsonReader& r);

  int instant_of(const JsonReader& r) const;
  int interval_of(const JsonReader& r) const;
  std::size_t op_of(const JsonReader& r) const;
  int impl_of(std::size_t op, const JsonReader& r) const;
  Value known_value(const JsonReader& r) const;

  bool definite(std::size_t o) const { return ops_[o].necessary && first_[o].first == first_[o].second; }
  bool may_be_first(std::size_t o, int impl) const { return ops_[o].may_be_first[static_cast<std::size_t>(impl)]; }
  bool one_class(std::size_t o) const;
  bool has_held(const Value& v, int k) const;
  bool counts_at(const Value& v, int k) const;
  bool has_run(std::size_t o, int j, int impl) const;
  bool has_back(const Value& v) const { return size(v) > 0 && copy_in(v) != kUnlimited; }
  bool exists(const Column& c) const;
  Exact cost_of(const Column& c) const;
  Seconds seconds(std::size_t o, int impl) const;

  bool made_anyway(const Value& v, int j) const;
  void add_runs(const Value& v, int j, Row* row);
  Row available(const Value& v, int j);
  Bytes room_beside_common(int k) const;
  Bytes least_extra(int k) const;
  Row room_row(int k);
  bool may_carry(const Value& v, int k) const;
  bool there(const Value& v, int at, int k) const;
  Row carry_row(const Value& v, int k);
  Bytes beside_reads(std::size_t o, int impl) const;
  std::vector<int> ways(std::size_t o, int j, int impl) const;
  Row by_row(std::size_t o, int j, int impl);
  std::optional<int> still_there(const Value& v, int k, Row* row);
  bool may_be_gone(const Value& v, int k) const;
  void add_spares(std::size_t o, int j, int impl, const Value& v, Row* row);
  Row outlive_row(const std::vector<JsonReader>& k);
  void require_earlier(std::size_t a, std::size_t b, bool same) const;
  Row inside_row(std::size_t o, int k, int impl);

  std::vector<std::size_t> cuts_;
  std::vector<std::pair<int, int>> first_;  // by op: intervals in which it may first run
  std::vector<std::vector<int>> stands_;    // [op][impl]
  std::vector<std::vector<std::set<Value>>> reads_, writes_, takes_;
  std::vector<bool> in_place_;  // by op: its ways differ in what they take over, too
  bool any_order_ = false;
  std::vector<std::set<Value>> common_, always_;  // by op: read, written by every implementation
  std::map<Column, int> numbers_;
  std::vector<Exact> cost_;
};

}  // namespace neaptide::plan::certificate
