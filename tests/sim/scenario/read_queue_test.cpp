// Scenarios with "queue": what is read, what is refused and how, traces and drawn jobs.
#include "sim/scenario/read_queue.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <doctest/doctest.h>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/csv_reader.hpp"
#include "models/base/input_error.hpp"
#include "models/base/text_file.hpp"
#include "models/base/write_json.hpp"
#include "sim/scenario/host_list.hpp"
#include "sim/scenario/queue_trace.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/temporary_folder.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

const std::string kSchemaFile = LOCKSTEP_SOURCE_DIR "/scenarios/queue.schema.json";

Json sound_queue() {
  return Json::parse(R"({
    "cluster": {"node": "dgx_h100", "nodes": 4},
    "queue": {
      "order": "priority", "admission": "best_effort",
      "preemption": {"mode": "evict", "exempt": "2 h", "restart": "5 min", "checkpoint": "1 h"},
      "placement": {"within_node": "first_fit", "across": "packed", "leaf_nodes": 2},
      "partitions": [{"name": "train", "nodes": 3}, {"name": "dev", "nodes": 1}],
      "quotas": [{"user": "ann", "gpus": 8}, {"account": "x", "gpus": 16}],
      "reliability": "meta_rsc1", "repair": "12 h", "until": "30 d", "seed": 7,
      "jobs": [{"generate": {"count": 10, "every": "1 min", "gpus": [[8, 1]], "mean": "1 h",
                             "sigma": 1, "accounts": [["x", 1]]}}]
    }
  })");
}

QueueSpec read(const Json& scenario, const std::string& file = "t.json") {
  return read_queue(JsonCursor::parse(file, scenario.dump()), test::presets());
}

std::string message_of(const Json& scenario, const std::string& file = "t.json") {
  try {
    (void)read(scenario, file);
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing";
}

Json changed(const std::string& pointer, const Json& value) {
  Json out = sound_queue();
  out[Json::json_pointer(pointer)] = value;
  return out;
}

/// A folder with a trace, and a scenario of it.
class TracedQueue {
 public:
  explicit TracedQueue(const std::string& rows, const std::string& name = "trace.csv")
      : name_(name) {
    (void)folder_.write(name, rows);
  }
  [[nodiscard]] Json scenario(const Json& trace = Json::object()) const {
    Json out = sound_queue();
    Json of = trace;
    of["file"] = name_;
    out["queue"].erase("partitions");
    out["queue"]["jobs"] = Json::array({{{"trace", of}}});
    return out;
  }
  [[nodiscard]] std::string file() const { return folder_.path() + "/queue.json"; }
  [[nodiscard]] std::string error(const Json& trace = Json::object()) const {
    return message_of(scenario(trace), file());
  }

 private:
  test::TemporaryFolder folder_;
  std::string name_;
};

}  // namespace

TEST_CASE("queue: a scenario is read as it stands") {
  const QueueSpec spec = read(sound_queue());
  CHECK(spec.order == QueueOrder::priority);
  CHECK(spec.preemption.exempt == to_run_time(Seconds{7200}));
  CHECK(spec.placement.leaf_nodes == 2);
  CHECK(spec.partitions.size() == 3);
  CHECK(spec.partitions[2].nodes == std::vector{3});
  CHECK(spec.user_quotas.size() == 1);
  CHECK(spec.failures.mean_time > Seconds{});
  CHECK(spec.jobs.size() == 10);
  CHECK(spec.jobs.front().account == *NameTable(spec.accounts).number_of("x"));
}

TEST_CASE("queue: repairs and predictions that the scenario does not give are said") {
  const auto tells = [](const Json& scenario, const std::string& line) {
    const std::vector<std::string> assumptions = read(scenario).assumptions;
    return std::ranges::count(assumptions, line) == 1;
  };
  const std::string repair = "queue.repair: 1 d on average until a broken node is back (not given)";
  Json scenario = sound_queue();
  CHECK_FALSE(tells(scenario, repair));
  scenario["queue"].erase("repair");
  CHECK(tells(scenario, repair));
  scenario["queue"].erase("reliability");
  CHECK_FALSE(tells(scenario, repair));  // nothing breaks

  const std::string right =
      "queue.estimate_sigma: 0 (not given); durations are predicted without error";
  Json predicted = Json::parse(R"({"cluster": {"node": "dgx_h100", "nodes": 1},
      "queue": {"order": "qssf", "admission": "best_effort",
                "jobs": [{"job": {"name": "a", "gpus": 8, "runs": "1 h"}}]}})");
  CHECK(tells(predicted, right));
  predicted["queue"]["estimate_sigma"] = 0;
  CHECK_FALSE(tells(predicted, right));
}

