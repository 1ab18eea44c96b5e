// The picture of a sweep: whole, finite, escaped, and no word lies on another.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "neaptide/report/curve_svg.hpp"

namespace neaptide::report {
namespace {

using testing::HasSubstr;
using testing::Not;

plan::Plan plan_of(Seconds seconds, Bytes peak) {
  plan::Plan p;
  p.steps = {plan::Compute{plan::OpId(0), 0}};
  p.cost.seconds = seconds;
  p.peak.push_back(peak);
  return p;
}

plan::Sweep example(Seconds scale, Bytes unit) {
  plan::Sweep s;
  s.problem = "a <network> & \"more\"";
  s.device = "cpu:0";
  s.device_id = plan::DeviceId(0);
  s.keep_all = 100 * unit;
  s.keep_all_cost = 2 * scale;
  s.once_each = 2 * scale;
  s.smallest = 20 * unit;
  s.proved = 15 * unit;
  s.free.cost = 2 * scale;
  s.free.found = 90 * unit;
  s.free.plan = plan_of(2 * scale, 90 * unit);
  s.budgets = {20 * unit, 60 * unit, 100 * unit};
  s.curves = {
      {"neaptide", {plan_of(2.6 * scale, 20 * unit), plan_of(2.2 * scale, 55 * unit), plan_of(2 * scale, 90 * unit)}},
      {"dtr", {plan_of(2.9 * scale, 30 * unit), plan_of(2.3 * scale, 70 * unit)}},
      {"last", {}}};
  plan::LowerBound high, low;
  high.seconds = 2.3 * scale;
  low.seconds = 2.1 * scale;
  s.bounds = {{20 * unit, high}, {60 * unit, low}};
  return s;
}

struct Box {
  double left, right, top, bottom;
  std::string text;
};

/// Upright words, the legend's too; 0.6 em is wider than the average letter.
std::vector<Box> words(const std::string& svg) {
  static const std::regex kText(
      "<text x=\"([-0-9.]+)\" y=\"([-0-9.]+)\" class=\"([a-z]*)\" text-anchor=\"([a-z]+)\">([^<]*)<");
  std::vector<Box> out;
  for (auto it = std::sregex_iterator(svg.begin(), svg.end(), kText); it != std::sregex_iterator(); ++it) {
    const double size = (*it)[3] == "title" ? 19 : 13, x = std::stod((*it)[1]), y = std::stod((*it)[2]);
    const double width = 0.6 * size * static_cast<double>((*it)[5].length());
    const double left = (*it)[4] == "end" ? x - width : (*it)[4] == "middle" ? x - width / 2 : x;
    out.push_back({left, left + width, y - 0.8 * size, y + 0.2 * size, (*it)[5]});
  }
  static const std::regex kLegend(
      "<g transform=\"translate\\(([0-9.]+) ([0-9.]+)\\)\">[^\n]*<text x=\"40\" y=\"4.5\">([^<]*)<");
  for (auto it = std::sregex_iterator(svg.begin(), svg.end(), kLegend); it != std::sregex_iterator(); ++it) {
    const double x = std::stod((*it)[1]), y = std::stod((*it)[2]) + 4.5;
    out.push_back({x, x + 40 + 0.6 * 13 * static_cast<double>((*it)[3].length()), y - 10.4, y + 2.6, (*it)[3]});
  }
  return out;
}

void expect_apart(const std::string& svg) {
  const std::vector<Box> all = words(svg);
  EXPECT_GT(all.size(), 20U);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_GE(all[i].left, 0) << all[i].text;
    EXPECT_LE(all[i].right, 960) << all[i].text;
    for (std::size_t j = 0; j < i; ++j) {
      const bool apart = all[i].right < all[j].left || all[j].right < all[i].left || all[i].bottom < all[j].top ||
                         all[j].bottom < all[i].top;
      EXPECT_TRUE(apart) << "'" << all[i].text << "' lies on '" << all[j].text << "'";
    }
  }
}

TEST(CurveSvg, SaysWhatItShows) {
  const std::string svg = curve_svg(example(0.1, 1 << 20));
  for (const char* part : {"a &lt;network&gt; &amp; &quot;more&quot;", "planned by neaptide", "planned by dtr",
                           "planned by last (no plan here)", "no extra time from 90.0 MiB (90.0 %)",
                           "smallest budget found: 20.0 MiB (20.0 %)", "keep everything: 100 MiB",
                           "proved: no plan in less than 15.0 MiB", "prefers-color-scheme: dark", "budget (MiB)"}) {
    EXPECT_THAT(svg, HasSubstr(part));
  }
  EXPECT_THAT(svg, Not(HasSubstr("<network>")));
}

TEST(CurveSvg, NoWordLiesOnAnother) {
  for (const Seconds scale : {1e-7, 0.1, 1.0, 5000.0}) {
    for (const Bytes unit : {Bytes{1}, Bytes{1000}, Bytes{1} << 20, Bytes{1} << 33, Bytes{1} << 45}) {
      expect_apart(curve_svg(example(scale, unit)));
    }
  }
}

TEST(CurveSvg, NumbersAreFiniteWhereverThereIsLittleToDraw) {
  plan::Sweep empty;
  empty.problem = "empty";
  plan::Sweep free_of_cost = example(0, 1 << 20);
  plan::Sweep point = example(1, 1 << 20);
  point.budgets = {point.keep_all};
  point.smallest = point.proved = point.keep_all;
  point.curves = {{"neaptide", {plan_of(2, point.keep_all)}}};
  for (const plan::Sweep& s : {empty, free_of_cost, point}) {
    const std::string svg = curve_svg(s);
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf")));
    EXPECT_THAT(svg, HasSubstr("</svg>"));
  }
}

}  // namespace
}  // namespace neaptide::report
