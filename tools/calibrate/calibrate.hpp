/// The program lockstep-calibrate as a function: words in, text, a profile and exit status out.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tools/calibrate/card.hpp"
#include "tools/calibrate/communicator.hpp"
#include "tools/console/console.hpp"

namespace lockstep {

enum class CalibrateExit : int {
  ok = 0,
  failed = 1,         ///< a call failed or hangs, or a result was wrong; what is good is written
  bad_input = 2,      ///< the command line, a preset, the output file
  no_card = 3,        ///< none, or a busy or too small one, or too few: nothing is measured
  interrupted = 130,  ///< by Ctrl-C or SIGTERM; what was measured until then is written
};

/// What the program needs from outside.
struct CalibrateWorld {
  /// Opens card number `device` for the program alone. Throws CardUnavailable, or UsageError for
  /// a number that there is not.
  std::function<std::unique_ptr<Card>(int device)> open_card;
  std::function<double()> seconds;  ///< a clock that only goes forward
  std::string date;                 ///< of today: "2026-11-21"
  Environment environment;
  /// Joins all processes of the launch, with one GPU each; a process that is alone takes all GPUs
  /// of its machine. Throws CardUnavailable. Empty: built without NCCL, and there is no --nccl.
  std::function<std::unique_ptr<Communicator>(const CommunicatorStart&)> open_communicator;
  /// How long a call may take beyond what it was thought to; assumed: cuDNN compiles a kernel
  /// within seconds, and a driver that lost its card never answers.
  Seconds patience{120};
  /// Ends the program from any thread, though another is inside such a call.
  std::function<void(CalibrateExit)> end_now;
};

/// Runs `lockstep-calibrate ARGS...`.
CalibrateExit run_calibrate(const std::vector<std::string>& args, Console& console,
                            const CalibrateWorld& world);

}  // namespace lockstep
