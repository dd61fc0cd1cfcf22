#include "sim/scenario/serving_lives.hpp"

#include <fmt/format.h>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/scenario_draft.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostServingEvents = 100'000;

/// Of which pool and replica the events are.
void check_events(const JsonCursor& failures, ServingSpec& out) {
  const auto list = failures.find("events");
  if (!list) return;
  std::vector<std::string_view> names;
  for (const ServingPool& pool : out.pools) names.push_back(pool.name);
  std::size_t i = 0;
  for (const JsonCursor& each : list->elements(kMostServingEvents)) {
    ServingFailureSpec::Event& event = out.failures->events[i++];
    if (const auto pool = each.find("pool")) event.pool = pool->choice(names);
    const int replicas = out.pools[event.pool].replicas;
    if (event.replica < replicas) continue;
    each.at("replica").fail(fmt::format("0 to {}: the replicas of the pool", replicas - 1));
  }
}

void assume_time(const JsonCursor& from, std::string_view where, std::string_view key, Seconds time,
                 ServingSpec& out) {
  if (from.find(key)) return;
  out.assumptions.push_back(
      fmt::format("{}.{}: {:g} s (not given)", where, key, time.base_units()));
}

}  // namespace

void declare_autoscale(const DeclaredMembers& member, ServingAutoscale& out) {
  member.required("least", out.least, 1, kMaxGpus, "Replicas that are always on");
  member.required("target", out.target, Interval{0, 1e6, true},
                  "Requests of a replica, waiting or worked on, that the pool is sized for");
  member.optional("check", out.check, Interval{0.1, 1e6},
                  "Between looks at the load; default: 10 s");
  member.optional("calm", out.calm, Interval{0, 1e7},
                  "For how long fewer must do before one is switched off; default: 5 min");
}

void declare_replica_start(const DeclaredMembers& member, ReplicaStart& out) {
  member.optional("overhead", out.overhead, Interval{0, 1e6}, "Processes, graphs; default: 30 s");
  member.optional("rate", out.rate, Interval{1e6, 1e15},
                  "At which weights come to a replica; default: 5 GB/s");
}

void declare_serving_failures(const DeclaredMembers& member, ServingFailureSpec& out) {
  member.optional("gpu_mean_time", out.gpu_mean_time, Interval{60, 1e12},
                  "Of a GPU between failures (exponential); a replica is down with any of its own");
  member.optional("repair", out.repair, Interval{0, 1e8},
                  "Until a replica starts again; default: 1 h");
  member.optional("detect", out.detect, Interval{0, 1e6},
                  "From a failure until its requests are sent to others; default: 10 s");
  member.optional("events",
                  written_type(R"({"type": "array", "items": {"type": "object", "required": ["at"],
    "properties": {"at": {"$ref": "#/$defs/time"}, "pool": {"enum": ["both", "prefill", "decode"]},
    "replica": {"type": "integer", "minimum": 0}}, "additionalProperties": false}})"),
                  "Replicas that fail at a time that is given", [&](const JsonCursor& list) {
                    for (const JsonCursor& each : list.elements(kMostServingEvents)) {
                      ServingFailureSpec::Event event;
                      event.at = Seconds{each.at("at").quantity(Dimension::time, Interval{0, 1e9})};
                      if (const auto replica = each.find("replica"))
                        event.replica = replica->integer(0, kMaxGpus);
                      (void)each.find("pool");  // check_events()
                      each.finish();
                      out.events.push_back(event);
                    }
                  });
}

void settle_serving_lives(const JsonCursor& serving, bool searched, ServingSpec& out) {
  bool scaled = false;
  for (const ServingPool& pool : out.pools) {
    if (!pool.autoscale) continue;
    scaled = true;
    const JsonCursor at = serving.at("pools").at(pool.name).at("autoscale");
    if (searched) at.fail("no such key where pools are searched for");
    if (pool.autoscale->least > pool.replicas) {
      at.at("least").fail(fmt::format("at most the {} replicas of the pool", pool.replicas));
    }
    const std::string where = pool.name + ".autoscale";
    assume_time(at, where, "check", pool.autoscale->check, out);
    assume_time(at, where, "calm", pool.autoscale->calm, out);
  }
  if (out.failures) {
    const JsonCursor failures = serving.at("failures");
    check_events(failures, out);
    assume_time(failures, "failures", "repair", out.failures->repair, out);
    assume_time(failures, "failures", "detect", out.failures->detect, out);
  }
  const bool loads_adapters = out.adapters && out.adapters->held() < out.adapters->count;
  if (!scaled && !out.failures && !out.restarts && !loads_adapters) {
    if (const auto start = serving.find("start")) {
      start->fail(
          R"(no such key without "failures", "autoscale", "restarts" or "adapters.in_host")");
    }
    return;
  }
  if (serving.find("start")) return;
  out.assumptions.push_back(fmt::format("start: {:g} s, and weights at {:g} GB/s (not given)",
                                        out.start.overhead.base_units(),
                                        out.start.rate.base_units() * 1e-9));
}

}  // namespace lockstep
