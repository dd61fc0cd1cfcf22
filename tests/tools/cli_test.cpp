#include <algorithm>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"
#include "tools/console/console.hpp"
#include "tools/console/options.hpp"
#include "tools/console/table.hpp"
#include "tools/views/tables/listing.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

constexpr std::string_view kSmall = R"({
  "model": "megatron_1_7b",
  "cluster": {"node": "dgx_a100_80gb", "nodes": 1},
  "parallelism": {"pipeline": 4, "data": 2, "sharding": "zero1"},
  "batch": {"sequences": 16, "micro": 1, "tokens": 2048},
  "precision": "bf16",
  "recompute": "none",
  "stack": "megatron_core"
})";

}  // namespace

TEST_CASE("list: its help and its mistake name every kind that it lists") {
  std::string words = "list ";
  for (const ListKind& kind : list_kinds()) {
    words += (words.ends_with(' ') ? "" : "|") + std::string(kind.plural);
    CAPTURE(kind.plural);
    CHECK(lockstep_with({"list", std::string(kind.plural)}).exit == Exit::ok);
  }
  CHECK(words.find("|operators|engines|") != std::string::npos);
  CHECK(lockstep_with({"list", "--help"}).out.starts_with("Usage: lockstep " + words + " [BEG"));
  CHECK(lockstep_with({"list"}).err ==
        "lockstep list: no kind; usage: lockstep " + words + " [BEGINNING...] [options]\n");
}

TEST_CASE("list: BEGINNING leaves the rows that begin so, a number for any item of a list") {
  CHECK(lockstep_with(
            {"list", "keys", "cluster.fabric.faults.3.ra", "parallelism.data", "--format", "csv"})
            .out ==
        "key,of,value,unit,allowed,default,about\n"
        "cluster.fabric.faults.*.rate,\"job, queue, serving\",choice or number,,down; 0 to 1,down,"
        "What is left of the capacity\n"
        "parallelism.data,job,whole number,,1 to 8000000,all GPUs / (tensor x context x pipeline),"
        "Replicas\n");
  const std::string of_amd = lockstep_with({"list", "gpus", "mi3", "--format", "csv"}).out;
  CHECK(of_amd.find("\nmi300x,") != std::string::npos);
  CHECK(of_amd.find("\nh100") == std::string::npos);
  const Ran wrong = lockstep_with({"list", "keys", "clutser.nodes"});
  CHECK(wrong.exit == Exit::bad_input);
  CHECK(wrong.err.find("no key begins with \"clutser.nodes\"; allowed: ") != std::string::npos);
  CHECK(wrong.err.ends_with("Did you mean cluster.nodes?\n"));
  CHECK(lockstep_with({"show", "key", "parallelism.tensor"}).out.find("1 to 8000000") !=
        std::string::npos);
}

TEST_CASE("lockstep: help and version go to the output, with status 0") {
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{"--help"},
                                             {"run", "--help"},
                                             {"validate", "-h"},
                                             {"list", "--help"},
                                             {"show", "--help"}}) {
    const Ran ran = lockstep_with(args);
    CHECK(ran.exit == Exit::ok);
    CHECK(ran.out.find("Usage: lockstep ") != std::string::npos);
    CHECK(ran.out.find("Example: ") != std::string::npos);
    CHECK(ran.err.empty());
  }
  CHECK(lockstep_with({"--version"}).out.starts_with("lockstep "));
  const std::string help = lockstep_with({"run", "--help"}).out;
  CHECK(lockstep_with({"help", "run"}).out == help);
  CHECK(lockstep_with({"run", "help"}).out == help);
  CHECK(lockstep_with({"help", "rum"}).err.find("Did you mean run?") != std::string::npos);
}

