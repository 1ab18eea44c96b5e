// A sweep as a picture: cost against budget, one self-contained SVG without scripts or fonts of its own, readable on
// light and on dark ground.
//
//   write_file_atomically("curve.svg", report::curve_svg(plan::sweep(problem, options)));
//
// Every planner's plans are a step curve; the proved bound is one too, and the area between it and the first planner
// is where the optimum lies. Left of the smallest budget: hatched where it is proved that no plan exists.
#pragma once

#include <string>

#include "neaptide/plan/sweep.hpp"

namespace neaptide::report {

std::string curve_svg(const plan::Sweep& sweep);

}  // namespace neaptide::report
