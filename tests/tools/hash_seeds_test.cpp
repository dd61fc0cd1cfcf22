// --hash-seeds: what one draw of an ECMP fabric's hashes says, and what many say.
#include <algorithm>
#include <array>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

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

TEST_CASE("--hash-seeds: what hashes nothing, or is no single step, is refused") {
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
  CHECK(refused(0, {"--set", "run={}", "--hash-seeds", "3"})
            .find("--hash-seeds is for a scenario of one step") != std::string::npos);
}

}  // namespace lockstep::test
