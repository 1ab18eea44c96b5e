#include "neaptide/plan/cuts_certificate.hpp"

#include <map>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/json.hpp"

namespace neaptide::plan {
namespace {

Json value_json(const CutsFrame& frame, int v) {
  return Json::array({frame.facts.values[v].buffer.value, frame.facts.values[v].version});
}

Json key(const CutsFrame& frame, const CutsKey& k) {
  const auto value = [&](int v) { return value_json(frame, v); };
  switch (k.kind) {
    case CutsKey::kHeld:
      return Json::array({"held", value(k.a), k.b});
    case CutsKey::kRun:
      return Json::array({"run", k.a, k.b, k.c});
    case CutsKey::kFirst:
      return Json::array({"first", k.a, k.b});
    case CutsKey::kBack:
      return Json::array({"back", value(k.a), k.b});
    case CutsKey::kAway:
      return k.b < 0 ? Json::array({"away", value(k.a)}) : Json::array({"away", value(k.a), k.b});
    case CutsKey::kMust:
      return Json::array({"must", k.a});
    case CutsKey::kRead:
      return Json::array({"read", k.a, k.b, k.c, value(k.d)});
    case CutsKey::kUse:
      return Json::array({"use", value(k.a), k.b, k.c});
    case CutsKey::kHold:
      return Json::array({"hold", value(k.a), k.b});
    case CutsKey::kEnd:
      return Json::array({"end", value(k.a)});
    case CutsKey::kRoom:
      return Json::array({"room", k.a});
    case CutsKey::kOne:
      return Json::array({"one", k.a});
    case CutsKey::kNeeds:
      return Json::array({"needs", k.a, k.b, value(k.c)});
    case CutsKey::kDoes:
      return Json::array({"does", k.a, k.b});
    case CutsKey::kOnly:
      return k.b < 0 ? Json::array({"only", k.a}) : Json::array({"only", k.a, k.b});
    case CutsKey::kCarried:
      return Json::array({"carried", value(k.a), k.b});
    case CutsKey::kBy:
      return k.d < 0 ? Json::array({"by", k.a, k.b, k.c}) : Json::array({"by", k.a, k.b, k.c, k.d});
    case CutsKey::kAgain:
      return Json::array({"again", k.a, k.b});
    case CutsKey::kOutlive:
      if (k.e < 0) return Json::array({"outlive", k.a, value(k.b), k.c, k.d});
      return Json::array({"outlive", k.a, value(k.b), k.c, k.d, k.e, k.f, k.g < 0 ? Json() : value(k.g), k.h});
    case CutsKey::kCarry:
      return Json::array({"carry", value(k.a), k.b});
    case CutsKey::kInside:
      return Json::array({"inside", k.a, k.b, k.c});
  }
  throw InternalError("a row of no kind");
}

/// Gives columns and rows the numbers under which the certificate refers to them, as they are first mentioned.
class Writer {
 public:
  Writer(const CutsModel& model, const CutsTree& tree) : m_(model), tree_(tree) {}

  Json columns = Json::array(), rows = Json::array();

  int column(int c) {
    const auto [it, fresh] = column_number_.emplace(c, static_cast<int>(columns.size()));
    if (fresh) columns.push_back(key(m_.frame, m_.columns[c]));
    return it->second;
  }

  int row(int r) {
    if (const auto it = row_number_.find(r); it != row_number_.end()) return it->second;
    const int n = static_cast<int>(m_.rows.size());
    Json json =
        r < n ? key(m_.frame, m_.rows[r].key) : inequality(tree_.inequalities()[r - n]);  // numbers others first
    row_number_.emplace(r, static_cast<int>(rows.size()));
    rows.push_back(std::move(json));
    return row_number_.at(r);
  }

