#include "neaptide/cli/cli.hpp"

int main(int argc, char** argv) {
  return neaptide::cli::run(std::vector<std::string>(argv + 1, argv + argc), stdout, stderr);
}
