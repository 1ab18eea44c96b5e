#include "neaptide/cli/interrupt.hpp"

#include <atomic>
#include <csignal>
#include <initializer_list>

namespace neaptide::cli {

namespace {

std::atomic<bool> g_raised{false};  // read by other threads, so no sig_atomic_t
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler must not lock");

void on_signal(int number) {
  g_raised = true;
  std::signal(number, SIG_DFL);
}

}  // namespace

InterruptFlag::InterruptFlag() {
  g_raised = false;
  for (const int number : {SIGINT, SIGTERM}) std::signal(number, on_signal);
}

InterruptFlag::~InterruptFlag() {
  for (const int number : {SIGINT, SIGTERM}) std::signal(number, SIG_DFL);
}

bool InterruptFlag::raised() { return g_raised; }

}  // namespace neaptide::cli
