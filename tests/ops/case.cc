#include "case.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "neaptide/autodiff/autodiff.hpp"
#include "neaptide/base/files.hpp"
#include "neaptide/base/json.hpp"
#include "neaptide/ops/ops.hpp"

namespace neaptide::ops {
namespace {

using graph::Attr;
using graph::DType;
using graph::Tensor;
using graph::ValueId;

bool real(DType dtype) { return dtype == DType::kF32 || dtype == DType::kF64; }

std::string attr_text(const Attr& attr) {
  if (const auto* i = std::get_if<std::int64_t>(&attr)) return fmt::format("{}", *i);
  if (const auto* f = std::get_if<double>(&attr)) return fmt::format("{}", *f);
  if (const auto* s = std::get_if<std::string>(&attr)) return *s;
  if (const auto* is = std::get_if<std::vector<std::int64_t>>(&attr)) return graph::to_string(*is);
  return "...";
}

MakeOp maker(const Case& c) {
  return [c](graph::Builder& b, const std::vector<ValueId>& inputs) {
    return std::vector<ValueId>{b.add(c.op, inputs, c.attrs)};
  };
}

Case cast(Case c, DType dtype) {
  for (Tensor& t : c.inputs) t = to_dtype(t, dtype);
  return c;
}

Feeds feeds_of(const Built& built, const Case& c, const Tensor& dy) {
  Feeds feeds;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) feeds[built.inputs[i]] = c.inputs[i];
  if (built.dy.valid()) feeds[built.dy] = dy;
  return feeds;
}

// ---- fixtures ------------------------------------------------------------------------------------------------------

Attr attr_from(const Json& j) {
  if (j.is_string()) return j.get<std::string>();
  if (j.is_number_integer()) return j.get<std::int64_t>();
  if (j.is_number()) return j.get<double>();
  const bool integers = std::all_of(j.begin(), j.end(), [](const Json& v) { return v.is_number_integer(); });
  if (integers) return j.get<std::vector<std::int64_t>>();
  return j.get<std::vector<double>>();
}

Tensor tensor_from(const Json& j) {
  if (j.contains("dtype"))
    return integers(j["shape"].get<graph::Shape>(), j["values"].get<std::vector<std::int64_t>>());
  return reals(j["shape"].get<graph::Shape>(), j["values"].get<std::vector<double>>());
}

void check_fixture(const Json& j, DType dtype, double tolerance) {
  Case c{.op = j["op"].get<std::string>(), .inputs = {}};
  for (const auto& [key, value] : j["attrs"].items()) c.attrs[key] = attr_from(value);
  for (const Json& input : j["inputs"]) c.inputs.push_back(to_dtype(tensor_from(input), dtype));
  const bool backward = j.contains("gradients");
  const Built built = build(c, backward);
  const Values values = evaluate(built, c, backward ? to_dtype(tensor_from(j["dy"]), dtype) : Tensor{});
  const std::string what = fmt::format("{} ({})", j["name"].get<std::string>(), describe(c));
  const auto compare = [&](ValueId actual, const Json& expected, const std::string& which) {
    expect_close(values[actual], to_dtype(tensor_from(expected), dtype), tolerance, what + ", " + which);
  };
  compare(built.y, j["output"], "output");
  if (!backward) return;
  for (std::size_t i = 0; i < j["gradients"].size(); ++i) {
    if (!j["gradients"][i].is_null()) compare(built.gradients[i], j["gradients"][i], fmt::format("gradient {}", i));
  }
}

}  // namespace

std::string describe(const Case& c) {
  std::string text = c.op;
  for (const Tensor& t : c.inputs) text += " " + graph::to_string(t.type);
  for (const auto& [key, value] : c.attrs) text += fmt::format(" {}={}", key, attr_text(value));
  return text;
}

Built build(const Case& c, bool with_gradient) {
  graph::Builder b(all());
  Built built;
  std::vector<ValueId> wrt;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    built.inputs.push_back(b.input(fmt::format("in{}", i), c.inputs[i].type));
    const bool fixed = std::find(c.fixed.begin(), c.fixed.end(), i) != c.fixed.end();
    if (real(c.inputs[i].type.dtype) && !fixed) wrt.push_back(built.inputs[i]);
  }
  built.gradients.resize(c.inputs.size());
  built.y = b.add(c.op, built.inputs, c.attrs);
  std::vector<ValueId> outputs = {built.y};
  if (with_gradient) {
    built.dy = b.input("dy", b.graph().values[built.y].type);
    const std::vector<ValueId> found = autodiff::append_backward(b, {built.y}, {built.dy}, wrt);
    for (std::size_t w = 0; w < wrt.size(); ++w) {
      built.gradients[wrt[w].index()] = found[w];
      if (found[w].valid()) outputs.push_back(found[w]);
    }
  }
  built.graph = b.take(outputs);
  return built;
}

Values evaluate(const Built& built, const Case& c, const Tensor& dy) {
  return interpret(built.graph, all(), feeds_of(built, c, dy));
}

void check_case(const Case& c) {
  SCOPED_TRACE(describe(c));
  check_op(c.inputs, maker(c), {.tolerance = 1e-7, .f32_tolerance = 2e-5, .constant = c.fixed});
  const bool differentiable = all().at(c.op).gradient != nullptr;
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    const Case typed = cast(c, dtype);
    const Built built = build(typed, differentiable);
    const Tensor dy = to_dtype(random_tensor(built.graph.values[built.y].type.shape, 5), dtype);
    expect_implementations_agree(built.graph, feeds_of(built, typed, dy));
  }
}

std::vector<std::string> implementation_names(const Case& c) {
  const Built built = build(c, all().at(c.op).gradient != nullptr);
  std::vector<std::string> names;
  for (const graph::Node& node : built.graph.nodes) {
    for (const auto& implementation : all().at(node.op).implementations({built.graph, node}))
      names.push_back(node.op + "." + implementation.spec.name);
  }
  return names;
}

void check_fixtures(const std::string& file) {
  const Json root = parse_json(read_file(std::string(NEAPTIDE_SOURCE_DIR "/tests/fixtures/") + file), file);
  ASSERT_FALSE(root["cases"].empty());
  for (const Json& j : root["cases"]) {
    check_fixture(j, DType::kF64, 1e-10);
    check_fixture(j, DType::kF32, 1e-5);
  }
}

std::string refusal(const Case& c) { return refusal(c.inputs, maker(c)); }

}  // namespace neaptide::ops
