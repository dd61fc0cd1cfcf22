#include "sim/congestion/shared_work.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>

#include "tests/support/presets.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

namespace lockstep {
namespace {

/// Two nodes that train, beside what `more` says.
std::string small(int steps, const std::string& more = {}) {
  return fmt::format(R"({{"cluster": {{"node": "dgx_h100", "nodes": 4, "fabric": "fat_tree_ecmp"}},
    "steps": {}, "jobs": [{{"name": "a", "nodes": [0, 1], "model": "llama3_8b",
    "parallelism": {{"data": 16, "sharding": "zero1"}},
    "batch": {{"sequences": 16, "micro": 1, "tokens": 8192}},
    "recompute": "full", "stack": "megatron_core"}}]{}}})",
                     steps, more);
}

SharedWork work_of(const std::string& text) {
  return shared_work(read_shared_scenario(JsonCursor::parse("t.json", text), test::presets()));
}

std::string background(const std::string& every) {
  return fmt::format(R"(, "background": [{{"name": "logs", "from": [2], "to": [3],
                         "size": "1 MB", "every": "{}"}}])",
                     every);
}

}  // namespace

TEST_CASE("shared work: grows with the steps, and names what makes most of it") {
  const SharedWork few = work_of(small(10)), many = work_of(small(1000));
  CHECK(many.pointer == "/steps");
  CHECK(many.takes / few.takes == doctest::Approx(100).epsilon(0.1));
  CHECK(many.holds / few.holds == doctest::Approx(100).epsilon(0.1));
  CHECK(work_of(small(10, background("100 us"))).pointer == "/background/0/every");
  CHECK(work_of(small(10, background("1 h"))).pointer == "/steps");
  const std::string flapping = R"(, "events": [{"fault": {"switch": "leaf 0"}, "at": "1 ms",
                                                 "lasts": "1 us", "every": "2 us"}])";
  CHECK(work_of(small(10, flapping)).pointer == "/events/0/every");
}

TEST_CASE("jobs: what no memory holds is refused before any of it is simulated") {
  const test::TemporaryFolder folder;
  const std::string flapping = R"(, "events": [{"fault": {"switch": "leaf 0"}, "at": "1 ms",
                                                 "lasts": "10 ns", "every": "20 ns"}])";
  const std::string file = folder.write("flaps.json", small(10'000, flapping));
  const test::Ran ran = test::lockstep_with({"run", file});
  CHECK(ran.exit == Exit::bad_input);
  CHECK(ran.err.starts_with(file + "#/events/0/every: found "));
  CHECK(ran.err.find(" failures, which take about ") != std::string::npos);
  CHECK(ran.out.empty());
}

}  // namespace lockstep
