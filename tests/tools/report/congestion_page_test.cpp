#include "tools/views/report/congestion_page.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <regex>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/sample_reports.hpp"
#include "tests/tools/report/contains.hpp"
#include "tools/views/report/congestion_charts.hpp"
#include "tools/views/report/congestion_words.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"

using namespace lockstep;
using lockstep::test::charts_of;
using lockstep::test::contains;
using nlohmann::json;

namespace {

std::string page_of(const CongestionReport& report) {
  Page page("Congestion report", report.title);
  add_congestion_headline(page, report);
  add_congestion_sections(page, report);
  return page.html({.script = "", .licences = ""});
}

/// The headline without its tags, its spaces plain ones.
std::string headline_of(const CongestionReport& report) {
  std::string text =
      std::regex_replace(congestion_headline(report).str(), std::regex("<[^>]*>"), "");
  return std::regex_replace(text, std::regex("\u00a0"), " ");
}

}  // namespace

TEST_CASE("congestion headline: who is slowed most, by how much, where and by whom") {
  CongestionReport report;
  report.jobs = {{"a", "", 1.1, 1, 0}, {"b", "", 3, 2, 0}};
  report.links = {{.name = "leaf 2 to spine 0",
                   .capacity_bytes_per_s = 50e9,
                   .mean_utilisation = 0.9,
                   .peak_utilisation = 1,
                   .utilisation = {0.9F},
                   .bytes_by_job = {1, 2}}};
  TransferCongestion less;
  less.job = "b", less.name = "small";
  less.alone_s = 0.1, less.mean_s = 0.5, less.worst_link = 0;
  TransferCongestion more;
  more.job = "b", more.name = "gradients", more.runs = 10;
  more.alone_s = 0.1, more.mean_s = 0.2, more.worst_link = 0, more.worst_link_share = 0.62;
  more.cause = "a: flow 3", more.cause_share = 0.55;
  report.transfers = {less, more};  // 0.4 s lost in one run, 1 s in ten
  CHECK(headline_of(report) ==
        "b is slowed most: it takes 3.00 s instead of 2.00 s, 1.50 times as long as alone. Its "
        "gradients loses most, held back on leaf 2 to spine 0 for 62 % of its time, mostly by a: "
        "flow 3, whose bytes were 55 % of those that crossed it meanwhile.");
}

TEST_CASE("congestion headline: a slowdown is one from 0.5 % on") {
  CongestionReport report = test::calm_report();
  CHECK(headline_of(report) ==
        "No job is slowed: each takes as long with the others as alone. The fullest link is node 0 "
        "to leaf 0, 100 % used on average and 100 % at its peak.");
  report.jobs[0].step_s = 1.004 * report.jobs[0].alone_s;
  CHECK(headline_of(report).starts_with("No job is slowed"));
  report.jobs[0].step_s = 1.006 * report.jobs[0].alone_s;
  CHECK(headline_of(report).starts_with("left is slowed most"));
}

TEST_CASE("congestion headline: transfers can be slowed though their job is not") {
  CongestionReport report = test::calm_report();
  report.transfers.resize(1);
  report.transfers[0].job = "left", report.transfers[0].name = "ring";
  report.transfers[0].alone_s = 1, report.transfers[0].mean_s = 1.8;
  CHECK(
      contains(headline_of(report),
               "The most slowed transfer is ring of left: 1.80 times as long as with its links to "
               "itself, though its job takes no longer."));
  for (JobCongestion& job : report.jobs) job.alone_s = 0;  // not asked for
  CHECK_FALSE(contains(headline_of(report), "No job is slowed"));
}

TEST_CASE("congestion page: nothing at all is a page, too") {
  const std::string html = page_of({});
  CHECK(contains(html, "Nothing crossed the fabric."));
  CHECK(charts_of(html).empty());
  CHECK_FALSE(contains(html, "<table"));
}

TEST_CASE("congestion page: the same report gives the same bytes") {
  CHECK(page_of(test::busy_report()) == page_of(test::busy_report()));
}

