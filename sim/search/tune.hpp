/// Finds the fastest layout of a training job on a fixed cluster: how to cut the model over its
/// GPUs, what to recompute, what to shard.
///
/// Every layout that the software can run, that keeps the scenario's rules and that fits in memory
/// gets a lower bound of its step time (bounds.hpp). They are then replayed, smallest bound first,
/// until no bound that is left is below the slowest of the best: the answer is that of replaying
/// them all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/layer/memory.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/step/step_report.hpp"

namespace lockstep {

/// Values to try along each axis; empty: all that the model and the cluster allow.
struct TuneSpace {
  std::vector<int> tensor{}, pipeline{}, context{}, expert{}, expert_tensor{};
  std::vector<int> virtual_stages{};
  std::vector<int> micro_sequences{};
  std::vector<Recompute> recompute{};
  std::vector<Sharding> sharding{};
  /// Empty: 1F1B, interleaved, and that of the scenario.
  std::vector<Schedule> schedules{};
};

struct TuneOptions {
  TuneSpace space;
  std::size_t keep = 10;  ///< layouts to return, at least 1
  /// Replay every layout that fits in memory, whatever its bound.
  bool exhaustive = false;
  /// Replay also all that may be faster than the scenario's own layout, so that its rank is exact:
  /// until replays have taken so many events, about two seconds of a core. A layout slower than all
  /// of these has its rank between two numbers.
  bool rank_own = false;
  std::uint64_t most_events_for_rank = 2'000'000;
  /// What is wrong with the layout of `base`, where that is known (search_base.hpp): then it is no
  /// candidate.
  std::string own_problem{};
  /// The slow end of a layout's interval over its step time. Where it is given, a layout that ties
  /// and whose slow end is nearer than that of the plainest by kSurer comes first.
  std::function<double(const Scenario&)> slow_end{};
  int threads = 0;  ///< at most so many; 0: one per core. The result is the same for any number.
  /// Asked by its threads, before and within replays too; true: return the best so far.
  std::function<bool()> interrupted;
  /// Told between rounds of replays: how many are done, and how many there are at most.
  std::function<void(std::size_t done, std::size_t most)> progress;
};

/// A layout that was replayed.
struct TunedLayout {
  Scenario scenario;  ///< the whole of it, as the scenario reader would make it
  double step_s = 0, mfu = 0;
  StepMethod method = StepMethod::exact;
  std::optional<StepBand> band;
  double bound_s = 0;     ///< the lower bound of step_s that the search went by
  MemoryBreakdown peak;   ///< of the fullest stage
  Bytes usable;           ///< of the card
  MemoryBand memory;      ///< what of that is assumed; close(): it may not fit
  BucketTimes seconds{};  ///< where the step goes, mean over GPUs
  bool ties = false;      ///< within kTie of the fastest
};

/// Layouts whose times differ by less than this share are as good as one another: predictions of
/// single layouts err by more (assumed).
constexpr double kTie = 0.01;
/// A layout that may not fit in memory, by what is assumed (MemoryBand), comes behind one that
/// surely fits and takes at most this share longer than the fastest (assumed).
constexpr double kSafer = 0.05;
/// Of layouts that tie, one that may take so much less at the worst is worth its complexity
/// (assumed).
constexpr double kSurer = 0.1;

/// Layouts that were not replayed, by reason.
struct TuneCount {
  /// JSON pointer of the value that a rule is about, "/batch/sequences", or a capability.
  std::string reason;
  std::size_t layouts = 0;
};

struct TuneResult {
  /// First the plainest of those within kTie of the fastest (plainer() in layouts.hpp) that surely
  /// fits, of all where none within kSafer of the fastest does; a surer one before it, where
  /// TuneOptions::slow_end says of one; then the others as they are fast.
  /// At most TuneOptions::keep. Empty: nothing fits.
  std::vector<TunedLayout> best;
  /// Of all layouts; the first of `best` may be up to kTie slower, or kSafer where that is close.
  double fastest_s = 0;
  std::size_t ties = 0;  ///< layouts within kTie of the fastest, that one included
  bool surer = false;    ///< the first comes before a plainer one, since its slow end is nearer
  /// How the first was chosen of those that tie.
  [[nodiscard]] const char* chosen_as() const { return surer ? "surest" : "plainest"; }

  /// Of the scenario as it is. Nothing: it breaks a rule on this cluster (`own_problem` says
  /// which).
  std::optional<TunedLayout> own;
  std::string own_problem;
  bool own_fits = false;  ///< in memory
  /// Its place among all layouts that fit in the order of `best`, from 1: between these two, equal
  /// when it is exact. What takes as long as the first shares its place.
  std::size_t own_rank_first = 0, own_rank_last = 0;

  std::size_t considered = 0;      ///< all combinations
  std::vector<TuneCount> refused;  ///< by the scenario's rules, most first
  /// That the software cannot run, by the first capability that it lacks ("sharding.zero3").
  std::vector<TuneCount> beyond_stack;
  /// With zero2 where zero1 fits too: no step of it is shorter.
  std::size_t same_as_zero1 = 0;
  std::size_t over_memory = 0;  ///< do not fit
  std::size_t pruned = 0;       ///< by their bound; where it was interrupted: not looked at yet
  std::size_t replayed = 0;
  bool interrupted = false;
};

/// Searches. Of `base` it takes the model, batch (but for its micro batch), precision, stack and
/// cluster, with as many GPUs as `base` uses; what `base` says of sequence parallelism, exchanges,
/// prefetching and modules to recompute stays. `base` itself may break the rules of layouts or not
/// fit in memory: then it is no candidate. Throws InputError where an option's value is impossible.
TuneResult tune(const Scenario& base, const TuneOptions& options = {});

}  // namespace lockstep
