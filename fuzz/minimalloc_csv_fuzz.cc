#include "fuzz/input.hpp"
#include "neaptide/memory/csv.hpp"

using namespace neaptide;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::offer(data, size, [](std::string_view text) {
    const memory::CsvBlocks blocks = memory::csv_from_text(text, "fuzz.csv");
    ensure(memory::csv_from_text(memory::to_csv(blocks), "again.csv") == blocks, "blocks change when written and read");
    memory::PackOptions options;
    options.effort = 20'000;
    memory::pack(blocks.blocks, options);  // verifies its answer
  });
}
