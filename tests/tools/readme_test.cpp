// What the READMEs show is what the program prints; tools/update-readme brings them up to date.
#include <algorithm>
#include <doctest/doctest.h>
#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/support/source_tree.hpp"

namespace {

using namespace lockstep::test;

struct Shown {
  std::string command;  ///< "lockstep run scenarios/x.json"
  std::string output;
};

constexpr std::string_view kMarker = "<!-- output of: ";

/// The fenced blocks that a comment `<!-- output of: lockstep ARGUMENTS -->` announces.
std::vector<Shown> shown_outputs(const std::vector<std::string>& lines) {
  std::vector<Shown> shown;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!lines[i].starts_with(kMarker)) continue;
    const std::size_t end = lines[i].rfind(" -->");
    Shown block{lines[i].substr(kMarker.size(), end - kMarker.size()), ""};
    REQUIRE(i + 1 < lines.size());
    REQUIRE(lines[i + 1].starts_with("```"));
    for (i += 2; i < lines.size() && lines[i] != "```"; ++i) block.output += lines[i] + "\n";
    shown.push_back(block);
  }
  return shown;
}

}  // namespace

TEST_CASE("README output is current") {
  for (const std::string path : {"README.md", "models/README.md", "topologies/README.md",
                                 "sim/README.md", "scenarios/README.md", "tools/README.md"}) {
    for (const Shown& shown : shown_outputs(source_lines(path))) {
      CAPTURE(path);
      CAPTURE(shown.command);
      REQUIRE(shown.command.starts_with("lockstep "));
      const std::string program = "LC_ALL=C.UTF-8 '" LOCKSTEP_PROGRAM "'" + shown.command.substr(8);
      const CommandResult run = run_in_source_tree(program);
      CHECK(run.status == 0);
      CHECK(run.output == shown.output);
    }
  }
}

TEST_CASE(
    "README: each command that runs as it stands has its files, or an earlier one writes them") {
  std::vector<std::string> lines = source_lines("README.md");
  const auto head = std::ranges::find(lines, "Each line runs as it stands, in this order:");
  REQUIRE(head != lines.end());
  static const std::regex file(R"(\S+\.(json|db|gz|svg|html|csv)\b|\b\w+/(?= ))");
  static const std::regex written(R"((?:-o|--trace|--svg|--report|--power-trace|--chakra) (\S+))");
  std::set<std::string> there;
  int commands = 0;
  for (auto line = head + 3; line != lines.end() && *line != "```"; ++line, ++commands) {
    const std::string command = line->substr(0, line->find(" #"));
    CAPTURE(command);
    for (std::sregex_iterator at(command.begin(), command.end(), written), end; at != end; ++at) {
      there.insert((*at)[1]);
      there.insert((*at)[1].str() + "/");
    }
    for (std::sregex_iterator at(command.begin(), command.end(), file), end; at != end; ++at) {
      const std::string name = at->str();
      CAPTURE(name);
      CHECK((there.contains(name) || std::filesystem::exists(LOCKSTEP_SOURCE_DIR "/" + name)));
    }
  }
  CHECK(commands > 20);
}

TEST_CASE("README opens with a real output") {
  CHECK_FALSE(shown_outputs(source_lines("README.md")).empty());
}
