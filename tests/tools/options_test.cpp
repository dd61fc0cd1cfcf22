#include "tools/console/options.hpp"

#include <array>
#include <doctest/doctest.h>
#include <string>

using namespace lockstep;

namespace {

constexpr std::array kOptions{
    OptionSpec{"set", 0, "PATH=VALUE", true, "Change a value.", "--set a.b=1"},
    OptionSpec{"output", 'o', "FILE", false, "Write there.", "-o out.json"},
    OptionSpec{"unfold", 0, "", false, "Every rank.", "--unfold"},
};
constexpr std::array<std::string_view, 1> kExamples{"lockstep try x.json"};
constexpr CommandSpec kTry{.name = "try",
                           .usage = "try FILE [options]",
                           .summary = "Try.",
                           .about = "Tries.",
                           .positionals = 1,
                           .options = kOptions,
                           .examples = kExamples};

}  // namespace

TEST_CASE("options: long, short, joined and repeated forms, in any order") {
  const ParsedOptions got =
      parse_options(kTry, {"--set", "a=1", "x.json", "-o", "out", "--set=b=2", "--unfold"});
  CHECK(got.positionals == std::vector<std::string>{"x.json"});
  CHECK(got.all("set") == std::vector<std::string>{"a=1", "b=2"});
  CHECK(got.get("output") == "out");
  CHECK(got.has("unfold"));
  CHECK_FALSE(got.has("help"));
  CHECK(got.get("missing", "otherwise") == "otherwise");
}

TEST_CASE("options: every mistake is one line that says what is allowed") {
  CHECK_THROWS_WITH_AS(parse_options(kTry, {"--unfld"}),
                       "lockstep try: unknown option --unfld; allowed: --set, --output, --unfold, "
                       "--help. Did you mean --unfold?",
                       UsageError);
  constexpr std::array kHints{WordHint{"--nodes", "--set nodes=4"}};
  CommandSpec hinted = kTry;
  hinted.hints = kHints;
  CHECK_THROWS_WITH_AS(parse_options(hinted, {"--nodes", "3"}),
                       "lockstep try: unknown option --nodes; allowed: --set, --output, --unfold, "
                       "--help. Did you mean --set nodes=4?",
                       UsageError);
  CHECK_THROWS_WITH_AS(parse_options(kTry, {"--lora", "16"}),
                       "lockstep try: unknown option --lora; allowed: --set, --output, --unfold, "
                       "--help. Did you mean --set lora.rank=16?",
                       UsageError);
  CHECK_THROWS_WITH_AS(parse_options(kTry, {"--set"}),
                       "lockstep try: option --set needs an argument", UsageError);
  CHECK_THROWS_WITH_AS(parse_options(kTry, {"--unfold=1"}),
                       "lockstep try: option --unfold takes no argument", UsageError);
  CHECK_THROWS_WITH_AS(parse_options(kTry, {"-o", "a", "-o", "b"}),
                       "lockstep try: option --output is given twice", UsageError);
  CHECK_THROWS_WITH_AS(
      parse_options(kTry, {"a", "b"}),
      "lockstep try: unexpected argument \"b\"; usage: lockstep try FILE [options]", UsageError);
  // No guessing of beginnings: "--out" is not "--output".
  CHECK_THROWS_AS(parse_options(kTry, {"--out", "x"}), UsageError);
}

TEST_CASE("choice: the first is the default, another word is an error with the nearest one") {
  constexpr std::array<std::string_view, 2> kWords{"table", "json"};
  ParsedOptions got;
  CHECK(got.choice("format", kWords) == "table");
  got.values["format"] = {"jsn"};
  CHECK_THROWS_WITH_AS((void)got.choice("format", kWords),
                       "--format: found \"jsn\"; allowed: table, json. Did you mean json?",
                       UsageError);
}

TEST_CASE("help: explains every option with its example, within 100 columns") {
  const std::string help = help_text(kTry);
  for (const OptionSpec& option : kOptions) {
    CHECK(help.find("--" + std::string(option.name)) != std::string::npos);
    CHECK(help.find("Example: " + std::string(option.example)) != std::string::npos);
  }
  std::size_t start = 0;
  for (std::size_t end; (end = help.find('\n', start)) != std::string::npos; start = end + 1) {
    CHECK(end - start <= 100);
  }
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
