// Stands in for the solver where none was found when this was built.
#include "neaptide/base/errors.hpp"
#include "neaptide/milp/relaxation.hpp"
#include "neaptide/milp/solve.hpp"

namespace neaptide::milp {

std::string why_not_built() {
  return "HiGHS was not found; tools/setup installs it (PyPI 'highsbox') into the environment NEAPTIDE_VENV";
}

std::string solver_name() { return ""; }

Solution solve(const Model& model, const SolveOptions&) {
  throw UserError("model '{}' needs a solver of integer programmes, which is not built, because {}", model.name,
                  why_not_built());
}

struct Relaxation::Solver {};

Relaxation::Relaxation(const Model& model) {
  throw UserError("model '{}' needs a solver of linear programmes, which is not built, because {}", model.name,
                  why_not_built());
}
Relaxation::~Relaxation() = default;
Relaxation::Relaxation(Relaxation&&) noexcept = default;
void Relaxation::bound(Var, double, double) {}
void Relaxation::add_row(double, double, const std::vector<Term>&) {}
void Relaxation::remove_rows(const std::vector<int>&) {}
void Relaxation::start_from(const Relaxation&) {}
std::vector<char> Relaxation::idle_rows() const { return {}; }
std::vector<int> Relaxation::basic() const { return {}; }
std::vector<std::pair<int, double>> Relaxation::tableau_row(int) const { return {}; }
Relaxation::Outcome Relaxation::solve(std::int64_t) { return Outcome::kStopped; }

}  // namespace neaptide::milp
