// What an answer says that it took for granted, where it decides the answer.
#include <algorithm>
#include <doctest/doctest.h>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/answer/answer.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

/// Assumptions of the answer to a step of Llama 3 8B on H100 servers, with these changes.
std::vector<std::string> assumed(std::vector<std::string> sets) {
  const ScenarioAnswer answer = answer_text("small.json", R"({"model": "llama3_8b",
      "cluster": {"node": "dgx_h100", "nodes": 64,
        "fabric": {"kind": "fat_tree", "switch_ports": 64, "leaf_oversubscription": 1}},
      "stack": "megatron_core", "parallelism": {"tensor": 8},
      "batch": {"sequences": 64, "tokens": 4096}})",
                                            test::presets(), {.set = std::move(sets)});
  return answer.json()["assumptions"].get<std::vector<std::string>>();
}

std::string starting_with(const std::vector<std::string>& sentences, std::string_view start) {
  const auto it = std::ranges::find_if(
      sentences, [&](const std::string& each) { return each.starts_with(start); });
  return it == sentences.end() ? std::string() : *it;
}

}  // namespace

TEST_CASE("assumptions: links thinner than NICs are said to be more of them") {
  // Half of 64 ports hold NICs of 400 Gb/s; what they bring takes twice as many links of 200.
  CHECK(starting_with(assumed({"cluster.fabric.link_bandwidth=200 Gb/s"}), "fabric: ") ==
        "fabric: 64 uplinks a leaf, as links of 200 Gb/s are thinner than NICs of 400 Gb/s and "
        "leaf_oversubscription 1 holds");
  CHECK(starting_with(assumed({"cluster.fabric.link_bandwidth=400 Gb/s"}), "fabric: ").empty());
  CHECK(starting_with(assumed({}), "fabric: ").empty());
}

TEST_CASE("assumptions: a run that waits much for spares says that failures go on meanwhile") {
  std::vector<std::string> run{"cluster.nodes=2",
                               "batch.sequences=8",
                               "cluster.fabric=fat_tree",
                               "run.duration=365 d",
                               "run.reliability=llama3_54_days",
                               "run.trajectories=20",
                               "run.checkpoint.interval=1 h",
                               "run.checkpoint.to=storage",
                               "run.checkpoint.storage=tectonic_llama3",
                               "run.spares.hot=0"};
  std::vector<std::string> soon = run;
  run.emplace_back("run.spares.repair=30 d");
  soon.emplace_back("run.spares.repair=1 h");
  CHECK(starting_with(assumed(run), "failures: as often in an hour that waits").size() > 0);
  CHECK(starting_with(assumed(soon), "failures: as often in an hour that waits").empty());
}

}  // namespace lockstep
