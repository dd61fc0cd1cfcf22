#include "sim/scenario/read_elastic.hpp"

#include <algorithm>
#include <cmath>
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

void declare_drawn_widths(const DeclaredMembers& member, std::vector<DrawnWidth>& out) {
  const auto declare = [](const DeclaredMembers& one, DrawnWidth& width) {
    one.required("times", width.times, Interval{0, 1e6, true},
                 "As many GPUs as the job asks for, times this");
    one.required("speed", width.speed, Interval{0, 1e9, true},
                 "How fast it works on them, in any unit that all have");
  };
  member.optional(
      "widths", kMostWidths, "A width",
      "GPUs that each job can run on, and how fast; one has \"times\" 1. A job lacks those that "
      "are "
      "no whole number of GPUs, or more than the cluster has; \"elastic\" of the queue says who "
      "chooses",
      [&declare](const DeclaredMembers& one) {
        DrawnWidth width;
        declare(one, width);
      },
      [&](const JsonCursor& list) {
        for (const JsonCursor& at : list.elements(kMostWidths)) {
          const double before = out.empty() ? 0 : out.back().times;
          declare({at, Extent::whole}, out.emplace_back());
          at.finish();
          if (out.back().times <= before) at.at("times").fail("more than the width before it has");
        }
        const auto is_own = [](const DrawnWidth& width) { return width.times == 1; };
        if (std::ranges::none_of(out, is_own)) list.fail("widths of which one has \"times\" 1");
      });
}

void declare_training_widths(const DeclaredMembers& member, std::vector<int>& nodes) {
  const auto declare = [](const DeclaredMembers& one, int& count) {
    one.required("nodes", count, 1, kMaxNodes, "Whole nodes");
  };
  member.optional(
      "widths", kMostWidths, "A width",
      "Nodes that it can run on, its own \"nodes\" among them: the batch stays, data-parallel "
      "replicas are more or fewer, and how fast that is follows from its step there; \"elastic\" "
      "of "
      "the queue says who chooses",
      [&declare](const DeclaredMembers& one) {
        int count = 1;
        declare(one, count);
      },
      [&](const JsonCursor& list) {
        for (const JsonCursor& at : list.elements(kMostWidths)) {
          const int before = nodes.empty() ? 0 : nodes.back();
          declare({at, Extent::whole}, nodes.emplace_back());
          at.finish();
          if (nodes.back() <= before) at.at("nodes").fail("more than the width before it has");
        }
      });
}

std::uint16_t drawn_width_table(const std::vector<DrawnWidth>& drawn, int gpus, QueueSpec& out) {
  const auto own = std::ranges::find(drawn, 1.0, &DrawnWidth::times);
  WidthTable table;
  for (const DrawnWidth& width : drawn) {
    const double of = width.times * gpus;
    if (of != std::floor(of) || of > out.cluster.gpus()) continue;
    table.gpus.push_back(static_cast<int>(of));
    table.speeds.push_back(width.speed / own->speed);
  }
  if (table.gpus.size() < 2) return 0;
  const auto known = std::ranges::find(out.width_tables, table);
  const auto number = known - out.width_tables.begin();
  if (known == out.width_tables.end()) out.width_tables.push_back(std::move(table));
  return static_cast<std::uint16_t>(number);
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
