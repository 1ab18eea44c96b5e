// A lower bound of the overlapped seconds of any plan (rule 8), for any order and any budget.
//
//   plan::LowerBound b = plan::overlap_bound(problem);   // certificate of kind "overlap", checked by plan::certify
//
// The larger of two:
//   path    a value cannot be on a device before some way of making it, from values that are there, has ended, or a
//           copy from where it was; the end is the latest of the ops and kept values that no plan avoids. The
//           certificate names for every value and device a time before which the value is not there.
//   lanes   necessary ops that can only run on the devices of some set keep those lanes busy: the sum of their shortest
//           seconds over the number of devices. For all devices and for each alone; the certificate names the set.
#pragma once

#include "neaptide/plan/plan.hpp"

namespace neaptide::plan {

LowerBound overlap_bound(const Problem& problem);

}  // namespace neaptide::plan
