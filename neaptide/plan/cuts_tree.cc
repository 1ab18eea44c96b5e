#include "neaptide/plan/cuts_tree.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <future>
#include <iterator>

namespace neaptide::plan {
namespace {

constexpr double kProved = 1e-6;  // relative: a bound in integers may be that much weaker than its relaxation
constexpr int kMostRounds = 6;    // of inequalities at the root; more find little, and every node has one
constexpr std::int64_t kWorkPerKept = 1000;  // of the work allowed: what a certificate may hold grows with it
constexpr std::int64_t kLeastKept = 20'000, kMostKept = 600'000;  // multipliers in all leaves
constexpr Wide kLeastShare = 50;  // part of what is left to decide that a term of CutsCheaper takes
constexpr Wide kMostFactor = Wide{1} << 60;
constexpr int kManyNodes = 500;  // before a dive begins at other leaves too
constexpr std::size_t kDives = 4;
constexpr int kNodesAlone = 50;              // before a second worker is worth its start
constexpr std::size_t kFewOpen = 4;          // leaves: not to be shared
constexpr std::int64_t kNodesPerRound = 12;  // of each worker

}  // namespace

CutsTree::CutsTree(const CutsModel& model) : m_(model), first_(model) {}

std::int64_t CutsTree::work() const { return first_.work() + (second_ ? second_->work() : 0); }
int CutsTree::n_nodes() const { return first_.n_nodes() + (second_ ? second_->n_nodes() : 0); }

/// What the root's multipliers say of solutions that cost less than the target, coarse enough for integers of 64 bits.
void CutsTree::keep_cheaper() {
  constexpr int kBits = 40;
  cheaper_than_ = than_;
  Wide base = 0;
  const std::vector<Wide> left = first_.left_by(root_.multipliers, &base);
  Wide most = ((than_ - 1 - m_.floor_units) << -price_log2()) - base;  // of sum left x
  const Wide size = most < 0 ? -most : most;
  int step_log2 = 0;
  while (size >> (step_log2 + kBits) > 0) ++step_log2;
  most >>= step_log2;
  CutsInequality out{CutsCheaper{root_.multipliers, than_}, {}, static_cast<std::int64_t>(-most)};
  Wide spare = most;
  for (const Wide l : left) spare -= std::min<Wide>(0, l >> step_log2);
  for (std::size_t c = 0; c < left.size(); ++c) {
    const Wide factor = left[c] >> step_log2;
    if (factor < -kMostFactor) return;
    if (factor < 0 || factor * kLeastShare > spare)
      out.terms.emplace_back(static_cast<int>(c), -static_cast<std::int64_t>(std::min(factor, kMostFactor)));
  }
  if (second_) second_->add(out);
  first_.add(std::move(out));
}

CutsNode CutsTree::root() {
  CutsNode root = first_.evaluate({});
  for (int round = 0; round < kMostRounds && root.estimate < 1e299; ++round) {
    if (root.leaf.units >= target_ || root.integral || first_.at_end() || first_.tighten(true) == 0) break;
    first_.settle();
    root = first_.evaluate(root.leaf);
  }
  if (root.leaf.units < target_ && !root.integral) {
    root_ = root.leaf;
    keep_cheaper();
    root = first_.evaluate(root.leaf);
  }
  return root;
}

Wide CutsTree::units(const std::vector<char>& solution) const {
  Wide sum = m_.floor_units;
  for (std::size_t c = 0; c < solution.size(); ++c) sum += solution[c] ? m_.cost[c] : 0;
  return sum;
}

Wide CutsTree::bound() const {
  Wide least = -1;
  const auto take = [&](const CutsNode& n) {
    if (least < 0 || n.leaf.units < least) least = n.leaf.units;
  };
  for (const CutsNode& n : nodes_.open) take(n);
  for (const CutsNode& n : nodes_.done) take(n);
  return least < 0 ? m_.floor_units : std::min(least, than_);
}

std::vector<CutsLeaf> CutsTree::leaves() const {
  std::vector<CutsLeaf> out;
  for (const CutsNode& n : nodes_.done) out.push_back(n.leaf);
  for (const CutsNode& n : nodes_.open) out.push_back(n.leaf);
  return out;
}

std::optional<std::vector<char>> CutsTree::dive(const std::function<bool()>& stop) {
  const auto least = nodes_.least();
  if (least == nodes_.open.end()) return std::nullopt;
  std::vector<const CutsLeaf*> from = {&least->leaf};
  std::optional<std::vector<char>> best;
  if (n_nodes() >= kManyNodes) {  // the deeper, the less is left to chance
    for (const CutsNode& n : nodes_.open) {
      if (n.leaf.units < target_ && &n != &*least) from.push_back(&n.leaf);
    }
    std::stable_sort(from.begin() + 1, from.end(),
                     [](const CutsLeaf* a, const CutsLeaf* b) { return a->fixed.size() > b->fixed.size(); });
    from.resize(std::min(from.size(), kDives));
  }
  for (const CutsLeaf* leaf : from) {
    auto one = first_.dive(*leaf, stop);
    if (one && (!best || units(*one) < units(*best))) best = std::move(one);
  }
  return best;
}

/// Whether the node, whose relaxation was whole, is so still and proves what it costs. Keeps it as relaxed().
bool CutsTree::take_solution(CutsNode* node) {
  CutsNode again = first_.evaluate(node->leaf);  // inequalities may have left the relaxation since
  again.refined = node->refined;
  *node = std::move(again);
  const double proves = static_cast<double>(node->leaf.units - m_.floor_units) / m_.cost_scale;
  if (!node->integral || node->leaf.units >= target_) return false;
  if (proves < node->estimate - kProved * std::max(1.0, node->estimate)) return false;  // too large for integers
  relaxed_.clear();
  for (const double x : first_.values()) relaxed_.push_back(x > 0.5 ? 1 : 0);
  return true;
}

void CutsTree::work_alone() {
  first_.step(nodes_.least(), &nodes_);
  CutsNodes none;
  if (second_) {
    first_.share(second_.get(), &none);
  } else {
    first_.settle();
  }
}

/// Deals the open leaves out, the best ones in turn, and gathers what becomes of them.
void CutsTree::work_together(bool beside) {
  if (!second_) {
    second_ = std::make_unique<CutsWorker>(first_);
    second_->aim(target_, than_, end_ - work());
  }
  std::stable_sort(nodes_.open.begin(), nodes_.open.end(),
                   [](const CutsNode& a, const CutsNode& b) { return a.leaf.units < b.leaf.units; });
  std::array<CutsNodes, 2> shares;
  for (std::size_t i = 0; i < nodes_.open.size(); ++i) shares[i % 2].open.push_back(std::move(nodes_.open[i]));
  nodes_.open.clear();
  const std::int64_t round = kNodesPerRound * (work() / n_nodes());
  const auto go_on = [&](CutsWorker* worker, CutsNodes* share) {
    const std::int64_t end = worker->work() + round;
    while (worker->work() < end) {
      const auto least = share->least();
      if (least == share->open.end() || least->leaf.units >= target_ || worker->is_solution(*least)) return;
      worker->step(least, share);
    }
  };
  auto other = std::async(beside ? std::launch::async : std::launch::deferred, go_on, second_.get(), &shares[1]);
  go_on(&first_, &shares[0]);
  other.get();
  first_.share(second_.get(), &shares[1]);
  for (CutsNodes& share : shares) {
    std::move(share.open.begin(), share.open.end(), std::back_inserter(nodes_.open));
    std::move(share.done.begin(), share.done.end(), std::back_inserter(nodes_.done));
  }
}

CutsTree::End CutsTree::run(Wide target, std::int64_t work_left, const std::function<bool()>& stop,
                            const std::function<bool()>& beside) {
  end_ = work() + work_left;
  target_ = target;
  than_ = std::min(than_, target);
  first_.aim(target, than_, work_left);
  if (second_) second_->aim(target, than_, work_left);
  if (cheaper_than_ > 0 && cheaper_than_ - than_ > (cheaper_than_ - root_.units) / kLeastShare) keep_cheaper();
  const auto most_kept = static_cast<std::size_t>(std::clamp(work_left / kWorkPerKept, kLeastKept, kMostKept));
  if (nodes_.open.empty() && nodes_.done.empty()) nodes_.open.push_back(root());
  while (true) {
    const auto least = nodes_.least();
    if (least == nodes_.open.end() || least->leaf.units >= target)
      return bound() >= target ? End::kReached : End::kStopped;
    if (work() >= end_ || nodes_.kept() > most_kept || stop()) return End::kStopped;
    if (first_.is_solution(*least)) {
      if (take_solution(&*least)) return End::kRelaxed;
      if (first_.is_solution(*least)) work_alone();
    } else if (n_nodes() < kNodesAlone || nodes_.open.size() < kFewOpen) {
      work_alone();
    } else {
      work_together(beside());
    }
  }
}

}  // namespace neaptide::plan