TEST_CASE("lockstep run: words for what --set says name it, and it works") {
  const auto error_of = [](const std::string& option, const std::string& value) {
    const Ran ran = lockstep_with({"run", "s.json", option, value});
    CHECK(ran.exit == Exit::bad_input);
    return ran.err;
  };
  CHECK(error_of("--power-cap", "500").ends_with("Did you mean --set power.cap=\"500 W\"?\n"));
  CHECK(error_of("--training", "15T").ends_with("Did you mean --set training.tokens=15T?\n"));
  CHECK(error_of("--mttf", "3h").find("--set run.reliability=") != std::string::npos);
  const Ran failures =
      lockstep_with({"run", LOCKSTEP_SOURCE_DIR "/scenarios/llama3-405b-54days.json", "--set",
                     "run.reliability.mttf=3 h"});
  CHECK_MESSAGE(failures.err.find("#/run/reliability: found the unknown key \"mttf\" (--set "
                                  "run.reliability.mttf=3 h) and no \"modes\"; allowed: ") !=
                    std::string::npos,
                failures.err);
  const Ran tokens = lockstep_with(
      {"run", "--model", "llama3_8b", "--node", "dgx_h100", "--nodes", "1", "--tokens", "15T"});
  CHECK(tokens.err.ends_with("of one sequence; of a training: --set training.tokens=15T\n"));
  const Ran asked = lockstep_with({"run", "--model", "llama3_8b", "--node", "dgx_h100", "--nodes",
                                   "1", "--set", "training.tokens=15T", "--set", "power.cap=500 W",
                                   "--set", "price.usd_per_gpu_hour=2.5"});
  CHECK_MESSAGE(asked.exit == Exit::ok, asked.err);
  CHECK(asked.out.find("15.0 T tokens") != std::string::npos);
}

TEST_CASE("lockstep: a mistake is one line on standard error, with status 2") {
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes{
      {{"run"},
       "lockstep run: no scenario file; usage: lockstep run FILE [options], or run --model NAME "
       "--node NAME [options]\n"},
      {{"run", "none.json"},
       "none.json: found no such file; allowed: a readable text file of at most 16 MiB\n"},
      {{"list", "gpuz"},
       "unknown kind \"gpuz\"; allowed: gpus, nodes, models, stacks, operators, engines, nvlinks, "
       "fabrics, fabric-kinds, routings, transports, reliability, storages, chassis, facilities, "
       "clusters, profiles, scenarios, collectives, algorithms, schedules, fields, keys. Did you "
       "mean "
       "gpus?\n"},
      {{"show", "gpu"},
       "lockstep show: a name is missing; usage: lockstep show "
       "gpu|node|model|stack|nvlink|fabric|transport|collective|... NAME [options]\n"},
      {{"show", "schedule", "1f2b"},
       "unknown schedule \"1f2b\"; allowed: gpipe, 1f1b, interleaved, breadth_first, zb_h1, "
       "zb_h2, zb_v, dualpipe, dualpipev. Did you mean 1f1b?\n"},
      {{"validate", "-j", "0"}, "--jobs: found \"0\"; allowed: a whole number from 1 to 1024\n"},
      {{"validate", "--rows", "a", "--nccl", "b"},
       "lockstep validate: found --rows and --nccl; allowed: one of them\n"},
  };
  for (const auto& [args, message] : mistakes) {
    const Ran ran = lockstep_with(args);
    CHECK(ran.exit == Exit::bad_input);
    CHECK(ran.out.empty());
    CHECK(ran.err == message);
  }
  const Ran unknown = lockstep_with({"rnu"});
  CHECK(unknown.err.starts_with("lockstep: unknown command \"rnu\"; allowed: run, new, sweep, "));
  CHECK(unknown.err.ends_with(". Did you mean run?\n"));
}

TEST_CASE("lockstep: without a command it prints its help, with status 2") {
  const Ran ran = lockstep_with({});
  CHECK(ran.exit == Exit::bad_input);
  CHECK(ran.out == lockstep_with({"--help"}).out);
  CHECK(ran.err.empty());
}

TEST_CASE("lockstep: answers in JSON have the version, and so have errors") {
  const TemporaryFolder folder;
  const std::string file = folder.write("small.json", kSmall);
  const auto answer =
      nlohmann::ordered_json::parse(lockstep_with({"run", file, "--format", "json"}).out);
  CHECK(answer.begin().key() == "lockstep_version");
  CHECK("lockstep " + answer.at("lockstep_version").get<std::string>() + "\n" ==
        lockstep_with({"--version"}).out);

  const Ran ran = lockstep_with({"run", file, "--set", "modle=x", "--format=json"});
  CHECK(ran.exit == Exit::bad_input);
  const auto error = nlohmann::ordered_json::parse(ran.out);
  CHECK(error.at("lockstep_version") == answer.at("lockstep_version"));
  CHECK(error.at("schema") == answer.at("schema"));
  CHECK(error.at("error").at("place") == file + "#/modle");
  CHECK(error.at("error").at("found") == "the unknown key \"modle\" (--set modle=x)");
  CHECK(error.at("error").at("allowed").get<std::string>().starts_with("$schema, about, "));
  CHECK(error.at("error").at("nearest") == "model");
  CHECK(error.at("error").at("message").get<std::string>() + "\n" == ran.err);
  CHECK(error.at("error").at("also").empty());

  const Ran usage = lockstep_with({"run", "--format", "json"});
  CHECK(nlohmann::json::parse(usage.out).at("error").at("place") == "command line");
  CHECK(lockstep_with({"run"}).out.empty());
}

