#include <algorithm>
#include <array>
#include <cstddef>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/base/number_text.hpp"
#include "sim/answer/advice.hpp"
#include "sim/scenario/shared_scenario.hpp"

namespace lockstep {
namespace {

using SharedChanges = std::vector<StandardChange>;

/// Of more, each has its own page of advice; what they share is changed here all the same.
constexpr std::size_t kMostJobsChanged = 4;

bool is_of_all(const std::string& set) {
  return set.starts_with("cluster.") || set.starts_with("power.");
}

/// What a step of each training leaves room for, with the same batch; machines and fabric once.
void add_trainings(SharedChanges& out, const SharedScenario& shared, const PresetStore& presets) {
  std::set<std::string> of_all;
  for (std::size_t j = 0; j < shared.jobs.size(); ++j) {
    const SharedJob& job = shared.jobs[j];
    for (StandardChange& change : standard_changes(job.scenario, presets)) {
      if (std::ranges::all_of(change.sets, is_of_all)) {
        if (of_all.insert(change.words).second) out.push_back(std::move(change));
        continue;
      }
      // A larger batch takes longer: the pace of steps would say that it hinders.
      if (shared.jobs.size() > kMostJobsChanged ||
          change.sets.front().starts_with("batch.sequences=")) {
        continue;
      }
      change.words = job.name + ": " + change.words;
      for (std::string& set : change.sets) set = fmt::format("jobs.{}.{}", j, set);
      out.push_back(std::move(change));
    }
  }
}

/// As a scenario writes them: {"first", "count", "stride"} where they are evenly apart.
std::string nodes_text(const std::vector<int>& nodes) {
  if (nodes.size() < 2) return fmt::format("[{}]", fmt::join(nodes, ","));
  const int stride = nodes[1] - nodes[0];
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    if (stride < 1 || nodes[i] - nodes[i - 1] != stride) {
      return fmt::format("[{}]", fmt::join(nodes, ","));
    }
  }
  return fmt::format(R"({{"first":{},"count":{},"stride":{}}})", nodes[0], nodes.size(), stride);
}

/// Every job's nodes side by side, in the order of the jobs; other nodes behind them, with what
/// they send and receive.
void add_packing(SharedChanges& out, const SharedScenario& shared) {
  std::map<int, int> place;
  const auto give = [&place](int node) { place.try_emplace(node, static_cast<int>(place.size())); };
  for (const SharedJob& job : shared.jobs) std::ranges::for_each(job.nodes, give);
  for (int node = 0; node < shared.cluster.nodes; ++node) give(node);
  if (std::ranges::all_of(place, [](const auto& of) { return of.first == of.second; })) return;
  std::vector<std::string> sets;
  const auto move = [&](const std::string& path, std::vector<int> nodes) {
    for (int& node : nodes) node = place.at(node);
    sets.push_back(path + "=" + nodes_text(nodes));
  };
  for (std::size_t j = 0; j < shared.jobs.size(); ++j) {
    move(fmt::format("jobs.{}.nodes", j), shared.jobs[j].nodes);
  }
  for (std::size_t b = 0; b < shared.background.size(); ++b) {
    move(fmt::format("background.{}.from", b), shared.background[b].from);
    move(fmt::format("background.{}.to", b), shared.background[b].to);
  }
  out.push_back({.words = "each job on nodes side by side", .sets = std::move(sets)});
}

void add_background(SharedChanges& out, const SharedScenario& shared) {
  for (std::size_t b = 0; b < shared.background.size(); ++b) {
    const BackgroundTraffic& traffic = shared.background[b];
    const auto of = [b](std::string_view key) { return fmt::format("background.{}.{}", b, key); };
    if (traffic.every > Seconds{}) {
      const double now = traffic.every.base_units();
      out.push_back({.words = fmt::format("{} every {} -> {}", traffic.name, duration_text(now),
                                          duration_text(2 * now)),
                     .sets = {fmt::format("{}={} s", of("every"), number_text(2 * now))}});
    }
    out.push_back(
        {.words = fmt::format("half of the bytes of {}", traffic.name),
         .sets = {fmt::format("{}={} B", of("size"), number_text(traffic.size.base_units() / 2))}});
  }
  if (!shared.background.empty()) {
    out.push_back({.words = "no other traffic", .sets = {"background=[]"}});
  }
}

void add_events(SharedChanges& out, const SharedScenario& shared) {
  for (std::size_t e = 0; e < shared.events.size(); ++e) {
    const Seconds now = shared.events[e].reroute_after;
    if (!(now > Seconds{})) continue;
    out.push_back(
        {.words = fmt::format("event {} routed around after {} -> {}", e,
                              duration_text(now.base_units()), duration_text(now.base_units() / 2)),
         .sets = {
             fmt::format("events.{}.reroute_after={} s", e, number_text(now.base_units() / 2))}});
  }
  if (!shared.events.empty()) out.push_back({.words = "no failures", .sets = {"events=[]"}});
}

}  // namespace

std::vector<StandardChange> shared_changes(const SharedScenario& scenario,
                                           const PresetStore& presets) {
  SharedChanges out;
  add_packing(out, scenario);
  add_background(out, scenario);
  add_events(out, scenario);
  add_trainings(out, scenario, presets);
  return out;
}

}  // namespace lockstep
