// Switches that sum (SHARP) on fabrics with parts that are broken, from the start or under way.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>

#include <nlohmann/json.hpp>

#include "tests/support/near.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

namespace lockstep::test {
namespace {

using Json = nlohmann::ordered_json;

Json answer_on(const char* command, const std::string& text) {
  const TemporaryFolder folder;
  std::vector<std::string> args{command, folder.write("s.json", text), "--format", "json"};
  if (std::string(command) == "run") args.emplace_back("--allow-oom");
  const Ran ran = lockstep_with(args);
  CAPTURE(ran.err);
  REQUIRE(ran.exit == Exit::ok);
  return Json::parse(ran.out);
}

/// Eight nodes of eight rails on four leaves, with so many uplinks each, every one to another
/// spine.
std::string summing_cluster(int uplinks, const std::string& faults) {
  return fmt::format(R"({{"node": "dgx_h100", "nodes": 8, "fabric": {{"kind": "fat_tree",
      "levels": 2, "leaf_ports_down": 16, "routing": "adaptive", "leaf_oversubscription": {},
      "sharp": "quantum2"{}{}}}}})",
                     16.0 / uplinks, faults.empty() ? "" : ", \"faults\": ", faults);
}
Json sum_call(int uplinks, const std::string& faults) {
  return answer_on("comm", fmt::format(R"({{"cluster": {}, "collective": {{"op": "all_reduce",
      "sizes": ["4 GiB"], "sharp": "quantum2"}}}})",
                                       summing_cluster(uplinks, faults)));
}

// Leaves 0 and 1 share no spine any more.
constexpr const char* kNoRoot =
    R"([{"cable": "leaf 0 to spine 0"}, {"cable": "leaf 1 to spine 1"}])";

std::string summing_job(const std::string& cluster, bool sharp) {
  return fmt::format(R"("model": "llama3_8b", {}"parallelism": {{"data": 64}}, "recompute": "full",
      "batch": {{"sequences": 64, "tokens": 2048, "micro": 1}},
      "stack": {{"preset": "megatron_core",
      "communication": {{"overlap_gradients": false, "bucket_parameters": 0, "sharp": {}}}}})",
                     cluster.empty() ? "" : "\"cluster\": " + cluster + ", ", sharp);
}

}  // namespace

TEST_CASE("SHARP: a dead uplink moves its rail's tree, which shares a cable with another rail") {
  const Json whole = sum_call(8, "").at("rows").at(0);
  const Json moved = sum_call(8, R"([{"cable": "leaf 1 to spine 2"}])").at("rows").at(0);
  CHECK(moved.at("algorithm") == "nvls");
  const auto time = [](const Json& row) { return row.at("time_s").get<double>(); };
  // Eight rails on seven cables of the rate of a NIC: two share one. Alone NVLS does not fill one.
  CHECK(time(moved) > 1.3 * time(whole));
  CHECK(time(moved) < 2.1 * time(whole));
  CHECK(moved.at("slowest_link").get<std::string>().find("spine") != std::string::npos);
}

TEST_CASE("SHARP: with no switch above all leaves NCCL sums in GPUs, and every answer says so") {
  const Json call = sum_call(2, kNoRoot);
  CHECK(call.at("rows").at(0).at("algorithm") != "nvls");
  CHECK(call.at("notes").dump().find("NCCL gets no SHARP") != std::string::npos);
  const Json step = answer_on("run", "{" + summing_job(summing_cluster(2, kNoRoot), true) + "}");
  const Json plain = answer_on("run", "{" + summing_job(summing_cluster(2, kNoRoot), false) + "}");
  CHECK(step.at("step_s") == plain.at("step_s"));
  CHECK(step.at("notes").dump().find("NCCL gets no SHARP") != std::string::npos);
  const Json summed = answer_on("run", "{" + summing_job(summing_cluster(2, ""), true) + "}");
  CHECK(summed.at("step_s") < step.at("step_s"));
}

TEST_CASE("SHARP: of jobs on a fabric that breaks, trees move, and where none is left sums wait") {
  const auto shared = [](const char* events) {
    return fmt::format(R"({{"cluster": {}, "steps": 2, "jobs": [{{"name": "sums",
        "nodes": {{"first": 0, "count": 8}}, {}}}], "events": [{}]}})",
                       summing_cluster(2, ""), summing_job("", true), events);
  };
  const auto step_of = [](const Json& answer) {
    return answer.at("jobs").at(0).at("step_s").get<double>();
  };
  const auto notes_of = [](const Json& answer) { return answer.at("notes").dump(); };
  const Json never =
      answer_on("run", shared(R"({"at": "1000 s", "fault": {"switch": "spine 0"}})"));
  const Json moved = answer_on("run", shared(R"({"at": "0 s", "fault": {"switch": "spine 0"}})"));
  CHECK(notes_of(moved).find("a rail's tree went to another root") != std::string::npos);
  CHECK(notes_of(never).find("tree") == std::string::npos);
  // Half of the uplinks carry everything.
  CHECK(step_of(moved) > step_of(never));
  const Json cut = answer_on(
      "run", shared(R"({"at": "0 s", "fault": {"cable": "leaf 0 to spine 0"}, "lasts": "20 s"},
                       {"at": "0 s", "fault": {"cable": "leaf 1 to spine 1"}, "lasts": "20 s"})"));
  CHECK(notes_of(cut).find("what switches had to sum waited") != std::string::npos);
  CHECK(step_of(cut) > 5);
}

}  // namespace lockstep::test
