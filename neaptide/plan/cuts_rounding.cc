// Exact arithmetic throughout: whatever floating-point multipliers come in, what comes out holds.
#include <algorithm>
#include <cmath>

#include "neaptide/plan/cuts_inequalities.hpp"

namespace neaptide::plan {
namespace {

constexpr double kLeastViolation = 1e-4;
constexpr double kLeastPart = 0.005;  // a remainder this close to nothing or all rounds badly
constexpr Wide kFine = 1 << 20;       // the largest factor of the result

/// Sums and products that tell when they no longer fit.
struct Checked {
  bool overflow = false;
  Wide times(Wide a, Wide b) {
    Wide out = 0;
    overflow = __builtin_mul_overflow(a, b, &out) || overflow;
    return out;
  }
  void add(Wide* sum, Wide x) { overflow = __builtin_add_overflow(*sum, x, sum) || overflow; }
};

Wide remainder(Wide a, Wide divisor) {
  const Wide r = a % divisor;
  return r < 0 ? r + divisor : r;
}

struct Row {
  const CutsTerms* terms;
  std::int64_t least;
};

Row row_of(const CutsModel& m, const std::vector<CutsInequality>& earlier, int row) {
  const int n = static_cast<int>(m.rows.size());
  if (row < n) return {&m.rows[row].terms, m.rows[row].least};
  return {&earlier[row - n].terms, earlier[row - n].least};
}

/// sum g x >= least over 0/1 values, by column.
struct Exact {
  std::vector<Wide> g;
  Wide least = 0;
};

/// Factors in steps of a power of two, at most about kFine of them, each made at least as large as it was in
/// proportion, or dropped against `least` where it is tiny; no factor needs to exceed what is asked for.
void coarse(const Exact& e, CutsInequality* out, int* step_log2) {
  Checked sum;
  Wide least = e.least, most = 0;
  for (const Wide g : e.g) {
    if (g < 0) sum.add(&least, -g);  // of 1 - x
  }
  if (sum.overflow || least <= 0) return;
  const auto size = [&](Wide g) { return std::min(g < 0 ? -g : g, least); };
  for (const Wide g : e.g) most = std::max(most, size(g));
  int log2 = 0;
  while ((most >> log2) > kFine) ++log2;
  const Wide step = Wide{1} << log2;
  const auto tiny = [&](Wide g) { return size(g) < step / 16; };
  Wide left = least;
  for (const Wide g : e.g) left -= tiny(g) ? size(g) : 0;
  if (left <= 0) return;
  left = (left + step - 1) / step;
  *step_log2 = log2;
  for (std::size_t c = 0; c < e.g.size(); ++c) {
    const Wide g = e.g[c];
    if (g == 0 || tiny(g)) continue;
    const Wide f = std::min(left, (size(g) + step - 1) / step);
    out->terms.emplace_back(static_cast<int>(c), static_cast<std::int64_t>(g < 0 ? -f : f));
    if (g < 0) out->least -= static_cast<std::int64_t>(f);
  }
  out->least += static_cast<std::int64_t>(left);
}

std::optional<CutsInequality> round_down(const CutsModel& m, const std::vector<CutsInequality>& earlier,
                                         CutsRounded how, const std::vector<double>& x) {
  Checked exact;
  Wide b = 0;
  std::vector<Wide> a(x.size());
  for (const auto& [r, multiplier] : how.rows) {
    const Row row = row_of(m, earlier, r);
    exact.add(&b, exact.times(multiplier, row.least));
    for (const auto& [c, factor] : *row.terms) exact.add(&a[c], exact.times(multiplier, factor));
  }
  for (std::size_t c = 0; c < x.size(); ++c) {
    if (a[c] == 0 || x[c] <= 0.5) continue;
    how.upper.push_back(static_cast<int>(c));
    exact.add(&b, -a[c]);
    a[c] = -a[c];
  }
  const Wide d = how.divisor, of_b = remainder(b, d);
  const double part = static_cast<double>(of_b) / static_cast<double>(d);
  if (exact.overflow || part < kLeastPart || part > 1 - kLeastPart) return std::nullopt;
  how.part = static_cast<std::int64_t>(of_b);
  const auto factor = [&](Wide z) {
    const Wide r = remainder(z, d);
    return std::min(exact.times(r, d - of_b), exact.times(of_b, d - r));
  };
  Exact e{std::vector<Wide>(x.size()), exact.times(of_b, d - of_b)};
  for (std::size_t c = 0; c < x.size(); ++c) {
    if (a[c] != 0) e.g[c] = factor(a[c]);
  }
  for (const int c : how.upper) {
    exact.add(&e.least, -e.g[c]);
    e.g[c] = -e.g[c];
  }
  for (const auto& [r, multiplier] : how.rows) {
    const Row row = row_of(m, earlier, r);
    const Wide f = factor(-static_cast<Wide>(multiplier));
    exact.add(&e.least, exact.times(f, row.least));
    for (const auto& [c, times] : *row.terms) exact.add(&e.g[c], exact.times(f, times));
  }
  if (exact.overflow) return std::nullopt;
  CutsInequality out;
  coarse(e, &out, &how.step_log2);
  if (out.terms.empty()) return std::nullopt;
  out.why = std::move(how);
  for (const auto& [c, f] : out.terms) out.scale = std::max(out.scale, static_cast<double>(std::abs(f)));
  return out;
}

}  // namespace

std::optional<CutsInequality> round_rows(const CutsModel& m, const std::vector<CutsInequality>& earlier,
                                         const std::vector<std::pair<int, double>>& multipliers,
                                         const std::vector<double>& x) {
  // The multipliers of bytes are small; they need some digits left all the same.
  const int fine = std::clamp(20 + static_cast<int>(std::log2(m.byte_scale)), 44, 56);
  CutsRounded how;
  how.divisor = std::int64_t{1} << fine;
  for (const auto& [r, y] : multipliers) {
    const double scaled = std::ldexp(y, fine);
    if (std::abs(scaled) > 4e18) return std::nullopt;
    if (const std::int64_t multiplier = std::llround(scaled); multiplier != 0) how.rows.emplace_back(r, multiplier);
  }
  if (how.rows.empty()) return std::nullopt;
  std::optional<CutsInequality> found = round_down(m, earlier, std::move(how), x);
  if (found && violation(*found, x) < kLeastViolation) found.reset();
  return found;
}

}  // namespace neaptide::plan
