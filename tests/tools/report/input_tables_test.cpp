// What pages say below their results: the machine, the inputs, the assumptions.
#include "tools/views/report/input_tables.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/text_file.hpp"
#include "sim/scenario/read_cluster.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"
#include "tests/tools/report/contains.hpp"
#include "tools/console/options.hpp"
#include "tools/views/report/html.hpp"
#include "tools/views/report/page.hpp"

using namespace lockstep;
using lockstep::test::charts_of;
using lockstep::test::contains;
using lockstep::test::lockstep_with;
using lockstep::test::Ran;

namespace {

const std::string kScenarioFolder = LOCKSTEP_SOURCE_DIR "/scenarios/";

bool pages_can_be_made() {
  try {
    (void)chart_library();
    return true;
  } catch (const UsageError& error) {
    MESSAGE(error.what());
    return false;
  }
}

/// The page that a command writes with these words.
std::string page_written(std::vector<std::string> words) {
  const test::TemporaryFolder folder;
  const std::string file = folder.path() + "/page.html";
  words.insert(words.end(), {"--report", file});
  const Ran ran = lockstep_with(words);
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  return read_text_file(file);
}

/// Cells with a | between them, and plain spaces.
std::string without_marks(const std::string& page) {
  const std::string text = std::regex_replace(
      std::regex_replace(page, std::regex("<t[dr]>|<td [^>]*>"), "|"), std::regex("<[^>]*>"), "");
  return std::regex_replace(text, std::regex("\u00a0"), " ");
}

void has_all(std::string page, const std::vector<std::string>& sentences) {
  // Names may have places where their lines may end.
  const std::string place = "<wbr>";
  for (std::size_t at = page.find(place); at != std::string::npos; at = page.find(place, at)) {
    page.erase(at, place.size());
  }
  for (const std::string& sentence : sentences) {
    CAPTURE(sentence);
    CHECK(contains(page, ">" + escaped(sentence).str() + "<"));
  }
}

}  // namespace

TEST_CASE("pages: shares of GPU time are those that the terminal prints") {
  if (!pages_can_be_made()) return;
  for (const char* name : {"llama3-405b-8k.json", "llama3-8b-b200.json", "gpt3-175b-selene.json",
                           "rl/ppo-llama3-8b-pools.json", "queue/kueue-two-teams.json",
                           "serving/llama3-70b-h100-conversations.json"}) {
    CAPTURE(name);
    const test::TemporaryFolder folder;
    const std::string file = folder.path() + "/page.html";
    const Ran ran = lockstep_with({"run", kScenarioFolder + name, "--report", file});
    REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
    const std::string whole = read_text_file(file);
    const std::size_t section = whole.find("<h2>Where the GPU time goes");
    const std::string page =
        without_marks(whole.substr(section, whole.find("</section>", section) - section));
    std::istringstream lines(ran.out.substr(ran.out.find("GPU time goes")));
    std::string line;
    std::getline(lines, line);
    // "  Pipeline bubble                         30.0 %    600 ms  ####"
    const std::regex row("^  (\\S.*?) {2,}([0-9.]+) %.*");
    int rows = 0;
    for (std::smatch found; std::getline(lines, line) && std::regex_match(line, found, row);) {
      if (found[1] == "Together") break;
      CAPTURE(line);
      CHECK(contains(page, "|" + found[2].str() + " %|"));
      ++rows;
    }
    CHECK(rows > 2);
  }
}

TEST_CASE("pages: a figure leads to the part about its number, on every kind of page") {
  if (!pages_can_be_made()) return;
  const std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>> cases{
      {{"llama3-8b-b200.json"}, {"step_s", "mfu", "peak_memory_gib"}},
      {{"llama3-405b-54days.json", "--trajectories", "2"}, {"goodput", "wall_s", "step_s"}},
      {{"rl/ppo-llama3-8b-pools.json"}, {"step_s", "training_mfu", "generation_idle_share"}},
      {{"queue/kueue-two-teams.json"}, {"wait_mean_s", "utilisation", "wait_p99_s"}},
      {{"serving/llama3-70b-h100-conversations.json"}, {"served", "ttft_p99_s", "tpot_mean_s"}}};
  for (const auto& [words, fields] : cases) {
    CAPTURE(words.front());
    std::vector<std::string> command{"run", kScenarioFolder + words.front()};
    command.insert(command.end(), words.begin() + 1, words.end());
    const std::string page = page_written(command);
    for (const std::string& field : fields) {
      CAPTURE(field);
      CHECK(contains(page, "id=\"behind-" + field + "\""));
    }
    std::size_t links = 0;
    const std::string link = "href=\"#behind-";
    for (std::size_t at = page.find(link); at != std::string::npos; at = page.find(link, at + 1)) {
      const std::size_t from = at + link.size();
      const std::string field = page.substr(from, page.find('"', from) - from);
      CHECK_MESSAGE(contains(page, "id=\"behind-" + field + "\""), field);
      ++links;
    }
    CHECK(links >= 3);
  }
}

