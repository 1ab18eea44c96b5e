#include "neaptide/plan/energy.hpp"

#include "neaptide/base/errors.hpp"
#include "neaptide/plan/simulate.hpp"

namespace neaptide::plan {
namespace {

Seconds as_seconds(const Op& op, const Impl& impl) {
  if (!impl.joules)
    throw UserError("objective 'energy' needs the joules of every implementation; '{}' of op '{}' has none", impl.name,
                    op.name);
  if (*impl.joules < 0)
    throw UserError("implementation '{}' of op '{}' takes {} joules; energy is not negative", impl.name, op.name,
                    *impl.joules);
  return *impl.joules;
}

}  // namespace

Problem in_joules(const Problem& problem) {
  Problem out = problem;
  for (std::size_t o = 0; o < out.ops.size(); ++o) {
    for (Impl& impl : out.ops[OpId(o)].impls) impl.seconds = as_seconds(out.ops[OpId(o)], impl);
  }
  out.links.clear();
  std::erase_if(out.copies, [](const CopyCost& c) { return !c.joules; });
  for (CopyCost& c : out.copies) c.seconds = *c.joules;
  try {
    keep_all_steps(out);
  } catch (const UserError& e) {
    throw UserError("objective 'energy' needs the joules of copies, as entries of 'copies': without them, {}",
                    e.what());
  }
  return out;
}

}  // namespace neaptide::plan
