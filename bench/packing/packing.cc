// Packing: load, top and time of every packer on minimalloc CSV files and on the keep-all plans of problem files.
//
//   bench_packing [--capacity BYTES] FILE.csv|FILE.json ...
//
// Without --capacity the number in a file name such as A.1048576.csv is the capacity.
#include <fmt/core.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "neaptide/base/errors.hpp"
#include "neaptide/memory/csv.hpp"
#include "neaptide/plan/simulate.hpp"

namespace {

using namespace neaptide;

std::vector<memory::Block> blocks_of(const std::string& path) {
  if (std::filesystem::path(path).extension() == ".csv") return memory::read_csv(path).blocks;
  const plan::Problem problem = plan::read_problem(path);
  return memory::lifetimes(problem, plan::keep_all_steps(problem)).front().blocks;
}

std::optional<Bytes> capacity_in_name(const std::string& path) {
  const std::string middle = std::filesystem::path(path).stem().extension().string();
  if (middle.size() < 2 || middle.find_first_not_of("0123456789", 1) != std::string::npos) return std::nullopt;
  return parse_bytes(middle.substr(1));
}

void measure(const std::string& path, std::optional<Bytes> capacity) {
  const std::vector<memory::Block> blocks = blocks_of(path);
  const Bytes load = memory::load(blocks);
  for (const memory::Packer& packer : memory::packers()) {
    memory::PackOptions options;
    options.capacity = capacity;
    options.packer = std::string(packer.name);
    const auto begin = std::chrono::steady_clock::now();
    const memory::Offsets out = memory::pack(blocks, options);
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    const char* verdict = out.optimal ? "optimal" : capacity && out.top <= *capacity ? "fits" : "";
    fmt::print("{:28} {:10} {:6} {:14} {:14} {:8.3f} {:9.3f}  {}\n", std::filesystem::path(path).stem().string(),
               packer.name, blocks.size(), load, out.top,
               load > 0 ? static_cast<double>(out.top) / static_cast<double>(load) : 1.0, spent.count(), verdict);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::optional<Bytes> capacity;
    int first = 1;
    if (argc > 2 && std::string(argv[1]) == "--capacity") {
      capacity = parse_bytes(argv[2], "capacity");
      first = 3;
    }
    if (first >= argc) throw UserError("no files; usage: bench_packing [--capacity BYTES] FILE.csv|FILE.json ...");
    fmt::print("{:28} {:10} {:>6} {:>14} {:>14} {:>8} {:>9}\n", "file", "packer", "blocks", "load", "top", "top/load",
               "seconds");
    for (int i = first; i < argc; ++i) measure(argv[i], capacity ? capacity : capacity_in_name(argv[i]));
    return 0;
  } catch (const Error& e) {
    fmt::print(stderr, "bench_packing: {}\n", e.what());
    return 2;
  }
}