TEST_CASE("lockstep run: wrong values of a scenario are told at once, in JSON with their parts") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("wrong.json", R"({
    "model": "lama3_8b",
    "cluster": {"node": "dgx_h10", "nodes": 0},
    "parallelism": {"tensor": "8"},
    "batch": {"sequences": 64, "micro": 1, "tokens": -1}
  })");
  const Ran ran = lockstep_with({"run", file, "--format", "json"});
  CHECK(ran.exit == Exit::bad_input);
  const auto error = nlohmann::ordered_json::parse(ran.out).at("error");
  CHECK(error.at("place") == file + "#/model");
  std::vector<std::string> places;
  for (const auto& other : error.at("also")) places.push_back(other.at("place"));
  const std::vector<std::string> wanted{file + "#/cluster/node", file + "#/cluster/nodes",
                                        file + "#/parallelism/tensor", file + "#/batch/tokens"};
  CHECK(places == wanted);
  CHECK(error.at("also").at(0).at("nearest") == "dgx_h100");
  CHECK(error.at("also").at(1).at("found") == "0");
  CHECK(std::ranges::count(ran.err, '\n') == 5);
}

TEST_CASE("lockstep: errors of the command line have their parts in JSON, where they are known") {
  const auto error_of = [](std::vector<std::string> args) {
    args.insert(args.end(), {"--format", "json"});
    return nlohmann::json::parse(lockstep_with(args).out).at("error");
  };
  const nlohmann::json option = error_of({"run", "x.json", "--trce", "y"});
  CHECK(option.at("place") == "command line");
  CHECK(option.at("found") == "\"--trce\"");
  CHECK(option.at("allowed").get<std::string>().starts_with("--set, --format, "));
  CHECK(option.at("nearest") == "--trace");
  const nlohmann::json command = error_of({"rum"});
  CHECK(command.at("found") == "\"rum\"");
  CHECK(command.at("nearest") == "run");
  const nlohmann::json none = error_of({"run"});
  CHECK(none.at("found").is_null());
  CHECK(none.at("allowed").is_null());
}

TEST_CASE("UsageError: its parts are those of its line, where it has them") {
  const UsageError whole("--jobs: found \"x\"; allowed: one, two. Did you mean \"two\"?");
  CHECK(whole.parts().found == "\"x\"");
  CHECK(whole.parts().allowed == "one, two");
  CHECK(whole.parts().nearest == "two");
  const UsageError rule("lockstep new sweep: --scenario is missing; allowed: a file");
  CHECK(rule.parts().found.empty());
  CHECK(rule.parts().allowed == "a file");
  CHECK(UsageError("--jobs is given twice").parts().allowed.empty());
}

TEST_CASE("lockstep run: --set, --assert, --format and -o work together") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("small.json", kSmall);
  const std::string out = folder.path() + "/result.json";
  const Ran kept = lockstep_with({"run", file, "--set", "batch.sequences=32", "--format", "json",
                                  "--assert", "mfu>0.01", "--assert", "gpus==8", "-o", out});
  CHECK(kept.exit == Exit::ok);
  CHECK(kept.out.empty());
  CHECK(kept.err.empty());
  const auto json = nlohmann::json::parse(std::ifstream(out));
  CHECK(json["scenario"]["batch"]["sequences"] == 32);

  const Ran missed = lockstep_with({"run", file, "--assert", "mfu>0.01", "--assert", "gpus>=9"});
  CHECK(missed.exit == Exit::assertion_missed);
  CHECK_FALSE(missed.out.empty());
  CHECK(missed.err == "assertion missed: gpus>=9: gpus is 8.00000, below by 1.00 (11.1 %)\n");
}

