#include <doctest/doctest.h>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/text_file.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"
#include "tools/console/shared_options.hpp"

namespace lockstep {
namespace {

bool names_path(std::string_view argument) {
  return argument.starts_with("FILE") || argument == "DIR" || argument == "DB";
}
bool writes(PathUse use) {
  return use == PathUse::prints || use == PathUse::writes || use == PathUse::writes_folder;
}

}  // namespace

TEST_CASE("paths: every option that takes one says what is done with it") {
  int written = 0;
  for (const Command* command : commands()) {
    CAPTURE(command->spec->name);
    for (const OptionSpec& option : command->spec->options) {
      CAPTURE(option.name);
      CHECK(names_path(option.argument) == (option.path != PathUse::none));
      written += writes(option.path) ? 1 : 0;
    }
  }
  CHECK(written >= 25);
}

TEST_CASE("paths: where an answer cannot go is said before the work, by every command") {
  const test::TemporaryFolder folder;
  const std::string nowhere = folder.path() + "/no/such/folder";
  for (const Command* command : commands()) {
    for (const OptionSpec& option : command->spec->options) {
      if (!writes(option.path) || option.path == PathUse::writes_folder) continue;
      const std::string name{command->spec->name}, flag = "--" + std::string(option.name);
      CAPTURE(name);
      CAPTURE(flag);
      const test::Ran ran = test::lockstep_with({name, flag, nowhere + "/out"});
      CHECK(ran.exit == Exit::bad_input);
      CHECK(ran.out.empty());
      CHECK(ran.err.find("found no folder \"" + nowhere) != std::string::npos);
    }
  }
}

TEST_CASE("paths: a file is no folder, and a folder no file, before the work too") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("taken", "");
  for (const Command* command : commands()) {
    for (const OptionSpec& option : command->spec->options) {
      if (!writes(option.path)) continue;
      const std::string name{command->spec->name}, flag = "--" + std::string(option.name);
      CAPTURE(name);
      CAPTURE(flag);
      const bool is_folder = option.path == PathUse::writes_folder;
      const test::Ran wrong = test::lockstep_with({name, flag, is_folder ? file : folder.path()});
      CHECK(wrong.exit == Exit::bad_input);
      CHECK(wrong.out.empty());
      CHECK(wrong.err.find(is_folder ? "found a file" : "found a folder") != std::string::npos);
      if (!is_folder) continue;
      const test::Ran below = test::lockstep_with({name, flag, file + "/deep/er"});
      CHECK(below.err.find("found a file \"" + file + "\"") != std::string::npos);
      const ParsedOptions fresh =
          parse_options(*command->spec, {flag, folder.path() + "/not/yet/there/"});
      CHECK_NOTHROW(check_written_files(*command->spec, fresh));
    }
  }
}

TEST_CASE("paths: no output takes the place of another, or of what is read") {
  const test::TemporaryFolder folder;
  const std::string input = folder.write("s.json", "{}"), out = folder.path() + "/out";
  for (const Command* command : commands()) {
    std::vector<std::string> flags;
    for (const OptionSpec& option : command->spec->options) {
      if (writes(option.path)) flags.push_back("--" + std::string(option.name));
    }
    const std::string name{command->spec->name};
    for (std::size_t i = 0; i < flags.size(); ++i) {
      CAPTURE(name);
      CAPTURE(flags[i]);
      if (command->spec->positionals > 0) {
        const test::Ran ran =
            test::lockstep_with({name, input, flags[i], folder.path() + "/./s.json"});
        CHECK(ran.exit == Exit::bad_input);
        CHECK(ran.err.find("which is what is read") != std::string::npos);
      }
      if (i == 0) continue;
      const test::Ran ran = test::lockstep_with({name, flags[0], out, flags[i], out});
      CHECK(ran.exit == Exit::bad_input);
      CHECK(ran.err.find("writes; allowed: another name") != std::string::npos);
    }
  }
}

TEST_CASE("paths: - is the console only for what is the answer") {
  for (const Command* command : commands()) {
    for (const OptionSpec& option : command->spec->options) {
      if (!writes(option.path)) continue;
      CAPTURE(command->spec->name);
      CAPTURE(option.name);
      const ParsedOptions given =
          parse_options(*command->spec, {"--" + std::string(option.name), "-"});
      if (option.path == PathUse::prints) {
        CHECK_NOTHROW(check_written_files(*command->spec, given));
      } else {
        CHECK_THROWS_AS(check_written_files(*command->spec, given), UsageError);
      }
    }
  }
}

TEST_CASE("paths: -o - prints what -o FILE writes") {
  const test::TemporaryFolder folder;
  const std::string file = folder.path() + "/gpus.csv";
  const std::vector<std::string> list{"list", "gpus", "--format", "csv", "-o"};
  const auto with = [&list](const std::string& path) {
    std::vector<std::string> args = list;
    args.push_back(path);
    return test::lockstep_with(args);
  };
  CHECK(with(file).out.empty());
  const test::Ran printed = with("-");
  CHECK(printed.exit == Exit::ok);
  CHECK(printed.out == read_text_file(file));
  CHECK(printed.out.find("h100_sxm5_80gb") != std::string::npos);
}

TEST_CASE("paths: tune writes no scenario that no command would read") {
  const test::Ran ran = test::lockstep_with(
      {"tune", LOCKSTEP_SOURCE_DIR "/scenarios/gpt3-175b-selene.json", "-o", "best.json.gz"});
  CHECK(ran.exit == Exit::bad_input);
  CHECK(ran.err.find("allowed: a name without .gz") != std::string::npos);
}

}  // namespace lockstep