 private:
  Json inequality(const CutsInequality& i) {
    if (const auto* cover = std::get_if<CutsCover>(&i.why)) {
      Json held = Json::array();
      for (const auto& [c, weight] : cover->weights) {
        const CutsKey& k = m_.columns[c];
        held.push_back(Json::array({k.kind == CutsKey::kHeld ? value_json(m_.frame, k.a) : Json(k.b), weight}));
      }
      return Json{{"cut", cover->cut}, {"held", held}, {"most", cover->most}};
    }
    if (const auto* path = std::get_if<CutsPath>(&i.why)) {
      Json values = Json::array();
      for (const int v : path->values) values.push_back(value_json(m_.frame, v));
      Json json{{"path", values}, {"from", path->from}, {"to", path->to}};
      if (path->reader.valid()) json["reader"] = path->reader.value;
      return json;
    }
    if (const auto* cheaper = std::get_if<CutsCheaper>(&i.why)) {
      Json of = Json::array();
      for (const auto& [r, multiplier] : cheaper->rows) of.push_back(Json::array({row(r), multiplier}));
      return Json{{"cheaper", of}, {"than", static_cast<std::int64_t>(cheaper->than)}};
    }
    const auto& how = std::get<CutsRounded>(i.why);
    Json of = Json::array(), upper = Json::array(), terms = Json::array();
    for (const auto& [r, multiplier] : how.rows) of.push_back(Json::array({row(r), multiplier}));
    for (const int c : how.upper) upper.push_back(column(c));
    for (const auto& [c, factor] : i.terms) terms.push_back(Json::array({column(c), factor}));
    return Json{{"rounded", of},   {"divisor", how.divisor},     {"part", how.part},
                {"upper", upper},  {"step_log2", how.step_log2}, {"terms", terms},
                {"least", i.least}};
  }

  const CutsModel& m_;
  const CutsTree& tree_;
  std::map<int, int> column_number_, row_number_;
};

}  // namespace

std::string cuts_certificate(const CutsModel& model, const CutsTree& tree) {
  const CutsFrame& f = model.frame;
  Json j;
  j["kind"] = "cuts";
  j["scope"] = f.scope == BoundScope::kThisOrder ? "this order" : "any order";
  j["device"] = f.problem.devices[f.device].name;
  j["budget"] = *f.problem.devices[f.device].budget;
  j["unit_log2"] = f.facts.unit_log2;
  j["price_log2"] = tree.price_log2();
  j["cuts"] = Json::array();
  for (const OpId o : model.cuts) j["cuts"].push_back(f.problem.ops[o].name);
  j["stands_for"] = Json::array();
  for (std::size_t o = 0; o < f.stands_for.size(); ++o) {
    for (std::size_t i = 0; i < f.stands_for[o].size(); ++i) {
      const int by = f.stands_for[o][i];
      if (by != static_cast<int>(i)) j["stands_for"].push_back(Json::array({o, i, by}));
    }
  }
  if (!model.in_place.empty()) j["in_place"] = Json::array();
  for (const OpId o : model.in_place) j["in_place"].push_back(o.value);
  j["than"] = static_cast<std::int64_t>(tree.than());
  Writer writer(model, tree);
  Json leaves = Json::array();
  for (const CutsLeaf& leaf : tree.leaves()) {
    Json fixed = Json::array(), implied = Json::array(), rows = Json::array();
    for (const auto& [c, v] : leaf.fixed) fixed.push_back(Json::array({writer.column(c), static_cast<int>(v)}));
    for (const CutsImplied& i : leaf.implied) {
      Json step = Json::array({writer.row(i.row)});
      if (i.column >= 0) step.insert(step.end(), {writer.column(i.column), static_cast<int>(i.value)});
      implied.push_back(std::move(step));
    }
    for (const auto& [r, m] : leaf.multipliers) rows.push_back(Json::array({writer.row(r), m}));
    Json one{{"fixed", fixed}, {"rows", rows}};
    if (!implied.empty()) one["implied"] = std::move(implied);
    leaves.push_back(std::move(one));
  }
  j["columns"] = std::move(writer.columns);
  j["rows"] = std::move(writer.rows);
  j["leaves"] = std::move(leaves);
  return j.dump();
}

}  // namespace neaptide::plan
