// lockstep sweep: the same results by any way, nothing computed twice, and what is printed.
#include <SQLiteCpp/SQLiteCpp.h>
#include <array>
#include <doctest/doctest.h>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "models/base/text_file.hpp"
#include "sim/search/sweep/metrics.hpp"
#include "sim/search/sweep/results_db.hpp"
#include "tests/support/source_tree.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"
#include "tools/sweep/shards.hpp"
#include "tools/sweep/slurm.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
using test::lockstep_with;
using test::Ran;

/// Twelve points, of which those with tensor 3 fail, and one that needs too much memory.
constexpr const char* kSweep = R"({
  "about": "a test",
  "scenario": "step.json",
  "axes": [
    {"at": "/parallelism/tensor", "values": [1, 2, 3, 4]},
    {"at": "/batch/micro", "values": [1, 2, 4]}],
  "derived": [{"name": "data", "is": "32 / tensor", "at": "/parallelism/data"}]
})";
constexpr const char* kStep = R"({
  "model": "llama3_8b", "cluster": {"node": "dgx_h100", "nodes": 4},
  "parallelism": {"sharding": "zero1"}, "recompute": "full",
  "batch": {"sequences": 128, "tokens": 8192}, "price": {"usd_per_gpu_hour": 2},
  "training": {"tokens": "1 T tokens"}, "power": {"facility": "air_chiller"}
})";

struct SweepFolder {
  test::TemporaryFolder folder;
  std::string sweep = folder.write("sweep.json", kSweep);
  std::string step = folder.write("step.json", kStep);

  [[nodiscard]] std::string db(const std::string& name) const {
    return folder.path() + "/" + name + ".db";
  }
  [[nodiscard]] Ran run(const std::string& name, std::vector<std::string> options = {}) const {
    std::vector<std::string> words{"sweep", sweep, "-o", db(name)};
    words.insert(words.end(), options.begin(), options.end());
    return lockstep_with(words);
  }
  /// All columns of all rows, and the manifest.
  [[nodiscard]] std::string contents(const std::string& name) const {
    std::string text;
    const ResultsReader results(db(name));
    for (const char* query :
         {"SELECT * FROM points ORDER BY point", "SELECT * FROM manifest ORDER BY key"}) {
      results.each(query, [&](const std::vector<SqlValue>& row) {
        for (const SqlValue& value : row) text += text_of(value) + "|";
        text += "\n";
      });
    }
    return text;
  }
  [[nodiscard]] std::string value(const std::string& name, const std::string& query) const {
    std::string text;
    ResultsReader(db(name)).each(
        query, [&](const std::vector<SqlValue>& row) { text += text_of(row[0]) + ";"; });
    return text;
  }
  void change(const std::string& name, const std::string& statement) const {
    SQLite::Database(db(name), SQLite::OPEN_READWRITE).exec(statement);
  }
};

}  // namespace

TEST_CASE("sweep --dry-run: how long it takes, as a range, and by how many points") {
  const SweepFolder of;
  const Ran ran = lockstep_with({"sweep", of.sweep, "--dry-run", "-j", "2", "--format", "json"});
  REQUIRE(ran.exit == Exit::ok);
  const Json out = Json::parse(ran.out);
  CHECK(out.at("points") == 12);
  CHECK(out.at("tried") >= 1);
  CHECK(out.at("tried") <= 12);
  CHECK(out.at("estimate_low_s") <= out.at("estimate_s"));
  CHECK(out.contains("estimate_high_s"));
  const Ran words = lockstep_with({"sweep", of.sweep, "--dry-run", "-j", "2"});
  CHECK(words.out.find(": 12 points\nabout ") != std::string::npos);
  CHECK(words.out.find(" on 2 cores, by ") != std::string::npos);
  CHECK(words.out.ends_with(" tried\n"));
}

