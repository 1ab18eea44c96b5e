// The ONNX project's own node tests, for the operators that are read: each must give the expected outputs under the
// reference kernels, or be refused exactly as node_refusals.txt says (NEAPTIDE_REWRITE=1 writes that file anew).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "neaptide/base/files.hpp"
#include "neaptide/base/text.hpp"
#include "neaptide/graph/text.hpp"
#include "neaptide/ops/interpret.hpp"
#include "tests/onnx/models.hpp"
#include "tests/onnx/python.hpp"

namespace neaptide::onnx {
namespace {

using graph::DType;
using graph::Graph;
using graph::Tensor;
using graph::ValueId;

template <class T>
std::string compare_numbers(const Tensor& got, const Tensor& expected) {
  const auto a = got.as<T>(), b = expected.as<T>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    if (!(std::abs(x - y) <= 1e-6 + 1e-3 * std::abs(y))) return fmt::format("element {} is {}, expected {}", i, x, y);
  }
  return "";
}

/// What differs; empty when nothing does.
std::string compare(const Tensor& got, const Tensor& expected) {
  if (got.type != expected.type)
    return fmt::format("type is {}, expected {}", graph::to_string(got.type), graph::to_string(expected.type));
  if (got.type.dtype == DType::kF32) return compare_numbers<float>(got, expected);
  if (got.type.dtype == DType::kF64) return compare_numbers<double>(got, expected);
  return got == expected ? "" : "integers differ";
}

Tensor named(const Graph& values, const std::string& name) {
  const ValueId v = graph::find_value(values, name);
  return v.valid() ? values.data.at(v) : Tensor();
}

/// Runs a case that could be read; what differs from the expectation, or nothing.
std::string run(const Graph& g, const Graph& values) {
  ops::Feeds feeds;
  for (const ValueId v : graph::values_of_kind(g, graph::ValueKind::kInput))
    feeds.emplace(v, named(values, "in " + g.values[v].name));
  const ops::Values results = ops::interpret(g, ops::all(), feeds);
  for (const ValueId v : g.outputs) {
    const Tensor expected = named(values, "out " + g.values[v].name);
    if (!expected.data) return "output '" + g.values[v].name + "' is not expected";
    const std::string wrong = compare(results[v], expected);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

TEST(OnnxNodes, GiveTheExpectedOutputsOrAreRefusedAsListed) {
  if (const std::string why = no_python(); !why.empty()) GTEST_SKIP() << why;
  const std::string folder = fresh_folder("node_cases"), log = folder + ".log";
  ASSERT_EQ(run_python("write_node_cases.py", folder, log), 0) << read_file(log);

  std::vector<std::string> cases;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    cases.push_back(entry.path().filename().string());
  std::sort(cases.begin(), cases.end());
  std::string refused = "onnx " + read_file(log);
  int passed = 0;
  for (const std::string& name : cases) {
    const std::string at = folder + "/" + name;
    const Graph values = graph::from_text(read_file(at + "/values.txt"), ops::all(), name);
    try {
      const std::string wrong = run(parse(read_file(at + "/model.onnx"), ops::all(), {}, name), values);
      EXPECT_EQ(wrong, "") << name;
      ++passed;
    } catch (const UserError& e) {
      refused += std::string(e.what()) + "\n";
    }
  }
  const std::string list = std::string(NEAPTIDE_SOURCE_DIR) + "/tests/onnx/node_refusals.txt";
  if (std::getenv("NEAPTIDE_REWRITE") != nullptr) write_file_atomically(list, refused);
  const std::string listed = read_file(list);
  if (split(listed, '\n').front() == split(refused, '\n').front()) {
    EXPECT_EQ(refused, listed);
  }
  EXPECT_GT(passed, 200);
  RecordProperty("passed", passed);
}

}  // namespace
}  // namespace neaptide::onnx
