// Rules of the house that no compiler knows. `ctest -R tidy` runs them alone.
#include <algorithm>
#include <doctest/doctest.h>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/text_file.hpp"
#include "tests/support/source_tree.hpp"

namespace {

using lockstep::test::source_files;
using lockstep::test::source_lines;

const std::vector<std::string> kCodeFolders{"models", "topologies", "sim", "tools", "tests"};

bool is_cpp(std::string_view path) { return path.ends_with(".cpp") || path.ends_with(".hpp"); }

/// Lines "path:number: text" of the files for which `matches(path, line)` holds.
template <typename Matches>
std::vector<std::string> lines_where(const std::vector<std::string>& files, Matches matches) {
  std::vector<std::string> found;
  for (const std::string& path : files) {
    const std::vector<std::string> lines = source_lines(path);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (matches(path, lines[i])) {
        found.push_back(path + ":" + std::to_string(i + 1) + ": " + lines[i]);
      }
    }
  }
  return found;
}

/// Whether one of the words stands in the line. A pattern is tried on such lines alone, for
/// std::regex takes seconds for all lines of the project.
bool has_any(std::string_view line, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(
      words, [line](std::string_view word) { return line.find(word) != std::string_view::npos; });
}

void check_none(const std::vector<std::string>& found) {
  for (const std::string& line : found) FAIL_CHECK(line);
}

/// "sim" of "sim/core/clock.hpp"; the path itself when it has no folder.
std::string top_folder(const std::string& path) { return path.substr(0, path.find('/')); }