TEST_CASE("lockstep sweep: what does not fit in memory is no best point, and is marked") {
  const SweepFolder of;
  std::string text = kSweep;
  text.insert(text.find("\"about\""), "\"allow_oom\": true, ");
  const std::string file = of.folder.write("large.json", text);
  const Ran ran = lockstep_with({"sweep", file, "-o", of.db("large"), "--format", "json"});
  REQUIRE(ran.exit == Exit::ok);
  CHECK(of.value("large", "SELECT point FROM points WHERE memory_fits = 0") == "2;");
  CHECK(of.value("large", "SELECT count(*) FROM points WHERE memory_fits = 1") == "8;");
  const Json out = Json::parse(ran.out);
  CHECK(out.at("too_large") == 1);
  const Json& best = out.at("best");
  REQUIRE(best.size() == 9);
  for (std::size_t i = 0; i < best.size(); ++i) {
    CAPTURE(i);
    CHECK(best[i].at("memory_fits") == (i + 1 < best.size()));
    if (i > 0 && i + 1 < best.size()) CHECK(best[i].at("mfu") <= best[i - 1].at("mfu"));
  }
  CHECK(best.back().at("point") == 2);
  const std::string table = lockstep_with({"sweep", file, "-o", of.db("large")}).out;
  CHECK(table.find(", 1 too large for memory\n") != std::string::npos);
  CHECK(table.find(" 2! ") != std::string::npos);
  CHECK(table.ends_with("!: does not fit in memory\n"));
  const std::string page = of.folder.path() + "/large.html";
  REQUIRE(lockstep_with({"sweep", file, "-o", of.db("large"), "--report", page}).exit == Exit::ok);
  const std::string html = read_text_file(page);
  CHECK(html.find("of what fits in memory is") != std::string::npos);
  CHECK(html.find("(too much)") != std::string::npos);
  CHECK(html.find("1 that do not fit in memory are left out.") != std::string::npos);
}

TEST_CASE("lockstep sweep: any number of threads, resumed or in parts: the same database") {
  const SweepFolder files;
  REQUIRE(files.run("one", {"-j", "1"}).exit == Exit::ok);
  const std::string all = files.contents("one");
  CHECK(files.value("one", "SELECT status FROM points") ==
        "ok;ok;failed;ok;ok;ok;failed;failed;failed;ok;ok;ok;");
  REQUIRE(files.run("two", {"-j", "3"}).exit == Exit::ok);
  CHECK(files.contents("two") == all);

  files.change("two", "DELETE FROM points WHERE point % 2 = 0");
  REQUIRE(files.run("two").exit == Exit::ok);
  CHECK(files.contents("two") == all);

  for (const char* shard : {"0/3", "2/3"}) {
    REQUIRE(files.run("parts", {"--shard", shard}).exit == Exit::ok);
  }
  const Ran early = lockstep_with({"sweep", "collect", files.sweep, "-o", files.db("parts")});
  CHECK(early.exit == Exit::bad_input);
  CHECK(early.err == files.db("parts") + ": 4 of 12 points are missing after 2 shards\n");
  REQUIRE(files.run("parts", {"--shard", "1/3", "-j", "1"}).exit == Exit::ok);
  REQUIRE(lockstep_with({"sweep", "collect", files.sweep, "-o", files.db("parts")}).exit ==
          Exit::ok);
  CHECK(files.contents("parts") == all);
  CHECK_FALSE(std::filesystem::exists(files.db("parts") + ".shards"));
}