TEST_CASE("lockstep run: a mistake leaves neither output nor files") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("small.json", kSmall);
  for (const std::vector<std::string>& extra :
       std::vector<std::vector<std::string>>{{"--assert", "mfuu>1"},
                                             {"--assert", "mfu"},
                                             {"--format", "yaml"},
                                             {"--set", "nodes=1"},
                                             {"--trace", "/nonexistent/t.json"},
                                             {"--svg", "/nonexistent/s.svg"}}) {
    std::vector<std::string> args{"run", file, "-o", folder.path() + "/out.txt"};
    args.insert(args.end(), extra.begin(), extra.end());
    const Ran ran = lockstep_with(args);
    CHECK(ran.exit == Exit::bad_input);
    CHECK(ran.out.empty());
    CHECK(std::count(ran.err.begin(), ran.err.end(), '\n') == 1);
    CHECK_FALSE(std::filesystem::exists(folder.path() + "/out.txt"));
  }
}

TEST_CASE("lockstep run: a job that does not fit is refused, and predicted with --allow-oom") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("small.json", kSmall);
  const std::vector<std::string> args{"run", file, "--set", "model=gpt3_175b"};
  const Ran refused = lockstep_with(args);
  CHECK(refused.exit == Exit::bad_input);
  CHECK(refused.out.empty());
  CHECK(refused.err.starts_with(file + ": found a job that needs "));
  CHECK(refused.err.find("GiB of a100_sxm4_80gb; ") != std::string::npos);
  std::vector<std::string> allowed = args;
  allowed.emplace_back("--allow-oom");
  const Ran predicted = lockstep_with(allowed);
  CHECK(predicted.exit == Exit::ok);
  CHECK(predicted.out.find("DOES NOT FIT") != std::string::npos);
}

TEST_CASE("lockstep run: folded and unfolded give the same step time") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("small.json", kSmall);
  const auto step = [&](std::vector<std::string> extra) {
    std::vector<std::string> args{"run", file, "--format", "json"};
    args.insert(args.end(), extra.begin(), extra.end());
    return nlohmann::json::parse(lockstep_with(args).out)["step_s"].get<double>();
  };
  CHECK(step({}) == step({"--unfold"}));
}

constexpr std::string_view kHashed = R"({
  "model": "llama3_8b", "stack": "megatron_core",
  "cluster": {"node": "dgx_h100", "nodes": 32, "fabric": "fat_tree_ecmp"},
  "parallelism": {"tensor": 4, "pipeline": 4, "data": 16, "sharding": "none"},
  "batch": {"sequences": 256, "tokens": 4096, "micro": 1}
})";

TEST_CASE("lockstep: every command that prints a step takes --fold and --unfold, not both") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("hashed.json", kHashed);
  for (const char* command : {"run", "sweep", "tune", "plan", "compare", "validate"}) {
    CAPTURE(command);
    const std::string help = lockstep_with({command, "--help"}).out;
    CHECK(help.find("--fold") != std::string::npos);
    CHECK(help.find("--unfold") != std::string::npos);
  }
  const Ran both = lockstep_with({"run", file, "--fold", "--unfold"});
  CHECK(both.exit == Exit::bad_input);
  CHECK(both.err == "--fold: found --unfold beside it; allowed: one of them\n");
}

TEST_CASE(
    "lockstep run, tune: under hashed paths the default is exact, and --fold says what it is") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("hashed.json", kHashed);
  const auto json = [&](std::vector<std::string> args) {
    args.insert(args.end(), {"--format", "json"});
    return nlohmann::json::parse(lockstep_with(args).out);
  };
  const auto whole = json({"run", file, "--unfold"}), usual = json({"run", file});
  const auto folded = json({"run", file, "--fold"});
  CHECK(usual["step_s"] == whole["step_s"]);
  CHECK(usual["exact_low_s"] == whole["step_s"]);
  CHECK(usual["simulation"]["method"] == "exact");
  CHECK(folded["step_s"] < whole["step_s"]);
  CHECK(folded["simulation"]["method"] == "folded");
  CHECK_FALSE(folded.contains("exact_low_s"));
  CHECK(lockstep_with({"run", file, "--fold"}).out.find("folded as asked") != std::string::npos);
  const auto tuned = json({"tune", file, "--tensor", "4", "--pipeline", "4", "--micro-batch", "1",
                           "--recompute", "none", "--quiet"});
  CHECK(tuned["own"]["step_s"] == whole["step_s"]);
  for (const auto& layout : tuned["best"]) CHECK(layout["method"] == "exact");
}

