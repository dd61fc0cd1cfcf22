#include "tools/views/run/schedule_svg.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <string_view>

#include <pugixml.hpp>

#include "models/base/text_file.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/step/step.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

using namespace lockstep;

namespace {

// Four stages of two replicas, eight micro batches each where nothing else is said.
StepReport step_to_draw(std::string_view schedule, int micro_batches = 8) {
  const PresetStore presets;
  const Scenario scenario = read_scenario("small.json",
                                          fmt::format(R"({{
    "model": "megatron_1_7b",
    "cluster": {{"node": "dgx_a100_80gb", "nodes": 1}},
    "parallelism": {{"pipeline": 4, "data": 2, "schedule": "{}"}},
    "batch": {{"sequences": {}, "tokens": 2048}}}})",
                                                      schedule, 2 * micro_batches),
                                          presets);
  return simulate_step(scenario, {.record_timeline = true, .keep_actors = true});
}

struct DrawnSchedule {
  std::size_t passes = 0, numbers = 0, ranks = 0;
};
DrawnSchedule drawn_schedule(const std::string& svg) {
  pugi::xml_document document;
  REQUIRE(document.load_string(svg.c_str()));
  DrawnSchedule out;
  for (const pugi::xpath_node& node : document.select_nodes("//path[@fill]")) {
    const std::string_view path = node.node().attribute("d").value();
    out.passes += static_cast<std::size_t>(std::ranges::count(path, 'M'));
  }
  out.numbers = document.select_nodes("//g/text").size();
  for (const pugi::xpath_node& node : document.select_nodes("//text")) {
    out.ranks += std::string_view(node.node().child_value()).starts_with("stage ") ? 1U : 0U;
  }
  return out;
}

}  // namespace

TEST_CASE("schedule drawing: every pass of one replica, and its optimiser, once") {
  // Ranks x micro batches x passes of each, and an optimiser a rank.
  const DrawnSchedule plain = drawn_schedule(schedule_svg(step_to_draw("1f1b"), "plain"));
  CHECK(plain.ranks == 4);
  CHECK(plain.passes == 4 * 8 * 2 + 4);
  CHECK(plain.numbers == 4 * 8 * 2);
  const DrawnSchedule split = drawn_schedule(schedule_svg(step_to_draw("zb_h1"), "split"));
  CHECK(split.passes == 4 * 8 * 3 + 4);
  // Two chunks of each micro batch.
  CHECK(drawn_schedule(schedule_svg(step_to_draw("zb_v"), "V")).passes == 4 * 8 * 2 * 3 + 4);
}

TEST_CASE("schedule drawing: passes that are alike are numbered all, or none of them") {
  std::size_t shown = 0, small = 0;
  for (const int micro_batches : {8, 12, 24, 34, 40, 60, 110, 400}) {
    CAPTURE(micro_batches);
    pugi::xml_document document;
    const std::string svg = schedule_svg(step_to_draw("1f1b", micro_batches), "1f1b");
    REQUIRE(document.load_string(svg.c_str()));
    const auto count = [&](int number) {
      const std::string path = fmt::format("//g/text[.='{}']", number);
      return document.select_nodes(path.c_str()).size();
    };
    CHECK(count(micro_batches - 1) == count(0));
    CHECK(count(micro_batches / 2) == count(0));
    shown += count(0);
    small += document.select_nodes("//g/text[@font-size]").size();
  }
  CHECK(shown > 4 * 2 * 2);
  CHECK(small > 0);
  CHECK(drawn_schedule(schedule_svg(step_to_draw("1f1b", 400), "many")).numbers == 0);
}

TEST_CASE("schedule drawing: a file of its own has the title that the page's has") {
  const test::TemporaryFolder folder;
  const std::string svg = folder.path() + "/s.svg", page = folder.path() + "/s.html";
  const test::Ran ran =
      test::lockstep_with({"run", LOCKSTEP_SOURCE_DIR "/scenarios/llama3-8b-b200.json", "--svg",
                           svg, "--report", page});
  CHECK_MESSAGE(ran.exit == Exit::ok, ran.err);
  pugi::xml_document document;
  REQUIRE(document.load_file(svg.c_str()));
  const std::string title = document.child("svg").child_value("title");
  CHECK(title.starts_with("llama3_8b on 8 GPUs: "));
  CHECK(read_text_file(page).find("<title>" + title + "</title>") != std::string::npos);
}

TEST_CASE("schedule drawing: says what is drawn, whatever it is called") {
  const StepReport report = step_to_draw("dualpipe");
  pugi::xml_document document;
  REQUIRE(document.load_string(schedule_svg(report, "a <b> & c").c_str()));
  CHECK(std::string_view(document.child("svg").child_value("title")) == "a <b> & c");
  const std::string svg = schedule_svg(report, "dualpipe");
  for (const std::string_view kind :
       {"forward", "backward", "input gradients", "weight gradients", "paler: odd chunks"}) {
    CAPTURE(kind);
    CHECK(svg.find(fmt::format(">{}</text>", kind)) != std::string::npos);
  }
}