TEST_CASE("lockstep sweep: finished points are not computed again, unless their input changed") {
  const SweepFolder files;
  REQUIRE(files.run("a").exit == Exit::ok);
  const std::string all = files.contents("a");
  files.change("a",
               "UPDATE points SET mfu = 0.125, json = json_set(json, '$.mfu', 0.125) WHERE "
               "point = 1");
  REQUIRE(files.run("a").exit == Exit::ok);
  CHECK(files.value("a", "SELECT mfu FROM points WHERE point = 1") == "0.125;");

  // Another sweep with some of the same points takes them over.
  const std::string other = files.folder.write("other.json", R"({"scenario": "step.json", "axes": [
    {"list": [{"/batch/micro": 2, "/parallelism/tensor": 1, "/parallelism/data": 32},
              {"/batch/micro": 2, "/parallelism/tensor": 1, "/parallelism/data": 32}]}]})");
  REQUIRE(lockstep_with({"sweep", other, "-o", files.db("b"), "--reuse", files.db("a")}).exit ==
          Exit::ok);
  CHECK(files.value("b", "SELECT mfu FROM points") == "0.125;0.125;");

  const Ran wrong = lockstep_with({"sweep", other, "-o", files.db("a")});
  CHECK(wrong.exit == Exit::bad_input);
  CHECK(wrong.err == files.db("a") +
                         ": found results of another sweep, \"sweep.json\"; allowed: "
                         "results of " +
                         other + " as it is (or another -o FILE, to which --reuse " +
                         files.db("a") + " brings what is the same)\n");

  // Words about a scenario change no answer; a value does.
  Json step = Json::parse(kStep);
  step["about"] = "words";
  files.folder.write("step.json", step.dump());
  REQUIRE(files.run("a").exit == Exit::ok);
  CHECK(files.value("a", "SELECT mfu FROM points WHERE point = 1") == "0.125;");
  step["batch"]["tokens"] = 4096;
  files.folder.write("step.json", step.dump());
  REQUIRE(files.run("a").exit == Exit::ok);
  CHECK(files.value("a", "SELECT DISTINCT tokens_per_step FROM points WHERE status = 'ok'") ==
        "524288;");
  files.folder.write("step.json", kStep);
  REQUIRE(files.run("a").exit == Exit::ok);
  CHECK(files.contents("a") == all);
}

TEST_CASE("lockstep sweep: without answers the columns are the same, and go where answers may go") {
  const SweepFolder files;
  REQUIRE(files.run("whole").exit == Exit::ok);
  Json written = Json::parse(kSweep);
  written["answers"] = false;
  const std::string bare = files.folder.write("bare.json", written.dump());
  const auto ran = [&](const std::string& sweep, const std::string& name, const std::string& from) {
    return lockstep_with({"sweep", sweep, "-o", files.db(name), "--reuse", files.db(from)});
  };
  REQUIRE(lockstep_with({"sweep", bare, "-o", files.db("bare")}).exit == Exit::ok);
  CHECK(files.value("bare", "SELECT count(*) FROM points WHERE json IS NULL") == "12;");
  const auto columns = [&](const std::string& name) {
    std::string text;
    const ResultsReader results(files.db(name));
    std::string names;
    for (const std::string& column : results.columns()) names += "\"" + column + "\", ";
    results.each("SELECT " + names + "hash FROM points ORDER BY point",
                 [&](const std::vector<SqlValue>& row) {
                   for (const SqlValue& value : row) text += text_of(value) + "|";
                 });
    return text;
  };
  CHECK(columns("bare") == columns("whole"));

  // What is stored without answers is taken over by a sweep that keeps none...
  files.change("bare", "UPDATE points SET mfu = 0.125 WHERE point = 1");
  REQUIRE(ran(bare, "again", "bare").exit == Exit::ok);
  CHECK(files.value("again", "SELECT mfu FROM points WHERE point = 1") == "0.125;");
  // ... and simulated anew for one that does; the other way it is of use to both.
  REQUIRE(ran(files.sweep, "kept", "bare").exit == Exit::ok);
  CHECK(files.contents("kept") == files.contents("whole"));
  files.change("whole", "UPDATE points SET mfu = 0.25 WHERE point = 1");
  REQUIRE(ran(bare, "third", "whole").exit == Exit::ok);
  CHECK(files.value("third", "SELECT mfu FROM points WHERE point = 1") == "0.25;");
  CHECK(files.value("third", "SELECT count(*) FROM points WHERE json IS NULL") == "12;");

  // An axis in the place of a metric: other sweeps take that from the answer, if there is one.
  const auto named = [&](bool answers) {
    return files.folder.write("named.json",
                              Json{{"scenario", "step.json"},
                                   {"answers", answers},
                                   {"axes", Json::parse(R"([{"at": "/batch/micro", "name": "gpus",
                                     "values": [1]}])")}}
                                  .dump());
  };
  const std::string plain = files.folder.write("plain.json", R"({"scenario": "step.json",
    "axes": [{"at": "/batch/micro", "values": [1]}]})");
  for (const bool answers : {true, false}) {
    const std::string name = answers ? "axis" : "bare_axis";
    REQUIRE(lockstep_with({"sweep", named(answers), "-o", files.db(name)}).exit == Exit::ok);
    files.change(name, answers ? "UPDATE points SET json = json_set(json, '$.mfu', 0.5)"
                               : "UPDATE points SET mfu = 0.5");
    REQUIRE(ran(plain, name + "_on", name).exit == Exit::ok);
    CHECK(files.value(name + "_on", "SELECT gpus, mfu = 0.5 FROM points") == "32;");
    CHECK((files.value(name + "_on", "SELECT mfu FROM points") == "0.5;") == answers);
  }
}

