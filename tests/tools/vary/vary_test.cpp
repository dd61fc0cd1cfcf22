// lockstep run --vary, --advise and --model: what they print.
#include "tools/views/vary/vary.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "models/base/text_file.hpp"
#include "sim/answer/advice.hpp"
#include "sim/answer/answer.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"
#include "tools/console/interrupt.hpp"
#include "tools/console/table.hpp"
#include "tools/lockstep/vary/run_varied.hpp"
#include "tools/views/vary/advice_table.hpp"

namespace lockstep::test {
namespace {

using Json = nlohmann::ordered_json;

const std::string kJob = R"({"model": "llama3_8b", "stack": "megatron_core",
    "cluster": {"node": "dgx_h100", "nodes": 4},
    "parallelism": {"tensor": 4, "pipeline": 2},
    "batch": {"sequences": 64, "micro": 1, "tokens": 4096}})";

Json json_of(std::vector<std::string> args, Exit exit = Exit::ok) {
  args.insert(args.end(), {"--format", "json"});
  const Ran ran = lockstep_with(args);
  CAPTURE(ran.err);
  REQUIRE(ran.exit == exit);
  return Json::parse(ran.out);
}

}  // namespace

TEST_CASE("lockstep run --vary: each point is what --set gives, the last axis fastest") {
  const TemporaryFolder folder;
  const std::string file = folder.write("s.json", kJob);
  const Json varied =
      json_of({"run", file, "--vary", "cluster.nodes=2,4", "--vary", "batch.micro=1,2"});
  REQUIRE(varied["points"].size() == 4);
  CHECK(varied["points"][1]["values"] == Json{"2", "2"});
  for (const Json& point : varied["points"]) {
    const Json alone = json_of({"run", file, "--allow-oom", "--set",
                                "cluster.nodes=" + point["values"][0].get<std::string>(), "--set",
                                "batch.micro=" + point["values"][1].get<std::string>()});
    CHECK(point["answer"]["step_s"] == alone["step_s"]);
    CHECK(point["status"] == "ok");
  }
}

TEST_CASE("lockstep run --vary: a point that cannot be has its error, and the others answers") {
  const TemporaryFolder folder;
  const std::string file = folder.write("s.json", kJob);
  const Json varied = json_of({"run", file, "--vary", "parallelism.tensor=4,3"}, Exit::bad_input);
  CHECK(varied["points"][0]["status"] == "ok");
  CHECK(varied["points"][1]["status"] == "error");
  CHECK(varied["points"][1]["answer"].is_null());
  CHECK(varied["points"][1]["error"].get<std::string>().find("#/parallelism") != std::string::npos);
  const Ran table = lockstep_with({"run", file, "--vary", "parallelism.tensor=4,3"});
  CHECK(table.exit == Exit::bad_input);
  CHECK(table.out.find("Without an answer:\nparallelism.tensor = 3: " + file.substr(0, 4)) !=
        std::string::npos);
  CHECK(table.err.find("(--vary parallelism.tensor=3)") != std::string::npos);
  CHECK(table.err.starts_with("lockstep run: 1 of 2 points without an answer: " + file));
  CHECK(std::ranges::count(table.err, '\n') == 1);
  const Ran none = lockstep_with({"run", file, "--vary", "parallelism.tensor=3,5"});
  CHECK(none.exit == Exit::bad_input);
  CHECK(none.err.find("(--vary parallelism.tensor=3)") != std::string::npos);
  CHECK(none.err.find("(--vary parallelism.tensor=5)") != std::string::npos);
}

TEST_CASE("lockstep run --vary: a path that is not there is told once, not for each value") {
  const TemporaryFolder folder;
  const std::string file = folder.write("s.json", kJob);
  const Ran ran = lockstep_with({"run", file, "--vary", "clutser.nodes=4,8,16"});
  CHECK(ran.exit == Exit::bad_input);
  CHECK(ran.err.starts_with(file + "#/clutser: found the unknown key \"clutser\" "
                                   "(--vary clutser.nodes); allowed: "));
  CHECK(std::ranges::count(ran.err, '\n') == 1);
}

TEST_CASE("lockstep run --vary: weeks of a job that does not fit have no answer unless asked for") {
  const TemporaryFolder folder;
  const std::string file = folder.write("weeks.json", R"({"model": "llama3_8b",
      "stack": "megatron_core", "cluster": {"node": "dgx_h100", "nodes": 1},
      "parallelism": {"tensor": 1}, "batch": {"sequences": 8, "micro": 1, "tokens": 4096},
      "run": {"duration": "1 d", "trajectories": 1,
          "reliability": {"modes": [{"name": "node", "component": "node", "mean_time": "5 d"}]},
          "checkpoint": {"interval": "1 h", "storage": {"write": "9 GB/s", "read": "9 GB/s"}}}})");
  const std::vector<std::string> words{"run", file, "--vary", "parallelism.tensor=1,8"};
  const Json varied = json_of(words, Exit::bad_input);
  CHECK(varied["points"][0]["error"].get<std::string>().find("found a job that needs") !=
        std::string::npos);
  CHECK(varied["points"][1]["status"] == "ok");
  std::vector<std::string> anyway = words;
  anyway.emplace_back("--allow-oom");
  CHECK(json_of(anyway)["points"][0]["answer"]["goodput"] > 0);
}

