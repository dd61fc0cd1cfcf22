/// What `lockstep queue explain` prints.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/cluster/simulate_queue.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

struct Followed {
  const QueueSpec& spec;
  const QueueResult& result;
  std::uint32_t job;

  [[nodiscard]] const JobOutcome& outcome() const { return result.jobs[job]; }
  /// How much longer it held GPUs than its work takes: for work that was lost and done again,
  /// restarts, slower steps. 0 of a job that has not ended, and of one of several widths.
  [[nodiscard]] RunTime held_beyond_work() const {
    const JobOutcome& of = outcome();
    const QueueJob& its = spec.jobs[job];
    if (of.end < 0 || of.elastic_held) return 0;
    const RunTime submitted = of.submitted >= 0 ? of.submitted : its.submit;
    return std::max<RunTime>(0, of.end - submitted - of.waited - of.suspended - its.runs);
  }
  /// When it started again after its first start: the ends of its later waits. Resuming after a
  /// suspension is no start.
  [[nodiscard]] std::vector<RunTime> later_starts() const {
    std::vector<RunTime> out;
    const std::vector<WaitSpan>& waits = result.waits;
    for (std::size_t i = 0; i < waits.size(); ++i) {
      const WaitSpan& span = waits[i];
      const bool goes_on = i + 1 < waits.size() ? waits[i + 1].begin == span.end : outcome().waits;
      const bool starts = !goes_on && span.reason != WaitReason::suspended;
      if (starts && outcome().start >= 0 && span.end > outcome().start) out.push_back(span.end);
    }
    return out;
  }
  /// By reason, the longest first.
  [[nodiscard]] std::vector<std::pair<WaitReason, RunTime>> by_reason() const {
    std::map<WaitReason, RunTime> sums;
    for (const WaitSpan& span : result.waits) sums[span.reason] += span.end - span.begin;
    std::vector<std::pair<WaitReason, RunTime>> out(sums.begin(), sums.end());
    std::ranges::stable_sort(out, std::greater{}, &std::pair<WaitReason, RunTime>::second);
    return out;
  }
};

/// What a reason says of a job: "others hold the GPUs".
std::string_view wait_reason_words(WaitReason reason);

/// ", again at 3.00 h, at 5.00 h": its later starts; empty where it started once.
std::string again_words(const Followed& f, std::string (*when)(RunTime));

/// For people: how long it waited, for what, and when.
std::string followed_table(const Followed& f, const TextStyle& style);

/// The followed job as JSON.
nlohmann::ordered_json followed_json(const Followed& f);

}  // namespace lockstep