TEST_CASE("lockstep sweep: every number of an answer has a column, and the file holds all of it") {
  const SweepFolder files;
  REQUIRE(files.run("steps").exit == Exit::ok);
  const std::string weeks = files.folder.write("weeks_sweep.json", R"({
    "scenario": "weeks.json", "repeats": 2,
    "axes": [{"at": "/run/checkpoint/interval", "values": ["1 h"]}]})");
  Json run = Json::parse(kStep);
  run["parallelism"]["data"] = 32;
  run["run"] = Json::parse(R"({"duration": "2 d", "trajectories": 4,
    "reliability": {"modes": [{"name": "node", "component": "node", "mean_time": "4 d"}]},
    "checkpoint": {"interval": "1 h", "mode": "synchronous",
                   "storage": {"write": "1 GB/s", "read": "1 GB/s"}}})");
  files.folder.write("weeks.json", run.dump());
  REQUIRE(lockstep_with({"sweep", weeks, "-o", files.db("weeks")}).exit == Exit::ok);
  for (const char* name : {"steps", "weeks"}) {
    const ResultsReader results(files.db(name));
    std::string text;
    results.each("SELECT json FROM points WHERE status = 'ok' LIMIT 1",
                 [&](const std::vector<SqlValue>& row) { text = text_of(row[0]); });
    const Json answer = Json::parse(text);
    for (const auto& [key, value] : answer.items()) {
      CAPTURE(key);
      if (!value.is_number()) continue;
      CHECK(std::ranges::find(results.columns(), key) != results.columns().end());
      CHECK(files.value(name, "SELECT \"" + key + "\" = json ->> '$." + key +
                                  "' FROM points WHERE status = 'ok' LIMIT 1") == "1;");
    }
    for (const char* key : {"facility_mean_w", "joules_per_token"}) {
      CAPTURE(key);
      CHECK(files.value(name, std::string("SELECT ") + key +
                                  " > 0 FROM points WHERE status = 'ok' "
                                  "LIMIT 1") == "1;");
    }
    const std::string shares = std::string(name) == "steps" ? "model_flops_share" : "lost_share";
    CHECK(files.value(name, "SELECT " + shares + " > 0 FROM points WHERE status = 'ok' LIMIT 1") ==
          "1;");
  }
}

TEST_CASE("lockstep sweep: the summary has the best points first and fits its width") {
  const SweepFolder files;
  const std::string csv = files.folder.path() + "/all.csv";
  const Ran ran = files.run("a", {"--format", "json", "--top", "2", "--csv", csv});
  REQUIRE(ran.exit == Exit::ok);
  const Json summary = Json::parse(ran.out);
  CHECK(summary.at("points") == 12);
  CHECK(summary.at("ok") == 8);
  CHECK(summary.at("failed") == 4);
  CHECK(summary.at("first_failed").at("point") == 2);
  REQUIRE(summary.at("best").size() == 2);
  CHECK(files.value("a", "SELECT max(mfu) FROM points") ==
        number_text(summary.at("best")[0].at("mfu").get<double>()) + ";");

  const Ran table = files.run("a", {"--objective", "price_usd:max"});
  CHECK(table.out.find("Best by price_usd, largest first") != std::string::npos);
  for (std::size_t begin = 0; begin < table.out.size();) {
    const std::size_t end = table.out.find('\n', begin);
    CHECK(end - begin <= kTextColumns);
    begin = end + 1;
  }
  CHECK(lockstep_with({"sweep", "export", files.db("a")}).out == read_text_file(csv));
  CHECK(files.run("a", {"--quiet"}).out.empty());
}

