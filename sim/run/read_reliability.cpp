#include <set>
#include <string>

#include "sim/run/run_spec.hpp"
#include "sim/scenario/member_reader.hpp"
#include "sim/scenario/spec_readers.hpp"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 5> kEffects{"crash", "hang", "slow", "silent", "planned"};
constexpr std::array<std::string_view, 3> kScopes{"process", "node", "rack"};

constexpr Interval kFoundAfter{0, 1e9};
constexpr Interval kMeanTime{0, 1e9, true};
constexpr Interval kShare{0, 1};
constexpr std::size_t kMostModes = 1000;

/// What was watched while failures were counted.
struct Observed {
  double gpus = 0, nodes = 0, racks = 0;
  Seconds time;
};

Observed read_observed(const JsonCursor& from) {
  Observed observed;
  const int gpus = from.at("gpus").integer(1, 10'000'000);
  const auto per_node = from.find("gpus_per_node");
  const auto per_rack = from.find("nodes_per_rack");
  observed.gpus = gpus;
  observed.nodes = observed.gpus / (per_node ? per_node->integer(1, kMaxGpusPerNode) : 8);
  observed.racks = observed.nodes / (per_rack ? per_rack->integer(1, 1024) : 4);
  observed.time = from.at("time").seconds(kMeanTime);
  from.finish();
  return observed;
}

double watched(const Observed& observed, FailingComponent component) {
  switch (component) {
    case FailingComponent::gpu:
      return observed.gpus;
    case FailingComponent::node:
      return observed.nodes;
    case FailingComponent::rack:
      return observed.racks;
    case FailingComponent::job:
      return 1;
  }
  return 1;
}

/// A rate is a count of what was observed, or a mean time of one component.
Seconds read_mean_time(const JsonCursor& from, const std::optional<Observed>& observed,
                       FailingComponent component) {
  constexpr Interval kCount{0, 1e9, true};
  const auto mean = from.find("mean_time");
  const auto count = from.find("count");
  if (mean && count) count->fail("either \"count\" or \"mean_time\"");
  if (mean) return mean->seconds(kMeanTime);
  const JsonCursor counted = from.at("count");
  if (!observed) counted.fail("\"mean_time\", as there is no \"observed\" to divide by");
  return observed->time * watched(*observed, component) / counted.number(kCount);
}

ReliabilityMode read_mode(const JsonCursor& from, const std::optional<Observed>& observed) {
  constexpr Interval kShape{0.1, 10};
  constexpr Interval kSlowdown{1, 100};
  ReliabilityMode out;
  FailureMode& mode = out.mode;
  const MemberReader member(from, Extent::whole);
  member.required("name", mode.name);
  out.component = read_choice<FailingComponent>(from.at("component"), kFailingComponents);
  mode.mean_time = read_mean_time(from, observed, out.component);
  member.optional("effect", [&](const JsonCursor& c) {
    mode.effect = read_choice<FailureEffect>(c, kEffects);
  });
  member.optional("scope",
                  [&](const JsonCursor& c) { mode.scope = read_choice<FailureScope>(c, kScopes); });
  member.optional("shape", mode.shape, kShape);
  member.optional("replaced", mode.replaced, kShare);
  const bool slow = mode.effect == FailureEffect::slow;
  if (slow) mode.slowdown = from.at("slowdown").number(kSlowdown);
  if (slow || mode.effect == FailureEffect::silent) {
    mode.found_after = from.at("found_after").seconds(kFoundAfter);
  }
  from.finish();
  return out;
}

}  // namespace

void read_reliability(const JsonCursor& from, ReliabilitySpec& out) {
  if (const auto about = from.find("about")) out.about = about->string();
  std::optional<Observed> observed;
  if (const auto seen = from.find("observed")) observed = read_observed(*seen);
  std::set<std::string> names;
  for (const JsonCursor& element : from.at("modes").elements(kMostModes)) {
    out.modes.push_back(read_mode(element, observed));
    if (!names.insert(out.modes.back().mode.name).second) {
      element.at("name").fail("a name that no other mode has");
    }
  }
}

}  // namespace lockstep
