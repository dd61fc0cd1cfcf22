#include "tools/views/vary/vary_page.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <tuple>
#include <vector>

#include "sim/search/ask.hpp"
#include "tests/support/near.hpp"
#include "tests/support/presets.hpp"
#include "tools/console/options.hpp"
#include "tools/views/report/assets.hpp"
#include "tools/views/report/page_numbers.hpp"
#include "tools/views/vary/advice_table.hpp"
#include "tools/views/vary/shown_numbers.hpp"

namespace lockstep {
namespace {

bool draws_charts() {
  try {
    (void)chart_library();
    return true;
  } catch (const UsageError& error) {
    MESSAGE(error.what());
    return false;
  }
}

nlohmann::ordered_json at_largest(const std::string& op, double time_s) {
  return {{"op", op}, {"size_bytes", 1e9}, {"time_s", time_s}, {"busbw_bytes_per_s", 1e11}};
}

VariedPoint of_two_ops(const std::string& value, double sum_s, double exchange_s) {
  return {.values = {value},
          .answer = {{"largest_time_s", sum_s},
                     {"operations",
                      {at_largest("all_reduce", sum_s), at_largest("all_to_all", exchange_s)}}}};
}

TEST_CASE("what-if: errors that differ in numbers alone are one, with their points by name") {
  const auto failed = [](const char* tensor, const char* micro, const char* error) {
    return VariedPoint{.values = {tensor, micro}, .error = error};
  };
  const Varied varied{.file = "s.json",
                      .axes = {{"parallelism.tensor", {"1", "2"}}, {"batch.micro", {"3", "5"}}},
                      .points = {failed("1", "3", "no layout; allowed: 1,023 or 1026"),
                                 failed("1", "5", "no layout; allowed: 1020 or 1,025"),
                                 failed("2", "3", "no heads"),
                                 failed("2", "5", "no heads"),
                                 {.values = {"2", "1"}, .answer = {{"step_s", 1.0}}},
                                 failed("4", "3", "no memory")}};
  CHECK(missing_points(varied) ==
        std::vector<std::string>{
            "2 points, parallelism.tensor = 1, batch.micro = 3 and 1 more; of the first: "
            "no layout; allowed: 1,023 or 1026",
            "2 points, parallelism.tensor = 2, batch.micro = 3 and 1 more: no heads",
            "parallelism.tensor = 4, batch.micro = 3: no memory"});
}

TEST_CASE("what-if page: operations are compared with themselves, each with its own best value") {
  if (!draws_charts()) return;
  const Varied varied{.file = "c.json",
                      .axes = {{"cluster.nodes", {"4", "8", "nine"}}},
                      .points = {of_two_ops("4", 0.003, 0.007),
                                 of_two_ops("8", 0.005, 0.006),
                                 {.values = {"nine"}, .error = "no number"}}};
  const std::string page = vary_page(varied);
  const auto says = [&page](const std::string& words) {
    return page.find(words) != std::string::npos;
  };
  CHECK(
      says("<strong>4</strong> has the shortest time of the largest size of the 2 of 3 points "
           "that have an answer for all_reduce: " +
           page_duration(0.003)));
  CHECK(
      says("<strong>8</strong> has the shortest time of the largest size of the 2 of 3 points "
           "that have an answer for all_to_all: " +
           page_duration(0.006)));
  CHECK(says("All points: all_reduce"));
  CHECK(says("All points: all_to_all"));
  CHECK(says("Over cluster.nodes: all_to_all"));
  CHECK(says("all_to_all of 1 GB"));
  CHECK(says("cluster.nodes = nine: no number"));
}

TEST_CASE("what-if page: a line joins amounts, and no names") {
  if (!draws_charts()) return;
  const auto joins = [](const std::string& one, const std::string& two) {
    const nlohmann::ordered_json fast{{"step_s", 1.0}}, slow{{"step_s", 2.0}};
    const std::string page = vary_page(
        {.file = "s.json",
         .axes = {{"x", {one, two}}},
         .points = {{.values = {one}, .answer = fast}, {.values = {two}, .answer = slow}}});
    const bool line = page.find(R"("@colour-0","width":2})") != std::string::npos;
    CHECK(line != (page.find(R"("@colour-0","width":0})") != std::string::npos));
    return line;
  };
  CHECK(joins("1", "16"));
  CHECK(joins("-0.5", ".5"));
  CHECK(joins("64 GiB", "2 TiB"));
  CHECK_FALSE(joins("dgx_h100", "dgx_b200"));
  CHECK_FALSE(joins("true", "false"));
}

TEST_CASE("what-if page: a line over two keys says which key its value is of") {
  if (!draws_charts()) return;
  const nlohmann::ordered_json fast{{"step_s", 1.0}}, slow{{"step_s", 2.0}};
  const std::string page = vary_page(
      {.file = "s.json",
       .axes = {{"cluster.nodes", {"1", "2"}}, {"batch.micro", {"4"}}},
       .points = {{.values = {"1", "4"}, .answer = slow}, {.values = {"2", "4"}, .answer = fast}}});
  CHECK(page.find(R"("name":"micro 4")") != std::string::npos);
}

TEST_CASE("what-if page: what is about different sizes has no best, other numbers name theirs") {
  if (!draws_charts()) return;
  const auto page_of = [](const nlohmann::ordered_json& one, const nlohmann::ordered_json& two) {
    return vary_page(
        {.file = "c.json",
         .axes = {{"x", {"1", "2"}}},
         .points = {{.values = {"1"}, .answer = one}, {.values = {"2"}, .answer = two}}});
  };
  const auto has = [](const std::string& page, const std::string& words) {
    return page.find(words) != std::string::npos;
  };
  const std::string sizes =
      page_of({{"size_bytes", 1e6}, {"time_s", 0.001}}, {{"size_bytes", 1e9}, {"time_s", 0.1}});
  CHECK(has(sizes, "The points are about different sizes: none is the best."));
  CHECK_FALSE(has(sizes, "the shortest time"));
  CHECK(has(page_of({{"mfu", 0.3}}, {{"mfu", 0.4}}),
            "<strong>2</strong> has the highest MFU of 2 points: " + page_percent(0.4, 1)));
  CHECK(has(page_of({{"price_usd", 3e6}}, {{"price_usd", 4e6}}),
            "<strong>1</strong> has the lowest price of 2 points: " + page_usd(3e6)));
}

TEST_CASE("what-if: layouts that differ in their virtual stages alone do not read alike") {
  const auto layout = [](int chunks) {
    return layout_words(
        {.values = {"1"},
         .answer = {
             {"scenario",
              {{"parallelism",
                {{"tensor", 4}, {"pipeline", 8}, {"data", 1}, {"virtual_stages", chunks}}}}}}});
  };
  CHECK(layout(1) == "TP 4 PP 8");
  CHECK(layout(2) == "TP 4 PP 8x2");
}

TEST_CASE("what-if page: points that print as the best does are named beside it") {
  if (!draws_charts()) return;
  const auto headline = [](const std::vector<double>& steps) {
    Varied varied{.file = "s.json", .axes = {{"x", {}}}, .points = {}};
    for (std::size_t i = 0; i < steps.size(); ++i) {
      varied.axes[0].values.push_back(std::to_string(i));
      varied.points.push_back({.values = {std::to_string(i)}, .answer = {{"step_s", steps[i]}}});
    }
    return vary_page(varied);
  };
  const auto has = [](const std::string& page, const std::string& words) {
    return page.find(words) != std::string::npos;
  };
  const std::string best = "<strong>1</strong> has the shortest step time of ";
  CHECK(has(headline({3, 1, 2}), best + "3 points: " + page_duration(1) + "."));
  CHECK(has(headline({1.00001, 1, 2}), best + "3 points: " + page_duration(1) +
                                           "; as printed, so has x = <strong>0</strong>."));
  CHECK(has(headline({1.00001, 1, 2, 1.00002}),
            "so has x = <strong>0</strong>, and x = <strong>3</strong>."));
  CHECK(has(headline({1.00001, 1, 2, 1.00002, 1.00003, 1.00001}),
            page_duration(1) + "; 4 others are printed alike."));
}

TEST_CASE("what-if page: of several numbers each has its name at its bar") {
  if (!draws_charts()) return;
  const std::string page =
      vary_page({.file = "s.json",
                 .axes = {{"job.parallelism.tensor", {"8"}}, {"cluster.gpu", {"h100", "b200"}}},
                 .points = {{.values = {"8", "h100"}, .answer = {{"step_s", 2.0}}},
                            {.values = {"8", "b200"}, .answer = {{"step_s", 1.0}}}}});
  CHECK(page.find("\"tensor 8, h100\"") != std::string::npos);
  CHECK(page.find("\"tensor 8, b200\"") != std::string::npos);
}

TEST_CASE("what-if: of few runs an interval of goodput is no wider than a share can be") {
  for (const auto& [goodput, low, high] :
       {std::tuple{0.002, 0.0, 0.012}, std::tuple{0.995, 0.985, 1.0}}) {
    const VariedPoint point{.values = {"1"},
                            .answer = {{"goodput", goodput}, {"goodput_half_width_95", 0.01}}};
    const auto interval = interval_at_point(point, *shown_number("goodput"));
    REQUIRE(interval);
    CHECK(interval->low == test::near(low));
    CHECK(interval->high == test::near(high));
  }
}

TEST_CASE("what-if page: inputs on which points differ are each point's own") {
  const auto point = [](const std::string& node, int tensor) {
    return VariedPoint{.values = {node},
                       .answer = {{"step_s", 1.0},
                                  {"scenario",
                                   {{"cluster", {{"node", node}, {"nodes", 8}}},
                                    {"parallelism", {{"tensor", tensor}, {"pipeline", 2}}}}}}};
  };
  const Varied varied{.file = "c.json",
                      .axes = {{"cluster.node", {"dgx_h100", "dgx_b200"}}},
                      .points = {point("dgx_h100", 8), point("dgx_b200", 4)}};
  const AnswerBasis basis = varied_basis(varied, nullptr, test::presets());
  REQUIRE(basis.written);
  const nlohmann::ordered_json& written = *basis.written;
  CHECK(written["parallelism"]["tensor"] == "per point: 8, 4");
  CHECK(written["parallelism"]["pipeline"] == 2);
  CHECK(written["cluster"]["node"] == nlohmann::ordered_json({"dgx_h100", "dgx_b200"}));
  CHECK(written["cluster"]["nodes"] == 8);
}

TEST_CASE("what-if page: what a question assumed stands there once, as far as points agree on it") {
  if (!draws_charts()) return;
  const auto point = [](const std::string& nodes, const std::string& layout) {
    return VariedPoint{
        .values = {nodes},
        .answer = {{"step_s", 1.0},
                   {"scenario", {{"about", "Asked here. Assumed: 8 sequences. " + layout}}}}};
  };
  const Varied varied{.file = std::string(kAskedFile),
                      .axes = {{"cluster.nodes", {"8", "16", "32"}}},
                      .points = {point("8", "It is the fastest."), point("16", "It is near."),
                                 point("32", "It is near.")}};
  const std::string html = vary_page(varied, varied_basis(varied, nullptr, test::presets()));
  CHECK(html.find("<p class=\"about\">Asked here. Assumed: 8 sequences.</p>") != html.npos);
}

TEST_CASE("what-if: of a question each way in which a layout was chosen is said, once") {
  const auto point = [](const std::string& nodes, const std::string& chosen) {
    const std::string about = fmt::format("Asked. {}{} that fits.", kLayoutIs, chosen);
    return VariedPoint{
        .values = {nodes},
        .answer = {{"step_s", 1.0},
                   {"scenario",
                    {{"about", about}, {"model", "m"}, {"cluster", {{"node", "n" + nodes}}}}}}};
  };
  Varied varied{.file = std::string(kAskedFile),
                .axes = {{"cluster.nodes", {"8", "16", "32"}}},
                .points = {point("8", "the fastest"), point("16", "near"), point("32", "near")}};
  CHECK(varied_about(varied) ==
        "Asked. Each point has a layout of its own: the fastest that fits, or near that fits.");
  // A title names what all points have.
  CHECK(varied_subject(varied) == "m, with other values of cluster.nodes");
  for (VariedPoint& each : varied.points) each.answer["scenario"]["cluster"]["node"] = "n";
  CHECK(varied_subject(varied) == "m on n, with other values of cluster.nodes");
  varied.points.pop_back();
  varied.points.pop_back();
  CHECK(varied_about(varied) ==
        "Asked. Each point has a layout of its own: the fastest that fits.");
}

TEST_CASE("what-if page: sources are of assumed presets too") {
  const std::string text = R"({"model": "llama3_8b", "cluster": {"node": "dgx_h100", "nodes": 2},
      "batch": {"sequences": 32, "tokens": 4096}, "parallelism": {"data": 16}})";
  const Varied varied{
      .file = "s.json",
      .axes = {{"batch.micro", {"1"}}},
      .points = {{.values = {"1"},
                  .answer = {{"step_s", 1.0}, {"scenario", nlohmann::ordered_json::parse(text)}}}}};
  const AnswerBasis basis = varied_basis(varied, nullptr, test::presets());
  const auto has = [&](const std::string& kind) {
    return std::ranges::find(basis.named, kind, &NamedPreset::first) != basis.named.end();
  };
  for (const char* const kind : {"models", "nodes", "fabrics", "stacks", "transports"}) {
    CHECK_MESSAGE(has(kind), kind);
  }
}