TEST_CASE(
    "lockstep sweep: of repeats the setting is best whose mean is, not that of the luckiest") {
  const SweepFolder files;
  const std::string sweep = files.folder.write("repeats.json", R"({"scenario": "weeks.json",
    "repeats": 2, "objective": "goodput",
    "axes": [{"at": "/run/checkpoint/interval", "values": ["1 h", "2 h"]}]})");
  Json run = Json::parse(kStep);
  run["parallelism"]["data"] = 32;
  run["run"] = Json::parse(R"({"duration": "1 d", "trajectories": 2,
    "reliability": {"modes": [{"name": "node", "component": "node", "mean_time": "4 d"}]},
    "checkpoint": {"interval": "1 h", "mode": "synchronous",
                   "storage": {"write": "1 GB/s", "read": "1 GB/s"}}})");
  files.folder.write("weeks.json", run.dump());
  REQUIRE(lockstep_with({"sweep", sweep, "-o", files.db("r")}).exit == Exit::ok);
  // One setting: 0.9 and 0.1; the other: 0.7 and 0.7.
  files.change("r",
               "UPDATE points SET goodput = CASE WHEN point >= 2 THEN 0.7 WHEN point = 0 THEN "
               "0.9 ELSE 0.1 END");
  const Ran ran = lockstep_with({"sweep", sweep, "-o", files.db("r"), "--format", "json"});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  const Json summary = Json::parse(ran.out);
  std::string order;
  for (const Json& best : summary.at("best")) order += best.at("point").dump() + " ";
  CHECK(order == "2 3 0 1 ");
}

TEST_CASE("lockstep sweep: the best have the interval of what they are best by, on the page too") {
  const SweepFolder files;
  const auto best_by = [&files](const std::string& objective) {
    const Ran ran = files.run("a", {"--format", "json", "--top", "1", "--objective", objective});
    REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
    return Json::parse(ran.out).at("best").at(0);
  };
  const Json step = best_by("step_s");
  const std::string point = number_text(step.at("point").get<double>());
  for (const char* end : {"step_s_low", "step_s_high"}) {
    CAPTURE(end);
    CHECK(files.value("a", std::string("SELECT ") + end + " FROM points WHERE point = " + point) ==
          number_text(step.at(end).get<double>()) + ";");
  }
  // MFU is against the step's time: the shortest step has the highest.
  const Json mfu = best_by("mfu");
  const double value = mfu.at("mfu").get<double>();
  CHECK(mfu.at("mfu_low").get<double>() < value);
  CHECK(mfu.at("mfu_high").get<double>() > value);
  const Json price = best_by("price_usd");
  const std::string ratio =
      files.value("a", "SELECT step_s_high / step_s FROM points WHERE point = " +
                           number_text(price.at("point").get<double>()));
  CHECK(price.at("price_usd_high").get<double>() / price.at("price_usd").get<double>() ==
        doctest::Approx(std::stod(ratio)));
  CHECK(files.run("a", {"--objective", "mfu"}).out.find("90 % interval") != std::string::npos);
  const std::string page = files.folder.path() + "/sweep.html";
  if (files.run("a", {"--objective", "mfu", "--report", page}).exit != Exit::ok) return;
  const std::string html = read_text_file(page);
  CHECK(html.find("(90\u00a0% interval ") != std::string::npos);
  CHECK(html.find("MFU of the best") != std::string::npos);
  CHECK(html.find("coloured by MFU; the thickest") != std::string::npos);
  CHECK(html.find("\"visualMap\"") != std::string::npos);
  CHECK(html.find("follows: 32 / tensor") != std::string::npos);
}

TEST_CASE("lockstep sweep: a page names all points that are printed as the best one is") {
  const SweepFolder of;
  // The price of an hour moves money, and no MFU.
  const std::string file = of.folder.write("prices.json", R"({
    "scenario": "step.json", "axes": [
      {"at": "/batch/micro", "values": [1, 2]},
      {"at": "/price/usd_per_gpu_hour", "values": [1, 2, 3]}]})");
  const auto headline = [&](const char* objective) {
    const std::string page = of.folder.path() + "/prices.html";
    const Ran ran = lockstep_with(
        {"sweep", file, "-o", of.db("prices"), "--objective", objective, "--report", page});
    REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
    return read_text_file(page);
  };
  const std::string mfu = headline("mfu");
  CHECK(mfu.find(" (as printed, also of points ") != std::string::npos);
  CHECK(mfu.find("<h1>MFU over sequences a micro batch and ") != std::string::npos);
  const std::string price = headline("price_usd");
  CHECK(price.find(", at point\u00a0") != std::string::npos);
  CHECK(price.find("as printed, also") == std::string::npos);
}