TEST_CASE("pages: what stands behind a figure begins with what the figure shows, per cent too") {
  if (!pages_can_be_made()) return;
  const std::string page = page_written({"run", kScenarioFolder + "llama3-8b-b200.json"});
  const Ran table = test::lockstep_with({"run", kScenarioFolder + "llama3-8b-b200.json"});
  std::smatch found;
  const std::regex line("MFU +([0-9.]+) % with attention in full, ([0-9.]+) % causal");
  REQUIRE(std::regex_search(table.out, found, line));
  const std::string full = found[1].str() + "\u00a0%", causal = found[2].str() + "\u00a0%";
  CHECK(contains(page, "MFU, attention in full</strong>: " + full));
  CHECK(contains(page, "MFU, attention causal</strong>: " + causal));
}

TEST_CASE("pages: a model without causal masks has one MFU") {
  if (!pages_can_be_made()) return;
  const std::string page = page_written({"run", kScenarioFolder + "flux1-dev-fsdp2.json"});
  CHECK_FALSE(contains(page, "causal</"));
  CHECK(contains(page, ">&lt;0.001\u00a0GiB<"));  // its output layer
  CHECK(contains(page, "no run among these of a diffusion model"));
}

TEST_CASE("pages of comm, jobs, plans, searches and sweeps: figures lead to the parts about them") {
  if (!pages_can_be_made()) return;
  const test::TemporaryFolder folder;
  const std::string step = kScenarioFolder + "llama3-8b-b200.json";
  const std::string sweep = folder.write("sweep.json", R"({"scenario": ")" + step + R"(",
      "axes": [{"at": "/batch/micro", "values": [1, 2]}], "objective": "mfu"})");
  const std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>> cases{
      {{"comm", kScenarioFolder + "comm/alltoall-16-nodes.json"},
       {"largest_time_s", "best_busbw_bytes_per_s", "nic_bytes_per_s"}},
      {{"comm", kScenarioFolder + "comm/incast-32.json"}, {"end_s", "simulation.links"}},
      {{"run", kScenarioFolder + "congestion/two-jobs-one-spine.json"},
       {"slowdown_max", "links_used", "links.0.mean_utilisation", "simulated_s"}},
      {{"plan", kScenarioFolder + "plans/train-70b-15t-tokens.json", "--samples", "10"},
       {"expected.time_s", "expected.usd", "peak_w.point", "chances.all"}},
      {{"tune", step, "--keep", "2"}, {"step_s", "mfu", "needed_memory_gib"}},
      {{"sweep", sweep, "-o", folder.path() + "/results.db"}, {"mfu"}}};
  for (const auto& [words, fields] : cases) {
    CAPTURE(words[0]);
    CAPTURE(words[1]);
    const std::string page = page_written(words);
    for (const std::string& field : fields) {
      CAPTURE(field);
      // Of a plan's candidate, by its number.
      const std::regex link("href=\"#(behind-(candidates\\.\\d+\\.)?" +
                            std::regex_replace(field, std::regex("\\."), "\\.") + ")\"");
      std::smatch found;
      REQUIRE(std::regex_search(page, found, link));
      CHECK(contains(page, "id=\"" + found[1].str() + "\""));
    }
  }
}

TEST_CASE("pages of what-ifs: every kind of answer has its numbers") {
  if (!pages_can_be_made()) return;
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{"run", "queue/research-cluster-easy.json", "--vary", "queue.admission=strict,easy"},
       "Mean completion time"},
      {{"run", "serving/llama3-70b-h100-conversations.json", "--vary",
        "serving.pools.both.replicas=7,8"},
       "Time per token"}};
  for (const auto& [words, number] : cases) {
    std::vector<std::string> command = words;
    command[1] = kScenarioFolder + command[1];
    CAPTURE(words[1]);
    const std::string page = page_written(command);
    CHECK_FALSE(contains(page, "No point has a number"));
    CHECK(contains(page, number + "</button>"));
    CHECK(charts_of(page).size() >= 2);
  }
}

