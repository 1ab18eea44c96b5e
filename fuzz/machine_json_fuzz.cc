#include "fuzz/input.hpp"
#include "neaptide/cost/machine.hpp"

using namespace neaptide;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::offer(data, size, [](std::string_view text) {
    const cost::Machine machine = cost::machine_from_json(text, "fuzz.json");
    ensure(cost::machine_from_json(cost::to_json(machine), "again.json") == machine,
           "a machine changes when written and read");
  });
}
