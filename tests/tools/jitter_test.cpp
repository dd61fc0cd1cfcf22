// --jitter: what a step takes where transfers do not start exactly together.
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/near.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

namespace lockstep::test {
namespace {

using Json = nlohmann::ordered_json;

/// Two pipeline stages on a node each, and one micro batch: its message goes there, the gradient's
/// comes back, one after the other.
const std::string kInSeries = R"({"model": "llama3_8b", "stack": "megatron_core",
    "cluster": {"node": "dgx_h100", "nodes": 2},
    "parallelism": {"tensor": 8, "pipeline": 2, "data": 1},
    "batch": {"sequences": 1, "micro": 1, "tokens": 4096}})";

const std::string kSideBySide = R"({"model": "llama3_8b", "stack": "megatron_core",
    "cluster": {"node": "dgx_h100", "nodes": 8, "fabric": {"kind": "fat_tree",
        "leaf_ports_down": 16, "leaf_oversubscription": 4}},
    "parallelism": {"tensor": 4, "pipeline": 4, "data": 4},
    "batch": {"sequences": 64, "micro": 1, "tokens": 4096}})";

Ran asked(const std::string& scenario, const std::vector<std::string>& more) {
  const TemporaryFolder folder;
  std::vector<std::string> args{"run", folder.write("s.json", scenario), "--allow-oom"};
  args.insert(args.end(), more.begin(), more.end());
  return lockstep_with(args);
}

Json answer_of(const std::string& scenario, std::vector<std::string> more) {
  more.insert(more.end(), {"--format", "json"});
  const Ran ran = asked(scenario, more);
  CAPTURE(ran.err);
  REQUIRE(ran.exit == Exit::ok);
  return Json::parse(ran.out);
}

double step_s(const Json& answer) { return answer.at("step_s").get<double>(); }

}  // namespace

TEST_CASE("--jitter: transfers in series add up their draws, in proportion to the jitter") {
  const double aligned = step_s(answer_of(kInSeries, {}));
  const Json small = answer_of(kInSeries, {"--jitter", "50 us"});
  const Json large = answer_of(kInSeries, {"--jitter", "100 us"});
  const double added = step_s(small) - aligned;
  CHECK(added > 0);
  // Of each flow its latest start: there are no more flows one after the other than in all.
  CHECK(added < 50e-6 * small.at("simulation").at("flows").get<double>());
  CHECK(step_s(large) - aligned == near(2 * added).epsilon(1e-4));
  CHECK(small.at("jitter").at("aligned_step_s") == aligned);
  CHECK(small.at("jitter").at("most_s") == 50e-6);
}

TEST_CASE("--jitter: below a tick it is none, else no replica stands for another") {
  const Json aligned = answer_of(kSideBySide, {});
  CHECK_FALSE(aligned.contains("jitter"));
  // Less than half a tick of the clock.
  CHECK(step_s(answer_of(kSideBySide, {"--jitter", "0.0001 ns"})) == step_s(aligned));
  // Bursts that line up meet on the uplinks in every micro batch.
  CHECK(step_s(answer_of(kSideBySide, {"--jitter", "1 us"})) < step_s(aligned));
  const Json some = answer_of(kSideBySide, {"--jitter", "20 us"});
  CHECK(some.at("simulation").at("replicas_simulated") == 4);
  CHECK(some.at("simulation").at("replicas_simulated") >
        aligned.at("simulation").at("replicas_simulated"));
  CHECK(step_s(some) != step_s(aligned));
  CHECK(some.at("jitter").at("aligned_step_s") == step_s(aligned));
  CHECK(asked(kSideBySide, {"--jitter", "20 us"}).out ==
        asked(kSideBySide, {"--jitter", "20 us"}).out);
}

TEST_CASE("--jitter: on full links a lead grows with every micro batch, in proportion to itself") {
  const auto gain = [](const std::string& jitter, int sequences) {
    const Json answer = answer_of(
        kSideBySide, {"--jitter", jitter, "--set", "batch.sequences=" + std::to_string(sequences)});
    return answer.at("jitter").at("aligned_step_s").get<double>() - step_s(answer);
  };
  // In nanoseconds the lead has not grown to what a micro batch takes: nothing else happens than
  // with ten times the jitter, a tenth of it. So it is not the order of events that decides.
  const double small = gain("1 ns", 24), large = gain("10 ns", 24);
  CHECK(small > 1e-9);
  CHECK(large == near(10 * small).epsilon(0.02));
  // Each replica has two micro batches more, and of four that share an uplink one gains from 1 to 4
  // times its lead in each.
  const double longer = gain("1 ns", 32);
  CHECK(longer > 2 * small);
  CHECK(longer < 16 * small);
}

TEST_CASE("--jitter: no time, or folding beside it, is refused") {
  const auto refused = [](const std::string& text, const std::string& allowed) {
    CAPTURE(text);
    const Ran ran = asked(kInSeries, {"--jitter", text});
    CHECK(ran.exit == Exit::bad_input);
    CHECK(ran.err == "--jitter: found \"" + text + "\"; allowed: " + allowed + "\n");
  };
  for (const char* const text : {"0 s", "-1 us", "2 s"}) {
    refused(text, "a time above 0, at most 1 s");
  }
  const std::string units = "a number with a unit of time: s, ms, us, ns, min, h, d, weeks, months";
  for (const char* const text : {"5", "soon"}) refused(text, units);
  refused("5 uss", units + ". Did you mean \"us\"?");
  CHECK(asked(kInSeries, {"--jitter", "5 us", "--fold"}).err ==
        "--jitter: found --fold beside it; allowed: one of them\n");
}

}  // namespace lockstep::test
