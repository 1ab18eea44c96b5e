// What the operating system says about this process and machine.
#pragma once

#include <string>

#include "neaptide/base/units.hpp"

namespace neaptide::session {

Bytes resident_bytes();       // now; 0 where the system does not say
Bytes peak_resident_bytes();  // the most so far
Bytes machine_bytes();        // physical memory
std::string cpu_name();
std::string huge_page_mode();  // "always", "madvise", "never", "unknown"

}  // namespace neaptide::session
