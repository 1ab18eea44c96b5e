#include "neaptide/session/backends.hpp"

#include <algorithm>
#include <array>
#include <thread>

#include "neaptide/backends/cpu/cpu.hpp"
#include "neaptide/backends/reference/reference.hpp"
#include "neaptide/base/errors.hpp"
#include "neaptide/base/text.hpp"

namespace neaptide::session {

namespace {

constexpr const char* kNotYet = "this version has no such backend";

// Sorted by name.
const std::array kBackends = {
    runtime::BackendEntry{"cpu", "oneDNN and own loops in blocked formats", backends::cpu::make, ""},
    runtime::BackendEntry{"cuda", "cuBLAS and cuDNN", nullptr, kNotYet},
    runtime::BackendEntry{"opencl", "OpenCL devices", nullptr, kNotYet},
    runtime::BackendEntry{"reference", "plain loops on one thread, for tests", backends::reference::make, ""},
};

}  // namespace

std::span<const runtime::BackendEntry> backends() { return kBackends; }

std::unique_ptr<runtime::Backend> make_backend(const std::string& name, int threads) {
  std::vector<std::string> known;
  for (const runtime::BackendEntry& e : kBackends) {
    if (e.make != nullptr) known.emplace_back(e.name);
    if (e.name != name) continue;
    if (e.make == nullptr) throw UserError("backend '{}' is not built: {}", name, e.not_built_because);
    const int all = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    return e.make(threads > 0 ? threads : all);
  }
  throw UserError("there is no backend '{}'{}; there are {}", name, did_you_mean(name, known), join(known, ", "));
}

}  // namespace neaptide::session
