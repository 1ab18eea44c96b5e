#include "neaptide/report/curve_svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "neaptide/base/text.hpp"

namespace neaptide::report {
namespace {

constexpr double kWidth = 960, kLeft = 104, kRight = 104, kTop = 108, kPlotHeight = 340;
constexpr double kRow = 24;  // of the legend
constexpr double kPlotWidth = kWidth - kLeft - kRight;
constexpr double kBottom = kTop + kPlotHeight;

// Okabe and Ito's colours, which people with any colour vision can tell apart; one class per planner.
constexpr const char* kStyle = R"(<style>
text { font-family: system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; font-size: 13px; fill: #24292f; }
.ground { fill: #ffffff; }
.title { font-size: 19px; font-weight: 600; }
.soft { fill: #57606a; }
.grid { stroke: #d0d7de; stroke-width: 1; }
.axis { stroke: #57606a; stroke-width: 1.2; }
.curve { fill: none; stroke-width: 2.4; stroke-linejoin: round; }
.c0 { stroke: #0072b2; } .c1 { stroke: #d55e00; } .c2 { stroke: #009e73; } .c3 { stroke: #cc79a7; }
.c4 { stroke: #b58900; } .c5 { stroke: #6e7781; }
.bound { fill: none; stroke: #0072b2; stroke-width: 1.6; stroke-dasharray: 2 3; }
.between { fill: #0072b2; fill-opacity: 0.16; }
.hatch { stroke: #8c959f; stroke-width: 1; }
.mark { fill: #ffffff; stroke: #24292f; stroke-width: 2; }
.ring { fill: none; stroke: #24292f; stroke-width: 2; }
.solid { fill: #24292f; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; }
.ground { fill: #0d1117; }
.soft { fill: #9da7b3; }
.grid { stroke: #30363d; }
.axis { stroke: #9da7b3; }
.c0 { stroke: #56b4e9; } .c1 { stroke: #ff8c42; } .c2 { stroke: #2fcf9b; } .c3 { stroke: #e39cc4; }
.c4 { stroke: #f0c541; } .c5 { stroke: #9da7b3; }
.bound { stroke: #56b4e9; }
.between { fill: #56b4e9; fill-opacity: 0.2; }
.hatch { stroke: #6e7681; }
.mark { fill: #0d1117; stroke: #e6edf3; }
.ring { stroke: #e6edf3; }
.solid { fill: #e6edf3; }
}
</style>
)";

constexpr std::array<const char*, 6> kDashes = {"", "9 4", "4 3", "12 4 3 4", "7 3 2 3 2 3", "2 5"};

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') out += "&amp;";
    if (c == '<') out += "&lt;";
    if (c == '>') out += "&gt;";
    if (c == '"') out += "&quot;";
    if (std::string_view("&<>\"").find(c) == std::string_view::npos)
      out += static_cast<unsigned char>(c) < 32 ? ' ' : c;
  }
  return out;
}

std::string shortened(const std::string& text, std::size_t most) {
  return text.size() <= most ? text : text.substr(0, most - 3) + "...";
}

/// 1, 2 or 5 times a power of ten, so that `range` has at most `n` steps.
double nice_step(double range, int n) {
  const double raw = range / n, power = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double m : {1.0, 2.0, 5.0}) {
    if (m * power >= raw * (1 - 1e-9)) return m * power;
  }
  return 10 * power;
}

std::string percent(double share) { return fmt::format("{:.{}f} %", 100 * share, share < 0.9995 ? 1 : 0); }

/// Decimals that tell two neighbours on an axis apart.
int digits_of(double step) {
  return step > 0 ? std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 9) : 0;
}

struct CostUnit {
  double factor;
  std::string name;
};

CostUnit cost_unit(double cost, plan::Objective objective) {
  constexpr std::array<const char*, 4> kPrefixes = {"", "m", "u", "n"};
  CostUnit out{1, ""};
  for (std::size_t i = 1; i < kPrefixes.size() && cost < out.factor; ++i) out = {out.factor / 1000, kPrefixes[i]};
  out.name += objective == plan::Objective::kEnergy ? "J" : "s";
  return out;
}

struct Unit {
  double bytes;
  const char* name;
};

Unit unit_for(double bytes) {
  constexpr std::array<Unit, 6> kUnits = {{{1, "B"},
                                           {1024, "KiB"},
                                           {1048576, "MiB"},
                                           {1073741824, "GiB"},
                                           {1099511627776, "TiB"},
                                           {1125899906842624, "PiB"}}};
  Unit out = kUnits[0];
  for (const Unit& u : kUnits) {
    if (bytes >= 1.5 * u.bytes) out = u;
  }
  return out;
}

/// A step function: `y` holds from `x` (upper curves) or up to `x` (bounds).
struct Knot {
  double x, y;
};

class Picture {
 public:
  explicit Picture(const plan::Sweep& sweep) : s_(sweep) {
    for (const plan::Curve& c : s_.curves) uppers_.push_back(upper(c));
    for (const plan::BoundAt& b : s_.bounds) {
      bound_.push_back({static_cast<double>(b.budget), plan::overhead(s_, b.bound.seconds)});
    }
    if (bound_.empty() || bound_.back().x < high()) bound_.push_back({1e300, floor_overhead()});
    choose_ranges();
  }

  std::string text() {
    const std::vector<std::string> legend = legend_rows();
    const std::size_t n_rows = (legend.size() + 1) / 2;
    const double height = kBottom + 66 + kRow * static_cast<double>(n_rows) + 14;
    out_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:g} {1:g}\" width=\"{0:g}\" height=\"{1:g}\" "
        "role=\"img\">\n<title>{2}</title>\n",
        kWidth, height, escaped(s_.problem));
    out_ += kStyle;
    out_ += fmt::format(
        "<defs><clipPath id=\"plot\"><rect x=\"{:g}\" y=\"{:g}\" width=\"{:g}\" height=\"{:g}\"/></clipPath>\n"
        "<pattern id=\"hatch\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" "
        "patternTransform=\"rotate(45)\"><line class=\"hatch\" x1=\"0\" y1=\"0\" x2=\"0\" "
        "y2=\"7\"/></pattern></defs>\n",
        kLeft, kTop - 8, kPlotWidth, kPlotHeight + 16);
    out_ += fmt::format("<rect class=\"ground\" width=\"{:g}\" height=\"{:g}\"/>\n", kWidth, height);
    heading();
    axes();
    areas();
    curves();
    marks();
    for (std::size_t i = 0; i < legend.size(); ++i) {
      const std::size_t row_of = i / 2;
      out_ += fmt::format("<g transform=\"translate({:g} {:g})\">{}</g>\n", i % 2 == 0 ? kLeft : kLeft + 380,
                          kBottom + 78 + kRow * static_cast<double>(row_of), legend[i]);
    }
    return out_ + "</svg>\n";
  }

 private:
  std::vector<Knot> upper(const plan::Curve& curve) const {
    std::vector<Knot> out;
    for (const plan::Plan& p : curve.plans) {
      out.push_back({static_cast<double>(plan::extent(p, s_.device_id)), plan::overhead(s_, plan::cost_of(s_, p))});
    }
    return out;
  }

  double low() const {
    double x = static_cast<double>(s_.budgets.empty() ? s_.keep_all : s_.budgets.front());
    if (s_.smallest > 0) x = std::min(x, static_cast<double>(s_.smallest));
    return std::min(x, static_cast<double>(std::max(s_.proved, s_.keep_all / 64)));
  }
  double high() const {
    double x = static_cast<double>(std::max(s_.keep_all, s_.free.found));
    return s_.budgets.empty() ? x : std::max(x, static_cast<double>(s_.budgets.back()));
  }
  double floor_overhead() const { return s_.bounds.empty() ? 0 : std::min(0.0, bound_.back().y); }

  void choose_ranges() {
    const double range = std::max(high() - low(), 1e-2 * std::max(1.0, high()));
    x0_ = std::max(0.0, low() - 0.05 * range);
    x1_ = high() + 0.03 * range;
    double most = 0, least = 0, all = 0;
    for (std::size_t c = 0; c < uppers_.size(); ++c) {
      for (const Knot& k : uppers_[c]) {
        if (k.x > x1_) continue;
        if (c == 0) most = std::max(most, k.y);
        all = std::max(all, k.y);
      }
    }
    most = std::max(most, keep_all_overhead());
    most = std::min(std::max(most, all), 2.5 * std::max(most, 0.1));
    for (const Knot& k : bound_) least = std::min(least, k.y);
    if (most - least < 1e-3) most = least + 1e-3;
    y_step_ = nice_step(most - least, 6);
    y1_ = y_step_ * std::ceil(most / y_step_ - 1e-9);
    y0_ = least < -1e-9 ? -y_step_ * std::ceil(-least / y_step_ - 1e-9) : 0;
  }

  double px(double x) const { return kLeft + kPlotWidth * (std::clamp(x, x0_, x1_) - x0_) / (x1_ - x0_); }
  double py(double y) const { return kBottom - kPlotHeight * (std::min(y, 2 * y1_) - y0_) / (y1_ - y0_); }
  bool energy() const { return s_.objective == plan::Objective::kEnergy; }
  double keep_all_overhead() const { return plan::overhead(s_, s_.keep_all_cost); }

  void say(double x, double y, std::string_view text, const char* style = "", const char* anchor = "start") {
    out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\" text-anchor=\"{}\">{}</text>\n", x, y, style,
                        anchor, escaped(text));
  }
  void line(double xa, double ya, double xb, double yb, const char* style) {
    out_ += fmt::format("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", style, xa, ya,
                        xb, yb);
  }

  void heading() {
    say(kLeft, 34, shortened(s_.problem, 72), "title");
    const char* noun = energy() ? "Energy" : "Time";
    std::string what = fmt::format("{} of a step against the memory budget of {}", noun, shortened(s_.device, 24));
    const std::string least = energy() ? fmt::format("{:.4g} J", s_.free.cost) : format_seconds(s_.free.cost);
    if (s_.free.cost > 0) what += fmt::format("; without a budget it takes {}", least);
    say(kLeft, 56, what, "soft");
  }

  void axes() {
    const int digits = digits_of(100 * y_step_);
    const CostUnit unit_of_cost = cost_unit((1 + y1_) * s_.free.cost, s_.objective);
    const int cost_digits = digits_of(y_step_ * s_.free.cost / unit_of_cost.factor);
    for (int i = 0; y0_ + i * y_step_ <= y1_ + y_step_ / 2; ++i) {
      const double y = y0_ + i * y_step_, p = std::abs(y) < y_step_ / 1e6 ? 0 : 100 * y;
      line(kLeft, py(y), kWidth - kRight, py(y), "grid");
      say(kLeft - 10, py(y) + 4.5, fmt::format("{}{:.{}f} %", p > 0 ? "+" : "", p, p == 0 ? 0 : digits), "soft", "end");
      if (s_.free.cost <= 0) continue;
      const double t = std::max(0.0, (1 + y) * s_.free.cost / unit_of_cost.factor);
      say(kWidth - kRight + 10, py(y) + 4.5, fmt::format("{:.{}f} {}", t, cost_digits, unit_of_cost.name), "soft");
    }
    const Unit unit = unit_for(x1_);
    const double step = nice_step((x1_ - x0_) / unit.bytes, 8) * unit.bytes;
    for (double x = step * std::ceil(x0_ / step - 1e-9); x <= x1_; x += step) {
      line(px(x), kBottom, px(x), kBottom + 5, "axis");
      say(px(x), kBottom + 21, fmt::format("{:g}", std::round(x / unit.bytes * 1e6) / 1e6), "soft", "middle");
    }
    say(kLeft + kPlotWidth / 2, kBottom + 44, fmt::format("budget ({})", unit.name), "", "middle");
    if (s_.keep_all > 0) share_axis();
    line(kLeft, kBottom, kWidth - kRight, kBottom, "axis");
    line(kLeft, kTop, kLeft, kBottom, "axis");
    line(kWidth - kRight, kTop, kWidth - kRight, kBottom, "axis");
    turned(24, energy() ? "extra energy" : "extra time");
    if (s_.free.cost > 0) turned(kWidth - 16, energy() ? "energy of a step" : "time of a step");
  }

  void turned(double x, const char* text) {
    out_ += fmt::format("<text transform=\"translate({:g} {:g}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n", x,
                        kTop + kPlotHeight / 2, text);
  }

  /// Above the plot: per cent of the keep-all peak.
  void share_axis() {
    const auto all = static_cast<double>(s_.keep_all);
    const double step = nice_step((x1_ - x0_) / all, 8);
    for (double share = step * std::ceil(x0_ / all / step - 1e-9); share * all <= x1_; share += step) {
      line(px(share * all), kTop - 5, px(share * all), kTop, "axis");
      say(px(share * all), kTop - 11, fmt::format("{:g} %", std::round(share * 1e6) / 1e4), "soft", "middle");
    }
    line(kLeft, kTop, kWidth - kRight, kTop, "axis");
    say(kWidth - kRight, kTop - 30, "of the memory that keeping everything takes", "soft", "end");
  }

  /// Corners of a step curve over [from, to], left to right.
  static std::vector<Knot> corners(const std::vector<Knot>& knots, bool holds_from, double from, double to) {
    std::vector<Knot> out;
    if (holds_from) {
      for (std::size_t i = 0; i < knots.size(); ++i) {
        const double end = i + 1 < knots.size() ? knots[i + 1].x : to;
        if (end <= from || knots[i].x > to) continue;
        out.push_back({std::max(knots[i].x, from), knots[i].y});
        out.push_back({std::min(end, to), knots[i].y});
      }
      return out;
    }
    double begin = from;
    for (const Knot& k : knots) {
      if (k.x <= begin || begin >= to) continue;
      out.push_back({begin, k.y});
      begin = std::min(k.x, to);
      out.push_back({begin, k.y});
    }
    return out;
  }

  std::string path(const std::vector<Knot>& list, const char* first) const {
    std::string d;
    for (const Knot& k : list) d += fmt::format("{}{:.1f} {:.1f}", d.empty() ? first : "L", px(k.x), py(k.y));
    return d;
  }

  void areas() {
    const double left = px(static_cast<double>(s_.proved));
    if (left > kLeft + 0.5) {
      out_ += fmt::format("<rect x=\"{:g}\" y=\"{:g}\" width=\"{:.1f}\" height=\"{:g}\" fill=\"url(#hatch)\"/>\n",
                          kLeft, kTop, left - kLeft, kPlotHeight);
    }
    if (uppers_.empty() || uppers_[0].empty() || s_.bounds.empty()) return;
    const double from = std::max(x0_, uppers_[0].front().x);
    const std::vector<Knot> top = corners(uppers_[0], true, from, x1_);
    std::vector<Knot> bottom = corners(bound_, false, from, x1_);
    std::reverse(bottom.begin(), bottom.end());
    out_ += fmt::format("<path class=\"between\" clip-path=\"url(#plot)\" d=\"{}{}Z\"/>\n", path(top, "M"),
                        path(bottom, "L"));
  }

  void curves() {
    if (!s_.bounds.empty()) {
      const double from = std::max(x0_, static_cast<double>(s_.proved));
      out_ += fmt::format("<path class=\"bound\" clip-path=\"url(#plot)\" d=\"{}\"/>\n",
                          path(corners(bound_, false, from, x1_), "M"));
    }
    for (std::size_t c = uppers_.size(); c-- > 0;) {
      out_ +=
          fmt::format("<path class=\"curve c{}\" stroke-dasharray=\"{}\" clip-path=\"url(#plot)\" d=\"{}\"/>\n",
                      c % kDashes.size(), kDashes[c % kDashes.size()], path(corners(uppers_[c], true, x0_, x1_), "M"));
    }
  }

  static std::string diamond(double x, double y) {
    return fmt::format("<path class=\"solid\" d=\"M{:.1f} {:.1f}l5 5l-5 5l-5 -5Z\"/>", x, y - 5);
  }
  static std::string ring(double x, double y) {
    return fmt::format("<circle class=\"ring\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"7.5\"/>", x, y);
  }
  static std::string square(double x, double y) {
    return fmt::format("<rect class=\"mark\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"9\" height=\"9\"/>", x - 4.5, y - 4.5);
  }

  void marks() {
    if (keep_all_overhead() <= y1_) out_ += diamond(px(static_cast<double>(s_.keep_all)), py(keep_all_overhead()));
    if (s_.free.plan) out_ += ring(px(static_cast<double>(s_.free.found)), py(0));
    for (const auto& upper : uppers_) {
      if (upper.empty() || upper.front().x != static_cast<double>(s_.smallest)) continue;
      if (upper.front().y <= y1_) out_ += square(px(upper.front().x), py(upper.front().y));
      break;
    }
    out_ += "\n";
  }

  std::string size(Bytes bytes) const {
    const double share = s_.keep_all == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(s_.keep_all);
    return fmt::format("{} ({})", format_bytes(bytes), percent(share));
  }

  static std::string row(const std::string& sign, const std::string& text) {
    return fmt::format("{}<text x=\"40\" y=\"4.5\">{}</text>", sign, escaped(text));
  }

  /// Filled column by column in pairs: curves to the left, points to the right.
  std::vector<std::string> legend_rows() const {
    std::vector<std::string> left, right, out;
    for (std::size_t c = 0; c < s_.curves.size(); ++c) {
      const std::string note = s_.curves[c].plans.empty() ? " (no plan here)" : "";
      left.push_back(row(fmt::format("<path class=\"curve c{}\" stroke-dasharray=\"{}\" d=\"M0 0H30\"/>",
                                     c % kDashes.size(), kDashes[c % kDashes.size()]),
                         "planned by " + shortened(s_.curves[c].planner, 16) + note));
    }
    if (!s_.bounds.empty()) {
      left.push_back(row("<path class=\"bound\" d=\"M0 0H30\"/>",
                         energy() ? "proved: no plan takes less" : "proved: no plan is faster"));
      left.push_back(
          row("<rect class=\"between\" x=\"0\" y=\"-7\" width=\"30\" height=\"14\"/>", "the optimum lies in between"));
    }
    if (s_.smallest > 0) {
      right.push_back(row(square(15, 0), fmt::format("smallest budget found: {}", size(s_.smallest))));
    }
    if (s_.free.plan)
      right.push_back(
          row(ring(15, 0), fmt::format("no extra {} from {}", energy() ? "energy" : "time", size(s_.free.found))));
    right.push_back(row(diamond(15, 0), fmt::format("keep everything: {}", format_bytes(s_.keep_all))));
    right.push_back(row("<rect x=\"0\" y=\"-7\" width=\"30\" height=\"14\" fill=\"url(#hatch)\"/>",
                        fmt::format("proved: no plan in less than {}", format_bytes(s_.proved))));
    for (std::size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
      out.push_back(i < left.size() ? left[i] : "");
      out.push_back(i < right.size() ? right[i] : "");
    }
    return out;
  }

  const plan::Sweep& s_;
  std::vector<std::vector<Knot>> uppers_;
  std::vector<Knot> bound_;
  double x0_ = 0, x1_ = 1, y0_ = 0, y1_ = 1, y_step_ = 1;
  std::string out_;
};

}  // namespace

std::string curve_svg(const plan::Sweep& sweep) { return Picture(sweep).text(); }

}  // namespace neaptide::report
