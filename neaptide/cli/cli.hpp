// Arguments in, text and an exit code out.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

namespace neaptide::cli {

/// `arguments` without the program's name.
int run(const std::vector<std::string>& arguments, std::FILE* out, std::FILE* err);

}  // namespace neaptide::cli
