// What a step did, as a trace that Perfetto and chrome://tracing open: one track per lane, a counter for the bytes
// held. Format: the Trace Event Format of Chrome (JSON object with "traceEvents"; times in microseconds).
#pragma once

#include <string>

#include "neaptide/runtime/program.hpp"

namespace neaptide::session {

/// Of the program's last run; it must have been compiled with `trace`.
std::string perfetto_json(const runtime::Program& program, const std::string& device);

}  // namespace neaptide::session