TEST_CASE("cluster_words: nodes with their GPUs and NICs, the fabric with what it carries") {
  const JsonCursor root = JsonCursor::parse("c.json", R"({"cluster": {
      "node": {"preset": "dgx_h100", "gpus": 1, "nvlink_domain": 1, "nics": 1},
      "nodes": 1000, "fabric": "fat_tree_ecmp"}})");
  const std::vector<NamedWords> lines =
      cluster_words(read_cluster(root.at("cluster"), test::presets()));
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].name == "Nodes");
  CHECK(lines[0].words == "1,000 x dgx_h100, 1 x h100_sxm5_80gb each, 1 NIC of 50 GB/s");
  CHECK(lines[1].name == "Fabric");
  CHECK(lines[1].words == "fat_tree_ecmp, ecmp, infiniband");
}

TEST_CASE("add_basis: a section of each that says anything, and of nothing else") {
  const auto html_of = [](const AnswerBasis& basis) {
    Page page("Kind", "Title");
    add_basis(page, basis);
    return page.html({.script = "", .licences = ""});
  };
  const std::string nothing = html_of({});
  for (const char* title : {"What was simulated", "Inputs", "Assumed"}) {
    CHECK_FALSE(contains(nothing, title));
  }
  const std::string all =
      html_of({.simulated = {{"Load", "<b>much"}},
               .written = std::make_shared<const nlohmann::ordered_json>(
                   nlohmann::ordered_json{{"about", "none of it"}, {"cluster", {{"nodes", 7}}}}),
               .assumptions = {"fabric: <i> (not given)"}});
  has_all(all, {"What was simulated", "Load", "<b>much", "Inputs", "cluster.nodes", "7", "Assumed",
                "fabric: <i> (not given)"});
  CHECK_FALSE(contains(all, "none of it"));
}