TEST_CASE("lockstep run --vary: Ctrl-C keeps the points that have an answer") {
  std::ostringstream out, err;
  Console console{.out = out, .err = err, .style = {}, .err_is_terminal = false};
  const ParsedOptions options =
      parse_options(*run_command().spec, {"--vary", "cluster.nodes=1,2,4"});
  int asked = 0;
  const AskPoint once = [&asked](const auto&, const auto& reached) {
    ++asked;
    reached(0.5);
    (void)std::raise(SIGINT);
    return Json{{"step_s", 1.5}};
  };
  const PresetStore presets;
  CHECK(answer_varied({.path = "a.json", .presets = presets}, once, {}, "run", options, console) ==
        Exit::interrupted);
  CHECK(asked == 1);
  CHECK(err.str() == "lockstep run: interrupted\n");
  CHECK(out.str().find("1.50 s") != std::string::npos);
  CHECK(out.str().find("found an interruption") != std::string::npos);
}

TEST_CASE("lockstep run --vary: Ctrl-C before the first answer leaves nothing to print") {
  const TemporaryFolder folder;
  const InterruptGuard guard;
  (void)std::raise(SIGINT);
  const Ran ran = lockstep_with({"run", folder.write("s.json", kJob), "--vary", "batch.micro=1,2"});
  CHECK(ran.exit == Exit::interrupted);
  CHECK(ran.out.empty());
  CHECK(ran.err == "lockstep run: interrupted\n");
}

TEST_CASE("lockstep run --vary: a service says how far it is, and stops when it is told to") {
  const std::string file = LOCKSTEP_SOURCE_DIR "/scenarios/serving/llama3-70b-h100-chat.json";
  const PresetStore presets;
  double share = -1;
  const auto answer =
      answer_text(file, read_text_file(file), presets, StepIntervals(presets),
                  {.go_on = [] { return false; }, .reached = [&share](double of) { share = of; }});
  CHECK_FALSE(answer.has_value());
  CHECK(share >= 0);
  CHECK(share < 1);
}

TEST_CASE("lockstep run --vary: what changes nothing is said to") {
  const TemporaryFolder folder;
  const std::string file = folder.write("job.json", kJob);
  const auto table = [&](const std::string& axis) {
    const Ran ran = lockstep_with(
        {"run", file, "--set", R"(cluster.fabric={"kind": "fat_tree"})", "--vary", axis});
    REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
    return ran.out;
  };
  const std::string idle = "Nothing that this shows depends on it.";
  CHECK(table("cluster.fabric.spine_oversubscription=1,8").find(idle) != std::string::npos);
  CHECK(table("batch.tokens=2048,4096").find(idle) == std::string::npos);
}

TEST_CASE("lockstep comm --vary: each point is what --set gives, of traffic and of collectives") {
  const std::vector<std::string> fabrics{"fat_tree", "fat_tree_2_to_1", "fat_tre"};
  for (const char* name : {"alltoall-16-nodes.json", "all-to-all-256.json"}) {
    const std::string file = std::string(LOCKSTEP_SOURCE_DIR "/scenarios/comm/") + name;
    CAPTURE(file);
    const Json varied =
        json_of({"comm", file, "--vary", "cluster.fabric=fat_tree,fat_tree_2_to_1,fat_tre"},
                Exit::bad_input);
    REQUIRE(varied["points"].size() == fabrics.size());
    for (std::size_t i = 0; i < 2; ++i) {
      Json alone = json_of({"comm", file, "--set", "cluster.fabric=" + fabrics[i]});
      alone.erase("lockstep_version");
      CHECK(varied["points"][i]["answer"] == alone);
    }
    CHECK(varied["points"][0]["answer"] != varied["points"][1]["answer"]);
    CHECK(varied["points"][2]["status"] == "error");
    CHECK(lockstep_with({"comm", file, "--vary", "cluster.nodes=2", "--hash-seeds", "3"}).exit ==
          Exit::bad_input);
  }
}

namespace {

const std::string kTwoOps = R"({"about": "Two operations.",
    "cluster": {"node": "dgx_h100", "nodes": 16,
                "fabric": {"kind": "fat_tree", "leaf_oversubscription": 1}},
    "collective": {"op": ["all_reduce", "all_to_all"], "sizes": ["64 MiB", "1 GiB", "1 MiB"]}})";