/// What the line includes with quotes; empty when it is no such line.
std::string quoted_include(const std::string& line) {
  static const std::regex pattern(R"re(^\s*#\s*include\s+"([^"]+)")re");
  std::smatch match;
  return has_any(line, {"include"}) && std::regex_search(line, match, pattern) ? match[1].str()
                                                                               : std::string();
}

/// The file that holds the rules spells out what it forbids.
bool is_this_file(const std::string& path) { return path == "tests/tools/tidy_test.cpp"; }

std::vector<std::string> cpp_files(const std::vector<std::string>& folders) {
  std::vector<std::string> files = source_files(folders);
  std::erase_if(files, [](const std::string& path) { return !is_cpp(path); });
  return files;
}

}  // namespace

TEST_CASE("tidy: there is code to check") { CHECK(cpp_files(kCodeFolders).size() > 20); }

TEST_CASE("tidy: includes go one way, tools -> sim -> topologies -> models") {
  const std::map<std::string, std::set<std::string>> allowed{
      {"models", {"models"}},
      {"topologies", {"topologies", "models"}},
      {"sim", {"sim", "topologies", "models"}},
      {"tools", {"tools", "sim", "topologies", "models"}},
  };
  check_none(lines_where(cpp_files({"models", "topologies", "sim", "tools"}),
                         [&](const std::string& path, const std::string& line) {
                           const std::string included = quoted_include(line);
                           if (included.empty()) return false;
                           return !allowed.at(top_folder(path)).contains(top_folder(included));
                         }));
}

/// Fails for each two of `part_of` of files that include each other.
template <class PartOf>
void check_one_way(PartOf part_of) {
  std::map<std::pair<std::string, std::string>, std::string> includes;  // with a line of each
  for (const std::string& path : cpp_files({"models", "topologies", "sim", "tools"})) {
    for (const std::string& line : source_lines(path)) {
      const std::string included = quoted_include(line);
      if (included.empty() || part_of(included) == part_of(path)) continue;
      includes.try_emplace({part_of(path), part_of(included)}, path + " includes " + included);
    }
  }
  REQUIRE(includes.size() > 50);
  for (const auto& [edge, line] : includes) {
    const auto back = includes.find({edge.second, edge.first});
    if (edge.first > edge.second || back == includes.end()) continue;
    FAIL_CHECK(line << ", and " << back->second);
  }
}

TEST_CASE("tidy: no two folders include each other") {
  check_one_way([](const std::string& path) { return path.substr(0, path.rfind('/')); });
}

TEST_CASE("tidy: no two rooms include each other, with the folders in them") {
  check_one_way([](const std::string& path) {
    const std::string folder = path.substr(0, path.rfind('/'));
    const std::size_t room = folder.find('/');
    return room == std::string::npos ? folder : folder.substr(0, folder.find('/', room + 1));
  });
}

TEST_CASE("tidy: sim/core knows nothing of the project but the units") {
  check_none(lines_where(cpp_files({"sim/core"}), [](const std::string&, const std::string& line) {
    const std::string included = quoted_include(line);
    return !included.empty() && !included.starts_with("sim/core/") &&
           included != "models/base/units.hpp";
  }));
}

TEST_CASE("tidy: only the engine asks the network for its next end and settles it") {
  static const std::regex pattern(R"((\.|->)(settle|next_end|collect_ended)\()");
  check_none(
      lines_where(cpp_files(kCodeFolders), [](const std::string& path, const std::string& line) {
        const bool core = path.starts_with("sim/core/") || path.starts_with("tests/sim/core/");
        return !core && !is_this_file(path) &&
               has_any(line, {"settle(", "next_end(", "collect_ended("}) &&
               std::regex_search(line, pattern);
      }));
}

TEST_CASE("tidy: includes are written from the root of the project") {
  check_none(lines_where(cpp_files(kCodeFolders), [](const std::string&, const std::string& line) {
    const std::string included = quoted_include(line);
    // protoc makes the one from the other, beside the objects.
    const std::string made = ".pb.h";
    const bool is_made = included.ends_with(made);
    const std::string source =
        is_made ? included.substr(0, included.size() - made.size()) + ".proto" : included;
    return !included.empty() && !std::filesystem::exists(LOCKSTEP_SOURCE_DIR "/" + source);
  }));
}

// But for points of sweeps and differences between scenarios, which are JSON documents by value.
TEST_CASE("tidy: heavy headers stay out of public headers") {
  static const std::regex heavy(
      R"(#\s*include\s+<(boost/|nlohmann/json\.hpp|tbb/|oneapi/|regex>))");
  std::vector<std::string> headers = cpp_files({"models", "topologies", "sim"});
  std::erase_if(headers, [](const std::string& path) {
    return !path.ends_with(".hpp") || path.starts_with("sim/search/sweep/") ||
           path.starts_with("sim/search/compare/");
  });
  check_none(lines_where(headers, [](const std::string&, const std::string& line) {
    return has_any(line, {"include"}) && std::regex_search(line, heavy);
  }));
}

TEST_CASE("tidy: every header is included once, and opens with what it is for") {
  for (const std::string& path : cpp_files(kCodeFolders)) {
    if (!path.ends_with(".hpp")) continue;
    CAPTURE(path);
    const std::vector<std::string> lines = source_lines(path);
    REQUIRE_FALSE(lines.empty());
    CHECK(lines.front().starts_with("//"));
    CHECK(std::ranges::count(lines, "#pragma once") == 1);
  }
}

TEST_CASE("tidy: nothing is left unfinished or prints for debugging") {
  static const std::regex pattern(
      R"(\b(TODO|FIXME|XXX|HACK)\b|not (yet )?implemented|\bfor now\b|<<\s*"(debug|DEBUG))");
  std::vector<std::string> files = cpp_files(kCodeFolders);
  for (const std::string& path : source_files()) {
    if (path.ends_with("CMakeLists.txt") || path.ends_with(".cmake")) files.push_back(path);
  }
  check_none(lines_where(files, [](const std::string& path, const std::string& line) {
    return !is_this_file(path) &&
           has_any(line, {"TODO", "FIXME", "XXX", "HACK", "implemented", "for now", "<<"}) &&
           std::regex_search(line, pattern);
  }));
}

TEST_CASE("tidy: only the program prints") {
  static const std::regex pattern(
      R"(std::c(out|err|log)\b|\b(std::)?f?printf\s*\(|\bfmt::print\()");
  check_none(lines_where(
      cpp_files({"models", "topologies", "sim"}), [](const std::string&, const std::string& line) {
        return has_any(line, {"std::c", "print"}) && std::regex_search(line, pattern);
      }));
}

TEST_CASE("tidy: one function writes JSON text") {
  static const std::regex pattern(R"((\.|->)dump\()");
  check_none(lines_where(cpp_files({"models", "topologies", "sim", "tools"}),
                         [](const std::string& path, const std::string& line) {
                           return path != "models/base/write_json.cpp" &&
                                  has_any(line, {"dump("}) && std::regex_search(line, pattern);
                         }));
}

TEST_CASE("tidy: no function reads the same member of an object into a field twice") {
  static const std::regex read(R"re(^\s*member\.(?:required|optional)\("(\w+)", out\.)re");
  for (const std::string& path : cpp_files({"models", "topologies", "sim", "tools"})) {
    std::set<std::string> keys;
    for (const std::string& line : source_lines(path)) {
      if (line == "}") keys.clear();
      std::smatch match;
      if (!has_any(line, {"member."}) || !std::regex_search(line, match, read)) continue;
      CAPTURE(path);
      CAPTURE(line);
      CHECK(keys.insert(match[1]).second);
    }
  }
}

TEST_CASE("tidy: what a command prints has the type of its medium") {
  // Answer, CsvText and JsonText give their text by str(); help and completions are our own words.
  static const std::regex pattern(R"(console\.out\s*<<)");
  static const std::regex typed(R"(\.str\(\)|terminal_line\()");
  const std::set<std::string> own_words{"tools/lockstep/cli.cpp",
                                        "tools/lockstep/completion/completion_command.cpp"};
  check_none(lines_where(
      cpp_files({"tools/lockstep"}), [&](const std::string& path, const std::string& line) {
        return !own_words.contains(path) && has_any(line, {"console.out"}) &&
               std::regex_search(line, pattern) && !std::regex_search(line, typed);
      }));
}

TEST_CASE("tidy: nothing that differs between standard libraries or runs reaches an answer") {
  static const std::regex pattern(
      R"(std::(\w+_distribution|random_device|default_random_engine)\b|\brand\(\))"
      R"(|tbb::parallel_reduce\b)");
  check_none(lines_where(cpp_files({"models", "topologies", "sim", "tools"}),
                         [](const std::string&, const std::string& line) {
                           return has_any(line, {"_distribution", "random_device", "random_engine",
                                                 "rand()", "parallel_reduce"}) &&
                                  std::regex_search(line, pattern);
                         }));
}

TEST_CASE("tidy: no line of code is wider than 100 columns") {
  check_none(lines_where(cpp_files(kCodeFolders), [](const std::string&, const std::string& line) {
    // UTF-8's continuation bytes take no column.
    return std::ranges::count_if(line, [](char c) { return (c & 0xC0) != 0x80; }) > 100;
  }));
}

TEST_CASE("tidy: no test has a semicolon in its name, at which ctest's list would cut it") {
  check_none(lines_where(cpp_files({"tests"}), [](const std::string&, const std::string& line) {
    static const std::regex name(R"re(TEST_CASE\("[^"]*;)re");
    return has_any(line, {"TEST_CASE"}) && std::regex_search(line, name);
  }));
}

TEST_CASE("tidy: the top level holds what the README lists, and nothing else") {
  static const std::set<std::string> allowed{"CMakeLists.txt",
                                             "CMakePresets.json",
                                             "README.md",
                                             "LICENSE",
                                             "pyproject.toml",
                                             "CHANGELOG.md",
                                             "CITATION.cff",
                                             "CONTRIBUTING.md",
                                             "models",
                                             "topologies",
                                             "sim",
                                             "scenarios",
                                             "tools",
                                             "tests"};
  for (const std::string& path : source_files()) {
    const std::string entry = top_folder(path);
    CAPTURE(path);
    CHECK((entry.starts_with(".") || allowed.contains(entry)));
  }
}

TEST_CASE("tidy: no path leads out of the project") {
  static const std::regex outside(
      R"((^|[^\w./~-])/(home|root|work|mnt|srv|Users|farm)/|(^|[^\w./-])\.\./shared\b)");
  static const std::regex include_up(R"re(#\s*include\s+"\.)re");
  check_none(lines_where(source_files(), [](const std::string& path, const std::string& line) {
    if (is_this_file(path) || path == "LICENSE") return false;
    return (has_any(line,
                    {"home/", "root/", "work/", "mnt/", "srv/", "Users/", "farm/", "shared"}) &&
            std::regex_search(line, outside)) ||
           (has_any(line, {"include"}) && std::regex_search(line, include_up));
  }));
}

// What is no command goes to the library, tools/views or tools/console.
TEST_CASE("tidy: the folder of commands stays below 8,000 lines") {
  std::size_t lines = 0;
  for (const std::string& path : cpp_files({"tools/lockstep"})) lines += source_lines(path).size();
  CHECK(lines > 1'000);
  CHECK(lines < 8'000);
}

TEST_CASE("tidy: every top folder has a README of one screen") {
  for (const std::string folder : {"models", "topologies", "sim", "scenarios", "tools", "tests"}) {
    CAPTURE(folder);
    const std::size_t lines = source_lines(folder + "/README.md").size();
    CHECK(lines > 5);
    CHECK(lines <= 60);
  }
}

TEST_CASE(
    "tidy: what a mutant changes stands once in its file, and is an expression or a statement") {
  const auto mutants = nlohmann::json::parse(
      lockstep::read_text_file(LOCKSTEP_SOURCE_DIR "/tests/mutants/mutants.json"));
  for (const nlohmann::json& mutant : mutants.at("mutants")) {
    const auto name = mutant.at("name").get<std::string>();
    const auto right = mutant.at("right").get<std::string>();
    CAPTURE(name);
    const std::string text =
        lockstep::read_text_file(LOCKSTEP_SOURCE_DIR "/" + mutant.at("file").get<std::string>());
    const std::size_t at = text.find(right);
    REQUIRE(at != std::string::npos);
    CHECK(text.find(right, at + 1) == std::string::npos);
    for (const std::string& side : {right, mutant.at("wrong").get<std::string>()}) {
      CHECK_FALSE(side.ends_with(','));  // it is put into parentheses
      CHECK(side.ends_with(';') == right.ends_with(';'));
    }
  }
}

// Not failures: where to look when a file becomes hard to read.
TEST_CASE("tidy: a report of long files and functions") {
  constexpr std::size_t kLongFile = 400, kLongFunction = 70;
  std::size_t functions = 0;
  for (const std::string& path : cpp_files(kCodeFolders)) {
    const std::vector<std::string> lines = source_lines(path);
    if (lines.size() > kLongFile) MESSAGE(path << ": " << lines.size() << " lines");
    // As clang-format leaves it, a function at namespace scope begins and ends in the first column.
    std::size_t begin = 0;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const std::string& line = lines[i];
      if (!line.empty() && std::string_view(" }#/").find(line.front()) == std::string_view::npos) {
        begin = i;
      }
      if (line != "}") continue;
      ++functions;
      if (i - begin >= kLongFunction) {
        MESSAGE(path << ":" << begin + 1 << ": a function of " << i - begin + 1 << " lines");
      }
    }
  }
  CHECK(functions > 0);
}

namespace {

struct ClassLength {
  std::string path;
  std::string name;
  std::size_t lines = 0;
};

/// Classes and structs that begin in the first column, which is where clang-format leaves those of
/// a namespace, up to their closing brace.
std::vector<ClassLength> class_lengths(const std::string& path,
                                       const std::vector<std::string>& lines) {
  std::vector<ClassLength> found;
  std::string name;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    for (const std::string_view word : {"class ", "struct "}) {
      if (!line.starts_with(word) || line.ends_with(';')) continue;
      name = line.substr(word.size(), line.find_first_of(" {", word.size()) - word.size());
      begin = i;
    }
    if (name.empty() || !line.starts_with('}')) continue;
    if (line.starts_with("};")) found.push_back({path, name, i - begin + 1});
    name.clear();
  }
  return found;
}

}  // namespace

TEST_CASE("tidy: the length of a class is counted from its first line to its closing brace") {
  const std::vector<ClassLength> found =
      class_lengths("a.hpp", {"class Before;", "struct A {", "  struct Inner {", "  };", "};",
                              "int f() {", "}", "class B::C : public D {", " public:", "};"});
  REQUIRE(found.size() == 2);
  CHECK(found[0].name == "A");
  CHECK(found[0].lines == 4);
  CHECK(found[1].name == "B::C");
  CHECK(found[1].lines == 3);
}

// Long ones are reported, as long files are.
TEST_CASE("tidy: no class is longer than 375 lines") {
  constexpr std::size_t kLong = 200, kLongest = 375;
  std::size_t classes = 0;
  for (const std::string& path : cpp_files(kCodeFolders)) {
    for (const ClassLength& c : class_lengths(path, source_lines(path))) {
      ++classes;
      const std::string id = c.path + " " + c.name;
      if (c.lines >= kLong) MESSAGE(id << ": " << c.lines << " lines");
      if (c.lines > kLongest) FAIL_CHECK(id << " has " << c.lines << " lines");
    }
  }
  CHECK(classes > 500);
}
