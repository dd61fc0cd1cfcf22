#include "tools/views/queue/followed_job.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "sim/cluster/simulate_queue.hpp"
#include "tools/console/progress.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/console/table.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
using Align = TextTable::Align;

constexpr std::size_t kShownSpans = 24;

double in_seconds(RunTime time) { return to_seconds(time).base_units(); }

std::string when_text(RunTime time) { return time == 0 ? "0 s" : duration_text(in_seconds(time)); }

std::string fate_text(const Followed& f) {
  const QueueJob& job = f.spec.jobs[f.job];
  const JobOutcome& of = f.outcome();
  std::string out = fmt::format("{} on {}, submitted at {}", duration_text(in_seconds(job.runs)),
                                counted(job.gpus, "GPU"), when_text(job.submit));
  out += of.start < 0 ? std::string(", not started") : ", started at " + when_text(of.start);
  out += again_words(f, when_text);
  if (of.rented) out += ", in the end on rented nodes";
  if (of.end >= 0) out += ", ended at " + when_text(of.end);
  if (f.held_beyond_work() > 0) {
    out +=
        fmt::format(", held GPUs for {} more than its work takes", when_text(f.held_beyond_work()));
  }
  if (of.evictions > 0) out += fmt::format(", evicted {}", counted(of.evictions, "time"));
  if (of.suspensions > 0) {
    out += fmt::format(", suspended {} for {}", counted(of.suspensions, "time"),
                       when_text(of.suspended));
  }
  if (of.is_suspended) out += " and still so at the end";
  if (of.failures > 0)
    out += fmt::format(", {}", counted(of.failures, "failure") + " of its nodes");
  return out;
}

std::string reasons_table(const Followed& f, const TextStyle& style) {
  TextTable table({{"reason", Align::left}, {"time"}, {"share"}, {"which means", Align::left}});
  const double all = in_seconds(f.outcome().waited + f.outcome().suspended);
  for (const auto& [reason, time] : f.by_reason()) {
    table.add({std::string(kWaitReasonNames[static_cast<std::size_t>(reason)]), when_text(time),
               percent_text(all > 0 ? in_seconds(time) / all : 0),
               std::string(wait_reason_words(reason))});
  }
  return table.text(style);
}

std::string spans_table(const Followed& f, const TextStyle& style) {
  TextTable table({{"from"},
                   {"for"},
                   {"reason", Align::left},
                   {"GPUs free"},
                   {"jobs before it"},
                   {"the first of them", Align::left}});
  for (const WaitSpan& span : f.result.waits) {
    if (table.rows() == kShownSpans) break;
    table.add({when_text(span.begin), when_text(span.end - span.begin),
               std::string(kWaitReasonNames[static_cast<std::size_t>(span.reason)]),
               grouped(static_cast<double>(span.free_gpus)),
               grouped(static_cast<double>(span.before)),
               span.first ? fmt::format("{}, of {}", f.spec.job_name(*span.first),
                                        counted(f.spec.jobs[*span.first].gpus, "GPU"))
                          : std::string("-")});
  }
  std::string out = table.text(style);
  if (f.result.waits.size() > kShownSpans) {
    out += fmt::format("  {} more: --format json has them\n", f.result.waits.size() - kShownSpans);
  }
  return out;
}

}  // namespace

std::string again_words(const Followed& f, std::string (*when)(RunTime)) {
  constexpr std::size_t kMostNamed = 3;
  const std::vector<RunTime> starts = f.later_starts();
  std::string out;
  for (std::size_t i = 0; i < std::min(kMostNamed, starts.size()); ++i) {
    out += (i == 0 ? ", again at " : ", at ") + when(starts[i]);
  }
  return starts.size() > kMostNamed
             ? out + fmt::format(" and {} more",
                                 counted(static_cast<double>(starts.size() - kMostNamed), "time"))
             : out;
}

std::string_view wait_reason_words(WaitReason reason) {
  constexpr std::array<std::string_view, kWaitReasonNames.size()> kWords{
      "its user or an administrator holds it",
      "a job that it depends on has not come so far",
      "it is not to start before, or was requeued a moment ago",
      "as many tasks of its array run as may at a time",
      "it would exceed a limit of its quality of service or association",
      "its own reservation is not open, or others keep the nodes that it would fit on",
      "a quota of its user, account or ClusterQueue would be exceeded",
      "it fits, but a job before it in the order does not",
      "it fits, but would be in the way of a job that has been promised its GPUs",
      "it fits, but the scheduler has not looked since, or not as far",
      "enough GPUs are free, but not on the nodes that it needs",
      "it lacks no more GPUs than are in repair",
      "others hold the GPUs",
      "it has started, and a job that preempted it holds its GPUs",
      "others hold the licences that it asks for",
      "it lacks no more GPUs than are free on nodes that are drained or tested",
      "it fits, but the site would draw more than its cap"};
  return kWords[static_cast<std::size_t>(reason)];
}

std::string followed_table(const Followed& f, const TextStyle& style) {
  const RunTime waited = f.outcome().waited;
  std::string out =
      style.bold(fmt::format("Job {} waited {}", f.spec.job_name(f.job),
                             waited == 0 ? "0 s" : duration_text(in_seconds(waited)))) +
      "\n" + wrap(fate_text(f), kTextColumns, 0) + "\n";
  if (waited + f.outcome().suspended == 0) return out;
  return out + "\n" + reasons_table(f, style) + "\n" + spans_table(f, style);
}

Json followed_json(const Followed& f) {
  const auto time_or_null = [](RunTime time) { return time < 0 ? Json() : Json(in_seconds(time)); };
  Json reasons = Json::object(), spans = Json::array();
  for (const auto& [reason, time] : f.by_reason()) {
    reasons[std::string(kWaitReasonNames[static_cast<std::size_t>(reason)])] = in_seconds(time);
  }
  for (const WaitSpan& span : f.result.waits) {
    spans.push_back({{"begin_s", in_seconds(span.begin)},
                     {"end_s", in_seconds(span.end)},
                     {"reason", kWaitReasonNames[static_cast<std::size_t>(span.reason)]},
                     {"free_gpus", span.free_gpus},
                     {"jobs_before", span.before},
                     {"first_before", span.first ? Json(f.spec.job_name(*span.first)) : Json()}});
  }
  const QueueJob& job = f.spec.jobs[f.job];
  Json out{{"job", f.spec.job_name(f.job)},          {"gpus", job.gpus},
           {"submit_s", in_seconds(job.submit)},     {"start_s", time_or_null(f.outcome().start)},
           {"end_s", time_or_null(f.outcome().end)}, {"wait_s", in_seconds(f.outcome().waited)},
           {"reasons_s", std::move(reasons)},        {"waits", std::move(spans)},
           {"assumptions", f.spec.assumptions}};
  if (f.spec.preemption.suspends) out["suspended_s"] = in_seconds(f.outcome().suspended);
  return out;
}

}  // namespace lockstep
