#include "program.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "neaptide/base/files.hpp"

namespace neaptide::testing_cli {

namespace {

[[noreturn]] void become(const std::vector<std::string>& arguments, const RunOptions& options, const std::string& out,
                         const std::string& err) {
  const int o = ::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  const int e = ::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  ::dup2(o, 1);
  ::dup2(e, 2);
  ::setenv("XDG_CACHE_HOME", folder().c_str(), 1);
  if (::chdir(folder().c_str()) != 0) ::_exit(99);
  if (options.file_size_limit > 0) {
    const rlimit limit = {static_cast<rlim_t>(options.file_size_limit), static_cast<rlim_t>(options.file_size_limit)};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    std::signal(SIGXFSZ, SIG_IGN);
  }
  std::vector<char*> argv = {const_cast<char*>(NEAPTIDE_PROGRAM)};
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  ::execv(NEAPTIDE_PROGRAM, argv.data());
  ::_exit(98);
}

void interrupt_when_said(pid_t child, const std::string& err, const std::string& what) {
  using namespace std::chrono_literals;
  for (int i = 0; i < 6000; ++i) {
    if (file_exists(err) && read_file(err).find(what) != std::string::npos) {
      ::kill(child, SIGINT);
      return;
    }
    std::this_thread::sleep_for(10ms);
  }
}

}  // namespace

const std::string& folder() {
  static const std::string made = [] {
    const std::filesystem::path p =
        std::filesystem::temp_directory_path() / ("neaptide-cli-" + std::to_string(::getpid()));
    std::filesystem::remove_all(p);
    std::filesystem::create_directories(p);
    return p.string();
  }();
  return made;
}

std::string path(const std::string& name) { return folder() + "/" + name; }

Result run(const std::vector<std::string>& arguments, const RunOptions& options) {
  const std::string out = path("stdout.txt"), err = path("stderr.txt");
  std::filesystem::remove(err);
  const pid_t child = ::fork();
  if (child == 0) become(arguments, options, out, err);
  if (!options.interrupt_after.empty()) interrupt_when_said(child, err, options.interrupt_after);
  int status = 0;
  ::waitpid(child, &status, 0);
  Result r;
  r.code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  r.out = read_file(out);
  r.err = read_file(err);
  return r;
}

std::string lenet() {
  static const std::string made = [] {
    const Result r = run({"zoo", "lenet", "--batch", "8", "-o", "lenet.onnx"});
    if (r.code != 0) throw std::runtime_error("zoo lenet fails: " + r.err);
    return path("lenet.onnx");
  }();
  return made;
}

}  // namespace neaptide::testing_cli