TEST_CASE("advice: why a change cannot be is told without the file and the option that tried it") {
  const auto words = [](const std::string& why) {
    return refusal_words({.change = {}, .why = why}, "my.json");
  };
  CHECK(words("my.json#/parallelism/tensor: found 16 (--set parallelism={\"tensor\":16}); allowed: "
              "a divisor of 8/2") == "parallelism.tensor: found 16; allowed: a divisor of 8/2");
  CHECK(words("my.json: found a job that needs 107 GiB; allowed: at most 77.6 GiB (--allow-oom "
              "predicts anyway)") == "found a job that needs 107 GiB; allowed: at most 77.6 GiB");
}

TEST_CASE("what-if page: every number that has an interval shows it, in its own words") {
  if (!draws_charts()) return;
  const auto point = [](const std::string& value, double goodput, double tpot) {
    return VariedPoint{.values = {value},
                       .answer = {{"goodput", goodput},
                                  {"goodput_half_width_95", 0.01},
                                  {"tpot_mean_s", tpot},
                                  {"interval", {{"tpot_low_s", tpot / 2}, {"tpot_high_s", 3.0}}}}};
  };
  const std::string page = vary_page({.file = "c.json",
                                      .axes = {{"x", {"1", "2"}}},
                                      .points = {point("1", 0.9, 0.5), point("2", 0.8, 0.25)}});
  const auto has = [&page](const std::string& words) {
    return page.find(words) != std::string::npos;
  };
  CHECK(has("<strong>1</strong> has the highest goodput of 2 points"));
  CHECK(has("95\u00a0% interval"));
  CHECK(has(page_percent(0.89, 2) + " to " + page_percent(0.91, 2)));
  CHECK(has("90\u00a0% interval"));
  CHECK(has(page_duration(0.125) + " to " + page_duration(3)));
}

}  // namespace
}  // namespace lockstep
