#include "neaptide/plan/certify.hpp"

#include <algorithm>
#include <cmath>

#include "neaptide/plan/certify_view.hpp"

namespace neaptide::plan {
namespace {

/// Small enough that rounding every op's seconds down loses nothing that a double shows.
int fine_unit(const Problem& p) {
  double total = 0;
  for (const Op& op : p.ops) {
    Seconds least = op.impls[0].seconds;
    for (const Impl& i : op.impls) least = std::min(least, i.seconds);
    total += least;
  }
  int exponent = 0;
  if (total > 0) std::frexp(total, &exponent);
  return exponent - 58;
}

}  // namespace

Certified certify(const Problem& problem, const LowerBound& bound) {
  Certified result;
  try {
    const Json j = parse_json(bound.certificate, "certificate");
    const JsonReader r(j, "certificate");
    const std::string kind = r.string("kind");
    int unit = fine_unit(problem);
    certificate::Exact units = 0;
    if (kind == "floor") {
      units = certificate::View(problem, unit).floor();
    } else if (kind == "cut" || kind == "cuts") {
      unit = static_cast<int>(r.integer("unit_log2", -4000));
      certificate::require(r.string("scope") == "any order" || bound.valid_for == BoundScope::kThisOrder,
                           "it holds for one order only");
      units = kind == "cut" ? certificate::check_cut(problem, unit, j) : certificate::check_cuts(problem, unit, j);
    } else {
      throw UserError("its kind '{}' is unknown", kind);
    }
    const double claimed = std::ceil(std::ldexp(bound.seconds, -unit));
    const auto shown = static_cast<std::int64_t>(std::min<certificate::Exact>(units, INT64_MAX));
    result.seconds = std::ldexp(static_cast<double>(shown), unit);
    result.ok = claimed < 9e18 && static_cast<certificate::Exact>(static_cast<std::int64_t>(claimed)) <= units;
    if (!result.ok) result.reason = fmt::format("it proves {} seconds, not {}", result.seconds, bound.seconds);
  } catch (const Error& e) {
    result.reason = e.what();
  }
  return result;
}

}  // namespace neaptide::plan