TEST_CASE("lockstep list: every kind, in every format, has what the presets have") {
  for (const char* kind :
       {"gpus", "nodes", "models", "stacks", "engines", "nvlinks", "fabrics", "fabric-kinds",
        "routings", "transports", "reliability", "storages", "chassis", "facilities", "clusters",
        "profiles", "collectives", "algorithms", "schedules"}) {
    CAPTURE(kind);
    const Ran json = lockstep_with({"list", kind, "--format", "json"});
    REQUIRE(json.exit == Exit::ok);
    const auto rows = nlohmann::json::parse(json.out);
    CHECK_FALSE(rows.empty());
    const std::string csv = lockstep_with({"list", kind, "--format", "csv"}).out;
    const std::string table = lockstep_with({"list", kind}).out;
    for (const auto& row : rows) {
      const std::string name = row["name"];
      CHECK(csv.find("\n" + name + ",") != std::string::npos);
      CHECK(table.find("\n" + name + " ") != std::string::npos);
    }
  }
}

TEST_CASE("lockstep list: sentences wrap at 100 columns, those of fields stay a line each") {
  for (const char* kind : {"scenarios", "stacks"}) {
    std::istringstream lines(lockstep_with({"list", kind}).out);
    for (std::string line; std::getline(lines, line);) {
      CAPTURE(line);
      const std::size_t word = line.find_first_not_of(' ');
      const bool one_word = line.find(' ', word) == std::string::npos;  // an address: no break fits
      CHECK((one_word || text_width(line) <= kTextColumns));
    }
  }
  const Ran fields = lockstep_with({"list", "fields"});
  CHECK(fields.out.find("The step if kernels wait for all communication that was hidden behind "
                        "others in the recording, which does not tell who needs it; absent where "
                        "none was.\n") != std::string::npos);
}

TEST_CASE("lockstep list transports: the other words that scenarios may use are beside the name") {
  const auto rows =
      nlohmann::json::parse(lockstep_with({"list", "transports", "--format", "json"}).out);
  const auto ethernet = std::ranges::find(
      rows, "ethernet", [](const auto& row) { return row.at("name").template get<std::string>(); });
  REQUIRE(ethernet != rows.end());
  CHECK(ethernet->at("other_names") == "tcp, sockets");
}

TEST_CASE("lockstep run: an event says how many links and transfers, one or several, it met") {
  const Ran ran =
      lockstep_with({"run", LOCKSTEP_SOURCE_DIR "/scenarios/congestion/spine-dies.json", "--set",
                     "events.0.at=1 ms", "--set", "events.0.lasts=1 ms", "--set",
                     "events.0.reroute_after=0.1 ms", "--set", "events.0.fault.switch=spine 1"});
  CHECK(ran.err == "");
  CHECK(ran.out.find("; 8 links, 1 transfer of training was on them\n") != std::string::npos);
}

TEST_CASE("lockstep validate: finds its own rows, also beside a folder of one's own") {
  const test::TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() + "/gpus");
  std::filesystem::copy(LOCKSTEP_SOURCE_DIR "/models/presets/gpus/h100_sxm5_80gb.json",
                        folder.path() + "/gpus/a_gpu_of_mine.json");
  const Ran ran = lockstep_with({"validate", "--presets", folder.path(), "--source", "mtnlg"});
  CHECK(ran.exit == Exit::ok);
  CHECK(ran.out.find("mtnlg-530b-280n") != std::string::npos);
  CHECK(ran.out.ends_with("\n3 rows: 3 predicted, 0 skipped, 0 that ran out of memory\n"));
  CHECK(lockstep_with({"validate", "--source", "mtnlgg"}).err.ends_with("Did you mean mtnlg?\n"));
}

TEST_CASE("lockstep validate: every kind of measured points, in every format") {
  const std::string reference = LOCKSTEP_SOURCE_DIR "/tests/reference/";
  for (const auto& [option, file] : std::vector<std::pair<std::string, std::string>>{
           {"--attention", "attention.json"}, {"--memory", "memory_kernels.json"}}) {
    const Ran ran = lockstep_with({"validate", option, reference + file, "--format", "json"});
    REQUIRE(ran.exit == Exit::ok);
    const auto json = nlohmann::json::parse(ran.out);
    CHECK_FALSE(json["points"].empty());
    for (const char* key : {"measured_us", "predicted_us", "error"}) {
      CHECK(json["points"][0][key].is_number());
    }
    CHECK(json["summary"]["all"]["n"] == json["points"].size());
    const std::string csv =
        lockstep_with({"validate", option, reference + file, "--format", "csv"}).out;
    CHECK(static_cast<std::size_t>(std::count(csv.begin(), csv.end(), '\n')) ==
          json["points"].size() + 1);
  }
}

