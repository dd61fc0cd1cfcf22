// --hash-seeds: what one draw of an ECMP fabric's hashes says, and what many say.
#include <algorithm>
#include <array>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/text_file.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

namespace lockstep::test {
namespace {

using Json = nlohmann::ordered_json;

std::string hashed_cluster(int draw, double oversubscription = 1) {
  return fmt::format(R"({{"node": "dgx_h100", "nodes": 16, "fabric": {{"kind": "fat_tree",
      "leaf_ports_down": 32, "routing": "ecmp", "leaf_oversubscription": {},
      "hash_draw": {}}}}})",
                     oversubscription, draw);
}

/// A step, a collective and the traffic of one on such a cluster.
std::vector<std::string> questions(const std::string& cluster) {
  return {fmt::format(R"({{"model": "qwen3_30b_a3b", "stack": "megatron_core", "cluster": {},
              "parallelism": {{"data": 128, "expert": 32}}, "recompute": "full",
              "batch": {{"sequences": 128, "tokens": 4096, "micro": 1}}}})",
                      cluster),
          fmt::format(R"({{"cluster": {},
              "collective": {{"op": "all_to_all", "sizes": ["1 KiB", "256 MiB"]}}}})",
                      cluster),
          fmt::format(R"({{"cluster": {}, "traffic": [{{"kind": "permutation", "size": "1 MiB"}},
              {{"kind": "shift", "by": 64, "size": "1 MiB"}}]}})",
                      cluster)};
}

/// Which of questions(): the number says the command.
std::vector<std::string> command(std::size_t which, const std::string& file) {
  if (which == 0) return {"run", file, "--allow-oom"};
  return {"comm", file};
}

Ran asked(std::size_t which, const std::string& scenario, std::vector<std::string> more) {
  const TemporaryFolder folder;
  std::vector<std::string> args = command(which, folder.write("s.json", scenario));
  args.insert(args.end(), more.begin(), more.end());
  Ran ran = lockstep_with(args);
  // The folder's name is not part of the answer.
  const std::string name = folder.path();
  for (std::string* text : {&ran.out, &ran.err}) {
    for (std::size_t at; (at = text->find(name)) != std::string::npos;)
      text->erase(at, name.size());
  }
  return ran;
}

Json answer_of(std::size_t which, const std::string& scenario, std::vector<std::string> more) {
  more.insert(more.end(), {"--format", "json"});
  const Ran ran = asked(which, scenario, std::move(more));
  CAPTURE(ran.err);
  REQUIRE(ran.exit == Exit::ok);
  return Json::parse(ran.out);
}

double time_of(std::size_t which, const Json& answer) {
  constexpr std::array kKeys{"step_s", "largest_time_s", "end_s"};
  return answer.at(kKeys.at(which)).get<double>();
}

}  // namespace

TEST_CASE("--hash-seeds 1 is the default answer to the byte, which names its draw") {
  for (std::size_t which = 0; which < 3; ++which) {
    CAPTURE(which);
    const std::string scenario = questions(hashed_cluster(1))[which];
    for (const char* const format : {"table", "json", "csv"}) {
      const Ran plain = asked(which, scenario, {"--format", format});
      const Ran one = asked(which, scenario, {"--format", format, "--hash-seeds", "1"});
      CAPTURE(one.err);
      REQUIRE(one.exit == Exit::ok);
      CHECK(one.out == plain.out);
    }
    CHECK(asked(which, scenario, {}).out.find("draw 1 of the paths' hashes") != std::string::npos);
    CHECK(answer_of(which, scenario, {}).at("hashing") == Json{{"draw", 1}});
  }
}

