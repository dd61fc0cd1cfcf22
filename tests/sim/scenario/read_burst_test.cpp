// "burst" of a queue: what it says, and what is refused.
#include <algorithm>
#include <doctest/doctest.h>
#include <string>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "sim/scenario/read_queue.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

Json bursting_queue() {
  return Json::parse(R"({
    "cluster": {"node": "dgx_h100", "nodes": 4, "fabric": "fat_tree"},
    "queue": {"order": "fifo", "admission": "best_effort",
      "partitions": [{"name": "long", "nodes": 2}],
      "burst": {"nodes": 16, "node": "aws_p5", "after": "30 min", "starts": "5 min"},
      "jobs": [{"job": {"name": "a", "gpus": 8, "runs": "1 h", "account": "vision"}}]}})");
}

QueueSpec read_bursting(const Json& scenario) {
  return read_queue(JsonCursor::parse("t.json", scenario.dump()), test::presets());
}

std::string refusal_of_burst(const Json& burst) {
  Json scenario = bursting_queue();
  scenario["queue"]["burst"].update(burst);
  try {
    (void)read_bursting(scenario);
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("burst: a cloud's node brings its price, and another one may be said") {
  const QueueSpec spec = read_bursting(bursting_queue());
  REQUIRE(spec.burst.has_value());
  const double listed = *test::presets().node("aws_p5").usd_per_gpu_hour;
  CHECK(spec.burst->usd_per_gpu_hour == listed);
  CHECK(spec.burst->unlike);
  CHECK(spec.burst->rented.nodes == 16);
  CHECK(spec.burst->after == to_run_time(Seconds{1800}));
  Json scenario = bursting_queue();
  scenario["queue"]["burst"]["usd_per_gpu_hour"] = 2.5;
  CHECK(read_bursting(scenario).burst->usd_per_gpu_hour == 2.5);
  // The cluster's own kind of node.
  scenario["queue"]["burst"].erase("node");
  CHECK_FALSE(read_bursting(scenario).burst->unlike);
  CHECK(read_bursting(scenario).burst->rented.node.name ==
        read_bursting(scenario).cluster.node.name);
}

TEST_CASE("burst: mistakes are told by place, with what is allowed") {
  const auto says = [](const Json& burst, const std::string& text) {
    const std::string message = refusal_of_burst(burst);
    CHECK_MESSAGE(message.find(text) != std::string::npos, message);
  };
  says(Json::object(), "nothing");
  says({{"nodes", -1}}, "t.json#/queue/burst/nodes: found -1");
  says({{"node", "aws_p55"}}, "Did you mean \"aws_p5\"?");
  says({{"node", "dgx_h100"}}, "t.json#/queue/burst: found an object without \"usd_per_gpu_hour\"");
  says({{"after", "-1 s"}}, "t.json#/queue/burst/after");
  says({{"speed", 0}}, "t.json#/queue/burst/speed");
  says({{"accounts", {"vison"}}}, "Did you mean \"vision\"?");
  says({{"partitions", {"lang"}}}, "Did you mean \"long\"?");
  says({{"qos", {"high"}}}, "t.json#/queue/burst/qos/0");
  says({{"least_gpus", 9}, {"most_gpus", 8}}, "at most \"most_gpus\", 8");
  says({{"data", {{"in", "1 TB"}}}}, "t.json#/queue/burst/data");
  says({{"data", {{"in", "1 TB"}, {"rate", "1 B/s"}}}}, "at which it takes a year");
  says({{"most_usd", -5}}, "t.json#/queue/burst/most_usd");
  says({{"nods", 3}}, "nods");
}

TEST_CASE("burst: what leaves the cloud for nothing is told among the assumptions") {
  Json scenario = bursting_queue();
  const auto told = [&] {
    const QueueSpec spec = read_bursting(scenario);
    return std::ranges::any_of(spec.assumptions, [](const std::string& text) {
      return text.find("queue.burst.data.usd_per_gb_out") != std::string::npos;
    });
  };
  scenario["queue"]["burst"]["data"] = {{"out", "1 TB"}, {"rate", "10 Gb/s"}};
  CHECK(told());
  scenario["queue"]["burst"]["data"]["usd_per_gb_out"] = 0.09;
  CHECK_FALSE(told());
}

}  // namespace lockstep
