// Add, Sub, Mul, Div with numpy broadcasting (and DivGradB), Sum, SumTo (the adjoint of broadcasting), ExpandTo
// (broadcasting and scaling); see ops.hpp.
#pragma once

#include "neaptide/graph/op_def.hpp"

namespace neaptide::ops {

std::vector<graph::OpDef> arithmetic_ops();

}  // namespace neaptide::ops