TEST_CASE("lockstep show: values with their sources, also from a folder of one's own") {
  const auto rows = nlohmann::json::parse(
      lockstep_with({"show", "gpu", "h100_sxm5_80gb", "--format", "json"}).out);
  bool found = false;
  for (const auto& row : rows) {
    if (row["path"] != "hbm_bandwidth") continue;
    found = true;
    CHECK(row["value"] == "3.35 TB/s");
    CHECK_FALSE(row["source"].get<std::string>().empty());
  }
  CHECK(found);
  const test::TemporaryFolder folder;
  folder.write("fabrics/mine.json", R"({"about": "Mine.", "source": "me", "kind": "ideal"})");
  const Ran mine = lockstep_with({"show", "fabric", "mine", "--presets", folder.path()});
  CHECK(mine.exit == Exit::ok);
  CHECK(mine.out.find("ideal") != std::string::npos);
}

TEST_CASE("lockstep run: of experts, the weights that a token uses are said beside all") {
  const std::string file = LOCKSTEP_SOURCE_DIR "/scenarios/mixtral-8x7b-h100.json";
  const Ran ran = lockstep_with({"run", file, "--format", "json"});
  REQUIRE(ran.exit == Exit::ok);
  const auto job = nlohmann::json::parse(ran.out).at("job");
  // The model's card: 46.7 B in all, 12.9 B active.
  CHECK(job.at("parameters").get<double>() == doctest::Approx(46.7e9).epsilon(0.003));
  CHECK(job.at("active_parameters").get<double>() == doctest::Approx(12.9e9).epsilon(0.003));
  CHECK(lockstep_with({"run", file}).out.find("46.7 B parameters, 12.9 B active") !=
        std::string::npos);
}

TEST_CASE("run and tune: of a plan and of a sweep they name the command that takes it") {
  const std::string folder = LOCKSTEP_SOURCE_DIR "/scenarios/";
  const std::string plan = folder + "plans/h100-in-three-lots.json";
  const std::string sweep = folder + "sweeps/fabric-vs-parallelism.json";
  for (const std::string command : {"run", "tune"}) {
    CAPTURE(command);
    const Ran of_plan = lockstep_with({command, plan});
    CHECK(of_plan.exit == Exit::bad_input);
    CHECK(of_plan.err == plan +
                             "#/candidates: found an array; allowed: no such key in a scenario: "
                             "lockstep plan " +
                             plan + " takes this file\n");
    const Ran of_sweep = lockstep_with({command, sweep});
    CHECK(of_sweep.exit == Exit::bad_input);
    CHECK(of_sweep.err == sweep +
                              "#/axes: found an array; allowed: no such key in a scenario: "
                              "lockstep sweep " +
                              sweep + " takes this file\n");
  }
}

TEST_CASE("plan, sweep and comm: of another command's file they name the command that takes it") {
  const std::string folder = LOCKSTEP_SOURCE_DIR "/scenarios/";
  const std::string job = folder + "llama3-405b-16k.json";
  const std::string plan = folder + "plans/h100-in-three-lots.json";
  const auto says = [](const std::string& command, const std::string& file,
                       const std::string& text) {
    const Ran ran = lockstep_with({command, file});
    CAPTURE(command);
    CHECK(ran.exit == Exit::bad_input);
    CHECK_MESSAGE(ran.err.ends_with(text + " takes this file\n"), ran.err);
  };
  says("plan", job, "allowed: no such key in a plan: lockstep run " + job);
  says("sweep", job, "allowed: no such key in a sweep: lockstep run " + job);
  says("comm", job,
       "allowed: no such key in a scenario of traffic or collectives: lockstep run " + job);
  says("sweep", plan, "allowed: no such key in a sweep: lockstep plan " + plan);
}

TEST_CASE("run and others: of a list of measured runs they say what takes it") {
  const std::string rows = LOCKSTEP_SOURCE_DIR "/tests/reference/training.json";
  for (const std::string command : {"run", "tune", "plan", "sweep", "comm"}) {
    CAPTURE(command);
    const Ran ran = lockstep_with({command, rows});
    CHECK(ran.exit == Exit::bad_input);
    CHECK_MESSAGE(ran.err.find("lockstep run " + rows + "#ROW takes one") != std::string::npos,
                  ran.err);
  }
}
