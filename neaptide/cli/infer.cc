// neaptide infer: a model's answers for samples.
#include <algorithm>

#include "neaptide/cli/model_flags.hpp"
#include "neaptide/cli/plan_text.hpp"

namespace neaptide::cli {

namespace {

struct Flags {
  ModelFlags model;
  PlanFlags plan;
  std::string data = "fashion-mnist", input, output;
  std::int64_t count = 10;
};

/// Runs `n` samples through the model, batch after batch; the last one is padded with its first sample.
std::vector<float> run_all(session::Evaluator& evaluator, std::int64_t n,
                           const std::function<void(std::int64_t, std::span<float>)>& sample) {
  const session::InferenceModel& m = evaluator.model();
  const graph::Graph& g = m.prepared.graph;
  const auto batch = static_cast<std::size_t>(m.batch);
  const auto width = static_cast<std::size_t>(g.values[m.inputs.front()].type.elements()) / batch;
  std::vector<float> in(width * batch), out;
  for (std::int64_t first = 0; first < n; first += m.batch) {
    const std::int64_t real = std::min(m.batch, n - first);
    for (std::int64_t i = 0; i < m.batch; ++i) {
      sample(first + (i < real ? i : 0), std::span(in).subspan(static_cast<std::size_t>(i) * width, width));
    }
    const std::vector<float> got = evaluator.infer(in);
    const std::size_t each = got.size() / batch;
    out.insert(out.end(), got.begin(),
               got.begin() + static_cast<std::ptrdiff_t>(each * static_cast<std::size_t>(real)));
  }
  return out;
}

int infer_file(const Flags& flags, session::Evaluator& evaluator, Console& console) {
  const session::TensorFile file = session::read_tensors(flags.input);
  if (file.tensors.size() != 1)
    throw UserError("'{}' has {} tensors; it must have one, the samples", flags.input, file.tensors.size());
  const graph::Tensor& x = file.tensors.front().second;
  const session::InferenceModel& m = evaluator.model();
  const graph::Value& input = m.prepared.graph.values[m.inputs.front()];
  graph::Shape expected = input.type.shape;
  if (!x.type.shape.empty()) expected.front() = x.type.shape.front();
  if (x.type.dtype != graph::DType::kF32 || x.type.shape != expected || x.type.elements() == 0) {
    const graph::Shape rest(expected.begin() + 1, expected.end());
    throw UserError("'{}' holds {}; input '{}' needs f32[Nx{}]", flags.input, to_string(x.type), input.name,
                    graph::to_string(rest));
  }
  const std::int64_t n = x.type.shape.front();
  const std::span<const float> values = x.as<float>();
  const std::size_t width = values.size() / static_cast<std::size_t>(n);
  const std::vector<float> out = run_all(evaluator, n, [&](std::int64_t i, std::span<float> to) {
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(i) * width), width, to.begin());
  });
  const graph::Value& y = m.prepared.graph.values[m.output];
  graph::Shape shape = y.type.shape;
  shape.front() = n;
  session::TensorFile answer;
  answer.tensors.emplace_back(y.name, graph::tensor_of(graph::DType::kF32, shape, out));
  if (flags.output.empty()) throw UserError("with --input the answers need a place: give --output FILE.safetensors");
  write_file_atomically(flags.output, session::to_safetensors(answer));
  console.note(fmt::format("{} samples answered in '{}'", n, flags.output));
  return kOk;
}

int infer_data(const Flags& flags, session::Evaluator& evaluator, Console& console) {
  const session::DataSet data = session::open_data(flags.data, session::Part::kTest);
  const std::int64_t n = std::min(flags.count, data.n);
  const session::InferenceModel& m = evaluator.model();
  const graph::Value& input = m.prepared.graph.values[m.inputs.front()];
  if (input.type.elements() != m.batch * data.sample_elements()) {
    throw UserError("the samples of '{}' are {}, but input '{}' is {} (batch {})", data.name,
                    graph::to_string(data.sample), input.name, graph::to_string(input.type.shape), m.batch);
  }
  const std::vector<float> out =
      run_all(evaluator, n, [&](std::int64_t i, std::span<float> to) { data.write_sample(i, to); });
  const std::size_t width = out.size() / static_cast<std::size_t>(n);
  Json rows = Json::array();
  std::vector<std::vector<std::string>> table = {{"sample", "class", "score", "label"}};
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
    const std::span<const float> row = std::span(out).subspan(i * width, width);
    const auto best = std::max_element(row.begin(), row.end()) - row.begin();
    const float score = row[static_cast<std::size_t>(best)];
    rows.push_back({{"sample", i}, {"class", best}, {"score", score}, {"label", data.labels[i]}});
    table.push_back(
        {std::to_string(i), std::to_string(best), fmt::format("{:.4f}", score), std::to_string(data.labels[i])});
  }
  if (console.json) {
    console.value(rows);
  } else {
    console.table(table);
  }
  return kOk;
}

int infer(const Flags& flags, Console& console) {
  const session::ModelOptions options = options_of(flags.model, flags.plan, console);
  session::InferenceModel model = session::make_inference_model(load(flags.model, options), options);
  session::choose_plan(model.prepared, flags.plan.budgets, options);
  console.end_progress();
  if (!model.prepared.feasible()) {
    show_plan(console, model.prepared.lowered.problem, model.prepared.plan);
    return exit_of(model.prepared.plan);
  }
  session::Evaluator evaluator(std::move(model));
  return flags.input.empty() ? infer_data(flags, evaluator, console) : infer_file(flags, evaluator, console);
}

std::function<int()> declare(CLI::App& app, Console& console) {
  auto flags = std::make_shared<Flags>();
  app.add_option("MODEL", flags->model.path, "an ONNX model")->required();
  app.add_option("--data", flags->data, "test samples of a data set")->capture_default_str();
  app.add_option("--count", flags->count, "how many of them")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--input", flags->input, "a safetensors file with one f32 tensor: the samples, instead of --data");
  app.add_option("-o,--output", flags->output, "where the answers to --input go");
  declare_plan_flags(app, flags->plan);
  declare_model_flags(app, flags->model);
  return [flags, &console] { return infer(*flags, console); };
}

}  // namespace

const Verb kInferVerb = {"infer", "Runs samples through a model.", declare};

}  // namespace neaptide::cli
