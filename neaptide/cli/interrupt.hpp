// SIGINT and SIGTERM as a flag, while an object of this class lives. A second signal ends the program as usual.
#pragma once

namespace neaptide::cli {

class InterruptFlag {
 public:
  InterruptFlag();
  ~InterruptFlag();
  InterruptFlag(const InterruptFlag&) = delete;
  InterruptFlag& operator=(const InterruptFlag&) = delete;
  bool raised() const;
};

}  // namespace neaptide::cli
