// What the pages show is what the program prints; tools/update-readme brings them up to date.
#include <algorithm>
#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/format.h>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "models/base/text_file.hpp"
#include "tests/support/source_tree.hpp"

namespace {

using namespace lockstep::test;

struct Shown {
  std::string command;  ///< "lockstep run scenarios/x.json"
  std::string output;
  std::string up_to;  ///< the part before the first line that begins so; empty: all of it
};

constexpr std::string_view kMarker = "<!-- output of: ", kUpTo = "; up to: ";

/// The fenced blocks that a comment `<!-- output of: lockstep ARGUMENTS -->` announces, or
/// `<!-- output of: lockstep ARGUMENTS; up to: TEXT -->`.
std::vector<Shown> shown_outputs(const std::vector<std::string>& lines) {
  std::vector<Shown> shown;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!lines[i].starts_with(kMarker)) continue;
    const std::size_t end = lines[i].rfind(" -->");
    Shown block{lines[i].substr(kMarker.size(), end - kMarker.size()), "", ""};
    if (const std::size_t part = block.command.find(kUpTo); part != std::string::npos) {
      block.up_to = block.command.substr(part + kUpTo.size());
      block.command.resize(part);
    }
    REQUIRE(i + 1 < lines.size());
    REQUIRE(lines[i + 1].starts_with("```"));
    for (i += 2; i < lines.size() && lines[i] != "```"; ++i) block.output += lines[i] + "\n";
    shown.push_back(block);
  }
  return shown;
}

/// The lines of `output` before the first that begins with `up_to`, without blank ones at the end.
std::string part_of(const std::string& output, const std::string& up_to) {
  if (up_to.empty()) return output;
  std::size_t end = output.find("\n" + up_to);
  CAPTURE(up_to);
  REQUIRE(end != std::string::npos);
  while (end > 0 && output[end - 1] == '\n') --end;
  return output.substr(0, end) + "\n";
}

std::vector<std::string> pages_of_the_tree() {
  std::vector<std::string> pages = source_files();
  std::erase_if(pages, [](const std::string& path) { return !path.ends_with(".md"); });
  return pages;
}

}  // namespace

TEST_CASE("README output is current") {
  int pages = 0;
  for (const std::string& path : pages_of_the_tree()) {
    if (path == "sim/packet/README.md") continue;  // takes minutes; its own test reads its table
    const std::vector<Shown> outputs = shown_outputs(source_lines(path));
    pages += outputs.empty() ? 0 : 1;
    for (const Shown& shown : outputs) {
      CAPTURE(path);
      CAPTURE(shown.command);
      REQUIRE(shown.command.starts_with("lockstep "));
      const std::string program = "LC_ALL=C.UTF-8 '" LOCKSTEP_PROGRAM "'" + shown.command.substr(8);
      const CommandResult run = run_in_source_tree(program);
      CHECK(run.status == 0);
      CHECK(part_of(run.output, shown.up_to) == shown.output);
    }
  }
  CHECK(pages >= 4);
}

TEST_CASE("README: every link between pages leads to a file or a heading of the tree") {
  static const std::regex link(R"(\]\(([^)#\s]+)(#[^)\s]*)?\))");
  int links = 0;
  for (const std::string& path : pages_of_the_tree()) {
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    for (const std::string& line : source_lines(path)) {
      for (std::sregex_iterator at(line.begin(), line.end(), link), end; at != end; ++at) {
        const std::string target = (*at)[1];
        if (target.find("://") != std::string::npos) continue;
        CAPTURE(path);
        CAPTURE(target);
        ++links;
        CHECK(std::filesystem::exists(LOCKSTEP_SOURCE_DIR / folder / target));
      }
    }
  }
  CHECK(links > 30);
}