/// The words of a line.
std::vector<std::string> words_of_line(const std::string& line) {
  std::istringstream words(line);
  return {std::istream_iterator<std::string>(words), {}};
}

/// Of a point's answer, an operation's row of 1 GiB, its largest size.
Json gib_row_of(const Json& point, const std::string& op) {
  for (const Json& row : point.at("answer").at("rows")) {
    if (row.at("op") == op && row.at("size_bytes") == 1024.0 * 1024 * 1024) return row;
  }
  return {};
}

}  // namespace

TEST_CASE("lockstep comm --vary: of several operations each has a row with its own numbers") {
  const TemporaryFolder folder;
  const std::string file = folder.write("c.json", kTwoOps);
  const std::vector<std::string> asked{"comm", file, "--vary",
                                       "cluster.fabric.leaf_oversubscription=1,4"};
  const Json points = json_of(asked).at("points");
  const Ran table = lockstep_with(asked);
  std::istringstream lines(table.out);
  std::string line;
  while (std::getline(lines, line) && line.find("busbw") == std::string::npos) continue;
  CHECK(words_of_line(line) == std::vector<std::string>{"cluster.fabric.leaf_oversubscription",
                                                        "op", "size", "busbw", "time"});
  std::size_t longest_bar = 0;
  double longest = 0, of_longest_bar = 0;
  for (const Json& point : points) {
    for (const std::string op : {"all_reduce", "all_to_all"}) {
      CAPTURE(op);
      const Json row = gib_row_of(point, op);
      const double time = row.at("time_s").get<double>();
      REQUIRE(std::getline(lines, line));
      std::vector<std::string> words = words_of_line(line);
      REQUIRE(words.size() == 9);
      const std::size_t bar = words.back().size();
      if (bar > longest_bar) of_longest_bar = time;
      longest_bar = std::max(longest_bar, bar);
      longest = std::max(longest, time);
      words.pop_back();
      CHECK(words ==
            words_of_line(fmt::format(
                "{} {} 1 GiB {:.2f} GB/s {}", point.at("values").at(0).get<std::string>(), op,
                row.at("busbw_bytes_per_s").get<double>() / 1e9, duration_text(time))));
    }
  }
  CHECK(of_longest_bar == longest);
}

TEST_CASE("lockstep comm --vary: JSON and CSV name the operation beside its largest size's row") {
  const TemporaryFolder folder;
  const std::string file = folder.write("c.json", kTwoOps);
  const std::vector<std::string> asked{"comm", file, "--vary", "cluster.nodes=8,16,0"};
  const Json points = json_of(asked, Exit::bad_input).at("points");
  std::vector<std::string> csv = asked;
  csv.insert(csv.end(), {"--format", "csv"});
  std::istringstream lines(lockstep_with(csv).out);
  std::string line;
  std::getline(lines, line);
  CHECK(line.starts_with("cluster.nodes,op,status,error,size_bytes,time_s,busbw_bytes_per_s,"));
  for (const char* of_all_rows : {"largest_time_s", "best_busbw_bytes_per_s"}) {
    CHECK(line.find(of_all_rows) == std::string::npos);
  }
  for (std::size_t i = 0; i < 2; ++i) {
    const Json& operations = points[i].at("answer").at("operations");
    REQUIRE(operations.size() == 2);
    for (const Json& operation : operations) {
      const std::string op = operation.at("op").get<std::string>();
      CAPTURE(op);
      const Json row = gib_row_of(points[i], op);
      for (const char* key : {"size_bytes", "time_s", "busbw_bytes_per_s"}) {
        CHECK(operation.at(key) == row.at(key));
      }
      REQUIRE(std::getline(lines, line));
      CHECK(line.starts_with(fmt::format("{},{},ok,,1073741824,{},{},", i == 0 ? 8 : 16, op,
                                         number_text(row.at("time_s").get<double>()),
                                         number_text(row.at("busbw_bytes_per_s").get<double>()))));
    }
  }
  // A value that cannot be is one row, of no operation.
  REQUIRE(std::getline(lines, line));
  CHECK(line.starts_with("0,,error,"));
  CHECK_FALSE(std::getline(lines, line));
}

TEST_CASE("lockstep run --vary: CSV has a column for each number, and an empty cell for none") {
  const TemporaryFolder folder;
  const std::string file = folder.write("s.json", kJob);
  const Ran ran =
      lockstep_with({"run", file, "--vary", "parallelism.tensor=4,3", "--format", "csv"});
  CHECK(ran.out.starts_with("parallelism.tensor,status,error,step_s,"));
  CHECK(ran.out.find("\n3,error,") != std::string::npos);
}