TEST_CASE("lockstep sweep: a page's title has what varies, and its inputs which points there are") {
  const SweepFolder of;
  const std::string file = of.folder.write("one.json", R"({
    "scenario": "step.json", "constraints": ["micro * 2 < 8"], "axes": [
      {"at": "/batch/micro", "name": "micro", "values": [1, 2, 4]},
      {"at": "/price/usd_per_gpu_hour", "values": [3]}]})");
  const std::string page = of.folder.path() + "/one.html";
  const Ran ran = lockstep_with({"sweep", file, "-o", of.db("one"), "--report", page});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  const std::string html = read_text_file(page);
  CHECK(html.find("over sequences a micro batch</h1>") != std::string::npos);
  CHECK(html.find("Only points where") != std::string::npos);
  CHECK(html.find("micro * 2 &lt; 8") != std::string::npos);
}

TEST_CASE("lockstep sweep: the README's queries find something in its example's results") {
  const SweepFolder files;
  // Without the fabric whose hashed paths take a second for each point: no query asks for it.
  const std::string sweeps = LOCKSTEP_SOURCE_DIR "/scenarios/sweeps/";
  Json example = Json::parse(read_text_file(sweeps + "fabric-vs-parallelism.json"));
  example["scenario"] = sweeps + example["scenario"].get<std::string>();
  Json& fabrics = example["axes"][0]["values"];
  REQUIRE(fabrics == Json{"meta_24k_roce", "rail_optimised_3_level", "fat_tree_ecmp"});
  fabrics.erase(2);
  const std::string shorter = files.folder.write("fabric.json", example.dump());
  REQUIRE(lockstep_with({"sweep", shorter, "-o", files.db("fabric"), "-q"}).exit == Exit::ok);
  const std::string readme = read_text_file(LOCKSTEP_SOURCE_DIR "/tools/lockstep/README.md");
  const std::size_t begin = readme.find("```sql\n") + 7;
  std::string queries = readme.substr(begin, readme.find("```", begin) - begin);
  const ResultsReader results(files.db("fabric"));
  int count = 0;
  for (std::size_t end; (end = queries.find(";\n")) != std::string::npos; ++count) {
    const std::string query = queries.substr(0, end);
    CAPTURE(query);
    int rows = 0;
    results.each(query, [&](const std::vector<SqlValue>&) { ++rows; });
    CHECK(rows > 0);
    queries.erase(0, end + 2);
  }
  CHECK(count == 5);
}

TEST_CASE("lockstep sweep --stack: the points are those of a scenario with that stack") {
  const SweepFolder files;
  REQUIRE(files.run("plain").exit == Exit::ok);
  REQUIRE(files.run("named", {"--stack", "nemo"}).exit == Exit::ok);
  Json job = Json::parse(kStep);
  job["stack"] = "nemo";
  (void)files.folder.write("step.json", job.dump());
  REQUIRE(files.run("written").exit == Exit::ok);
  const std::string steps = "SELECT step_s FROM points WHERE status = 'ok' ORDER BY point";
  CHECK(files.value("named", steps) == files.value("written", steps));
  CHECK(files.value("named", steps) != files.value("plain", steps));

  // Another stack is another sweep: a database of one is not gone on with.
  CHECK(files.run("named", {"--stack", "megatron_bridge"}).exit == Exit::bad_input);
  const std::string shards =
      files.run("parts", {"--stack", "nemo", "--print-parallel", "--shards", "2"}).out;
  CHECK(shards.find(" --stack nemo") != std::string::npos);

  // A file is found from where the command runs, and what it says is in the hashes of points.
  const std::string own = files.folder.path() + "/own/stack.json";
  std::filesystem::create_directory(files.folder.path() + "/own");
  (void)files.folder.write("own/stack.json", R"({"preset": "nemo", "level": 1.5})");
  const Ran slow = files.run("slow", {"--stack", own});
  CHECK(slow.err == "");
  CHECK(files.value("slow", steps) != files.value("named", steps));

  Json sweep = Json::parse(kSweep);
  sweep["axes"].push_back({{"at", "/stack"}, {"values", {"megatron_bridge", "nemo"}}});
  (void)files.folder.write("sweep.json", sweep.dump());
  CHECK(files.run("axis", {"--stack", "megatron_bridge"}).err ==
        files.sweep +
            "#/axes: found an axis at /stack; allowed: axes that leave the stack to --stack "
            "megatron_bridge\n");
}

