#include "neaptide/cli/interrupt.hpp"

#include <csignal>
#include <initializer_list>

namespace neaptide::cli {

namespace {

volatile std::sig_atomic_t g_raised = 0;

void on_signal(int number) {
  g_raised = 1;
  std::signal(number, SIG_DFL);
}

}  // namespace

InterruptFlag::InterruptFlag() {
  g_raised = 0;
  for (const int number : {SIGINT, SIGTERM}) std::signal(number, on_signal);
}

InterruptFlag::~InterruptFlag() {
  for (const int number : {SIGINT, SIGTERM}) std::signal(number, SIG_DFL);
}

bool InterruptFlag::raised() const { return g_raised != 0; }

}  // namespace neaptide::cli