TEST_CASE("add_inputs: lists are words, and members of a list with parts have rows of their own") {
  Page page("Kind", "Title");
  add_inputs(page, std::make_shared<const nlohmann::ordered_json>(nlohmann::ordered_json::parse(
                       R"({"shares": [0.1, 0.2], "names": ["a", "b_c"], "none": [], "power": {},
                           "no": null, "yes": true, "curve": [[1, 2], [3, 4]],
                           "jobs": [{"name": "first", "at": [1, 2]}, "second"]})")));
  const std::string html = page.html({.script = "", .licences = ""});
  const std::string text = without_marks(html);
  for (const char* row :
       {"|shares|0.1, 0.2", "|names|a, b_c", "|none|none", "|power|all of it as it is by default",
        "|no|none", "|yes|true", "|curve.0|1, 2", "|curve.1|3, 4", "|jobs.0.name|first",
        "|jobs.0.at|1, 2", "|jobs.1|second"}) {
    CHECK_MESSAGE(contains(text, row), row);
  }
  CHECK_FALSE(contains(text, "|["));
  CHECK_FALSE(contains(text, "|{"));
}

TEST_CASE("add_basis: sources of the presets that are named, once each, and of those these name") {
  Page page("Kind", "Title");
  const auto written = std::make_shared<const nlohmann::ordered_json>(
      nlohmann::ordered_json{{"cluster", {{"node", "dgx_h100"}}}});
  add_basis(page,
            {.written = written,
             .presets = &test::presets(),
             .named = {{"fabrics", "fat_tree"}, {"nodes", "dgx_h100"}, {"fabrics", "fat_tree"}}});
  const std::string html = page.html({.script = "", .licences = ""});
  CHECK(contains(html, ">Sources<"));
  for (const char* row : {"|fat_treefabrics|kind|", "|dgx_h100nodes|gpu|h100_sxm5_80gb|",
                          "|h100_sxm5_80gbgpus|hbm_bandwidth|"}) {
    CAPTURE(row);
    const std::string text = without_marks(html);
    const std::size_t first = text.find(row);
    CHECK(first != std::string::npos);
    CHECK(text.find(row, first + 1) == std::string::npos);
  }
}

TEST_CASE("add_basis: of an engine's kernels those of the card that is there") {
  const auto sources = [](const std::string& gpu) {
    Page page("Kind", "Title");
    add_basis(page, {.presets = &test::presets(), .named = {{"gpus", gpu}, {"engines", "vllm"}}});
    return without_marks(page.html({.script = "", .licences = ""}));
  };
  const std::string hopper = sources("h100_sxm5_80gb");
  CHECK(contains(hopper, ".architecture|hopper|"));
  CHECK_FALSE(contains(hopper, ".architecture|ampere|"));
  // Of a card that the engine was fitted to nothing of, all are there.
  const std::string other = sources("mi300x");
  CHECK(contains(other, ".architecture|hopper|"));
  CHECK(contains(other, ".architecture|ampere|"));
}

TEST_CASE("presets_named: by keys, with changes, in lists, in another spelling, and in turn") {
  const auto of = [](const char* text) {
    return presets_named(nlohmann::ordered_json::parse(text), test::presets());
  };
  using Names = std::vector<NamedPreset>;
  const Names node = of(R"({"cluster": {"node": {"preset": "dgx_h100", "nics": 4}}})");
  REQUIRE(node.size() >= 2);
  CHECK(node[0] == NamedPreset{"nodes", "dgx_h100"});
  CHECK(std::ranges::count(node, NamedPreset{"gpus", "h100_sxm5_80gb"}) == 1);
  CHECK(of(R"({"model": ["llama3_8b", "Llama3-70B", "no such", 7]})") ==
        Names{{"models", "llama3_8b"}, {"models", "llama3_70b"}});
  CHECK(of(R"({"stack": "mcore"})").front().first == "stacks");
  // Neither a remark nor another key's value.
  CHECK(of(R"({"about": "x", "expect": {"model": "llama3_8b"}, "name": "llama3_8b"})").empty());
}

TEST_CASE("pages of searches, differences, plans and weeks: inputs, assumptions and sources") {
  if (!pages_can_be_made()) return;
  const test::TemporaryFolder folder;
  nlohmann::json job =
      nlohmann::json::parse(read_text_file(kScenarioFolder + "llama3-8b-b200.json"));
  job.erase("recompute");  // which is assumed then
  const std::string step = folder.write("step.json", job.dump());
  const std::vector<std::string> of_step{"Inputs", "cluster.node", "Assumed", "Sources",
                                         "hbm_bandwidth"};
  has_all(page_written({"tune", step, "--keep", "2"}), of_step);
  has_all(page_written({"tune", step, "--vary", "batch.sequences=128,256", "--keep", "1"}),
          {"What was varied", "batch.sequences", "128, 256", "Inputs", "Sources"});
  has_all(page_written({"run", step, "--vary", "cluster.node=dgx_b200,dgx_h100", "--allow-oom"}),
          {"What was varied", "dgx_b200, dgx_h100", "Inputs", "Assumed", "Sources"});
  has_all(page_written({"run", step, "--scaling", "8,16"}), of_step);
  const std::string weeks = page_written(
      {"run", step, "--scaling", "8,16", "--set", "price.usd_per_gpu_hour=2", "--set",
       R"(run={"reliability": "llama3_54_days", "duration": "5 d", "trajectories": 2})"});
  has_all(weeks, {"Strong scaling", "Weak scaling", "Goodput", "Days", "Tokens trained",
                  "Money of the run", "H100 equivalents", "Inputs", "run.reliability"});
  CHECK(weeks.find("Energy per trillion") == std::string::npos);  // nothing is said of power
  has_all(page_written({"run", kScenarioFolder + "llama3-405b-54days.json", "--trajectories", "2"}),
          {"What was simulated", "Inputs", "run.reliability", "Assumed", "Sources"});
  has_all(page_written(
              {"plan", kScenarioFolder + "plans/train-70b-15t-tokens.json", "--samples", "10"}),
          {"What was simulated", "Inputs", "limits.time", "Assumed", "Sources", "hbm_bandwidth"});

  nlohmann::json other = job;
  other["batch"]["micro"] = 1;
  has_all(page_written({"compare", step, folder.write("other.json", other.dump())}),
          {"What was compared", "Inputs", "cluster.node", "Assumed", "Sources", "hbm_bandwidth"});
  const std::string sweep = R"({"scenario": ")" + step +
                            R"(", "axes": [{"at": "/batch/micro", "values": [1, 2]}],
                                "objective": "mfu"})";
  has_all(page_written(
              {"sweep", folder.write("sweep.json", sweep), "-o", folder.path() + "/results.db"}),
          {"What was swept", "Sequences a micro batch", "1, 2", "Inputs", "Assumed", "Sources",
           "hbm_bandwidth"});
  const std::string traces = folder.path() + "/traces";
  REQUIRE(lockstep_with({"run", step, "--chakra", traces}).exit == Exit::ok);
  has_all(page_written({"replay", traces, "--node", "dgx_b200", "--fabric", "ideal"}),
          {"What was simulated", "Inputs", "cluster.nodes", "Sources", "hbm_bandwidth"});
}