TEST_CASE("lockstep sweep: mistakes are one line, and nothing is written") {
  const SweepFolder files;
  struct Case {
    std::vector<std::string> words;
    std::string err;
  };
  const std::string text = files.folder.write("text.db", "words");
  const std::string elsewhere = files.folder.path() + "/none/a.db";
  const std::string kept =
      "; allowed: a results database in a folder that can be written, with "
      "space on its disk; the points that were finished before are kept\n";
  const std::array cases{
      Case{{"sweep", files.sweep},
           "lockstep sweep: nowhere to keep the results; allowed: -o results.db\n"},
      Case{{"sweep", files.sweep, "-o", "r.parquet"},
           "-o: found \"r.parquet\"; allowed: the name of a database, such as results.db (--csv "
           "FILE writes CSV, --report FILE a page, lockstep sweep export results.db -o FILE CSV or "
           "Parquet)\n"},
      Case{{"sweep", files.sweep, "-o", text},
           text + ": found something that is no database, or a broken one" + kept},
      Case{{"sweep", files.sweep, "-o", elsewhere},
           elsewhere + ": found no folder \"" + files.folder.path() +
               "/none\"; allowed: a file in a folder that exists\n"},
      Case{{"sweep", files.sweep, "--objective", "mfy"},
           "--objective: found \"mfy\"; allowed: tensor, micro, data, "},
      Case{{"sweep", files.sweep, "--objective", "data"},
           "--objective: found \"data\"; allowed: data:max or data:min\n"},
      Case{{"sweep", files.sweep, "--shard", "3/3", "-o", "x.db"},
           "--shard: found \"3/3\"; allowed: I/N with I from 0 to N - 1, such as 3/40\n"},
      Case{{"sweep", files.sweep, "--partition", "x"},
           "lockstep sweep: --partition is for --engine slurm\n"},
  };
  for (const Case& wrong : cases) {
    const Ran ran = lockstep_with(wrong.words);
    CHECK(ran.exit == Exit::bad_input);
    CHECK(ran.err.substr(0, wrong.err.size()) == wrong.err);
    CHECK(ran.out.empty());
  }
  const Ran dry = lockstep_with({"sweep", files.sweep, "--dry-run", "--format", "json"});
  CHECK(Json::parse(dry.out).at("points") == 12);
  CHECK_FALSE(std::filesystem::exists(files.folder.path() + "/none"));
}

TEST_CASE("lockstep sweep: paths as --set takes them, quantities as numbers beside their text") {
  const SweepFolder files;
  const std::string sweep = files.folder.write("paths.json", R"({
    "scenario": "step.json",
    "axes": [{"at": "cluster.node.nic_bandwidth", "name": "nic",
              "values": ["100 Gb/s", "200 Gb/s"]},
             {"list": [{"parallelism.tensor": 1, "/batch/micro": 1}]}]})");
  const std::string db = files.db("paths"), csv = files.folder.path() + "/paths.csv";
  const Ran ran = lockstep_with({"sweep", sweep, "-o", db, "--csv", csv});
  CHECK(ran.err == "");
  const std::string text = read_text_file(csv);
  CHECK(text.starts_with("point,nic,tensor,micro,nic_bytes_per_s,"));
  CHECK(text.find("\n0,100 Gb/s,1,1,12500000000,") != std::string::npos);
  CHECK(text.find("\n1,200 Gb/s,1,1,25000000000,") != std::string::npos);
  const std::string wrong = files.folder.write(
      "wrong.json", R"({"scenario": "step.json", "axes": [{"at": "a..b", "values": [1]}]})");
  CHECK(lockstep_with({"sweep", wrong, "-o", db}).err ==
        wrong +
            "#/axes/0/at: found \"a..b\"; allowed: a path into the scenario, such as "
            "parallelism.tensor or /parallelism/tensor\n");
}

