// What a site cannot supply is said by every command that compares jobs.
#include "sim/answer/site_limit.hpp"

#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "models/base/text_file.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

namespace lockstep {
namespace {

using test::lockstep_with;

/// A node of eight H100, which draws more than 8 kW while it trains and less than 1 MW.
const std::string kLimitedJob =
    R"({"model": "llama3_8b", "cluster": {"node": "dgx_h100", "nodes": 1},
  "stack": "megatron_core", "parallelism": {"tensor": 2, "sharding": "zero1"},
  "batch": {"sequences": 64, "tokens": 2048, "micro": 1}, "recompute": "full",
  "power": {"site_limit": "2 kW"}})";

bool tells(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("LimitTally: counts those that exceed, and says which limits these are") {
  LimitTally limits;
  limits.add(std::nullopt, std::nullopt);
  limits.add(-1.0, 1e6);
  CHECK(limits.warning().empty());
  limits.add(5e5, 10e6);
  CHECK(limits.warning() == "EXCEEDED: 1 of 3 rows draw more than the site's limit of 10.00 MW");
  limits.add(1.0, 25e6);
  CHECK(limits.warning("sizes") ==
        "EXCEEDED: 2 of 4 sizes draw more than the site's limit of 10.00 MW to 25.00 MW");
}

TEST_CASE("site limit: run --vary, --advise, --scaling and tune say that it is exceeded") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("job.json", kLimitedJob);
  const std::vector<std::vector<std::string>> questions{
      {"run", file, "--vary", "power.site_limit=1 kW,1 MW"},
      {"run", file, "--vary", "batch.sequences=64,128"},
      {"run", file, "--advise"},
      {"run", file, "--scaling", "8,16"},
      {"tune", file, "--tensor", "2", "--keep", "2"}};
  for (const std::vector<std::string>& question : questions) {
    CAPTURE(question);
    CHECK(tells(lockstep_with(question).out, "EXCEEDED: "));
    std::vector<std::string> enough = question;
    enough.insert(enough.end(), {"--set", "power.site_limit=1 MW"});
    // A value that is varied stands above one that is set.
    const bool varied = tells(question.back(), "site_limit");
    CHECK(tells(lockstep_with(enough).out, "EXCEEDED") == varied);
  }
  CHECK(tells(lockstep_with(questions[0]).out,
              "EXCEEDED: 1 of 2 rows draw more than the site's limit of 1,000 W"));
}

TEST_CASE(
    "site limit: the pages of --vary, --scaling and sweep say in their headlines what exceeds it") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("job.json", kLimitedJob), page = folder.path() + "/p.html";
  const std::string sweep = folder.write("sweep.json", R"({"scenario": "job.json",
    "axes": [{"at": "/power/site_limit", "values": ["1 kW", "2 kW", "1 MW"]}]})");
  const auto page_of = [&](std::vector<std::string> question) {
    question.insert(question.end(), {"--report", page});
    REQUIRE(lockstep_with(question).exit == Exit::ok);
    return read_text_file(page);
  };
  CHECK(tells(page_of({"run", file, "--vary", "power.site_limit=1 kW,1 MW"}),
              "<strong>EXCEEDED: 1 of 2 rows draw more"));
  // What draws more than its site has is not called best, and equals are not.
  CHECK(tells(page_of({"run", file, "--vary", "power.site_limit=1 kW,1 MW"}),
              "Both points are equal: step time "));
  CHECK(tells(
      page_of({"run", file, "--vary", "cluster.nodes=1,2", "--set", "power.site_limit=12 kW"}),
      "cluster.nodes = <strong>1</strong> has the shortest step time of 2 points"));
  CHECK(tells(page_of({"run", file, "--scaling", "8,16"}),
              "<strong>EXCEEDED: 2 of 2 sizes draw more"));
  CHECK(tells(page_of({"sweep", sweep, "-o", folder.path() + "/a.db"}),
              "<strong>EXCEEDED: 2 of 3 points draw more"));
  CHECK_FALSE(tells(page_of({"run", file, "--scaling", "8,16", "--set", "power.site_limit=1 MW"}),
                    "EXCEEDED"));
}

TEST_CASE("site limit: a sweep says how many of its points exceed it") {
  const test::TemporaryFolder folder;
  (void)folder.write("job.json", kLimitedJob);
  const std::string sweep = folder.write("sweep.json", R"({"scenario": "job.json",
    "axes": [{"at": "/power/site_limit", "values": ["1 kW", "2 kW", "1 MW"]}]})");
  CHECK(tells(lockstep_with({"sweep", sweep, "-o", folder.path() + "/a.db"}).out,
              "EXCEEDED: 2 of 3 points draw more than the site's limit of 1,000 W to 2,000 W."));
}

TEST_CASE("site limit: a comparison says what a lower limit does to the site") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("job.json", kLimitedJob);
  std::string more = kLimitedJob;
  more.replace(more.find("2 kW"), 4, "1 MW");
  const std::string roomy = folder.write("roomy.json", more);
  const std::string out = lockstep_with({"compare", roomy, file}).out;
  CHECK(tells(out, "Moves site_excess_w alone: power.site_limit: 1 MW -> 2 kW"));
  CHECK(tells(out, "(EXCEEDED)"));
  CHECK_FALSE(tells(out, "Moves nothing"));
  CHECK_FALSE(tells(lockstep_with({"compare", roomy, roomy}).out, "site_excess_w"));
}

}  // namespace lockstep
