#include "tools/views/report/html.hpp"

#include <doctest/doctest.h>
#include <string>

#include <nlohmann/json.hpp>

using namespace lockstep;

TEST_CASE("escaped text cannot end a tag, an attribute or an entity") {
  CHECK(escaped("a < b & \"c\" > 'd'").str() == "a &lt; b &amp; &quot;c&quot; &gt; &#39;d&#39;");
  CHECK(escaped("leaf 2 · spine 0").str() == "leaf\u00a02 · spine\u00a00");
  CHECK(escaped("").empty());
  CHECK(strong("<b>").str() == "<strong>&lt;b&gt;</strong>");
}

TEST_CASE("escaped text: numbers stay with what they number, and have a sign for minus") {
  CHECK(escaped("group 0, leaf x").str() == "group\u00a00, leaf x");
  CHECK(escaped("± 5 %").str() == "±\u00a05\u00a0%");
  CHECK(escaped("-3.1 % (-4 to 5)").str() == "−3.1\u00a0% (−4 to 5)");
  CHECK(escaped("--set a=-1, 2026-11-29, x-2").str() == "--set a=-1, 2026-11-29, x-2");
}

TEST_CASE("escaped text shows what a reader would not see, and keeps its lines") {
  CHECK(escaped("\033[31m\a").str() == "\\x1b[31m\\x07");
  CHECK(escaped("\u202egpj.exe\u200b").str() == "\\u202egpj.exe\\u200b");
  CHECK(escaped("a\n\tb").str() == "a\n\tb");
}

TEST_CASE("prose shows what backticks mark as code, and a backtick alone as it is") {
  CHECK(prose("`run --x <f>` & `b`.").str() ==
        "<code>run --x &lt;f&gt;</code> &amp; <code>b</code>.");
  CHECK(prose("a ` b").str() == "a ` b");
  CHECK(prose("`a` b `").str() == "<code>a</code> b `");
  CHECK(prose("").empty());
}

TEST_CASE("prose has the sign for microseconds, where a number stands before them") {
  CHECK(prose("223 us against 510 us").str() == "223\u00a0µs against 510\u00a0µs");
  CHECK(prose("5 us, 6 us/MB (7 us)").str() == "5\u00a0µs, 6 µs/MB (7\u00a0µs)");
  CHECK(prose("let us see: 5 uses, us, 5 us2").str() == "let us see: 5 uses, us, 5 us2");
  CHECK(prose("`--jitter 5 us`: 5 us").str() == "<code>--jitter 5 us</code>: 5\u00a0µs");
}

TEST_CASE("no line ends between a number and its unit, but in what is to be copied") {
  CHECK(escaped("90 % of 118 M USD (30 min), 2 of 5 nodes").str() ==
        "90\u00a0% of 118\u00a0M\u00a0USD (30\u00a0min), 2 of 5 nodes");
  CHECK(escaped("8 H100, TP 8 s4, 3 Tb").str() == "8 H100, TP 8 s4, 3 Tb");
  CHECK(strong("1.42 GB/s").str() == "<strong>1.42\u00a0GB/s</strong>");
  CHECK(code("--set a=\"30 min\"").str() == "<code>--set a=&quot;30 min&quot;</code>");
  CHECK(prose("5 t of CO2, `CO2`").str() == "5\u00a0t of CO₂, <code>CO2</code>");
}

TEST_CASE("lines of a name end between its parts, and never within a number") {
  CHECK(key_words("cluster.fabric.leaf_oversubscription").str() ==
        "cluster.<wbr>fabric.<wbr>leaf_<wbr>oversubscription");
  CHECK(key_words("a/b.json 0.345").str() == "a/<wbr>b.<wbr>json 0.345");
  CHECK(key_words("<b>_x").str() == "&lt;b&gt;_<wbr>x");
  CHECK(key_words("width 8 -> 4").str() == "width 8 →\u00a04");
  CHECK(key_words("").empty());
}

TEST_CASE("JSON in a script element cannot end it, and parses to the same value") {
  const nlohmann::json value{{"</script><!--", "<script>\u2028&\""}, {"n", {1, 2.5, nullptr}}};
  const std::string text = script_json(value.dump()).str();
  CHECK(text.find('<') == std::string::npos);
  CHECK(nlohmann::json::parse(text) == value);
}
