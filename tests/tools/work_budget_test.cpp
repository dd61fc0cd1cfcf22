#include "tools/console/work_budget.hpp"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <doctest/doctest.h>
#include <ostream>
#include <sstream>

#include "models/base/input_error.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"
#include "tools/console/foreseen_work.hpp"

using namespace lockstep;

TEST_CASE("work budget: what does not fit names its key, what takes long is announced") {
  WorkEstimate work{
      .place = "a.json#/traffic/0", .what = "9 messages", .seconds = 29, .bytes = 8e9};
  std::ostringstream err;
  check_work_memory(work, 8e9);
  announce_work(work, err);
  CHECK(err.str().empty());
  work.seconds = 90;
  announce_work(work, err);
  CHECK(err.str() == "a.json#/traffic/0: 9 messages take about 90.0 s\n");
  work.bytes = 9e9;
  CHECK_THROWS_WITH_AS(check_work_memory(work, 8e9),
                       "a.json#/traffic/0: found 9 messages, which take about 9.0 GB of memory; "
                       "allowed: at most 8.0 GB (LOCKSTEP_MEMORY in the environment changes it)",
                       InputError);
}

TEST_CASE("work budget: what nobody estimated is announced by how far it has come") {
  CHECK_FALSE(foreseen_seconds(1, 0.001).has_value());  // too early to say
  CHECK_FALSE(foreseen_seconds(3, 0).has_value());
  CHECK_FALSE(foreseen_seconds(3, 0.2).has_value());  // 15 s in all
  REQUIRE(foreseen_seconds(3, 0.05).has_value());
  CHECK(*foreseen_seconds(3, 0.05) == doctest::Approx(60));
  std::ostringstream out;
  Progress progress(out, "points", 3, false);
  ForeseenWork work("a.json", "3 points", progress);
  work.reached(0.001);
  CHECK(out.str().empty());
  progress.say("a.json: 3 points take about 60.0 s");
  CHECK(out.str() == "a.json: 3 points take about 60.0 s\n");
}

TEST_CASE("work budget: one piece of work takes, several take") {
  CHECK(work_announcement("a.json", "1 point", 60) == "a.json: 1 point takes about 60.0 s");
  CHECK(work_announcement("a.json", "11 points", 60) == "a.json: 11 points take about 60.0 s");
}

namespace {

/// Tells when a line has been written.
class ToldLines : public std::stringbuf {
 public:
  void wait() { told_.wait(false); }

 protected:
  int sync() override {
    told_ = true;
    told_.notify_all();
    return 0;
  }

 private:
  std::atomic<bool> told_{false};
};

}  // namespace

TEST_CASE(
    "work budget: where no terminal is, a line says that the work goes on, and how far it is") {
  ToldLines lines;
  std::ostream out(&lines);
  {
    Progress progress(out, "points", 4, false);
    progress.one_done();
    const Heartbeat heartbeat(out, "lockstep sweep", Beats::lines, std::chrono::milliseconds{1});
    lines.wait();
  }
  CHECK(lines.str().starts_with("lockstep sweep: running for 00:0"));
  CHECK(lines.str().find("; points 1 of 4, 25 %, 00:0") != std::string::npos);
  CHECK(lines.str().find("\r") == std::string::npos);
  CHECK(lines.str().ends_with(" left\n"));
  std::ostringstream quiet;
  {
    const Heartbeat none(quiet, "lockstep sweep", Beats::none, std::chrono::milliseconds{1});
  }
  CHECK(quiet.str().empty());
}

TEST_CASE("work budget: the limit of memory is no property of the machine") {
  ::unsetenv("LOCKSTEP_MEMORY");
  CHECK(memory_limit() == 64e9);
  ::setenv("LOCKSTEP_MEMORY", "200 GB", 1);
  CHECK(memory_limit() == 200e9);
  ::setenv("LOCKSTEP_MEMORY", "plenty", 1);
  CHECK_THROWS_WITH_AS(memory_limit(),
                       "LOCKSTEP_MEMORY: found \"plenty\"; allowed: an amount of data such as "
                       "\"200 GB\"",
                       InputError);
  ::unsetenv("LOCKSTEP_MEMORY");
}

TEST_CASE("comm: traffic that no memory holds is refused before it is made") {
  const test::TemporaryFolder folder;
  std::string entries;
  for (int i = 0; i < 2000; ++i) {
    entries += (i == 0 ? "" : ",") +
               std::string(R"({"kind": "permutation", "size": "1 MB", "name": "p)") +
               std::to_string(i) + "\"}";
  }
  const std::string file = folder.write(
      "huge.json",
      R"({"cluster": {"node": "dgx_h100", "nodes": 1000000, "fabric": "ideal"}, "traffic": [)" +
          entries + "]}");
  const test::Ran ran = test::lockstep_with({"comm", file});
  CHECK(ran.exit == Exit::bad_input);
  CHECK(ran.err.starts_with(file + "#/traffic: found 16,000,000,000 messages at once, which take"));
}
