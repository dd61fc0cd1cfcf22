#include "sim/site/bank_process.hpp"

#include <algorithm>
#include <utility>

namespace lockstep {
namespace {

constexpr std::uint32_t kBankPurpose = 0x4241;  // draws independent of all others of a run
constexpr RunTime kHorizon = INT64_MAX / 2;

}  // namespace

BankProcess::BankProcess(UnitBank bank, std::uint64_t seed, std::uint32_t trajectory,
                         std::uint32_t number)
    : bank_(std::move(bank)),
      draws_(
          {.seed = seed, .trajectory = trajectory, .component = number, .purpose = kBankPurpose}) {
  draw();
}

void BankProcess::draw() {
  if (bank_.mean_time <= Seconds{}) return;
  const int repaired = bank_.crews > 0 ? std::min(down_, bank_.crews) : down_;
  const double failing = (bank_.units - down_) / bank_.mean_time.base_units();
  const double mending = repaired / bank_.repair.base_units();
  const double wait = draws_.exponential() / (failing + mending);
  fails_ = draws_.uniform() * (failing + mending) < failing;
  const double ns = wait * 1e9;
  next_ =
      ns < static_cast<double>(kHorizon - last_) ? last_ + static_cast<RunTime>(ns) + 1 : INT64_MAX;
}

void BankProcess::advance(RunTime now) {
  while (next_ <= now) {
    down_ += fails_ ? 1 : -1;
    last_ = next_;
    next_ = INT64_MAX;
    draw();
  }
}

}  // namespace lockstep