TEST_CASE("pages of queues, services and RL have sources, those of the presets that they name") {
  if (!pages_can_be_made()) return;
  for (const char* name : {"queue/kueue-two-teams.json", "rl/ppo-llama3-8b-pools.json",
                           "serving/llama3-70b-h100-conversations.json"}) {
    CAPTURE(name);
    has_all(page_written({"run", kScenarioFolder + name}),
            {"What was simulated", "Inputs", "Sources", "hbm_bandwidth"});
  }
}

TEST_CASE("pages of traffic, collectives and jobs: machine, inputs and assumptions are there") {
  if (!pages_can_be_made()) return;
  has_all(page_written({"comm", kScenarioFolder + "comm/incast-32.json", "--set",
                        "cluster.fabric=fat_tree", "--set", "efficiency=0.9"}),
          {"What was simulated", "32 x dgx_h100, 1 x h100_sxm5_80gb each, 1 NIC of 50 GB/s",
           "fat_tree, spray, infiniband", "90.0 % of their rate is reached by payload",
           "traffic.0.kind", "cluster.node.preset", "cluster.fabric"});
  has_all(page_written({"comm", "--op", "all_reduce", "--sizes", "1 MiB", "--node", "dgx_h100",
                        "--nodes", "4"}),
          {"4 x dgx_h100, 8 x h100_sxm5_80gb each, 8 NICs of 50 GB/s", "Group",
           "32 GPUs: 8 in each of 4 NVLink domains, 50 GB/s of NIC each, infiniband", "Inputs",
           "cluster.node", "collective.op", "Assumed", "fabric: rail_optimised (not given)"});
  has_all(page_written({"run", kScenarioFolder + "congestion/two-jobs-one-spine.json"}),
          {"8 x dgx_h100, 8 x h100_sxm5_80gb each, 8 NICs of 50 GB/s", "Inputs",
           "cluster.fabric.leaf_oversubscription"});
  // Of both jobs what neither says: its fabric.
  has_all(page_written({"run", kScenarioFolder + "congestion/two-jobs-one-spine.json", "--set",
                        R"(cluster={"node": "dgx_h100", "nodes": 8})"}),
          {"8 x dgx_h100, 8 x h100_sxm5_80gb each, 8 NICs of 50 GB/s", "Assumed",
           "fabric: rail_optimised (not given)"});
}

TEST_CASE("pages of fabrics: of a preset the machine that it is built for, of a file its source") {
  if (!pages_can_be_made()) return;
  has_all(
      page_written({"topology", "show", "rail_optimised", "--node", "dgx_h100", "--nodes", "16"}),
      {"What was drawn", "fabric preset rail_optimised, 16 nodes of dgx_h100",
       "16 x dgx_h100, 8 x h100_sxm5_80gb each, 8 NICs of 50 GB/s",
       "rail_optimised, spray, infiniband", "Inputs", "cluster.nodes", "16"});
  const std::string of_scenario =
      page_written({"topology", "show", kScenarioFolder + "comm/incast-32.json", "--nodes", "16"});
  has_all(of_scenario, {"16 x dgx_h100, 1 x h100_sxm5_80gb each, 1 NIC of 50 GB/s",
                        "cluster.fabric.leaf_ports_down"});
  CHECK_FALSE(contains(of_scenario, ">traffic<"));  // nothing of it was read
  const std::string of_file =
      page_written({"topology", "show",
                    LOCKSTEP_SOURCE_DIR "/tests/reference/infiniband/rails4x4.ibnetdiscover"});
  has_all(of_file, {"What was drawn", "Source"});
  CHECK_FALSE(contains(of_file, ">Inputs<"));
}
