// Claims that people make about GPU clusters, each a scenario that holds the answer against it.
#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "models/base/text_file.hpp"
#include "tests/support/source_tree.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"
#include "tools/views/run/figure_text.hpp"

namespace lockstep {
namespace {

using test::lockstep_with;
using test::Ran;

const std::string kClaims = "scenarios/claims/";

std::vector<std::string> claim_files() {
  std::vector<std::string> files;
  for (const std::string& file : test::source_files({"scenarios/claims"})) {
    if (file.ends_with(".json")) files.push_back(file);
  }
  return files;
}

Ran answer_of(const std::string& file, const std::string& format) {
  const std::string path = std::string(LOCKSTEP_SOURCE_DIR) + "/" + file;
  std::ifstream in(path);
  const bool traffic = nlohmann::json::parse(in).contains("traffic");
  return lockstep_with({traffic ? "comm" : "run", path, "--format", format});
}

Ran ran_with_page(std::vector<std::string> arguments, const std::string& page) {
  if (!page.empty()) arguments.insert(arguments.end(), {"--report", page});
  return lockstep_with(arguments);
}

/// A small job with this as its "expect".
Ran small_job(const std::string& expect, const std::string& format = "table",
              const std::string& page = {}) {
  const test::TemporaryFolder folder;
  const std::string file =
      folder.write("small.json", R"({"model": "llama3_8b", "cluster": {"node": "dgx_h100"},
                        "stack": "megatron_core", "parallelism": {"tensor": 8},
                        "batch": {"sequences": 8, "tokens": 4096}, "expect": )" +
                                     expect + "}");
  return ran_with_page({"run", file, "--format", format}, page);
}

/// Two jobs of an hour on one node, one after the other, with this as their "expect".
Ran small_queue(const std::string& expect, const std::string& format = "table",
                const std::string& page = {}) {
  const test::TemporaryFolder folder;
  const std::string file =
      folder.write("queue.json", R"({"cluster": {"node": "dgx_h100", "nodes": 1},
        "queue": {"order": "fifo", "admission": "strict",
                  "jobs": [{"job": {"name": "a", "gpus": 8, "runs": "1 h", "tasks": 2}}]},
        "expect": )" + expect + "}");
  return ran_with_page({"run", file, "--format", format}, page);
}

/// Fifty requests on one GPU with this as their "expect".
Ran small_service(const std::string& expect, const std::string& format = "table",
                  const std::string& page = {}) {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("service.json", R"({"model": "llama3_8b",
        "cluster": {"node": "dgx_h100", "nodes": 1},
        "serving": {"load": {"rate": 5, "requests": 50, "input": {"mean": 200},
                             "output": {"mean": 20}},
                    "pools": {"both": {"engine": "vllm"}}, "weights": "bf16"},
        "expect": )" + expect + "}");
  return ran_with_page({"run", file, "--format", format}, page);
}

}  // namespace

TEST_CASE("claims: every scenario states one, and its answer bears its author out") {
  const std::vector<std::string> files = claim_files();
  REQUIRE(files.size() >= 20);
  for (const std::string& file : files) {
    CAPTURE(file);
    const Ran ran = answer_of(file, "json");
    CHECK_MESSAGE(ran.exit == Exit::ok, ran.err);
    if (ran.exit != Exit::ok) continue;
    const nlohmann::json claim = nlohmann::json::parse(ran.out).at("claim");
    CHECK_FALSE(claim.at("sentence").get<std::string>().empty());
    CHECK_FALSE(claim.at("because").get<std::string>().empty());
    CHECK_FALSE(claim.at("source").get<std::string>().empty());
    CHECK_FALSE(claim.at("bounds").empty());
  }
}

namespace {

/// A figure that the reason of a claim names, as its answer has it.
struct ToldFigure {
  std::string file, member;
  double unit;
  int decimals;
  std::string behind;
};

}  // namespace