TEST_CASE("queue: las without evictions is said to be the order of submission") {
  const auto told = [](const Json& scenario) {
    for (const std::string& text : read(scenario).assumptions) {
      if (text.starts_with("queue.preemption: ")) return text;
    }
    return std::string();
  };
  Json scenario = Json::parse(R"({"cluster": {"node": "dgx_h100", "nodes": 2},
      "queue": {"order": "las", "admission": "best_effort", "levels": ["1 h"],
                "jobs": [{"job": {"name": "a", "gpus": 8, "runs": "1 h"}}]}})");
  CHECK(told(scenario) ==
        "queue.preemption: none (not given); no job is sent back, so that jobs that wait have "
        "attained nothing: las orders them by their submission, and \"levels\" changes nothing");
  Json breaks = scenario;
  breaks["queue"]["breaks"] = Json::parse(R"([{"node": 1, "at": "1 min", "repair": "1 min"}])");
  CHECK(told(breaks).empty());
  Json evicts = scenario;
  evicts["queue"]["preemption"] = {{"mode", "evict"}};
  CHECK(told(evicts).empty());
}

TEST_CASE("queue: what a failure leaves of a job is said where no checkpoint is") {
  const auto told = [](const Json& scenario) {
    for (const std::string& text : read(scenario).assumptions) {
      if (text.starts_with("queue.preemption.checkpoint")) return text;
    }
    return std::string();
  };
  CHECK(told(sound_queue()).empty());
  Json scenario = sound_queue();
  scenario["queue"]["preemption"].erase("checkpoint");
  CHECK(told(scenario) ==
        "queue.preemption.checkpoint: none (not given); a job that a failure stops starts again "
        "as it last started, and a job that is evicted keeps all of its work");
  Json unbroken = scenario;
  unbroken["queue"].erase("reliability");
  CHECK(told(unbroken) ==
        "queue.preemption.checkpoint: none (not given); a job that is evicted keeps all of its "
        "work");
  CHECK_FALSE(read(scenario).preemption.checkpoint);
  scenario["queue"].erase("preemption");
  CHECK(told(scenario).ends_with("starts again from its beginning"));
  scenario["queue"].erase("reliability");
  CHECK(told(scenario).empty());
  scenario["queue"]["breaks"] = Json::parse(R"([{"node": 3, "at": "1 h", "repair": "1 h"}])");
  CHECK(told(scenario).ends_with("starts again from its beginning"));
  CHECK(read(changed("/queue/preemption/checkpoint", 0)).preemption.checkpoint == RunTime{0});
}

TEST_CASE("queue: a job that failures would stop for ever is refused") {
  Json scenario = sound_queue();
  Json& queue = scenario["queue"];
  queue.erase("preemption");
  queue.erase("until");
  queue["jobs"] = Json::parse(R"([{"job": {"name": "long", "runs": "30 d", "gpus": 32}}])");
  queue["reliability"] =
      Json::parse(R"({"modes": [{"name": "n", "component": "node", "mean_time": "5 d"}]})");
  const std::string message = message_of(scenario);
  CHECK(message.starts_with("t.json#/queue/reliability: found"));
  CHECK(message.find("job long works 30 d at a stretch, in which 24 of its nodes fail") !=
        std::string::npos);
  const auto passes = [&](const char* key, const Json& value) {
    Json other = scenario;
    other["queue"][key] = value;
    CHECK(message_of(other) == "nothing");
  };
  passes("until", "60 d");
  passes("preemption", {{"mode", "none"}, {"checkpoint", "1 h"}});
  passes("preemption", {{"mode", "none"}, {"checkpoint", 0}});
}