TEST_CASE("lockstep run --vary: NICs that need more leaves meet their uplinks, which is said") {
  // Eight nodes of two NICs are below one leaf of 16 ports, with nothing oversubscribed; of four
  // NICs below two, of eight below four. By hand: of what a node sends to seven others 4/7 or 6/7
  // leave the leaf, by links for a quarter of it.
  const std::string name = "qwen3-30b-experts-8-nodes";
  const auto exposed = [](const Json& answer) {
    for (const Json& part : answer.at("waterfall")) {
      if (part.at("bucket") == "expert_exposed") return part.at("seconds").get<double>();
    }
    return 0.0;
  };
  const std::vector<std::string> asked{"run", name, "--vary", "cluster.node.nics=2,4,8"};
  const Json here = json_of(asked);
  std::vector<std::string> full = asked;
  full.insert(full.end(), {"--set", "cluster.fabric={\"kind\": \"ideal\"}"});
  const Json ideal = json_of(full);
  constexpr std::array kSlower{1.0, 4 * 4.0 / 7, 4 * 6.0 / 7};
  for (std::size_t i = 0; i < kSlower.size(); ++i) {
    CAPTURE(i);
    const double of_switches =
        exposed(here["points"][i]["answer"]) / exposed(ideal["points"][i]["answer"]);
    CHECK(of_switches == doctest::Approx(kSlower[i]).epsilon(0.02));
  }
  CHECK(here["points"][1]["answer"]["step_s"] > here["points"][0]["answer"]["step_s"]);

  const Ran table = lockstep_with(asked);
  CHECK(
      table.out.find("\nThe fabric at some points alone, by cluster.node.nics:\n"
                     "  2: all 8 nodes of 2 NIC ports are below one leaf of 16, so that no uplink "
                     "is used\n") != std::string::npos);
  CHECK(lockstep_with({"run", name, "--vary", "cluster.node.nics=4,8"})
            .out.find("at some points alone") == std::string::npos);
  const Ran relief =
      lockstep_with({"run", name, "--set", "cluster.node.nics=2", "--explain-fabric"});
  CHECK(relief.out.find("NICs of a node 2 -> 4: 2 leaves for 1, with uplinks between") !=
        std::string::npos);
  const Ran more = lockstep_with({"run", name, "--explain-fabric"});
  CHECK(more.out.find("NICs of a node 8 -> 16 ") != std::string::npos);
}