TEST_CASE("claims: the figures that a reason names are those of the answer") {
  const std::vector<ToldFigure> all{
      {"100k-h100-in-150-mw", "/facility_mean_w", 1e6, 1, " MW in the mean"},
      {"100k-h100-in-150-mw", "/site_peak_w", 1e6, 0, " MW at most by a meter of 2 s"},
      {"220k-gpus-in-300-mw", "/site_peak_w", 1e6, 0, " MW at most by a meter of 2 s"},
      {"ten-thousand-h100", "/power/bill/capital_machines_usd", 1e6, 0, " million and the network"},
      {"ten-thousand-h100", "/power/bill/capital_network_usd", 1e6, 1, " million; a building"},
      {"ten-thousand-h100", "/power/bill/capital_building_usd", 1e6, 0, " million. While"},
      {"70b-in-weeks", "/time_to_train_s", 86400, 1, " days"},
      {"gpt4-scale", "/time_to_train_s", 86400, 0, " days"}};
  for (const ToldFigure& told : all) {
    CAPTURE(told.file);
    CAPTURE(told.member);
    const Ran ran = answer_of(kClaims + told.file + ".json", "json");
    REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
    const nlohmann::json answer = nlohmann::json::parse(ran.out);
    const auto value = answer.at(nlohmann::json::json_pointer(told.member)).get<double>();
    const auto because = answer.at("claim").at("because").get<std::string>();
    const std::string words =
        fmt::format(" {:.{}f}{}", value / told.unit, told.decimals, told.behind);
    CHECK_MESSAGE(because.find(words) != std::string::npos, because << " without" << words);
  }
}