TEST_CASE("--hash-seeds gives the band of the draws, each as cluster.fabric.hash_draw gives it") {
  for (std::size_t which = 0; which < 3; ++which) {
    CAPTURE(which);
    std::vector<double> times;
    for (int draw = 3; draw < 8; ++draw) {
      times.push_back(time_of(which, answer_of(which, questions(hashed_cluster(draw))[which], {})));
    }
    const Json band =
        answer_of(which, questions(hashed_cluster(3))[which], {"--hash-seeds", "5", "-j", "2"});
    CHECK(time_of(which, band) == times[0]);
    CHECK(band.at("hashing").at("draw") == 3);
    CHECK(band.at("hashing").at("draws") == 5);
    std::vector<double> sorted = times;
    std::ranges::sort(sorted);
    CHECK(sorted.front() < sorted.back());
    const auto check = [&](const std::string& key, double expected) {
      CHECK(band.at("hash_" + key + "_s").get<double>() == expected);
      if (which == 1) return;  // each row has its own
      CHECK(band.at("hashing").at(key + "_s").get<double>() == expected);
      const int draw = band.at("hashing").at(key + "_draw").get<int>();
      CHECK(times[static_cast<std::size_t>(draw - 3)] == expected);
    };
    check("least", sorted[0]);
    check("median", sorted[2]);
    check("most", sorted[4]);
  }
}

TEST_CASE("--hash-seeds: the same bytes for any number of threads") {
  for (std::size_t which = 0; which < 3; ++which) {
    CAPTURE(which);
    const std::string scenario = questions(hashed_cluster(1))[which];
    for (const char* const format : {"table", "json", "csv"}) {
      const Ran one = asked(which, scenario, {"--format", format, "--hash-seeds", "7", "-j", "1"});
      const Ran four = asked(which, scenario, {"--format", format, "--hash-seeds", "7", "-j", "4"});
      REQUIRE(one.exit == Exit::ok);
      CHECK(one.out == four.out);
    }
  }
}

TEST_CASE("--hash-seeds: where each pair has one path, all draws take equally long") {
  // 32 ports down and 32:1: a leaf has one uplink.
  for (std::size_t which = 0; which < 3; ++which) {
    CAPTURE(which);
    const Json band =
        answer_of(which, questions(hashed_cluster(1, 32))[which], {"--hash-seeds", "4"});
    CHECK(band.at("hash_least_s") == band.at("hash_most_s"));
    CHECK(band.at("hash_least_s").get<double>() == time_of(which, band));
  }
}

namespace {

/// Eight nodes, two below a leaf with half as many uplinks.
std::string eight_nodes(int draw) {
  return fmt::format(R"({{"node": "dgx_h100", "nodes": 8, "fabric": {{"kind": "fat_tree",
      "leaf_ports_down": 16, "routing": "ecmp", "leaf_oversubscription": 2, "hash_draw": {}}}}})",
                     draw);
}

constexpr const char* kDrawnJob = R"("model": "llama3_8b", "stack": "megatron_core",
    "parallelism": {{"data": {}, "sharding": "zero1"}}, "recompute": "full",
    "batch": {{"sequences": {}, "micro": 1, "tokens": 4096}})";

std::string two_jobs(int draw) {
  const std::string job = fmt::format(fmt::runtime(kDrawnJob), 32, 32);
  return fmt::format(R"({{"cluster": {}, "steps": 2, "jobs": [
      {{"name": "a", "nodes": {{"first": 0, "count": 4, "stride": 2}}, {}}},
      {{"name": "b", "nodes": {{"first": 1, "count": 4, "stride": 2}}, {}}}]}})",
                     eight_nodes(draw), job, job);
}

std::string weeks(int draw) {
  return fmt::format(R"({{"cluster": {}, {}, "training": {{"tokens": "1 T tokens"}},
      "run": {{"reliability": {{"modes": [
                 {{"name": "node", "component": "node", "mean_time": "100 d"}}]}},
               "checkpoint": {{"interval": "1 h", "mode": "synchronous",
                               "storage": {{"write": "10 GB/s", "read": "10 GB/s"}}}},
               "trajectories": 5}}}})",
                     eight_nodes(draw), fmt::format(fmt::runtime(kDrawnJob), 64, 64));
}

Json run_json(const std::string& scenario, std::vector<std::string> more = {}) {
  return answer_of(0, scenario, std::move(more));
}

/// Least, median and most of three, as bands name them.
void check_three(std::vector<double> values, const Json& band, const std::string& unit) {
  std::ranges::sort(values);
  CHECK(values.front() < values.back());
  CHECK(band.at("least" + unit).get<double>() == values[0]);
  CHECK(band.at("median" + unit).get<double>() == values[1]);
  CHECK(band.at("most" + unit).get<double>() == values[2]);
}

}  // namespace