TEST_CASE(
    "README: each command that runs as it stands has its files, or an earlier one writes them") {
  std::vector<std::string> lines = source_lines("tools/tour.md");
  const auto head = std::ranges::find(lines, "Each line runs as it stands, in this order:");
  REQUIRE(head != lines.end());
  static const std::regex file(R"(\S+\.(json|db|gz|svg|html|csv|txt|conf)\b|\b\w+/(?= ))");
  static const std::regex written(
      R"((?:-o|--trace|--svg|--report|--power-trace|--chakra|--accounting) (\S+))");
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

TEST_CASE(
    "README: a command names files of the tree, of its block, or my-...; or its block is a "
    "pattern") {
  static const std::regex file(
      R"([ =]([\w./-]+\.(?:json|db|csv|txt|conf|yaml|xml|log|sh|goal|dot|graphml|gz))\b)");
  static const std::regex written(
      R"((?:-o|--trace|--svg|--report|--power-trace|--accounting|--metrics) (\S+))");
  int files = 0;
  for (const std::string& path : pages_of_the_tree()) {
    const bool checked = !path.starts_with("tools/package/site/") && path != "CHANGELOG.md";
    if (!checked) continue;  // tools/package/site/check runs what tutorials say
    std::set<std::string> there;
    bool inside = false, pattern = false;
    std::string before;
    for (const std::string& line : source_lines(path)) {
      if (line.starts_with("```")) {
        inside = !inside;
        pattern = inside && before.starts_with("<!-- pattern: ");
        if (inside) there.clear();
      }
      before = line;
      const std::string command = line.substr(0, line.find(" #"));
      const bool runs = command.starts_with("lockstep ") || command.starts_with("build/lockstep ");
      if (!inside || pattern || !runs) continue;
      CAPTURE(path);
      CAPTURE(command);
      for (std::sregex_iterator at(command.begin(), command.end(), written), end; at != end; ++at) {
        there.insert((*at)[1]);
      }
      for (std::sregex_iterator at(command.begin(), command.end(), file), end; at != end; ++at) {
        const std::string name = (*at)[1];
        CAPTURE(name);
        ++files;
        CHECK((name.starts_with("my-") || there.contains(name) ||
               std::filesystem::exists(LOCKSTEP_SOURCE_DIR "/" + name)));
      }
    }
  }
  CHECK(files > 100);
}

TEST_CASE("README: how far to trust it is what the table of accuracy says") {
  const std::string readme = lockstep::read_text_file(LOCKSTEP_SOURCE_DIR "/README.md");
  const std::string tour = lockstep::read_text_file(LOCKSTEP_SOURCE_DIR "/tools/tour.md");
  const std::string table =
      lockstep::read_text_file(LOCKSTEP_SOURCE_DIR "/tests/reference/accuracy.md");
  const auto found = [&](const std::string& pattern) {
    CAPTURE(pattern);
    std::smatch match;
    REQUIRE(std::regex_search(table, match, std::regex(pattern)));
    return match;
  };
  const auto whole = [](const std::string& percent) {
    return fmt::format("{:.0f} %", std::stod(percent));
  };
  std::smatch both =
      found(R"(\*\*([0-9.]+ %)\*\*, 90th percentile of all rows \*\*([0-9.]+ %)\*\*)");
  for (const std::string& page : {readme, tour}) {
    CHECK(page.find("within " + both[1].str() + " in the median\nover sources and " +
                    both[2].str()) != std::string::npos);
  }
  const std::string row = R"( \| [0-9]+ \| ([0-9.]+ %) \| ([0-9.]+) % \| [0-9.]+ % \| ([0-9.]+) %)";
  both = found("composed: all" + row);
  const std::string composed = both[1].str();
  CHECK(tour.find("its interval, " + whole(both[3].str()) +
                  " to either side in the median, holds " + whole(both[2].str())) !=
        std::string::npos);
  both = found("learnt: 1 step" + row);
  CHECK(tour.find(both[1].str() + " instead of " + composed) != std::string::npos);
  both = found("learnt: 3 steps" + row);
  CHECK(tour.find("three make it " + both[1].str()) != std::string::npos);
}

TEST_CASE("README: each kind that `lockstep new` is said to write with nothing more, it writes") {
  static const std::regex kinds(R"(lockstep new ([a-z|]+) -o )");
  int written = 0;
  for (const std::string& line : source_lines("scenarios/README.md")) {
    std::smatch match;
    if (!std::regex_search(line, match, kinds)) continue;
    std::istringstream names(match[1].str());
    for (std::string kind; std::getline(names, kind, '|'); ++written) {
      CAPTURE(kind);
      const CommandResult run =
          run_in_source_tree("'" LOCKSTEP_PROGRAM "' new " + kind + " < /dev/null");
      CHECK(run.status == 0);
    }
  }
  CHECK(written >= 6);
}

TEST_CASE("README: the citation and the changelog know the program's version") {
  const CommandResult said = run_in_source_tree("'" LOCKSTEP_PROGRAM "' --version");
  const std::string version = said.output.substr(
      said.output.find(' ') + 1, said.output.find('\n') - said.output.find(' ') - 1);
  CHECK(std::ranges::count(source_lines("CITATION.cff"), "version: " + version) == 1);
  CHECK(std::ranges::count(source_lines("CHANGELOG.md"), "## " + version) == 1);
}

TEST_CASE("README: a tutorial names scenarios that ship, and each has commands that are run") {
  static const std::regex scenario(
      R"(lockstep (?:run|tune|comm|plan|sweep) ([a-z][a-z0-9.-]+)(?= |$))");
  std::set<std::string> names;
  for (const std::string& path : source_files()) {
    if (path.starts_with("scenarios/")) names.insert(std::filesystem::path(path).stem().string());
  }
  int tutorials = 0;
  for (const std::string& path : pages_of_the_tree()) {
    if (!path.starts_with("tools/package/site/tutorials/")) continue;
    ++tutorials;
    CAPTURE(path);
    int blocks = 0;
    for (const std::string& line : source_lines(path)) {
      blocks += line == "```sh" ? 1 : 0;
      std::smatch match;
      if (!line.starts_with("lockstep ") || !std::regex_search(line, match, scenario)) continue;
      const std::string name = match[1];
      CAPTURE(name);
      CHECK((names.contains(name) || name.ends_with(".json")));
    }
    CHECK(blocks >= 3);
  }
  CHECK(tutorials == 6);
}

TEST_CASE("README is one screen: two commands, six questions, and a real output") {
  const std::vector<std::string> lines = source_lines("README.md");
  CHECK(shown_outputs(lines).size() == 1);
  CHECK(std::ranges::count_if(lines, [](const std::string& line) {
          return line.starts_with("| ") && line.ends_with(" |");
        }) == 1 + 6);
  CHECK(lines.size() <= 80);
}
