#include "tools/views/report/page.hpp"

#include <array>
#include <doctest/doctest.h>
#include <string>

#include <nlohmann/json.hpp>

#include "tests/tools/report/contains.hpp"
using namespace lockstep;
using lockstep::test::contains;

namespace {

constexpr ChartLibrary kNoCharts{.script = "/* charts */", .licences = "Apache <2.0>"};

}  // namespace

TEST_CASE("a page stands alone: its parts are inside, and its policy lets it fetch nothing") {
  Page page("Report", "A & B");
  page.foot("how <it> was made");
  const std::string html = page.html(kNoCharts);
  CHECK(html.starts_with("<!doctype html>"));
  CHECK(contains(html, "<title>A &amp; B · Report</title>"));
  CHECK(contains(html,
                 "content=\"default-src 'none'; style-src 'unsafe-inline'; "
                 "script-src 'unsafe-inline'; img-src data:\""));
  CHECK(contains(html, "<script>/* charts */</script>"));
  CHECK(contains(html, "<pre>Apache &lt;2.0&gt;</pre>"));
  CHECK(contains(html, page_style()));
  CHECK(contains(html, page_script()));
  CHECK(contains(html, "<p>how &lt;it&gt; was made</p>"));
  CHECK_FALSE(contains(html, "src=\"http"));
}

TEST_CASE("the page's own style and script cannot end their elements") {
  CHECK_FALSE(contains(std::string(page_style()), "</style"));
  CHECK_FALSE(contains(std::string(page_script()), "</script"));
}

TEST_CASE("a table has no column in which no row has a number, but those of texts") {
  Page page("Report", "T");
  page.table({.columns = {{.title = "Name"},
                          {.title = "Price", .numeric = true},
                          {.title = "Time", .numeric = true},
                          {.title = "Note"}},
              .rows = {{PageCell::text("a"), PageCell::unknown(), PageCell::number("2 s", 2),
                        PageCell::unknown()},
                       {PageCell::text("b"), PageCell::unknown(), PageCell::unknown(),
                        PageCell::unknown()}},
              .sorted_by = 2});
  const std::string html = page.html(kNoCharts);
  CHECK_FALSE(contains(html, "Price"));
  CHECK(contains(html, "Name"));
  CHECK(contains(html, "Note"));
  CHECK(contains(html, "2\u00a0s"));
  const std::size_t sorted = html.find("aria-sort=\"descending\"");
  REQUIRE(sorted != std::string::npos);
  CHECK(html.substr(sorted, html.find("</th>", sorted) - sorted).find("Time") != std::string::npos);
}

TEST_CASE("sections open and close in turn") {
  Page page("Report", "T");
  page.about("<about>");
  page.headline(escaped("h"));
  page.section("One", "lead");
  page.section("Two");
  page.list(std::array<std::string, 1>{"<note>"});
  CHECK(contains(page.html(kNoCharts), R"(<main>
<header>
<p class="kind">Report</p>
<h1>T</h1>
<p class="about">&lt;about&gt;</p>
<p class="headline">h</p>
</header>
<section>
<h2>One</h2>
<p class="lead">lead</p>
</section>
<section>
<h2>Two</h2>
<ul>
<li>&lt;note&gt;</li>
</ul>
</section>
</main>
)"));
}

TEST_CASE("a page's sentences mark commands as code, wherever they stand") {
  Page page("Report", "T");
  page.about("`a`");
  page.section("One", "`b`");
  page.list(std::array<std::string, 1>{"`c`"});
  page.chart({.title = "C", .about = "`d`", .summary = "s"}, nlohmann::json::object());
  page.picture({.title = "P", .about = "`e`", .summary = "s"}, Html{}, 1);
  page.foot("`f`");
  page.paragraph(with_detail(escaped("x"), "`g`"));
  const std::string html = page.html(kNoCharts);
  for (const char* word : {"a", "b", "c", "d", "e", "f", "g"}) {
    CAPTURE(word);
    CHECK(contains(html, "<code>" + std::string(word) + "</code>"));
  }
}

TEST_CASE("a table sorts by its numbers, not by how they are written") {
  Page page("Report", "T");
  page.table({.columns = {{.title = "Name"},
                          {.title = "Time", .numeric = true, .about = "of \"one\" run"}},
              .rows = {{PageCell::text("<a>"), PageCell::number("1.50 ms", 1.5e-3)},
                       {{.content = coloured_name("b", 99)}, PageCell::text("–")}},
              .first_rows = 1,
              .sorted_by = 1});
  const std::string html = page.html(kNoCharts);
  CHECK(contains(html,
                 "<table data-first=\"1\">\n<thead><tr>\n<th scope=\"col\"><button "
                 "type=\"button\">Name</button></th>\n"));
  CHECK(contains(html,
                 "<th scope=\"col\" class=\"number\" aria-sort=\"descending\" "
                 "title=\"of &quot;one&quot; run\"><button type=\"button\">Time"));
  CHECK(contains(html,
                 "<tr><td>&lt;a&gt;</td>"
                 "<td class=\"number\" data-sort=\"0.0015\">1.50\u00a0ms</td></tr>\n"));
  CHECK(contains(html,
                 "<tr><td><span class=\"key\" style=\"--key:var(--colour-8)\"></span>b</td>"
                 "<td class=\"number\">–</td></tr>\n</tbody></table></div>\n"));
}

TEST_CASE("a chart's options stand beside it as JSON that parses back") {
  const nlohmann::json options{{"series", {{{"name", "</script>"}, {"data", {1, 2}}}}}};
  Page page("Report", "T");
  page.chart({.title = "First", .about = {}, .summary = "s"}, nlohmann::json::object());
  page.chart({.title = "<Second>", .about = "a", .summary = "\"s\"", .height_px = 99}, options);
  const std::string html = page.html(kNoCharts);
  CHECK(contains(html, "<h3>&lt;Second&gt;</h3><p>a</p>"));
  CHECK(contains(html,
                 "data-chart=\"chart-2\" style=\"height:99px\" role=\"img\" "
                 "aria-label=\"&quot;s&quot;\""));
  const std::string opening = "<script type=\"application/json\" id=\"chart-2\">";
  const std::size_t begin = html.find(opening) + opening.size();
  const std::size_t end = html.find("</script>", begin);
  REQUIRE(end != std::string::npos);
  CHECK(nlohmann::json::parse(html.substr(begin, end - begin)) == options);
}

TEST_CASE("a bar stays within its cell") {
  CHECK(with_bar("x", 0.25).str() == "x<span class=\"bar\"><i style=\"width:25.0%\"></i></span>");
  CHECK(contains(with_bar("x", 7).str(), "width:100.0%"));
  CHECK(contains(with_bar("x", -1).str(), "width:0.0%"));
}