TEST_CASE(
    "lockstep sweep: the mistake of a point is told in one line, with the scenario's name alone") {
  const SweepFolder files;
  const std::string sweep = files.folder.write("wrong.json", R"({
    "scenario": "step.json", "axes": [{"list": [
      {"/batch/micro": 1, "/batch/tokens": 2048}, {"/batch/micro": 0, "/batch/tokens": 0}]}]})");
  const std::string csv = files.folder.path() + "/wrong.csv";
  (void)lockstep_with({"sweep", sweep, "-o", files.db("wrong"), "--csv", csv});
  const std::string text = read_text_file(csv);
  CHECK(text.find("step.json#/batch/micro: found 0") != std::string::npos);
  CHECK(text.find("#/batch/tokens: found 0") == std::string::npos);  // of which `run` tells, too
  CHECK(text.find(files.folder.path()) == std::string::npos);
}

TEST_CASE("lockstep sweep: a formula without a value is an error with its place") {
  const SweepFolder files;
  const std::string sweep = files.folder.write("abs.json", R"({
    "scenario": "step.json", "axes": [{"at": "/batch/micro", "values": [1, 2]}],
    "constraints": ["abs(-9223372036854775808) > 0"]})");
  const Ran ran = lockstep_with({"sweep", sweep, "-o", files.db("abs")});
  CHECK(ran.exit == Exit::bad_input);
  CHECK(ran.err == sweep +
                       "#/constraints/0: found \"abs(-9223372036854775808) > 0\" (integer "
                       "overflow); allowed: a formula that has a value for every point\n");
}

TEST_CASE("lockstep sweep --engine slurm: a name of a file is never run as shell code") {
  const SweepFolder files;
  const std::string& top = files.folder.path();
  // sbatch runs its script, for one task, as Slurm would; squeue knows of none.
  files.folder.write(
      "bin/sbatch",
      "#!/bin/sh\nfor a; do :; done\nSLURM_ARRAY_TASK_ID=0 sh \"$a\" > /dev/null 2>&1\n"
      "echo 1\n");
  files.folder.write("bin/squeue", "#!/bin/sh\n");
  const std::string evil = "x\ntouch " + top + "/PWNED #.json";
  const std::string sweep = files.folder.write(evil, read_text_file(files.sweep));
  files.folder.write("x\ntouch " + top + "/step.json", read_text_file(top + "/step.json"));
  const std::string command =
      ShellText::write(
          "chmod +x {}/bin/*; PATH={}/bin:$PATH timeout 60 {} sweep {} -o {} --engine "
          "slurm --shards 1 > /dev/null 2>&1",
          top, top, LOCKSTEP_PROGRAM, sweep, top + "/slurm.db")
          .str();
  (void)test::run_in_source_tree(command);
  CHECK(std::filesystem::exists(top + "/slurm.db"));
  CHECK_FALSE(std::filesystem::exists(top + "/PWNED"));
  const Ran lines = lockstep_with({"sweep", sweep, "-o", top + "/p.db", "--print-parallel"});
  CHECK(lines.exit == Exit::bad_input);
  CHECK(lines.err.starts_with("--print-parallel: found a line break in the name of a file"));
}

TEST_CASE("shards: a line for each that is not there yet, what Slurm says is read") {
  const SweepFolder files;
  REQUIRE(files.run("a b", {"--shard", "1/3"}).exit == Exit::ok);
  const Ran lines = files.run("a b", {"--print-parallel", "--shards", "3"});
  CHECK(std::ranges::count(lines.out, '\n') == 2);
  CHECK(lines.out.find("-o '" + files.db("a b") + "' --shard 2/3 -j 1 --quiet\n") !=
        std::string::npos);
  CHECK(array_text({0, 1, 2, 5, 8, 9}) == "0-2,5,8-9");
  CHECK(live_tasks("12\n3\n") == std::vector<int>{3, 12});
  CHECK(live_tasks("") == std::vector<int>{});
  CHECK_FALSE(live_tasks("slurm_load_jobs error").has_value());
  CHECK(ShellText("it's").str() == "'it'\\''s'");
}

}  // namespace lockstep