TEST_CASE("lockstep run --vary: tables keep to the columns of texts, and have every number") {
  Varied varied{.file = "s.json",
                .axes = {{.path = "parallelism.tensor", .values = {"4"}},
                         {.path = "batch.sequences", .values = {"64", "128"}}},
                .points = {}};
  for (const char* const sequences : {"64", "128"}) {
    varied.points.push_back({.values = {"4", sequences},
                             .answer = {{"step_s", 6.92},
                                        {"step_s_low", 6.19},
                                        {"step_s_high", 8.01},
                                        {"mfu", 0.393},
                                        {"tokens_per_s_per_gpu", 14'800},
                                        {"needed_memory_gib", 62.0},
                                        {"facility_mean_w", 24.1e6},
                                        {"energy_j", 7e15},
                                        {"time_to_train_s", 6'436'800},
                                        {"price_usd", 58.6e6},
                                        {"owned_usd", 31.2e6}}});
  }
  const std::vector<std::string> numbers{"6.92 s",     "6.19 s to 8.01 s", "39.3 %",    "14.8 k",
                                         "62.0 GiB",   "24.1 MW",          "1,944,444", "74.5 days",
                                         "58.6 M USD", "31.2 M USD"};
  for (const int columns : {0, 60, 100, 130, 170, 200}) {
    CAPTURE(columns);
    const int most = columns > 0 ? columns : kTextColumns;
    const std::string table = varied_table(varied, {.utf8 = true, .columns = columns});
    std::istringstream lines(table);
    for (std::string line; std::getline(lines, line);) CHECK(text_width(line) <= most);
    for (const std::string& number : numbers) {
      CAPTURE(number);
      const std::size_t first = table.find(number);
      REQUIRE(first != std::string::npos);
      const std::size_t second = table.find(number, first + 1);
      REQUIRE(second != std::string::npos);
      CHECK(table.find(number, second + 1) == std::string::npos);
    }
    const std::size_t title = table.find("batch.");
    REQUIRE(title != std::string::npos);
    const bool one_table = table.find("batch.", title + 1) == std::string::npos;
    CHECK(one_table == (columns >= 170));
  }
  const std::string csv = varied_csv(varied).str();
  CHECK(csv.find("owned_usd") != std::string::npos);
  CHECK(csv.find(",31200000") != std::string::npos);
}

TEST_CASE(
    "lockstep run --vary: of a site its money, grid and limits are columns, as --set has it") {
  const TemporaryFolder folder;
  const std::string file = LOCKSTEP_SOURCE_DIR "/scenarios/site/curtailment-two-hours.json";
  const std::string out = folder.path() + "/varied.csv";
  const std::vector<std::string> asked{"run",
                                       file,
                                       "--trajectories",
                                       "2",
                                       "--set",
                                       "run.duration=\"3 d\"",
                                       "--vary",
                                       "run.site.battery.energy_mwh=1,20"};
  const Json varied = json_of(asked);
  REQUIRE(varied["points"].size() == 2);
  const Json& small = varied["points"][0]["answer"];
  const Json& large = varied["points"][1]["answer"];
  const Json alone = json_of({"run", file, "--trajectories", "2", "--set", "run.duration=\"3 d\"",
                              "--set", "run.site.battery.energy_mwh=20"});
  CHECK(large["site"] == alone["site"]);
  CHECK(large["running_usd"] == alone["running_usd"]);
  // A larger battery covers more of what the contract does not give.
  CHECK(large["site"]["slowed_s"] < small["site"]["slowed_s"]);
  std::vector<std::string> as_csv = asked;
  as_csv.insert(as_csv.end(), {"--format", "csv", "-o", out});
  const Ran written = lockstep_with(as_csv);
  REQUIRE_MESSAGE(written.exit == Exit::ok, written.err);
  CHECK(written.out.empty());
  std::istringstream csv(read_text_file(out));
  std::string heading, first, second;
  std::getline(csv, heading);
  std::getline(csv, first);
  std::getline(csv, second);
  const auto cells = [](const std::string& line) {
    std::vector<std::string> parts;
    std::istringstream rest(line);
    for (std::string part; std::getline(rest, part, ',');) parts.push_back(part);
    return parts;
  };
  const std::vector<std::string> names = cells(heading), values = cells(second);
  REQUIRE(values.size() >= names.size() - 1);
  const std::string table = lockstep_with(asked).out;
  for (const char* const name : {"grid_usd", "imported_j", "slowed_s"}) {
    CAPTURE(name);
    const auto at = std::ranges::find(names, std::string("site.") + name);
    REQUIRE(at != names.end());
    CHECK(std::stod(values[static_cast<std::size_t>(at - names.begin())]) ==
          doctest::Approx(large["site"][name].get<double>()).epsilon(1e-9));
  }
  // What the grid is paid is all that is paid: it stands there once.
  const std::string paid = compact(large["site"]["grid_usd"].get<double>()) + " USD";
  const std::size_t first_paid = table.find(paid);
  REQUIRE(first_paid != std::string::npos);
  CHECK(table.find(paid, first_paid + 1) == std::string::npos);
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) CHECK(text_width(line) <= kTextColumns);
}

TEST_CASE("lockstep run --advise: CSV names the site's limit and what a change draws above it") {
  const AdviceGoal& goal = advice_goals().front();
  const Advice advice{.file = "s.json",
                      .goal = &goal,
                      .numbers = {{"step_s", 2}},
                      .site_limit_w = 90e3,
                      .site_excess_w = -2e3,
                      .changes = {{.change = {.words = "a -> b", .sets = {"x=b"}},
                                   .numbers = {{"step_s", 1}},
                                   .gain = 1,
                                   .site_limit_w = 90e3,
                                   .site_excess_w = 5e3}},
                      .refused = {{.change = {.words = "a -> c", .sets = {"x=c"}}, .why = "no"}}};
  CHECK(advice_csv(advice).str() ==
        "change,set,step_s,gain,gain_low,gain_high,site_limit_w,site_excess_w,refused\n"
        "a -> b,x=b,1,1,,,90000,5000,\n"
        "a -> c,x=c,,,,,,,no\n");
}

TEST_CASE("lockstep run --vary: a name that takes changes of a preset away is told") {
  const TemporaryFolder folder;
  const std::string file = folder.write("service.json", R"({"model": "llama3_8b",
      "cluster": {"node": "dgx_h100", "nodes": 1},
      "serving": {"load": {"rate": 5, "requests": 20, "input": {"mean": 200},
                           "output": {"mean": 20}}, "weights": "bf16",
                  "pools": {"both": {"engine": {"preset": "vllm", "most_sequences": 4}}}}})");
  const Ran replaced =
      lockstep_with({"run", file, "--vary", "serving.pools.both.engine=vllm,sglang"});
  REQUIRE_MESSAGE(replaced.exit == Exit::ok, replaced.err);
  CHECK(replaced.err ==
        "lockstep run: --vary serving.pools.both.engine replaces what the scenario changes there "
        "(most_sequences); serving.pools.both.engine.preset keeps it\n");
  const std::vector<std::string> kept{"run", file, "--vary",
                                      "serving.pools.both.engine.preset=vllm,sglang"};
  CHECK(lockstep_with(kept).err.empty());
  const Json point = json_of(kept)["points"][1]["answer"];
  CHECK(point["scenario"]["serving"]["pools"]["both"]["engine"]["most_sequences"] == 4);
}

