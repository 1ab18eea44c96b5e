#include "neaptide/session/trace.hpp"

#include "neaptide/base/json.hpp"

namespace neaptide::session {

namespace {

double microseconds(Seconds seconds) { return seconds * 1e6; }

Json meta(const char* what, int tid, const std::string& name) {
  return {{"ph", "M"}, {"pid", 1}, {"tid", tid}, {"name", what}, {"args", {{"name", name}}}};
}

}  // namespace

std::string perfetto_json(const runtime::Program& program, const std::string& device) {
  Json events = Json::array();
  events.push_back(meta("process_name", 0, "neaptide"));
  events.push_back(meta("thread_name", 1, device));
  const std::string counter = "bytes held on " + device;
  for (const runtime::StepEvent& e : program.trace()) {
    const double begin = microseconds(e.begin);
    const std::string name = program.step_name(e.step);
    if (!name.starts_with("free ")) {
      events.push_back({{"ph", "X"},
                        {"pid", 1},
                        {"tid", 1},
                        {"name", name},
                        {"ts", begin},
                        {"dur", microseconds(e.end) - begin},
                        {"args", {{"step", e.step}, {"bytes held", e.held}}}});
    }
    events.push_back({{"ph", "C"}, {"pid", 1}, {"name", counter}, {"ts", begin}, {"args", {{"bytes", e.held}}}});
  }
  return json_text({{"displayTimeUnit", "ms"},
                    {"otherData", {{"planned_peak", program.planned_peak()}, {"arena_bytes", program.arena_bytes()}}},
                    {"traceEvents", std::move(events)}});
}

}  // namespace neaptide::session
