/// For calls that may never come back: a driver that lost its card, a rank that died and leaves the
/// others waiting inside NCCL.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>

#include "models/base/units.hpp"

namespace lockstep {

/// Calls `action` with the name of the call, on a thread of its own, where a call takes longer than
/// its patience. The action has to end the program: the thread that made the call is lost. Until
/// then it may read what that thread has left: a call that comes back after all waits for the
/// action.
class HangGuard {
 public:
  explicit HangGuard(std::function<void(const char* call)> action);
  ~HangGuard();
  HangGuard(const HangGuard&) = delete;
  HangGuard& operator=(const HangGuard&) = delete;

  /// A call that is being watched until the object goes; one at a time.
  class Watched {
   public:
    Watched(HangGuard& guard, const char* call, Seconds patience);
    ~Watched();
    Watched(const Watched&) = delete;
    Watched& operator=(const Watched&) = delete;

   private:
    HangGuard& guard_;
  };

 private:
  static constexpr double kNever = 1e300;
  void keep_watch();

  std::function<void(const char*)> action_;
  std::atomic<double> deadline_ = kNever;  ///< on the steady clock, seconds
  std::atomic<const char*> call_ = nullptr;
  std::atomic<bool> over_ = false;
  std::mutex acting_;
  std::thread thread_;
};

}  // namespace lockstep