TEST_CASE("claims: the page says what is claimed, whether it holds, why, and the figures") {
  const auto expect = [](const std::string& bound) {
    return R"({"source": "hearsay", "claim": "One GPU <does> it all.", "holds": false,
               "because": "It is shared & slow.", "that": [")" +
           bound + "\"]}";
  };
  const test::TemporaryFolder folder;
  const std::string page = folder.path() + "/page.html";
  const auto check = [&](const Ran& ran) {
    REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
    const std::string html = read_text_file(page);
    for (const char* words : {"One GPU &lt;does&gt; it all.", "This does not hold.", "hearsay",
                              "It is shared &amp; slow.", ": it is "}) {
      CHECK_MESSAGE(html.find(words) != std::string::npos, words);
    }
  };
  check(small_job(expect("mfu<0.9"), "table", page));
  CHECK(read_text_file(page).find("<li>MFU, claimed to be below 90\u00a0%: it is ") !=
        std::string::npos);
  check(small_queue(expect("makespan_s>=7200"), "table", page));
  check(small_service(expect("served==50"), "table", page));
}

TEST_CASE("claims: what the answer does not show is called what the scenario says") {
  const test::TemporaryFolder folder;
  const std::string page = folder.path() + "/page.html";
  struct Case {
    const char *holds, *bounds, *words, *verdict;
    Exit exit;
  };
  for (const Case& c :
       {Case{"true", R"(["mfu<0.9"])", "This holds.", "confirmed", Exit::ok},
        Case{"true", R"(["mfu<0.9", "mfu>0.9"])",
             "The scenario says that this holds; the answer contradicts it.", "contradicted",
             Exit::assertion_missed},
        Case{"false", R"(["mfu>0.9"])",
             "The scenario says that this does not hold; the answer contradicts it.",
             "contradicted", Exit::assertion_missed},
        Case{"true", "[]", "The scenario says that this holds, and gives no bound to test it by.",
             "untested", Exit::ok}}) {
    CAPTURE(c.words);
    const std::string expect = fmt::format(
        R"({{"claim": "It is slow.", "holds": {}, "because": "So it is.", "that": {}}})", c.holds,
        c.bounds);
    const Ran table = small_job(expect, "table", page);
    CHECK(table.exit == c.exit);
    for (const std::string& shown : {table.out, read_text_file(page)}) {
      CHECK(shown.find(c.words) != std::string::npos);
      CHECK((shown.find("This holds.") != std::string::npos) ==
            (std::string(c.verdict) == "confirmed"));
    }
    const nlohmann::json claim = nlohmann::json::parse(small_job(expect, "json").out).at("claim");
    CHECK(claim.at("verdict") == c.verdict);
  }
}

TEST_CASE("claims: the pages of a run of days and of traffic say them too") {
  const test::TemporaryFolder folder;
  const std::string page = folder.path() + "/page.html";
  for (const auto& [command, file] :
       {std::pair{"run", "no-checkpoints"}, {"comm", "all-reduce-all-to-all"}}) {
    CAPTURE(file);
    const std::string path = std::string(LOCKSTEP_SOURCE_DIR) + "/" + kClaims + file + ".json";
    const Ran ran = lockstep_with({command, path, "--report", page});
    REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
    CHECK(read_text_file(page).find("<h2>Claim</h2>") != std::string::npos);
  }
}

TEST_CASE("claims: the folder's README has a line for each") {
  std::string readme;
  for (const std::string& line : test::source_lines(kClaims + "README.md")) readme += line + "\n";
  for (const std::string& file : claim_files()) {
    CAPTURE(file);
    CHECK(readme.find("`" + file.substr(kClaims.size()) + "`") != std::string::npos);
  }
}

TEST_CASE("claims: the answer ends with the sentence, the verdict, the reason and each figure") {
  const Ran ran = answer_of(kClaims + "hdr-400.json", "table");
  CHECK(ran.exit == Exit::ok);
  const std::size_t at = ran.out.find("\nClaim (");
  REQUIRE(at != std::string::npos);
  CHECK(ran.out.find("\"HDR InfiniBand runs at 400 Gb/s.\" This does not hold.", at) !=
        std::string::npos);
  CHECK(ran.out.find("hardware.nic_bytes_per_s == 25 GB/s: it is 25.0 GB/s", at) !=
        std::string::npos);
}

TEST_CASE("claims: a figure has four digits, groups of three and the unit of its field") {
  const std::string file = kClaims + "more-servers-64.json";
  const double speed =
      nlohmann::json::parse(answer_of(file, "json").out).at("tokens_per_s").get<double>();
  REQUIRE(speed > 1e6);
  REQUIRE(speed < 9.99e6);
  const std::string said = "tokens_per_s >= 3,400,000 tokens/s: it is " +
                           grouped(1000 * std::round(speed / 1000)) + " tokens/s\n";
  CHECK_MESSAGE(answer_of(file, "table").out.find(said) != std::string::npos, said);
  CHECK(small_job(R"({"that": ["gpus==8"]})").out.find("gpus == 8: it is 8\n") !=
        std::string::npos);
}

TEST_CASE("claims: figures and bounds are in the unit of their field, with a prefix that suits") {
  struct Told {
    std::string path;
    double value;
    std::string figure, bound;
  };
  const std::vector<Told> all{
      {"site_peak_w", 149.26e6, "149.3 MW", "149.26 MW"},
      {"site_excess_w", -5740, "-5,740 W", "-5,740 W"},
      {"site_excess_w", -57'400, "-57.40 kW", "-57.4 kW"},
      {"site_excess_w", 0, "0 W", "0 W"},
      {"time_to_train_s", 5'184'000, "60.0 days", "60 days"},
      {"ttft_s.p99", 0.25, "250 ms", "250 ms"},
      {"power.bill.capital_machines_usd", 325e6, "325 M USD", "325 M USD"},
      {"price_usd", 1200, "1,200 USD", "1,200 USD"},
      {"usd_per_gpu_hour", 2.5, "2.500 USD/h", "2.5 USD/h"},
      {"hardware.hbm_bytes_per_s", 3.35e12, "3.35 TB/s", "3.35 TB/s"},
      {"hardware.peak_flops", 5.936e20, "593.6 EFLOP/s", "593.6 EFLOP/s"},
      {"energy_j", 7.2e9, "2.00 MWh", "2 MWh"},
      {"joules_per_token", 1.25, "1.250 J", "1.25 J"},
      {"gpu_hours", 1.5e6, "1.50 M GPU-hours", "1.5 M GPU-hours"},
      {"stages.0.memory.weights_gib", 131, "131 GiB", "131 GiB"},
      {"mfu", 0.413, "41.3 %", "41.3 %"},
      {"goodput", 0.9995, "99.95 %", "99.95 %"},
      {"recorded.wait_error", -0.0003, "-0.0300 %", "-0.03 %"},
      {"goodput_requests_per_s", 12.5, "12.50 requests/s", "12.5 requests/s"},
      {"gpus", 16'384, "16,384", "16,384"}};
  for (const Told& told : all) {
    CAPTURE(told.path);
    CHECK(figure_text(told.path, told.value) == told.figure);
    CHECK(bound_text(told.path, told.value) == told.bound);
  }
}

TEST_CASE("claims: truth values are yes and no, and a missed share is off by points") {
  const Ran ran = small_job(R"({"that": ["memory_fits==0", "mfu>=200 %", "step_s>=60"]})");
  CHECK(ran.exit == Exit::assertion_missed);
  CHECK(ran.out.find("NOT met: memory_fits == no: it is yes\n") != std::string::npos);
  CHECK(ran.out.find("NOT met: mfu >= 200 %: it is ") != std::string::npos);
  CHECK(ran.out.find(" points below\n") != std::string::npos);
  CHECK(ran.out.find("NOT met: step_s >= 60 s: it is ") != std::string::npos);
  CHECK(ran.err.find("expectation missed: step_s>=60: step_s is ") != std::string::npos);
}

TEST_CASE("expect.that: a missed bound is printed, in JSON too, and gives exit status 1") {
  const std::string expect = R"({"that": ["gpus==8", "mfu>0.99"]})";
  const Ran table = small_job(expect);
  CHECK(table.exit == Exit::assertion_missed);
  CHECK(table.out.find("NOT met: mfu > 99 %: it is ") != std::string::npos);
  CHECK(table.err.starts_with("expectation missed: mfu>0.99: mfu is "));
  const Ran json = small_job(expect, "json");
  CHECK(json.exit == Exit::assertion_missed);
  const nlohmann::json bounds = nlohmann::json::parse(json.out).at("claim").at("bounds");
  CHECK(bounds.at(0).at("kept") == true);
  CHECK(bounds.at(0).at("value") == 8);
  CHECK(bounds.at(1).at("kept") == false);
}

TEST_CASE("expect.that: members of objects and lists are found by name and by index") {
  CHECK(small_job(R"({"that": ["waterfall.pipeline_bubble.share==0", "stages.0.layers==32",
                               "memory_fits==1"]})")
            .exit == Exit::ok);
}

TEST_CASE("expect.that: what cannot be read, and a field that no answer has, are errors in place") {
  const Ran form = small_job(R"({"that": ["mfu"]})");
  CHECK(form.exit == Exit::bad_input);
  CHECK(form.err.find("#/expect/that/0: found \"mfu\"; allowed: FIELD OPERATOR NUMBER") !=
        std::string::npos);
  const Ran field = small_job(R"({"that": ["gpus==8", "mfuu>0.1"]})");
  CHECK(field.exit == Exit::bad_input);
  CHECK(field.err.find("#/expect/that/1: found \"mfuu>0.1\"") != std::string::npos);
  CHECK(field.err.find("Did you mean \"mfu\"?") != std::string::npos);
  const Ran alone = small_job(R"({"holds": false, "that": ["mfu>0.1"]})");
  CHECK(alone.exit == Exit::bad_input);
  CHECK(alone.err.find("#/expect/holds: ") != std::string::npos);
}

TEST_CASE("expect.that: a queue keeps or misses bounds on its waits, in every format") {
  // The second job waits for the hour of the first: half an hour on average.
  const Ran kept = small_queue(R"({"that": ["wait_mean_s==1800", "utilisation==100 %",
                                            "all.wait_s.most<=3600"], "source": "by hand"})");
  CHECK_MESSAGE(kept.exit == Exit::ok, kept.err);
  CHECK(kept.err.empty());
  CHECK(kept.out.find("\nExpected (by hand)\n  wait_mean_s == 30 min: it is 30.0 min\n") !=
        std::string::npos);
  CHECK(kept.out.find("utilisation == 100 %: it is 100.0 %\n") != std::string::npos);
  const std::string expect = R"({"that": ["jobs==2", "wait_mean_s<60"]})";
  const Ran table = small_queue(expect);
  CHECK(table.exit == Exit::assertion_missed);
  CHECK(table.out.find("NOT met: wait_mean_s < 60 s: it is 30.0 min, 29.0 min above (2,900 %)\n") !=
        std::string::npos);
  CHECK(table.err.starts_with("expectation missed: wait_mean_s<60: wait_mean_s is "));
  const Ran json = small_queue(expect, "json");
  CHECK(json.exit == Exit::assertion_missed);
  const nlohmann::json bounds = nlohmann::json::parse(json.out).at("claim").at("bounds");
  CHECK(bounds.at(0).at("kept") == true);
  CHECK(bounds.at(1).at("value") == 1800);
  CHECK(bounds.at(1).at("kept") == false);
  const Ran csv = small_queue(expect, "csv");
  CHECK(csv.exit == Exit::assertion_missed);
  CHECK(csv.err == table.err);
}