TEST_CASE("queue: mistakes are told with their place and what is allowed") {
  const auto says = [](const Json& scenario, const std::string& text) {
    const std::string message = message_of(scenario);
    CHECK_MESSAGE(message.find(text) != std::string::npos, message);
  };
  says(changed("/queue/order", "srt"), "t.json#/queue/order: found \"srt\"");
  says(changed("/queue/order", "srt"), "Did you mean \"srtf\"?");
  says(changed("/queue/admission", "easy"), "t.json#/queue/preemption/mode");
  says(changed("/queue/order", "fifo"), "t.json#/queue/preemption/mode");
  says(changed("/queue/order", "las"), "t.json#/queue: found an object without \"levels\"");
  says(changed("/queue/slurm", Json::object()), "t.json#/queue/slurm");
  says(changed("/queue/partitions/1/nodes", 2), "t.json#/queue/partitions/1/nodes: found 2");
  says(changed("/queue/partitions/1/name", "train"), "a name that no other partition has");
  says(changed("/queue/quotas/0/account", "y"), "either \"user\" or \"account\"");
  says(changed("/queue/reliability", "meta_rsc3"), "Did you mean \"meta_rsc1\"?");
  says(changed("/queue/jobs/0/generate/gpus/0/0", 33),
       "found job 0 of 33 GPUs; allowed: at most 32");
  says(changed("/queue/jobs/0/generate/sigma", -1), "t.json#/queue/jobs/0/generate/sigma");
  says(changed("/queue/jobs/0/generate/day", Json::array({1, 2})), "24 weights");
  says(changed("/queue/jobs/0/generate/gpus", Json::array()), "a weight above 0");
  says(changed("/queue/jobs/0/stand_in", sound_queue()["queue"]["jobs"][0]["generate"]),
       "no such key without \"trace\"");
  says(changed("/queue/jobs", Json::array()), "at least one job");
  says(changed("/queue/jobs/0", Json{{"trace", "jobs.csv"}}),
       "t.json#/queue/jobs/0/trace: found \"jobs.csv\"; allowed: {\"file\": \"jobs.csv\", "
       "\"columns\": {\"submit\": \"submit_s\", \"runs\": \"run_s\", \"gpus\": \"gpus\"}} with the "
       "names of its columns");
  says(changed("/queue/until", 0), "t.json#/queue/until");
  Json missing = sound_queue();
  missing["queue"]["jobs"][0] = {{"trace", {{"file", "nowhere/no-such-trace.csv"}}}};
  says(missing, "t.json#/queue/jobs/0/trace/file: found \"nowhere/no-such-trace.csv\"");
}

TEST_CASE("queue: a trace by its columns, whatever they are called") {
  const TracedQueue trace(
      "id,when_ms,len,who,limit_min,started_s,where,gpus,priority\n"
      "\"j,1\",2000,50,ann,2,3.5,n[1-2],16,4\n"
      "j2,1000,70,bob,1,2,n3,8,-1\n"
      "cpu,1500,70,bob,1,2,n3,0,0\n");
  const Json columns{
      {"submit", "when_ms"},  {"runs", {{"column", "len"}, {"factor", 2}, {"plus", "1 s"}}},
      {"limit", "limit_min"}, {"start", "started_s"},
      {"nodes", "where"},     {"name", "id"},
      {"user", "who"}};
  const QueueSpec spec = read(trace.scenario({{"columns", columns}}), trace.file());
  REQUIRE(spec.jobs.size() == 2);
  CHECK(spec.job_name(0) == "j2");  // by submission
  CHECK(spec.job_name(1) == "j,1");
  CHECK(spec.jobs[1].submit == to_run_time(Seconds{2}));
  CHECK(spec.jobs[1].runs == to_run_time(Seconds{101}));
  CHECK(spec.jobs[1].limit == to_run_time(Seconds{120}));
  CHECK(spec.jobs[0].runs == to_run_time(Seconds{60}));  // cut at its limit
  CHECK(spec.jobs[0].cut);
  CHECK(spec.jobs[1].priority == 4);
  CHECK(spec.users[spec.jobs[1].user] == "ann");
  CHECK(spec.recorded[1].start == to_run_time(Seconds{3.5}));
  CHECK(spec.recorded[1].nodes == std::vector{1, 2});
  CHECK(spec.assumptions.back().find("1 of 3 jobs ask for no GPU") != std::string::npos);

  CHECK(read(trace.scenario({{"columns", columns}, {"rows", 1}}), trace.file()).jobs.size() == 1);
  const TracedQueue swf("; UnixStartTime: 0\n1 5 -1 100 8 -1 -1 8 200 -1 1 3 4 -1 1 -1 -1 -1\n",
                        "log.swf");
  const QueueSpec logged = read(swf.scenario(), swf.file());
  REQUIRE(logged.jobs.size() == 1);
  CHECK(logged.jobs[0].gpus == 8);
  CHECK(logged.jobs[0].limit == to_run_time(Seconds{200}));
}

