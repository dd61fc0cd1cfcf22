#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fmt/chrono.h>
#include <iostream>
#include <optional>
#include <string>
#include <unistd.h>

#include "tools/calibrate/calibrate.hpp"
#include "tools/calibrate/program/cuda_card.hpp"
#ifdef LOCKSTEP_NCCL_LIBRARY
#include "tools/calibrate/nccl/nccl_communicator.hpp"
#endif

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
      .date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr))),
      .environment = [](const char* name) -> std::optional<std::string> {
        const char* const value = std::getenv(name);
        return value == nullptr ? std::nullopt : std::optional<std::string>(value);
      },
#ifdef LOCKSTEP_NCCL_LIBRARY
      .open_communicator = lockstep::open_nccl_communicator,
#else
      .open_communicator = {},
#endif
      .end_now = [](lockstep::CalibrateExit status) { std::_Exit(static_cast<int>(status)); }};
  const std::vector<std::string> args(argv + 1, argv + argc);
  return static_cast<int>(lockstep::run_calibrate(args, console, world));
}