TEST_CASE("expect.that, --assert: a bound on a mean of no jobs is missed, and why is said") {
  const test::TemporaryFolder folder;
  const std::string file =
      folder.write("queue.json", R"({"cluster": {"node": "dgx_h100", "nodes": 1},
        "queue": {"order": "fifo", "admission": "strict", "until": "30 min",
                  "jobs": [{"job": {"name": "a", "gpus": 8, "runs": "1 h", "tasks": 2}}]},
        "expect": {"that": ["wait_mean_s==900", "makespan_s<1e9"]}})");
  const std::string why =
      "completion_mean_s has no value: it is \"over ended jobs, end less submission: wait, start, "
      "the job's own duration, and what evictions, failures and slower cards or links add to it\", "
      "and ended is 0\n";
  const Ran table = lockstep_with({"run", file, "--assert", "completion_mean_s<1e9"});
  CHECK(table.exit == Exit::assertion_missed);
  CHECK(table.err.starts_with("assertion missed: completion_mean_s<1e9: " + why));
  CHECK(table.err.find("expectation missed: makespan_s<1e9: makespan_s has no value: ") !=
        std::string::npos);
  CHECK(table.out.find("NOT met: makespan_s < 11574.1 days: it has no value: it is ") !=
        std::string::npos);
  CHECK(table.out.find("at least 15.0 min on average") != std::string::npos);
  CHECK(table.out.find("-: no job has ended") != std::string::npos);
  const Ran json = lockstep_with({"run", file, "--format", "json"});
  const nlohmann::json answer = nlohmann::json::parse(json.out);
  CHECK(answer.at("completion_mean_s").is_null());
  CHECK(answer.at("slowdown_p99").is_null());
  CHECK(answer.at("makespan_s").is_null());
  CHECK(answer.at("all").at("waiting") == 1);
  CHECK(answer.at("all").at("completion_s").at("mean").is_null());
  CHECK(answer.at("claim").at("bounds").at(0).at("kept") == true);
  CHECK(answer.at("claim").at("bounds").at(1).at("kept") == false);
  CHECK(answer.at("claim").at("bounds").at(1).at("value").is_null());
  const Ran nested = lockstep_with({"run", file, "--assert", "all.slowdown.p50<2"});
  CHECK(
      nested.err.starts_with("assertion missed: all.slowdown.p50<2: all.slowdown.p50 has no "
                             "value: there is nothing to take it from\n"));
}