TEST_CASE(
    "congestion page: 4,000 links, 3,000 bins and 1,000 transfers are thinned, and said to be") {
  const std::string html = page_of(test::large_report(12, 4000, 3000, 1000));
  CHECK(contains(html, "Use of the 40 fullest of 4,000 links over time"));
  CHECK(contains(html, "The 50 most slowed of 1,000."));
  CHECK(contains(html, "of 3,000 bins of"));
  const std::vector<json> charts = charts_of(html);
  // Beside the fullest, closely, the one that the headline names, which is none of them.
  REQUIRE(charts.size() == 2 + kLineLinks + 1);
  const json& heat = charts.front();
  CHECK(heat["yAxis"]["data"].size() == kHeatMapLinks);
  CHECK(heat["xAxis"]["data"].size() <= kHeatMapColumns);
  CHECK(heat["series"][0]["data"].size() <= kHeatMapLinks * kHeatMapColumns);
  CHECK(charts[1]["series"][0]["data"].size() <= kLinePoints + 1);
  // Eight jobs have a colour of their own; the ninth series is all others.
  const json& bars = charts.back();
  REQUIRE(bars["series"].size() == kPageColours + 1);
  CHECK(bars["series"].back()["name"] == "all other jobs");
  CHECK(html.size() < 600'000);
}

TEST_CASE("fullest rows: links with the same figures share one, the headline's is always there") {
  CongestionReport report;
  for (int i = 0; i < 8; ++i) {
    report.links.push_back({.name = fmt::format("leaf {}", i),
                            .capacity_bytes_per_s = 50e9,
                            .mean_utilisation = i < 3 ? 0.9 : 0.8 - i / 100.0,
                            .peak_utilisation = 1,
                            .utilisation = {0.9F},
                            .bytes_by_job = {1}});
  }
  report.links_used = 8;
  const auto names = [&](std::size_t most) {
    std::vector<std::string> out;
    for (const LinkRow& row : fullest_rows(report, most)) out.push_back(row.name);
    return out;
  };
  CHECK(names(3) == std::vector<std::string>{"leaf 0 (3 alike)", "leaf 3", "leaf 4"});
  TransferCongestion transfer;
  transfer.job = "a", transfer.alone_s = 1, transfer.mean_s = 2, transfer.worst_link = 6;
  report.transfers = {transfer};
  CHECK(names(3) == std::vector<std::string>{"leaf 0 (3 alike)", "leaf 3", "leaf 4", "leaf 6"});
  report.transfers[0].worst_link = 2;
  CHECK(names(3) == std::vector<std::string>{"leaf 2 (3 alike)", "leaf 3", "leaf 4"});
  // Where links are not listed any more, some may be like the last that is.
  report.links.resize(3);
  CHECK(names(3) == std::vector<std::string>{"leaf 2 (at least 3 alike)"});
}

TEST_CASE("congestion page: names are text wherever they stand") {
  const std::string html = page_of(test::large_report(4, 3, 2, 5));
  CHECK_FALSE(contains(html, "</script><b>"));
  CHECK(contains(html, "<li>Note &lt;/script&gt;&lt;b&gt;&amp;&quot;&#39;</li>"));
  CHECK(charts_of(html).size() == 5);
}

TEST_CASE("congestion page: one bin on one link draws a line from start to end") {
  const std::vector<json> charts = charts_of(page_of(test::calm_report()));
  REQUIRE(charts.size() == 4);
  CHECK_FALSE(charts[0].contains("dataZoom"));
  CHECK(charts[0]["series"][0]["data"] == json({{0, 0, 100.0}, {0, 1, 80.0}}));
  CHECK(charts[1]["series"][0]["data"] == json({{0.0, 100.0}, {250.0, 100.0}}));
  CHECK(charts[1]["xAxis"]["axisLabel"]["formatter"] == "{value} µs");
}

TEST_CASE("congestion page: bars hold every byte of the links they show") {
  const CongestionReport report = test::large_report(20, 3, 1, 0);
  const json bars = charts_of(page_of(report)).back();
  for (std::size_t link = 0; link < 3; ++link) {
    double shown = 0, carried = 0;
    for (const json& series : bars["series"]) shown += series["data"][link].get<double>();
    for (const double bytes : report.links[link].bytes_by_job) carried += bytes;
    // Shown in GB with four digits each.
    CHECK(shown * 1e9 / carried == doctest::Approx(1).epsilon(1e-3));
  }
}

TEST_CASE("job colours: places while they last, then those with most bytes") {
  std::vector<JobCongestion> jobs(kPageColours);
  CHECK(job_colours(jobs).back() == kPageColours - 1);
  jobs.resize(kPageColours + 2);
  jobs.back().bytes = 9;
  const std::vector<std::size_t> colours = job_colours(jobs);
  CHECK(colours.back() == 0);
  CHECK(colours.front() == 1);
  CHECK(colours[kPageColours] == kPageColours);
}

TEST_CASE(
    "congestion page: the fabric's picture has every line of its table, and marks what is dead") {
  const CongestionReport report = test::busy_report();
  REQUIRE(report.use);
  const std::string html = page_of(report);
  const json picture = charts_of(html).front();
  const auto series = [&](const char* name) {
    std::size_t points = 0;
    for (const json& each : picture["series"]) {
      if (each["name"] == name) points += each["data"].size();
    }
    return points;
  };
  CHECK(series("use") + series("faults") == report.use->lines.size());
  CHECK(series("faults") == 3);
  CHECK(series("boxes") == report.use->boxes.size());
  std::size_t rows = 0;
  for (const FabricUse::Line& line : report.use->lines) {
    const std::string ends =
        report.use->boxes[line.lower].name + " – " + report.use->boxes[line.upper].name;
    rows += contains(html, ends) ? 1 : 0;
  }
  CHECK(rows == report.use->lines.size());
  // Lines that print alike share a row of the table.
  const std::size_t table = html.find("<tbody>", html.find(">Between</button>"));
  const std::string cells = html.substr(table, html.find("</tbody>", table) - table);
  std::size_t of_table = 0;
  for (std::size_t at = cells.find("<tr"); at != std::string::npos;
       at = cells.find("<tr", at + 1)) {
    const std::size_t alike = cells.find(" alike)", at);
    const bool shared = alike < cells.find("</tr>", at);
    of_table += shared ? std::stoul(cells.substr(cells.rfind('(', alike) + 1)) : 1;
  }
  CHECK(of_table == report.use->lines.size());
  CHECK(contains(html, "× is dead, ½ degraded, ! failed for a time."));
}
