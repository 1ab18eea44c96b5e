// The matrices of a plan as blocks of text.
#pragma once

#include "neaptide/cli/verb.hpp"

namespace neaptide::cli {

/// One row per stage, folded to the terminal's width ($COLUMNS, else what the terminal says, else 80), and a legend.
/// Blocks where the locale is UTF-8, letters elsewhere; colours as Console has them.
void show_matrices(Console& console, const plan::Problem& problem, const plan::Plan& plan);

}  // namespace neaptide::cli