TEST_CASE("--hash-seeds of several jobs: a band of each one's step and slowdown") {
  std::vector<double> steps, slowdowns;
  for (int draw = 2; draw < 5; ++draw) {
    const Json one = run_json(two_jobs(draw));
    CHECK(one.at("hashing") == Json{{"draw", draw}});
    steps.push_back(one.at("jobs")[1].at("step_s"));
    slowdowns.push_back(one.at("jobs")[1].at("slowdown"));
  }
  const Json three = run_json(two_jobs(2), {"--hash-seeds", "3", "-j", "2"});
  CHECK(three.at("hashing") == Json{{"draw", 2}, {"draws", 3}});
  CHECK(three.at("jobs")[1].at("step_s").get<double>() == steps[0]);
  const Json& band = three.at("jobs")[1].at("hash");
  check_three(steps, band, "_s");
  check_three(slowdowns, band.at("slowdown"), "");

  CHECK(asked(0, two_jobs(2), {}).out.find("hash: draw 2 of the paths' hashes; --hash-seeds N") !=
        std::string::npos);
  CHECK(asked(0, two_jobs(2), {"--hash-seeds", "3"}).out.find("b, slowdown") != std::string::npos);
  CHECK(asked(0, two_jobs(2), {"--hash-seeds", "3", "--format", "csv"})
            .out.find(",hash_least_s,hash_median_s,hash_most_s,hash_slowdown_least,") !=
        std::string::npos);
}

TEST_CASE("--hash-seeds of a run of weeks: a band of its step, wall time and goodput") {
  std::vector<double> steps, walls;
  for (int draw = 2; draw < 5; ++draw) {
    const Json one = run_json(weeks(draw));
    CHECK(one.at("hashing") == Json{{"draw", draw}});
    steps.push_back(one.at("step_s"));
    walls.push_back(one.at("wall_s"));
  }
  const Json three = run_json(weeks(2), {"--hash-seeds", "3", "-j", "2"});
  CHECK(three.at("step_s").get<double>() == steps[0]);
  check_three(steps, three.at("hashing"), "_s");
  check_three(walls, three.at("hashing").at("wall"), "_s");
  CHECK(three.at("hash_most_s") == three.at("hashing").at("most_s"));
  CHECK(three.at("hashing").at("goodput").at("least").get<double>() <=
        three.at("goodput").get<double>());
  CHECK(asked(0, weeks(2), {}).out.find("draw 2 of the paths' hashes") != std::string::npos);
  CHECK(asked(0, weeks(2), {"--hash-seeds", "3"}).out.find("3 hash draws") != std::string::npos);
}

TEST_CASE("--hash-seeds of reinforcement learning: a band of its step") {
  const std::string scenario =
      read_text_file(LOCKSTEP_SOURCE_DIR "/scenarios/rl/grpo-llama3-8b-colocated.json");
  const auto on_draw = [](int draw) {
    return fmt::format(R"(cluster.fabric={{"kind": "fat_tree", "leaf_ports_down": 8, "routing":
        "ecmp", "leaf_oversubscription": 2, "hash_draw": {}}})",
                       draw);
  };
  std::vector<double> steps;
  for (int draw = 1; draw < 4; ++draw) {
    const Json one = run_json(scenario, {"--set", on_draw(draw)});
    CHECK(one.at("hashing") == Json{{"draw", draw}});
    CHECK(one.at("exact_low_s") == one.at("step_s"));
    CHECK(one.at("exact_high_s") == one.at("step_s"));
    steps.push_back(one.at("step_s"));
  }
  const Json three = run_json(scenario, {"--set", on_draw(1), "--hash-seeds", "3"});
  check_three(steps, three.at("hashing"), "_s");
  CHECK(asked(0, scenario, {"--set", on_draw(2)}).out.find("draw 2 of the paths' hashes") !=
        std::string::npos);
}

