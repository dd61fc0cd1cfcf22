// Answers that leave the switches out of some traffic say so wherever they are printed.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>

#include <nlohmann/json.hpp>

#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

namespace lockstep::test {
namespace {

using Json = nlohmann::ordered_json;

/// How the sentence begins, for groups along an axis.
std::string inner(const std::string& axis) {
  return "Exchanges inside layers between nodes (" + axis +
         " parallel) load NICs and not the switches";
}

std::string thin_tree(int oversubscription, int nodes = 8) {
  return fmt::format(R"({{"node": "dgx_h100", "nodes": {}, "fabric": {{"kind": "fat_tree",
      "leaf_ports_down": 16, "routing": "adaptive", "leaf_oversubscription": {}}}}})",
                     nodes, oversubscription);
}

std::string experts_on(int oversubscription, int expert) {
  return fmt::format(R"({{"model": "qwen3_30b_a3b", "stack": "megatron_core", "cluster": {},
      "parallelism": {{"data": 64, "expert": {}}},
      "batch": {{"sequences": 64, "tokens": 4096, "micro": 1}}, "recompute": "full"}})",
                     thin_tree(oversubscription), expert);
}

std::string run_of(const std::string& scenario, const std::string& format) {
  const TemporaryFolder folder;
  const Ran ran =
      lockstep_with({"run", folder.write("s.json", scenario), "--allow-oom", "--format", format});
  CAPTURE(ran.err);
  REQUIRE(ran.exit == Exit::ok);
  return ran.out;
}

std::string notes_of(const std::string& scenario) {
  return Json::parse(run_of(scenario, "json")).at("notes").dump();
}

std::string on_one_line(std::string text) {
  for (std::size_t at = 0; (at = text.find("\n", at)) != std::string::npos;) {
    const std::size_t end = text.find_first_not_of(" \n", at);
    text.replace(at, end == std::string::npos ? text.npos : end - at, " ");
  }
  return text;
}

TEST_CASE("unseen traffic: a step says that experts' exchanges do not load thin uplinks") {
  CHECK(notes_of(experts_on(8, 64)).find(inner("expert")) != std::string::npos);
  CHECK(on_one_line(run_of(experts_on(8, 64), "table")).find(inner("expert")) != std::string::npos);
  CHECK(notes_of(experts_on(8, 64)).find("uplinks oversubscribed 8:1") != std::string::npos);
}

TEST_CASE("unseen traffic: nothing is said where the switches cannot matter") {
  CHECK(notes_of(experts_on(1, 64)) == "[]");                                    // full bisection
  CHECK(notes_of(experts_on(8, 8)).find(inner("expert")) == std::string::npos);  // inside the node
}

TEST_CASE("unseen traffic: tensor groups that straddle nodes only beyond the first are found") {
  // Of 8 groups of 6 on nodes of 8 GPUs, ranks 0 to 5 lie on one node and ranks 6 to 11 on two.
  const std::string notes = notes_of(fmt::format(
      R"({{"model": "gpt3_175b", "cluster": {},
      "parallelism": {{"tensor": 6, "data": 8, "sequence": false}},
      "batch": {{"sequences": 64, "tokens": 2048, "micro": 1}}}})",
      thin_tree(8, 6)));
  CHECK(notes.find(inner("tensor")) != std::string::npos);
}

TEST_CASE("unseen traffic: jobs on one thin fabric name the jobs that it is about") {
  const std::string job =
      R"("model": "qwen3_30b_a3b", "parallelism": {"data": 32, "expert": 32, "sharding": "zero1"},
      "batch": {"sequences": 32, "micro": 1, "tokens": 4096}, "recompute": "full")";
  const std::string scenario = fmt::format(
      R"({{"cluster": {}, "jobs": [
      {{"name": "even", "nodes": {{"first": 0, "count": 4, "stride": 2}}, {}}},
      {{"name": "odd", "nodes": {{"first": 1, "count": 4, "stride": 2}}, {}}}]}})",
      thin_tree(16), job, job);
  const std::string notes = notes_of(scenario);
  CHECK(notes.find("even, odd: " + inner("expert")) != std::string::npos);
}

TEST_CASE("unseen traffic: a collective says that its fabric is not in its times") {
  const auto notes = [](int oversubscription) {
    const TemporaryFolder folder;
    const std::string file =
        folder.write("c.json", fmt::format(R"({{"cluster": {}, "collective": {{"op": "all_to_all",
        "sizes": ["512 MiB"]}}}})",
                                           thin_tree(oversubscription)));
    const Ran ran = lockstep_with({"comm", file, "--format", "json"});
    CAPTURE(ran.err);
    REQUIRE(ran.exit == Exit::ok);
    const Ran table = lockstep_with({"comm", file});
    const bool told = table.out.find("note: These times are those of a fabric") != table.out.npos;
    CHECK(told == (oversubscription > 1));
    return Json::parse(ran.out).at("notes").dump();
  };
  CHECK(notes(1) == "[]");
  CHECK(notes(8).find("uplinks oversubscribed 8:1") != std::string::npos);
}

}  // namespace
}  // namespace lockstep::test