TEST_CASE("lockstep run --vary: of a service both times per token have their interval") {
  const std::string file = LOCKSTEP_SOURCE_DIR "/scenarios/serving/llama3-70b-h100-chat.json";
  const std::vector<std::string> asked{"run",    file,
                                       "--set",  "serving.load.requests=100",
                                       "--vary", "serving.batching.pass_tokens=2048,8192"};
  const Json points = json_of(asked).at("points");
  const std::string table = lockstep_with(asked).out;
  std::vector<std::string> csv = asked;
  csv.insert(csv.end(), {"--format", "csv"});
  CHECK(lockstep_with(csv).out.find(",interval.tpot_low_s,") != std::string::npos);
  for (const Json& point : points) {
    const Json& interval = point.at("answer").at("interval");
    for (const char* number : {"tpot", "ttft"}) {
      CAPTURE(number);
      const auto end = [&](const char* of) {
        return duration_text(interval.at(fmt::format("{}_{}_s", number, of)).get<double>());
      };
      CHECK(table.find(end("low") + " to " + end("high")) != std::string::npos);
    }
  }
}

TEST_CASE("lockstep run --vary: options about one point are refused, before any work") {
  const TemporaryFolder folder;
  const std::string file = folder.write("s.json", kJob);
  const Ran ran =
      lockstep_with({"run", file, "--vary", "cluster.nodes=2,4", "--assert", "mfu>0.1"});
  CHECK(ran.exit == Exit::bad_input);
  CHECK(ran.err.starts_with("lockstep run: found --assert beside --vary"));
  CHECK(lockstep_with({"run", file, "--vary", "cluster.nodes=2,4", "--scaling", "16,32"}).err ==
        "lockstep run: found --scaling beside --vary; allowed: one of them\n");
  CHECK(lockstep_with({"run", file, "--vary", "cluster.nodes"}).exit == Exit::bad_input);
  CHECK(lockstep_with({"run", file, "--vary", "cluster.nodes=2,2"}).err ==
        "--vary: found \"cluster.nodes=2,2\", which has \"2\" twice; allowed: each value once\n");
  CHECK(lockstep_with({"run", file, "--vary", "cluster.nodes=2,2.0"}).err ==
        "--vary: found \"cluster.nodes=2,2.0\", which has \"2\" and \"2.0\", which are one value; "
        "allowed: each value once\n");
  CHECK(
      lockstep_with({"run", file, "--vary", "cluster.nodes=2", "--vary", "/cluster/nodes=4"}).err ==
      "--vary: found two of \"cluster.nodes\"; allowed: all values in one of them\n");
  CHECK(lockstep_with({"run", file, "--vary", "a=1", "--vary", "b=1", "--vary", "c=1"}).exit ==
        Exit::bad_input);
}

TEST_CASE("lockstep run --model: answers at once, and -o writes the scenario that it answered") {
  const TemporaryFolder folder;
  const std::string out = folder.path() + "/my.json";
  const Ran asked = lockstep_with(
      {"run", "--model", "llama3_8b", "--node", "dgx_h100", "--nodes", "2", "-o", out});
  REQUIRE(asked.exit == Exit::ok);
  CHECK(asked.out.find("Step time") != std::string::npos);
  CHECK(asked.out.find("Assumed: a step of 1,024 sequences of 4,096 tokens") != std::string::npos);
  const Ran again = lockstep_with({"run", out});
  CHECK(again.out == asked.out);
}

TEST_CASE("lockstep run --model --vary: each point has the layout that is fastest there") {
  const Json varied = json_of({"run", "--model", "llama3_8b", "--node", "dgx_h100", "--nodes", "2",
                               "--vary", "cluster.node=dgx_h100,dgx_b200"});
  for (const Json& point : varied["points"]) {
    const Json alone = json_of({"run", "--model", "llama3_8b", "--node",
                                point["values"][0].get<std::string>(), "--nodes", "2"});
    CHECK(point["answer"]["step_s"] == alone["step_s"]);
  }
}

TEST_CASE("lockstep run --model: a width that the model cannot have is an error with its reason") {
  const TemporaryFolder folder;
  const std::string config = folder.write("next.json", R"({"model_type": "qwen3_next",
      "full_attention_interval": 4, "head_dim": 64, "hidden_size": 512, "intermediate_size": 1024,
      "linear_conv_kernel_dim": 4, "linear_key_head_dim": 64, "linear_num_key_heads": 4,
      "linear_num_value_heads": 8, "linear_value_head_dim": 64, "num_attention_heads": 8,
      "num_hidden_layers": 4, "num_key_value_heads": 2, "vocab_size": 32000})");
  const Ran ran = lockstep_with(
      {"run", "--model", config, "--node", "dgx_h100", "--set", "parallelism.context=2"});
  CHECK(ran.exit == Exit::bad_input);
  CHECK(ran.err.find("#/parallelism/context: found 2") != std::string::npos);
  CHECK(ran.err.find("allowed: 1, as delta layers") != std::string::npos);
}

