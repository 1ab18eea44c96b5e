// SIGINT and SIGTERM as a flag, while an object of this class lives. A second signal ends the program as usual.
#pragma once

namespace neaptide::cli {

class InterruptFlag {
 public:
  InterruptFlag();
  ~InterruptFlag();
  InterruptFlag(const InterruptFlag&) = delete;
  InterruptFlag& operator=(const InterruptFlag&) = delete;
  /// Since the last one began to live.
  static bool raised();
};

}  // namespace neaptide::cli
