#include <chrono>
#include <ctime>
#include <fmt/chrono.h>
#include <iostream>
#include <unistd.h>

#include "tools/calibrate/calibrate.hpp"
#include "tools/calibrate/cuda/cuda_card.hpp"

int main(int argc, char** argv) {
  lockstep::Console console{.out = std::cout,
                            .err = std::cerr,
                            .style = lockstep::style_of_terminal(::isatty(STDOUT_FILENO) == 1),
                            .err_is_terminal = ::isatty(STDERR_FILENO) == 1};
  const lockstep::CalibrateWorld world{
      .open_card = lockstep::open_cuda_card,
      .seconds =
          [] {
            const auto now = std::chrono::steady_clock::now().time_since_epoch();
            return std::chrono::duration<double>(now).count();
          },
      .date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)))};
  const std::vector<std::string> args(argv + 1, argv + argc);
  return static_cast<int>(lockstep::run_calibrate(args, console, world));
}
