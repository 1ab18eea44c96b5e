// Models as free-format MPS text, with the names that people gave them (blanks become underscores), so that any other
// solver can be asked. Numbers are printed so that they read back to the same bits.
#pragma once

#include <string>
#include <string_view>

#include "neaptide/milp/model.hpp"

namespace neaptide::milp {

std::string to_mps(const Model& model);

/// Throws UserError naming the place and the line. Reads free-format MPS: NAME, OBJSENSE MIN, ROWS, COLUMNS with
/// integer markers, RHS, RANGES, BOUNDS, ENDATA.
Model from_mps(std::string_view text, std::string_view place);

}  // namespace neaptide::milp