TEST_CASE("lockstep run --model: options that belong to a question are refused elsewhere") {
  const TemporaryFolder folder;
  const std::string file = folder.write("s.json", kJob);
  CHECK(lockstep_with({"run", "--nodes", "3"}).err ==
        "--nodes: found it without --model; allowed: beside --model\n");
  CHECK(lockstep_with({"run", file, "--model", "llama3_8b"}).exit == Exit::bad_input);
  CHECK(lockstep_with({"run", file, "--node", "dgx_h100"}).exit == Exit::bad_input);
}

TEST_CASE("lockstep run --advise: the best change first, refusals with their reason") {
  const TemporaryFolder folder;
  const std::string file = folder.write("s.json", kJob);
  const Ran ran = lockstep_with({"run", file, "--advise"});
  REQUIRE(ran.exit == Exit::ok);
  CHECK(ran.out.starts_with("What would help\n"));
  CHECK(ran.out.find("\nCannot be:\n  ") != std::string::npos);
  const Json json = json_of({"run", file, "--advise"});
  const std::string first = json["changes"][0]["change"].get<std::string>();
  CHECK(ran.out.find(first) < ran.out.find("No help"));
  std::istringstream lines(ran.out);
  for (std::string line; std::getline(lines, line);) CHECK(text_width(line) <= kTextColumns);
}

TEST_CASE("lockstep run --advise: weeks and queues have table, JSON, CSV and a page") {
  const TemporaryFolder folder;
  const std::string queue =
      folder.write("queue.json", R"({"cluster": {"node": "dgx_h100", "nodes": 1},
        "queue": {"order": "fifo", "admission": "strict",
                  "jobs": [{"job": {"name": "a", "gpus": 8, "runs": "2 h", "tasks": 2}},
                           {"job": {"name": "b", "gpus": 1, "runs": "5 min", "tasks": 3}}]}})");
  const Ran table = lockstep_with({"run", queue, "--advise"});
  REQUIRE_MESSAGE(table.exit == Exit::ok, table.err);
  CHECK(table.out.find("As it is, the mean job is done after ") != std::string::npos);
  CHECK(table.out.find("order fifo -> sjf") != std::string::npos);
  CHECK(table.out.find("90 % interval") == std::string::npos);  // nothing witnesses a gain
  const Json json = json_of({"run", queue, "--advise"});
  CHECK(json["answer_kind"] == "queue");
  CHECK(json["changes"][0]["gain"] > 0);
  CHECK(json["changes"][0]["completion_mean_s"] < json["completion_mean_s"]);
  const Ran csv = lockstep_with({"run", queue, "--advise", "--format", "csv"});
  CHECK(csv.out.starts_with("change,set,completion_mean_s,wait_mean_s,utilisation,"));
  CHECK(csv.out.find("site_limit_w") == std::string::npos);
  const std::string weeks =
      folder.write("weeks.json", kJob.substr(0, kJob.size() - 1) +
                                     R"(, "run": {"duration": "5 d", "trajectories": 9,
          "reliability": {"modes": [{"name": "node", "component": "node", "mean_time": "5 d"}]},
          "checkpoint": {"interval": "1 h", "storage": {"write": "9 GB/s", "read": "9 GB/s"}}}})");
  const std::string page = folder.path() + "/advice.html";
  const Ran ran = lockstep_with({"run", weeks, "--advise", "--trajectories", "3"});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  CHECK(ran.out.find("As it is, goodput is ") != std::string::npos);
  CHECK(ran.out.find("tokens per GPU-hour held") != std::string::npos);
  if (lockstep_with({"run", weeks, "--advise", "--trajectories", "2", "--report", page}).exit ==
      Exit::ok) {
    const std::string html = read_text_file(page);
    CHECK(html.find("What would help") != std::string::npos);
    CHECK(html.find("Gain: tokens per GPU-hour held") != std::string::npos);
  }
  CHECK(lockstep_with({"run", weeks, "--advise", "--jobs", "2"}).err ==
        "lockstep run: found --jobs beside --advise; allowed: one of them\n");
}

TEST_CASE("lockstep run --report: a step's page says how to have the advice on it") {
  const TemporaryFolder folder;
  const std::string file = folder.write("s.json", kJob), page = folder.path() + "/s.html";
  if (lockstep_with({"run", file, "--report", page}).exit != Exit::ok) return;
  CHECK(read_text_file(page).find("The same command with --advise") != std::string::npos);
  REQUIRE(lockstep_with({"run", file, "--advise", "--report", page}).exit == Exit::ok);
  CHECK(read_text_file(page).find("The same command with --advise") == std::string::npos);
}

