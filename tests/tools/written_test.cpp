#include "tools/console/written.hpp"

#include <array>
#include <doctest/doctest.h>
#include <string>

#include <nlohmann/json.hpp>

#include "models/base/text_file.hpp"
#include "sim/search/sweep/sql_value.hpp"
#include "tests/support/source_tree.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"
#include "tools/console/table.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

std::string csv(std::string_view cell) { return CsvText(cell).str(); }

// What no medium may get as it is, in one name.
constexpr std::string_view kEvil = "=1+1\033[31m|<b>*\u202e\x07";

std::string scenario_with(const std::string& about) {
  const nlohmann::ordered_json scenario{
      {"about", about},
      {"model", "megatron_1_7b"},
      {"cluster", {{"node", "dgx_a100_80gb"}, {"nodes", 1}}},
      {"parallelism", {{"pipeline", 4}, {"data", 2}, {"sharding", "zero1"}}},
      {"batch", {{"sequences", 16}, {"micro", 1}, {"tokens", 2048}}},
      {"stack", "megatron_core"}};
  return scenario.dump();
}

}  // namespace

TEST_CASE("CSV: a cell that a spreadsheet would compute is text, and numbers are numbers") {
  CHECK(csv("=HYPERLINK(1)") == "'=HYPERLINK(1)");
  CHECK(csv("@SUM(A1)") == "'@SUM(A1)");
  CHECK(csv("-1+1") == "'-1+1");
  CHECK(csv("+cmd,x") == "\"'+cmd,x\"");
  CHECK(csv("\t=1") == "'\t=1");
  for (const char* number : {"-1.5", "-1e-05", "+3.1 %", "12", "-0.25"}) {
    CHECK(csv(number) == number);
  }
  CHECK(csv("1e5-") == "1e5-");
  CHECK(csv("-e5") == "'-e5");
  CHECK(csv("a\033b") == "a\\x1bb");
  CHECK(csv("a\u200bb") == "a\\u200bb");
}

TEST_CASE("shell: any text is one word") {
  CHECK(ShellText("plain/name-1.json").str() == "plain/name-1.json");
  CHECK(ShellText("a b; rm $x").str() == "'a b; rm $x'");
  CHECK(ShellText::write("run {} {}", "x y", 3).str() == "run 'x y' 3");
  const CommandResult echoed =
      run_in_source_tree(ShellText::write("printf %s {}", "it's\n$(date) \"`x`").str());
  CHECK(echoed.output == "it's\n$(date) \"`x`");
}

TEST_CASE("Markdown: a name is shown letter by letter, on one line") {
  CHECK(Markdown::write("| {} |", "a|b <i>\n*c*").str() == "| a\\|b \\<i\\> \\*c\\* |");
  CHECK(Markdown("\033[31m").str() == "\\x1b\\[31m");
}

TEST_CASE("SQL: a name cannot end its quotes") { CHECK(quoted_name("a\"b") == "\"a\"\"b\""); }

TEST_CASE("terminal: styles of ours pass, all else that it would obey does not") {
  const TextStyle colours{.colour = true};
  const std::string ours = colours.bold("7 s") + "\n" + colours.dim("x");
  CHECK(terminal_text(ours) == ours);
  CHECK(terminal_text("\033[31mred") == "\\x1b[31mred");
  CHECK(terminal_line("a\nb\tc") == "a b c");
  TextTable table({{"name", TextTable::Align::left}});
  table.add({"one\ntwo\a"});
  CHECK(table.text({}, 0) == "name\none two\\x07\n");
  CHECK(terminal_line("a\u200bb") == "a\\u200bb");
}

TEST_CASE("run: no format passes on what a scenario has in its texts") {
  const TemporaryFolder folder;
  const std::string file = folder.write("evil.json", scenario_with(std::string(kEvil)));
  for (const char* format : {"table", "json", "csv"}) {
    CAPTURE(format);
    const Ran ran = lockstep_with({"run", file, "--format", format});
    REQUIRE(ran.exit == Exit::ok);
    for (const char* raw : {"\033", "\x07"}) CHECK(ran.out.find(raw) == std::string::npos);
    if (std::string_view(format) != "json") CHECK(ran.out.find("\u202e") == std::string::npos);
  }
  const std::string page = folder.path() + "/page.html";
  REQUIRE(lockstep_with({"run", file, "--report", page}).exit == Exit::ok);
  const std::string html = read_text_file(page);
  CHECK(html.find("=1+1\033") == std::string::npos);
  CHECK(html.find("&gt;*\u202e") == std::string::npos);
  CHECK(html.find("=1+1\\x1b[31m|&lt;b&gt;*\\u202e\\x07") != std::string::npos);
}

TEST_CASE("run: names of files and texts that are Latin-1 are no error") {
  const TemporaryFolder folder;
  const std::string file = folder.write("caf\xe9.json", scenario_with("x"));
  for (const char* command : {"run", "tune"}) {
    const Ran ran = lockstep_with({command, file, "--format", "json"});
    CHECK(ran.exit == Exit::ok);
    CHECK(nlohmann::json::accept(ran.out));
  }
  const Ran compared = lockstep_with({"compare", file, file, "--format", "json"});
  CHECK(compared.exit == Exit::ok);
  CHECK(lockstep_with({"run", file, "--format", "json", "--set", "about=caf\xe9"}).exit ==
        Exit::ok);
}
