// The graph's text form: read or refused with a sentence; what is read gives the same text again when written.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "neaptide/base/errors.hpp"
#include "neaptide/graph/text.hpp"
#include "neaptide/ops/ops.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace neaptide;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.find("sha256:") != std::string_view::npos) return 0;  // stands for up to 16 GiB of zeros
  graph::Graph g;
  try {
    g = graph::from_text(text, ops::all(), "input");
  } catch (const UserError&) {
    return 0;
  }
  const std::string written = graph::to_text(g);
  if (graph::to_text(graph::from_text(written, ops::all(), "written")) != written) std::abort();
  return 0;
}
