/// The checkpoints of a run: when the next one of each tier is due, which are kept, and to which
/// one the job falls back.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/core/random.hpp"
#include "sim/run/campaign.hpp"
#include "sim/run/failure_source.hpp"
#include "sim/run/run_books.hpp"

namespace lockstep {

class RunCheckpoints {
 public:
  /// To which checkpoint the job fell back; from none it begins anew.
  struct RollBack {
    RunTime taken = 0;
    RunTime reads = 0;  ///< how long reading it takes
  };

  /// `corrupt` draws which cannot be read. Campaign and books outlive this.
  RunCheckpoints(const Campaign& campaign, RunBooks& books, const RandomStream& corrupt)
      : c_(campaign), books_(books), corrupt_(corrupt), tiers_(campaign.tiers.size()) {
    begin_intervals();
  }

  /// From now on the first of each tier is an interval away.
  void begin_intervals() {
    trains_since_ = books_.now;
    for (std::size_t t = 0; t < tiers_.size(); ++t) begin_interval(t, books_.now);
  }
  void begin_interval(std::size_t t, RunTime from) {
    tiers_[t].next = from + until_next(c_.tiers[t]);
  }

  [[nodiscard]] std::size_t tiers() const { return tiers_.size(); }
  /// When one of a tier is due.
  [[nodiscard]] RunTime next(std::size_t t) const { return tiers_[t].next; }
  [[nodiscard]] RunTime next_due() const {
    RunTime next = kNever;
    for (const Tier& tier : tiers_) next = std::min(next, tier.next);
    return std::max(next, books_.now);
  }
  /// Whether one of a tier is still being written, and until when.
  [[nodiscard]] bool finishing(std::size_t t) const {
    return !tiers_[t].captures.empty() && tiers_[t].captures.back().whole > books_.now;
  }
  [[nodiscard]] RunTime whole(std::size_t t) const { return tiers_[t].captures.back().whole; }
  /// Share of the job's speed that those take which are being written.
  [[nodiscard]] double drag() const {
    double drag = 0;
    for (std::size_t t = 0; t < tiers_.size(); ++t) {
      if (finishing(t)) drag += c_.tiers[t].drag;
    }
    return drag;
  }
  /// When a checkpoint that drags on the job is done.
  [[nodiscard]] RunTime next_whole() const {
    RunTime next = kNever;
    for (std::size_t t = 0; t < tiers_.size(); ++t) {
      if (c_.tiers[t].drag > 0 && finishing(t)) {
        next = std::min(next, tiers_[t].captures.back().whole);
      }
    }
    return next;
  }

  /// One of a tier that began then is taken.
  void keep(std::size_t t, RunTime begun) {
    Tier& tier = tiers_[t];
    const RunTime finishes = to_run_time(c_.tiers[t].finishes);
    constexpr std::size_t kMost = 4096;
    if (tier.captures.size() == kMost) {
      // Every second of the older half goes, as people thin out what they keep.
      for (std::size_t k = 1; k < kMost / 4; ++k) tier.captures[k] = tier.captures[2 * k];
      tier.captures.erase(tier.captures.begin() + kMost / 4, tier.captures.begin() + kMost / 2);
    }
    tier.captures.push_back(books_.capture(begun, finishes));
  }

  /// Takes the books back to the newest checkpoint that can be read, or to the
  /// begin of the run.
  RollBack roll_back(FailureScope scope, RunTime sound_until) {
    for (std::size_t t = 0; t < tiers_.size(); ++t) {
      const CheckpointTier& spec = c_.tiers[t];
      std::vector<RunBooks::Capture>& captures = tiers_[t].captures;
      while (!captures.empty() && captures.back().whole > books_.now) captures.pop_back();
      const bool gone = (scope == FailureScope::node && !spec.survives_node) ||
                        (scope > FailureScope::node && !spec.survives_rack);
      if (gone) captures.clear();
    }
    while (true) {
      std::optional<std::size_t> best;
      for (std::size_t t = 0; t < tiers_.size(); ++t) {
        std::vector<RunBooks::Capture>& captures = tiers_[t].captures;
        while (!captures.empty() && captures.back().taken > sound_until) {
          captures.pop_back();
          ++books_.out.fallbacks;
        }
        if (captures.empty()) continue;
        if (!best || better(t, *best)) best = t;
      }
      if (!best) {
        books_.restore({});
        forget_later(0);
        return {};
      }
      Tier& tier = tiers_[*best];
      if (c_.tiers[*best].corrupt > 0 && corrupt_.uniform() < c_.tiers[*best].corrupt) {
        tier.captures.pop_back();
        ++books_.out.fallbacks;
        continue;
      }
      const RunBooks::Capture restored = tier.captures.back();
      books_.restore(restored);
      forget_later(restored.work);
      return {.taken = restored.taken, .reads = to_run_time(c_.tiers[*best].restores)};
    }
  }

 private:
  static constexpr RunTime kNever = FailureSource::kNever;

  [[nodiscard]] RunTime until_next(const CheckpointTier& tier) const {
    if (!tier.rule) return to_run_time(tier.interval);
    const Seconds next = tier.rule({.now = to_seconds(books_.now),
                                    .trained = to_seconds(books_.now - trains_since_),
                                    .stops = books_.out.interruptions,
                                    .interval = tier.interval,
                                    .blocks = tier.blocks});
    return std::max<RunTime>(1, to_run_time(std::max(next, c_.step)));
  }

  struct Tier {
    RunTime next = 0;  ///< when the next checkpoint begins
    std::vector<RunBooks::Capture> captures;
  };

  /// Newer work, or as new and sooner read.
  [[nodiscard]] bool better(std::size_t a, std::size_t b) const {
    const RunTime work_a = tiers_[a].captures.back().work, work_b = tiers_[b].captures.back().work;
    if (work_a != work_b) return work_a > work_b;
    return c_.tiers[a].restores < c_.tiers[b].restores;
  }
  /// Of the same work another tier may have a later checkpoint: time between the two is lost, and
  /// restoring that one does not bring it back.
  void forget_later(RunTime work) {
    for (Tier& tier : tiers_) {
      std::vector<RunBooks::Capture>& captures = tier.captures;
      while (!captures.empty() && captures.back().work > work) captures.pop_back();
      for (auto c = captures.rbegin(); c != captures.rend() && c->work == work; ++c) {
        for (std::size_t b = 0; b < kRunningBuckets.size(); ++b) {
          c->running[b] = std::min(c->running[b], books_.in(kRunningBuckets[b]));
        }
      }
    }
  }

  const Campaign& c_;
  RunBooks& books_;
  RandomStream corrupt_;
  std::vector<Tier> tiers_;
  RunTime trains_since_ = 0;
};

}  // namespace lockstep