TEST_CASE("--vary of a queue tells who never starts, and that nothing has ended") {
  const test::TemporaryFolder folder;
  const std::string file =
      folder.write("queue.json", R"({"cluster": {"node": "dgx_h100", "nodes": 1},
        "queue": {"order": "fifo", "admission": "strict", "until": "30 min",
                  "jobs": [{"job": {"name": "a", "gpus": 8, "runs": "1 h", "tasks": 2}}]}})");
  const Ran starved = lockstep_with({"run", file, "--vary", "queue.until=30 min,90 min"});
  CHECK_MESSAGE(starved.exit == Exit::ok, starved.err);
  CHECK(starved.out.find("never started") != std::string::npos);
  CHECK(starved.out.find(" - ") != std::string::npos);  // of the first, no mean completion
  const Ran all = lockstep_with({"run", file, "--vary", "queue.until=90 min,150 min"});
  CHECK(all.out.find("never started") == std::string::npos);
}

TEST_CASE("expect.that: a service keeps or misses bounds on what its requests see") {
  const Ran kept = small_service(R"({"claim": "One GPU serves this.", "because": "It idles.",
      "that": ["served==50", "ttft_s.p50<1", "tpot_p99_s<1", "waterfall.idle.share>0"]})");
  CHECK_MESSAGE(kept.exit == Exit::ok, kept.err);
  CHECK(kept.out.find("\nClaim\n  \"One GPU serves this.\" This holds.\n  It idles.\n"
                      "  served == 50: it is 50\n") != std::string::npos);
  const Ran json = small_service(R"({"that": ["ttft_mean_s<1e-6"]})", "json");
  CHECK(json.exit == Exit::assertion_missed);
  CHECK(json.err.starts_with("expectation missed: ttft_mean_s<1e-6: ttft_mean_s is "));
  const nlohmann::json answer = nlohmann::json::parse(json.out);
  CHECK(answer.at("claim").at("bounds").at(0).at("value") == answer.at("ttft_mean_s"));
}

