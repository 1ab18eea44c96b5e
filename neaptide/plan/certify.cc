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

/// Joules in the place of seconds. A copy whose joules are not given is in no plan whose joules are known.
Problem energies(Problem p) {
  for (std::size_t o = 0; o < p.ops.size(); ++o) {
    for (Impl& i : p.ops[OpId(o)].impls) {
      if (!i.joules) throw UserError("implementation '{}' of op '{}' has no joules", i.name, p.ops[OpId(o)].name);
      i.seconds = *i.joules;
    }
  }
  p.links.clear();
  std::vector<CopyCost> copies;
  for (CopyCost& c : p.copies) {
    c.seconds = c.joules.value_or(0);
    if (c.joules) copies.push_back(c);
  }
  p.copies = std::move(copies);
  return p;
}

/// Without what cannot run under the budget that the certificate is about: the problem's own, or a larger one.
Problem runnable(Problem p, const JsonReader& certificate) {
  const auto own = p.devices;
  for (std::size_t d = 0; d < p.devices.size() && certificate.has("budget"); ++d) {
    Device& device = p.devices[DeviceId(d)];
    if (device.budget && device.name == certificate.string("device"))
      device.budget = std::max<Bytes>(*device.budget, certificate.integer("budget", 0));
  }
  Problem out = certificate::without_impossible(p);
  out.devices = own;
  return out;
}

}  // namespace

Certified certify(const Problem& given, const LowerBound& bound, Objective objective) {
  Certified result;
  try {
    const Json j = parse_json(bound.certificate, "certificate");
    const JsonReader r(j, "certificate");
    const std::string kind = r.string("kind");
    Problem problem = objective == Objective::kEnergy ? energies(given) : given;
    if (kind != "overlap") problem = runnable(std::move(problem), r);
    certificate::require(objective != Objective::kOverlap || kind == "overlap" || problem.devices.size() == 1,
                         "it is about serial seconds, which may be above overlapped ones");
    int unit = fine_unit(problem);
    certificate::Exact units = 0;
    if (kind == "floor") {
      units = certificate::View(problem, unit).floor();
    } else if (kind == "cut" || kind == "cuts") {
      unit = static_cast<int>(r.integer("unit_log2", -4000));
      certificate::require(r.string("scope") == "any order" || bound.valid_for == BoundScope::kThisOrder,
                           "it holds for one order only");
      units = kind == "cut" ? certificate::check_cut(problem, unit, j) : certificate::check_cuts(problem, unit, j);
    } else if (kind == "placement") {
      unit = static_cast<int>(r.integer("unit_log2", -4000));
      units = certificate::check_placement(problem, unit, j);
    } else if (kind == "overlap") {
      unit = static_cast<int>(r.integer("unit_log2", -4000));
      units = certificate::check_overlap(problem, unit, j);
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