TEST_CASE("--hash-seeds of a recorded step: replays with each draw") {
  const TemporaryFolder folder;
  const auto cluster_of = [&](int draw) {
    return folder.write(fmt::format("cluster-{}.json", draw),
                        fmt::format(R"({{"cluster": {}, {}}})", eight_nodes(draw),
                                    fmt::format(fmt::runtime(kDrawnJob), 64, 64)));
  };
  const std::string traces = folder.path() + "/traces";
  REQUIRE(lockstep_with({"run", cluster_of(1), "--chakra", traces}).exit == Exit::ok);
  const auto replayed = [&](int draw, std::vector<std::string> more) {
    std::vector<std::string> args{"replay", traces, "--cluster", cluster_of(draw)};
    args.insert(args.end(), more.begin(), more.end());
    const Ran ran = lockstep_with(args);
    REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
    return ran.out;
  };
  std::vector<double> steps;
  for (int draw = 1; draw < 4; ++draw) {
    const Json one = Json::parse(replayed(draw, {"--format", "json"}));
    CHECK(one.at("hashing") == Json{{"draw", draw}});
    steps.push_back(one.at("step_s"));
  }
  const Json three = Json::parse(replayed(1, {"--format", "json", "--hash-seeds", "3"}));
  CHECK(three.at("step_s").get<double>() == steps[0]);
  check_three(steps, three.at("hashing"), "_s");
  CHECK(replayed(3, {}).find("draw 3 of the paths' hashes") != std::string::npos);
  CHECK(lockstep_with({"replay", traces, "--node", "dgx_h100", "-j", "2"}).err ==
        "lockstep replay: --jobs is for --hash-seeds\n");
}

TEST_CASE("plan and tune name the draw of the hashes that their steps are of") {
  const TemporaryFolder folder;
  const std::string job = fmt::format(fmt::runtime(kDrawnJob), 64, 64);
  const Ran tuned = lockstep_with(
      {"tune", folder.write("s.json", fmt::format(R"({{"cluster": {}, {}}})", eight_nodes(4), job)),
       "--format", "json"});
  REQUIRE_MESSAGE(tuned.exit == Exit::ok, tuned.err);
  CHECK(tuned.out.find("draw 4 of the paths' hashes") != std::string::npos);
  const Ran planned = lockstep_with(
      {"plan", folder.write("plan.json", fmt::format(R"({{"training": {{"tokens": "1 T tokens"}},
           "samples": 10, "scenario": {{"cluster": {}, {}, "run": {{"reliability":
           {{"modes": []}}}}}}, "candidates": [{{"name": "a", "pay": "own"}}]}})",
                                                     eight_nodes(4), job))});
  REQUIRE_MESSAGE(planned.exit == Exit::ok, planned.err);
  CHECK(planned.out.find("draw 4 of the paths' hashes (cluster.fabric.hash_draw)") !=
        std::string::npos);
}

TEST_CASE("--hash-seeds: what hashes nothing is refused, whatever is asked") {
  for (const std::string& scenario : {two_jobs(1), weeks(1)}) {
    const Ran ran =
        asked(0, scenario, {"--set", "cluster.fabric.routing=spray", "--hash-seeds", "2"});
    CHECK(ran.exit == Exit::bad_input);
    CHECK(ran.err.find("/cluster/fabric: found routing \"spray\"") != std::string::npos);
  }
}

TEST_CASE("--hash-seeds: what hashes nothing, and what is no number of draws, is refused") {
  const auto refused = [](std::size_t which, std::vector<std::string> more) {
    const Ran ran = asked(which, questions(hashed_cluster(1))[which], std::move(more));
    CHECK(ran.exit == Exit::bad_input);
    return ran.err;
  };
  const std::vector<std::string> sprayed{"--set", "cluster.fabric.routing=spray", "--hash-seeds",
                                         "3"};
  for (std::size_t which = 0; which < 3; ++which) {
    CAPTURE(which);
    CHECK(refused(which, sprayed).find("/cluster/fabric: found routing \"spray\"") !=
          std::string::npos);
    CHECK(refused(which, {"--hash-seeds", "0"}) ==
          "--hash-seeds: found \"0\"; allowed: a whole number from 1 to 100000\n");
  }
  CHECK(refused(1, {"--set", "collective.ranks=8", "--hash-seeds", "3"})
            .find("/collective: found a group in one NVLink domain") != std::string::npos);
  CHECK(refused(1, {"-j", "3"}) == "lockstep comm: --jobs is for --hash-seeds\n");
  CHECK(refused(0, {"-j", "3"}).find("--jobs is for a scenario with \"run\"") != std::string::npos);
}

}  // namespace lockstep::test