TEST_CASE("expect: of services and queues, what it cannot say is an error in place") {
  const Ran field = small_service(R"({"that": ["served==50", "ttft_p99<1"]})");
  CHECK(field.exit == Exit::bad_input);
  CHECK(field.out.empty());
  CHECK(field.err.find("#/expect/that/1: found \"ttft_p99<1\"; allowed: a number of the answer's "
                       "JSON. Did you mean \"ttft_p99_s\"?") != std::string::npos);
  const Ran waits = small_queue(R"({"that": ["wait_mean<1"]})");
  CHECK(waits.exit == Exit::bad_input);
  CHECK(waits.err.find("Did you mean \"wait_mean_s\"?") != std::string::npos);
  const Ran unknown = small_queue(R"({"that": ["jobs==2"], "sorce": "x"})");
  CHECK(unknown.exit == Exit::bad_input);
  CHECK(unknown.err.find("#/expect/sorce: ") != std::string::npos);
  for (const Ran& nothing : {small_queue("{}"), small_service(R"({"source": "x"})")}) {
    CHECK(nothing.exit == Exit::bad_input);
    CHECK(nothing.err.find("#/expect: found an object; allowed: \"that\", bounds on numbers of "
                           "the answer") != std::string::npos);
  }
}

TEST_CASE("expect.fits false: a job that does not fit is predicted, and one that fits is a miss") {
  const Ran ran = answer_of(kClaims + "140-gb-of-weights.json", "json");
  CHECK(ran.exit == Exit::ok);
  CHECK(nlohmann::json::parse(ran.out).at("memory_fits") == false);
  const Ran fits = small_job(R"({"fits": false})");
  CHECK(fits.exit == Exit::assertion_missed);
  CHECK(fits.err == "expectation missed: the job fits in memory\n");
}

}  // namespace lockstep
