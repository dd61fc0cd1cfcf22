// A run of weeks against a twin that lives through every second of it and keeps all of them: the
// same wall time, books, checkpoints and stops, whatever fails when.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <doctest/doctest.h>
#include <optional>
#include <vector>

#include "sim/core/random.hpp"
#include "sim/run/trajectory.hpp"
#include "tests/sim/core/test_seed.hpp"

namespace lockstep {
namespace {

using Count = std::int64_t;  ///< of seconds

Count whole_seconds(Seconds time) { return to_run_time(time) / to_run_time(Seconds{1}); }

/// Crashes and hangs of a log, any number of tiers, spares without end. Nothing is skipped, summed
/// or remembered but the bucket of every second.
class EverySecond {
 public:
  explicit EverySecond(const Campaign& campaign) : c_(campaign), saved_(campaign.tiers.size()) {
    begin_intervals();
    const Count end = whole_seconds(c_.work);
    while (work_ < end && !given_up()) {
      if (failure_now()) {
        stop();
      } else if (std::ranges::any_of(due_, [&](Count due) { return due <= now(); })) {
        for (std::size_t t = 0; t < due_.size(); ++t) {
          if (due_[t] <= now()) save(t);
        }
      } else {
        seconds_.push_back(RunBucket::productive);
        ++work_;
      }
    }
  }

  [[nodiscard]] Count wall() const { return now(); }
  [[nodiscard]] Count in(RunBucket bucket) const { return std::ranges::count(seconds_, bucket); }
  [[nodiscard]] std::uint32_t checkpoints() const { return checkpoints_; }
  [[nodiscard]] std::uint32_t stops() const { return stops_; }

 private:
  struct Saved {
    Count work, kept, whole;
  };

  [[nodiscard]] Count now() const { return static_cast<Count>(seconds_.size()); }
  [[nodiscard]] bool failure_now() const {
    return met_ < c_.log.size() && c_.log[met_].at == to_run_time(Seconds{1}) * now();
  }
  /// Checkpoints that are due again before the others are written leave no time to train.
  [[nodiscard]] bool given_up() const { return now() >= kGivenUpAfter * whole_seconds(c_.work); }
  /// False: a failure came between, or the end.
  bool spend(RunBucket bucket, Count seconds) {
    for (; seconds > 0; --seconds) {
      if (failure_now() || given_up()) return false;
      seconds_.push_back(bucket);
    }
    return !given_up();
  }
  void begin_intervals() {
    due_.clear();
    for (const CheckpointTier& tier : c_.tiers)
      due_.push_back(now() + whole_seconds(tier.interval));
  }
  void save(std::size_t t) {
    const CheckpointTier& tier = c_.tiers[t];
    while (!saved_[t].empty() && saved_[t].back().whole > now()) {
      if (!spend(RunBucket::checkpoint, 1)) return;
    }
    if (!spend(RunBucket::checkpoint, whole_seconds(tier.blocks))) return;
    saved_[t].push_back({work_, now(), now() + whole_seconds(tier.finishes)});
    due_[t] = now() + whole_seconds(tier.interval);
    ++checkpoints_;
  }

  void stop() {
    ++stops_;
    bool again = true;
    while (again) {
      const FailureMode& mode = c_.modes[c_.log[met_++].mode];
      const Count reads = fall_back(mode.scope);
      const Seconds notices =
          mode.effect == FailureEffect::hang ? c_.recovery.detects_hang : c_.recovery.detects_crash;
      again = !spend(RunBucket::detection, whole_seconds(notices)) ||
              !spend(RunBucket::diagnosis, whole_seconds(c_.recovery.diagnoses)) ||
              !spend(RunBucket::restart, whole_seconds(c_.recovery.restarts) + reads);
      again = again && !given_up();
    }
    begin_intervals();
  }
  /// To the most work that is saved, and of as much to what is read soonest. Seconds of reading.
  Count fall_back(FailureScope scope) {
    std::optional<std::size_t> best;
    for (std::size_t t = 0; t < saved_.size(); ++t) {
      const bool gone = scope == FailureScope::node && !c_.tiers[t].survives_node;
      std::erase_if(saved_[t], [&](const Saved& saved) { return gone || saved.whole > now(); });
      if (saved_[t].empty()) continue;
      const auto sooner = [&] {
        const Count ours = saved_[t].back().work, other = saved_[*best].back().work;
        return ours > other || (ours == other && c_.tiers[t].restores < c_.tiers[*best].restores);
      };
      if (!best || sooner()) best = t;
    }
    const Saved to = best ? saved_[*best].back() : Saved{0, 0, 0};
    for (auto second = static_cast<std::size_t>(to.kept); second < seconds_.size(); ++second) {
      RunBucket& bucket = seconds_[second];
      if (bucket == RunBucket::productive || bucket == RunBucket::checkpoint) {
        bucket = RunBucket::lost;
      }
    }
    for (std::vector<Saved>& saved : saved_) {
      std::erase_if(saved, [&](const Saved& each) { return each.work > to.work; });
    }
    work_ = to.work;
    return best ? whole_seconds(c_.tiers[*best].restores) : 0;
  }

