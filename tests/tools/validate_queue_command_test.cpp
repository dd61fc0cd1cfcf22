// `lockstep validate --queue`: what it prints, and how it ends.
#include <doctest/doctest.h>
#include <string>

#include <nlohmann/json.hpp>

#include "models/base/text_file.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

namespace lockstep {
namespace {

using test::lockstep_with;
using test::Ran;

/// A job of 100 s, of which somebody says that it took `said_s`.
std::string one_job(const std::string& said_s) {
  return R"({"queues": [{"id": "one", "source": "a paper", "basis": "published",
    "scenario": {"cluster": {"node": "dgx_h100", "nodes": 1},
      "queue": {"order": "fifo", "admission": "strict",
                "jobs": [{"job": {"name": "x", "gpus": 8, "runs": "100 s"}}]}},
    "figures": [{"figure": "completion_mean_s", "value": )" +
         said_s + R"(, "within": "1 %"}]}]})";
}

}  // namespace

TEST_CASE("lockstep validate --queue: a table, JSON and CSV of figures with their promises") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("one.json", one_job("99.5"));
  const Ran table = lockstep_with({"validate", "--queue", file});
  CHECK(table.exit == Exit::ok);
  CHECK(table.err.empty());
  CHECK(table.out.starts_with("queue  figure             within  promise  measured  predicted  "));
  CHECK(table.out.find("completion_mean_s  1 %     kept         99.5        100  +0.5025 %") !=
        std::string::npos);
  const Ran json = lockstep_with({"validate", "--queue", file, "--format", "json"});
  const nlohmann::json answer = nlohmann::json::parse(json.out);
  CHECK(answer["points"] == nlohmann::json::parse(R"([{"queue": "one",
    "figure": "completion_mean_s", "within": "1 %", "promise": "kept", "measured": 99.5,
    "predicted": 100.0, "error": 0.00502512562814, "basis": "published", "source": "a paper"}])"));
  CHECK(answer["summary"]["all"]["n"] == 1);
  CHECK(lockstep_with({"validate", "--queue", file, "--format", "csv"}).out ==
        "queue,figure,within,promise,measured,predicted,error,basis,source\n"
        "one,completion_mean_s,1 %,kept,99.5,100,0.00502512562814,published,a paper\n");
}

TEST_CASE("lockstep validate --queue: a missed promise is named, and the exit status says so") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("one.json", one_job("98"));
  const std::string page = folder.path() + "/page.html";
  const Ran ran = lockstep_with({"validate", "--queue", folder.path(), "--report", page});
  const std::string line =
      "one, completion_mean_s: predicted 100, published 98: +2.0408 %; promised: within 1 %";
  CHECK(ran.exit == Exit::assertion_missed);
  CHECK(ran.err == line + "\n");
  CHECK(ran.out.find("missed") != std::string::npos);
  CHECK(read_text_file(page).find("Promises that are missed") != std::string::npos);
  const Ran json = lockstep_with({"validate", "--queue", file, "--format", "json"});
  CHECK(json.exit == Exit::assertion_missed);
  CHECK(nlohmann::json::parse(json.out)["summary"]["missed"] == nlohmann::json::array({line}));
}

TEST_CASE("lockstep validate --queue: bad input prints one line and no table") {
  const test::TemporaryFolder folder;
  const Ran bad =
      lockstep_with({"validate", "--queue", folder.write("bad.json", one_job("\"1 s\""))});
  CHECK(bad.exit == Exit::bad_input);
  CHECK(bad.out.empty());
  CHECK(bad.err.find("bad.json#/queues/0/figures/0/value: found \"1 s\"; allowed: ") !=
        std::string::npos);
  const Ran two = lockstep_with({"validate", "--queue", "x.json", "--gemm", "y.json"});
  CHECK(two.exit == Exit::bad_input);
  CHECK(two.err == "lockstep validate: found --gemm and --queue; allowed: one of them\n");
  const Ran dense = lockstep_with({"validate", "--queue", "x.json", "--dense"});
  CHECK(dense.err == "lockstep validate: --dense selects rows; it says nothing about --queue\n");
}

}  // namespace lockstep