TEST_CASE("lockstep run --advise: an option that would say nothing is refused") {
  const TemporaryFolder folder;
  const std::string file = folder.write("s.json", kJob);
  const Ran fabric = lockstep_with({"run", file, "--advise", "--explain-fabric"});
  CHECK(fabric.exit == Exit::bad_input);
  CHECK(fabric.out.empty());
  CHECK(fabric.err ==
        "lockstep run: found --explain-fabric beside --advise; allowed: one of them, or --report "
        "FILE too, whose page has both\n");
  const Ran drawn = lockstep_with({"run", file, "--advise", "--svg", folder.path() + "/s.svg"});
  CHECK(drawn.exit == Exit::bad_input);
  CHECK(drawn.err == "lockstep run: found --svg beside --advise; allowed: one of them\n");
}

TEST_CASE("lockstep tune --vary: each point is the best that tune finds there") {
  const TemporaryFolder folder;
  const std::string file =
      folder.write("s.json", R"({"model": "llama3_8b", "stack": "megatron_core",
    "cluster": {"node": "dgx_h100", "nodes": 2}, "batch": {"sequences": 64, "tokens": 4096}})");
  const Json varied = json_of({"tune", file, "--vary", "cluster.nodes=1,2"});
  REQUIRE(varied["points"].size() == 2);
  for (const Json& point : varied["points"]) {
    const Json alone =
        json_of({"tune", file, "--set", "cluster.nodes=" + point["values"][0].get<std::string>()});
    CHECK(point["answer"]["step_s"] == alone["step_s"]);
    CHECK(point["answer"]["best"] == alone["best"]);
  }
  const Ran table = lockstep_with({"tune", file, "--vary", "cluster.nodes=1,2"});
  CHECK(table.out.find("layout") != std::string::npos);
  const Json& first = varied["points"][0]["answer"];
  CHECK(first["step_s_low"] == first["best"][0]["step_s_low"]);
  CHECK(table.out.find("90 % interval") != std::string::npos);
  CHECK(table.out.find(duration_text(first["step_s_low"].get<double>()) + " to " +
                       duration_text(first["step_s_high"].get<double>())) != std::string::npos);
  const Ran wrong = lockstep_with({"tune", file, "--vary", "cluster.nodes=1,2", "-o", "best.json"});
  CHECK(wrong.exit == Exit::bad_input);
  CHECK(wrong.err.starts_with("lockstep tune: found --output beside --vary"));
}

TEST_CASE("lockstep plan --vary: each point is what the plan chooses there") {
  const TemporaryFolder folder;
  const std::string file = folder.write("p.json", R"({
    "training": {"tokens": 2e11}, "limits": {"time": "60 d"}, "samples": 20,
    "scenario": {"model": "llama3_8b", "batch": {"sequences": 128, "micro": 1, "tokens": 8192},
      "run": {"reliability": "llama3_54_days",
        "checkpoint": {"to": "storage", "interval": "30 min",
                       "storage": {"write": "10 GB/s", "read": "10 GB/s"}},
        "recovery": {"detects_crash": "1 min", "restarts": "5 min"}, "spares": {"repair": "1 d"}}},
    "candidates": [{"name": "rented", "pay": "rent", "nodes": [4, 8],
      "scenario": {"cluster": {"node": "coreweave_hgx_h100"}, "price": {"usd_per_gpu_hour": 2.5},
                   "parallelism": {"tensor": 4, "sharding": "zero1"}}}]})");
  const std::vector<std::string> axis{"--vary", "limits.time=10 d,60 d"};
  const Json varied = json_of({"plan", file, axis[0], axis[1]});
  REQUIRE(varied["points"].size() == 2);
  for (const Json& point : varied["points"]) {
    const Json alone =
        json_of({"plan", file, "--set", "limits.time=" + point["values"][0].get<std::string>()});
    CHECK(point["answer"]["choice"] == alone["choice"]);
    CHECK(point["answer"]["choice_time_s"] == alone["choice_time_s"]);
  }
  CHECK(varied["points"][0]["answer"]["choice"] != varied["points"][1]["answer"]["choice"]);
  const Ran table = lockstep_with({"plan", file, axis[0], axis[1]});
  CHECK(table.out.find("choice") != std::string::npos);
  CHECK(table.out.find("rented") != std::string::npos);
  const Json& late = varied["points"][1]["answer"];
  const double low = late["choice_time_s_p05"].get<double>();
  const double high = late["choice_time_s_p95"].get<double>();
  CHECK(low < high);
  CHECK(table.out.find(duration_text(low) + " to " + duration_text(high)) != std::string::npos);
}

}  // namespace lockstep::test
