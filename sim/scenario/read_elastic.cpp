#include "sim/scenario/read_elastic.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "models/base/input_error.hpp"
#include "sim/scenario/queue_parts.hpp"
#include "sim/scenario/queue_rules.hpp"
#include "sim/scenario/queue_trace.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostWidths = 1000, kMostWidthTables = 65'535;
constexpr int kWidestJob = 10'000'000;

void declare_width(const DeclaredMembers& member, ListedWidth& out) {
  member.required("gpus", out.gpus, 1, kWidestJob, "GPUs");
  member.required("speed", out.speed, Interval{0, 1e9, true},
                  "How fast it works on them, in any unit that all of its widths have");
}

}  // namespace

void declare_elastic(const DeclaredMembers& member, QueueElastic& out) {
  member.required("policy", out.policy, kElasticPolicyNames,
                  "Who changes widths: fixed, nobody; shrink, a job whose node breaks goes on on "
                  "what is left, and grows back when GPUs are free; goodput, the widths with the "
                  "largest sum of speedups over each job's narrowest one (as Pollux and Sia)");
  declare_run_time(member, "resize", out.resize, kQueueSpan,
                   "From a change of width until work goes on; default: 0 s");
  declare_run_time(member, "every", out.every, kQueueSpan,
                   "goodput: from choice to choice; default: 0 s, at every submission, end, "
                   "failure and repair");
}

void declare_widths(const DeclaredMembers& member, std::vector<ListedWidth>& out) {
  member.optional(
      "widths", kMostWidths, "A width",
      "GPUs that it can run on, and how fast, \"gpus\" among them, to which \"runs\" is; "
      "\"elastic\" "
      "of the queue says who chooses",
      [](const DeclaredMembers& one) {
        ListedWidth width;
        declare_width(one, width);
      },
      [&](const JsonCursor& list) {
        for (const JsonCursor& at : list.elements(kMostWidths)) {
          declare_width({at, Extent::whole}, out.emplace_back());
          at.finish();
        }
      });
}

std::uint16_t width_table(const JsonCursor& list, const std::vector<ListedWidth>& written, int gpus,
                          QueueSpec& out) {
  const auto own = std::ranges::find(written, gpus, &ListedWidth::gpus);
  if (own == written.end()) {
    list.fail(fmt::format("widths of which one has the job's own {} \"gpus\"", gpus));
  }
  const std::vector<JsonCursor> elements = list.elements(kMostWidths);
  WidthTable table;
  for (std::size_t w = 0; w < written.size(); ++w) {
    if (w > 0 && written[w].gpus <= written[w - 1].gpus) {
      elements[w].at("gpus").fail("more than the width before it has");
    }
    table.gpus.push_back(written[w].gpus);
    table.speeds.push_back(written[w].speed / own->speed);
  }
  const auto known = std::ranges::find(out.width_tables, table);
  const auto number = known - out.width_tables.begin();
  if (known == out.width_tables.end()) {
    if (out.width_tables.size() > kMostWidthTables) list.fail("fewer kinds of widths");
    out.width_tables.push_back(std::move(table));
  }
  return static_cast<std::uint16_t>(number);
}

void check_elastic(const JsonCursor& queue, const QueueSpec& spec) {
  const bool any = spec.width_tables.size() > 1;
  if (!queue.find("elastic")) {
    if (any) (void)queue.at("elastic");  // required where a job has widths
    return;
  }
  const JsonCursor elastic = queue.at("elastic");
  if (!any) elastic.fail("no such key unless a job has \"widths\"");
  const QueueElastic& how = spec.elastic;
  if (how.policy == ElasticPolicy::fixed) {
    for (const std::string_view key : {"resize", "every"}) {
      if (elastic.find(key)) elastic.at(key).fail(R"(no such key where "policy" is "fixed")");
    }
    return;
  }
  for (const std::string_view key : {"qos", "accounts", "slurm"}) {
    if (queue.find(key)) {
      queue.at(key).fail(
          R"(no such key where widths change: their limits count what jobs ask for)");
    }
  }
  if (how.policy == ElasticPolicy::shrink) {
    if (elastic.find("every")) {
      elastic.at("every").fail(R"(no such key unless "policy" is "goodput")");
    }
    if (spec.failures.mean_time <= Seconds{} && spec.breaks.empty()) {
      elastic.at("policy").fail(R"(fixed or goodput where no node breaks: no "reliability")");
    }
    return;
  }
  if (spec.admission != QueueAdmission::best_effort) {
    queue.at("admission").fail(R"(best_effort where "elastic" has "policy": "goodput")");
  }
  if (spec.preemption.mode != PreemptionMode::none) {
    queue.at("preemption").at("mode").fail(R"(none where "elastic" has "policy": "goodput")");
  }
  for (const std::string_view key : {"quotas", "licenses", "campaigns", "partitions"}) {
    if (queue.find(key)) {
      queue.at(key).fail(R"(no such key where "elastic" has "policy": "goodput")");
    }
  }
  if (spec.order == QueueOrder::drf) {
    queue.at("order").fail(R"(any but drf where "elastic" has "policy": "goodput")");
  }
}

}  // namespace lockstep
