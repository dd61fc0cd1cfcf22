// `lockstep referee`: what it prints, and the page that shows it.
#include "sim/referee/referee.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/text_file.hpp"
#include "tests/support/slow_build.hpp"
#include "tests/support/source_tree.hpp"
#include "tests/tools/ran.hpp"
#include "tools/views/tables/referee_table.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

Ran referee(std::vector<std::string> args) {
  args.insert(args.begin(), "referee");
  return lockstep_with(args);
}

}  // namespace

TEST_CASE("referee: one case as table, JSON and CSV tells the same") {
  const std::vector<std::string> small{"--case", "small messages", "--layer", "credit"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), small.begin(), small.end());
    return referee(more);
  };
  const Ran table = with({});
  CHECK(table.exit == Exit::ok);
  CHECK(table.out.find("  small messages ") != std::string::npos);
  CHECK(table.out.find("28 messages of 1 case. Error of completion times: median ") !=
        std::string::npos);

  const auto json = nlohmann::json::parse(with({"--format", "json"}).out);
  REQUIRE(json.size() == 1);
  CHECK(json[0]["case"] == "small messages");
  CHECK(json[0]["layer"] == "credit");
  CHECK(json[0]["messages"] == 28);
  const double end = json[0]["packet_level_end_s"];
  // 16 KiB at 400 Gb/s take 0.33 us: with latencies and collisions a few microseconds.
  CHECK(end > 0.33e-6);
  CHECK(end < 5e-6);

  const std::string csv = with({"--format", "csv", "--messages"}).out;
  CHECK(csv.starts_with(
      "layer,case,from,to,bytes,start_s,packet_level_start_s,flow_level_end_s,packet_level_end_s,"
      "error\n"));
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 1 + 28);
  CHECK(with({"--messages"}).out.find("node 0") != std::string::npos);
}

TEST_CASE("referee: a layer or case that does not exist is named, with the nearest one") {
  const Ran layer = referee({"--layer", "credits"});
  CHECK(layer.exit == Exit::bad_input);
  CHECK(layer.err ==
        "--layer: found \"credits\"; allowed: credit, pfc, dcqcn. Did you mean credit?\n");
  const Ran of = referee({"--case", "one swich"});
  CHECK(of.exit == Exit::bad_input);
  CHECK(of.err.find("Did you mean one switch?") != std::string::npos);
  CHECK(referee({"/nowhere.json"}).exit == Exit::bad_input);
}

TEST_CASE("referee: the page shows what the program prints, and holds what the project promises" *
          doctest::skip(kSlowBuild)) {
  const std::string file = LOCKSTEP_SOURCE_DIR "/tests/reference/packet_referee.json";
  const std::vector<RefereeCase> cases = read_referee_cases(file, read_text_file(file));
  std::vector<RefereeRow> rows;
  for (const RefereeLayer& layer : referee_layers()) {
    for (const RefereeCase& of : cases) rows.push_back(run_referee(of, layer));
  }
  std::string shown;
  bool inside = false, announced = false;
  for (const std::string& line : test::source_lines("sim/packet/README.md")) {
    if (inside && line == "```") inside = false;
    if (inside) shown += line + "\n";
    if (announced && line == "```") inside = true;
    announced = line == "<!-- output of: lockstep referee -->";
  }
  CHECK(shown == referee_text(rows, "table", {}).str());

  // At most 5 % over all cases: of the messages, and of the medians of the cases.
  const RefereeSummary all = summary_of(rows);
  CHECK(all.cases >= 3 * 30);
  CHECK(all.median_of_messages < 0.05);
  CHECK(all.median_of_cases < 0.05);

  // And 6 % on each link layer, of all transfers and of collectives by themselves.
  for (const RefereeLayer& layer : referee_layers()) {
    CAPTURE(layer.name);
    std::vector<RefereeRow> of_layer, of_collectives;
    for (const RefereeRow& row : rows) {
      if (row.layer != &layer) continue;
      of_layer.push_back(row);
      if (!row.of->transfers.front().members.empty()) of_collectives.push_back(row);
    }
    CHECK(of_collectives.size() >= 20);
    CHECK(summary_of(of_layer).median_of_messages < 0.06);
    CHECK(summary_of(of_collectives).median_of_messages < 0.06);
    CHECK(summary_of(of_collectives).median_of_ends < 0.06);
  }
}