TEST_CASE("queue: broken traces are told by their row") {
  const auto says = [](const std::string& rows, const std::string& text) {
    const std::string message = TracedQueue(rows).error();
    CHECK_MESSAGE(message.find(text) != std::string::npos, message);
  };
  const std::string heading = "submit_s,duration_s,gpus\n";
  says("", "found no rows");
  says("submit,duration_s,gpus\n1,1,1\n", "found no column \"submit_s\"");
  says(heading + "1,1,1\n-1,1,1\n", "trace.csv, row 2: found submit_s \"-1\"");
  says(heading + "1,x,1\n", "row 1: found duration_s \"x\"; allowed: a number");
  says(heading + "1,1e99,1\n", "row 1: found duration_s \"1e99\"");
  says(heading + "1,nan,1\n", "row 1: found duration_s \"nan\"");
  says(heading + "1,1,1.5\n", "row 1: found gpus \"1.5\"; allowed: a whole number");
  says(heading + "1,1\n", "row 1 (line 2): found 2 cells; allowed: 3");
  says(heading + "1,1,\"1\n", "a quote that is never closed");
  says(heading + "1,1,1000\n", "found job 0 of 1000 GPUs");
  says(heading, "at least one job");
  const TracedQueue swf("1 2 3\n", "short.swf");
  CHECK(swf.error().find("row 1: found 3 columns; allowed: the 18") != std::string::npos);
  const TracedQueue minus("submit_s,end_s,gpus\n5,3,1\n");
  CHECK(minus.error({{"columns", {{"runs", {{"column", "end_s"}, {"minus", "submit_s"}}}}}})
            .find("no more than what it is subtracted from") != std::string::npos);
}

TEST_CASE("queue: drawn jobs have the means that were asked for, and a week's rhythm") {
  QueueSpec spec;
  DrawnJobs drawn;
  drawn.count = 50'000;
  drawn.every = Seconds{60};
  drawn.gpus = {{1, 3.0}, {8, 1.0}};
  drawn.mean = Seconds{600};
  drawn.sigma = 1;
  drawn.limit_factor = 3;
  drawn.day.assign(24, 1.0);
  for (std::size_t hour = 0; hour < 8; ++hour) drawn.day[hour] = 0;
  drawn.weekend = 0.5;
  draw_jobs(drawn, 0, spec);
  double runs = 0, limits = 0, wide = 0, at_night = 0, weekend = 0;
  for (const QueueJob& job : spec.jobs) {
    const double submit = to_seconds(job.submit).base_units();
    runs += to_seconds(job.runs).base_units();
    limits += static_cast<double>(job.limit) / static_cast<double>(job.runs);
    wide += job.gpus == 8 ? 1 : 0;
    at_night += std::fmod(submit, 86'400) < 8 * 3600 - 1 ? 1 : 0;
    weekend += std::fmod(submit, 7 * 86'400) >= 5 * 86'400 ? 1 : 0;
  }
  const double n = drawn.count;
  CHECK(runs / n == doctest::Approx(600).epsilon(0.03));
  CHECK(limits / n == doctest::Approx(2).epsilon(0.02));
  CHECK(wide / n == doctest::Approx(0.25).epsilon(0.05));
  CHECK(at_night == 0);
  CHECK(weekend / n == doctest::Approx(1.0 / 6).epsilon(0.1));
  CHECK(to_seconds(spec.jobs.back().submit).base_units() == doctest::Approx(60 * n).epsilon(0.05));
}

TEST_CASE("host lists: ranges there and back") {
  CHECK(host_numbers("n[1-4,7],n12", 100) == std::vector{1, 2, 3, 4, 7, 12});
  CHECK(host_numbers("n3", 100) == std::vector{3});
  for (const char* text : {"", "n", "n[1-", "n[4-1]", "3", "n[1,]", "n1,", "n[1-1000000000]"}) {
    CAPTURE(text);
    CHECK_FALSE(host_numbers(text, 100));
  }
  CHECK(host_list("n", {7, 1, 2, 3}) == "n[1-3,7]");
  CHECK(host_list("n", {5}) == "n5");
  CHECK(host_list("n", {}).empty());
}

TEST_CASE("CSV: quotes, empty rows and foreign line ends") {
  std::vector<std::vector<std::string>> rows;
  read_csv(
      "t.csv", "a,b\r\n\"x \"\"y\"\"\",\"1\n2\"\r\n\r\n3,\r\n", [](auto) {},
      [&](std::size_t, std::span<const std::string> cells) {
        rows.emplace_back(cells.begin(), cells.end());
      });
  REQUIRE(rows.size() == 2);
  CHECK(rows[0] == std::vector<std::string>{"x \"y\"", "1\n2"});
  CHECK(rows[1] == std::vector<std::string>{"3", ""});
}

// To write it: LOCKSTEP_WRITE_SCHEMA=1 build/tests/lockstep_tests -tc='queue.schema.json*'
TEST_CASE("queue.schema.json is what the reader declares") {
  const std::string text = write_json(queue_schema(test::presets()), 2) + "\n";
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  if (std::getenv("LOCKSTEP_WRITE_SCHEMA") != nullptr) std::ofstream(kSchemaFile) << text;
  CHECK(read_text_file(kSchemaFile) == text);
}

}  // namespace lockstep