  const Campaign& c_;
  std::vector<RunBucket> seconds_;
  std::vector<std::vector<Saved>> saved_;  ///< by tier
  std::vector<Count> due_;                 ///< by tier
  std::size_t met_ = 0;                    ///< of the log
  Count work_ = 0;
  std::uint32_t checkpoints_ = 0, stops_ = 0;
};

/// Everything takes a multiple of 16 s, and each failure has another remainder, so that no two
/// things happen at one moment: which comes first then is no law.
constexpr std::uint32_t kGrain = 16;

Seconds some(RandomStream& random, std::uint32_t least, std::uint32_t most) {
  return Seconds{static_cast<double>(kGrain * (least + random.below(most - least + 1)))};
}

Campaign drawn_campaign(RandomStream& random) {
  Campaign campaign;
  campaign.work = some(random, 20, 2000);
  campaign.modes = {{.name = "crash", .scope = FailureScope::process},
                    {.name = "hang", .effect = FailureEffect::hang, .scope = FailureScope::process},
                    {.name = "node", .scope = FailureScope::node}};
  campaign.recovery = {.detects_crash = some(random, 0, 4),
                       .detects_hang = some(random, 1, 30),
                       .diagnoses = some(random, 0, 10),
                       .restarts = some(random, 0, 20)};
  campaign.spares.hot = 1000;
  for (std::uint32_t tiers = random.below(4); tiers > 0; --tiers) {
    campaign.tiers.push_back({.name = std::to_string(tiers),
                              .interval = some(random, 20, 100),
                              .blocks = some(random, 1, 3),
                              .finishes = some(random, 0, 20),
                              .restores = some(random, 0, 10),
                              .survives_node = random.below(2) == 0});
  }
  std::array<std::uint32_t, kGrain - 1> remainders{};
  for (std::uint32_t i = 0; i < remainders.size(); ++i) remainders[i] = i + 1;
  const std::uint32_t failures = random.below(kGrain);
  for (std::uint32_t i = 0; i < failures; ++i) {
    std::swap(remainders[i], remainders[i + random.below(kGrain - 1 - i)]);
    const Seconds at = some(random, 0, 3000) + Seconds{static_cast<double>(remainders[i])};
    campaign.log.push_back({to_run_time(at), random.below(3)});
  }
  std::ranges::sort(campaign.log, {}, &LoggedFailure::at);
  return campaign;
}

}  // namespace

TEST_CASE("trajectory: as its twin that lives through every second, whatever fails when") {
  const std::uint64_t seed = test::test_seed();
  CAPTURE(seed);
  std::uint32_t stopped = 0, again = 0;
  for (std::uint32_t number = 0; number < 400; ++number) {
    CAPTURE(number);
    RandomStream random({.seed = seed, .trajectory = number, .purpose = 12});
    const Campaign campaign = drawn_campaign(random);
    const EverySecond twin(campaign);
    const TrajectoryResult result = run_trajectory(campaign, number);
    const RunTime second = to_run_time(Seconds{1});
    REQUIRE(result.wall == twin.wall() * second);
    for (int bucket = 0; bucket < kRunBuckets; ++bucket) {
      CAPTURE(bucket);
      CHECK(result.buckets[static_cast<std::size_t>(bucket)] ==
            twin.in(static_cast<RunBucket>(bucket)) * second);
    }
    CHECK(result.checkpoints == twin.checkpoints());
    CHECK(result.interruptions == twin.stops());
    stopped += twin.stops() > 0 ? 1 : 0;
    std::uint32_t met = 0;
    for (const std::uint32_t failures : result.failures) met += failures;
    again += met > twin.stops() ? 1 : 0;  // something failed during a recovery
  }
  CHECK(stopped > 200);
  CHECK(again > 20);
}

}  // namespace lockstep
