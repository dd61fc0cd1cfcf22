// Scripts of `lockstep completion`: bash completes by ours what a person would type next.
#include <array>
#include <cstdlib>
#include <doctest/doctest.h>
#include <string>

#include "models/base/text_file.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"
#include "tools/console/completion_scripts.hpp"

namespace lockstep {
namespace {

using test::lockstep_with;

struct Completed {
  const char* typed;  ///< the last word is completed
  const char* replies;
};
constexpr std::array kCompleted{
    Completed{"lockstep comp", "compare completion"},
    Completed{"lockstep tune --sha", "--sharding"},
    Completed{"lockstep run --format j", "json"},
    Completed{"lockstep validate -o scr", "script.bash"},
    Completed{"lockstep list fabric", "fabrics fabric-kinds"},
    Completed{"lockstep completion ''", "bash zsh fish"},
    Completed{"lockstep run scr", "script.bash"},
    Completed{"lockstep tune name_", "name_of_scenarios"},
    Completed{"lockstep tune --format json name_", "name_of_scenarios"},
    Completed{"lockstep tune --format = json name_", "name_of_scenarios"},
    Completed{"lockstep tune --set cluster.nodes = 4 name_", "name_of_scenarios"},
    Completed{"lockstep explain file name_", "name_of_fields"},
    Completed{"lockstep plan name_", ""},
    Completed{"lockstep queue f", "forecast fill"},
    Completed{"lockstep export job name_", "name_of_scenarios"},
    Completed{"lockstep run --model n", "name_of_models"},
    Completed{"lockstep run --model = n", "name_of_models"},
    Completed{"lockstep plan --node one,n", "one,name_of_nodes"},
    Completed{"lockstep tune --sharding none,zero1,zero",
              "none,zero1,zero1 none,zero1,zero2 "
              "none,zero1,zero3"},
    Completed{"lockstep replay --node n", "name_of_nodes"},
    Completed{"lockstep show gpu n", "name_of_gpu"},
    Completed{"lockstep run --set ''", "name_of_keys="},
    Completed{"lockstep run --optimise n", "name_of_keys"},
    Completed{"lockstep fit x", ""},
};

}  // namespace

TEST_CASE("completion: bash completes commands, options, values, names and files") {
  const test::TemporaryFolder folder;
  const test::Ran script = lockstep_with({"completion", "bash"});
  REQUIRE(script.exit == Exit::ok);
  folder.write("script.bash", script.out);
  // The program that the script asks for names is a function here.
  std::string run =
      "lockstep() { echo name; echo \"name_of_$2,lockstep run\"; }\n"
      "source ./script.bash || exit 1\n"
      "try() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _lockstep; echo \"${COMPREPLY[*]}\"; "
      "}\n";
  std::string expected;
  for (const Completed& line : kCompleted) {
    run += std::string("try ") + line.typed + "\n";
    expected += std::string(line.replies) + "\n";
  }
  folder.write("run.bash", run);
  const std::string command =
      "cd '" + folder.path() + "' && bash --norc run.bash > replies.txt 2> errors.txt";
  // NOLINTNEXTLINE(cert-env33-c): the shell is what is tested
  REQUIRE(std::system(command.c_str()) == 0);
  CHECK(read_text_file(folder.path() + "/replies.txt") == expected);
  CHECK(read_text_file(folder.path() + "/errors.txt").empty());
}

TEST_CASE("completion: bash completes keys of scenarios part by part, with numbers for items") {
  const test::TemporaryFolder folder;
  folder.write("script.bash", lockstep_with({"completion", "bash"}).out);
  folder.write("keys.csv",
               "key,of\ncluster,job\ncluster.node,job\ncluster.node.gpu,job\ncluster.nodes,job\n"
               "stragglers,job\nstragglers.*.gpu,job\n");
  folder.write("run.bash",
               "lockstep() { cat keys.csv; }\n"
               "source ./script.bash || exit 1\n"
               "for typed in '' cluster.no cluster.node. stragglers.12. nothing\n"
               "do COMP_WORDS=(lockstep run --set \"$typed\"); COMP_CWORD=3; COMPREPLY=()\n"
               "_lockstep; echo \"${COMPREPLY[*]}\"; done\n");
  const std::string command =
      "cd '" + folder.path() + "' && bash --norc run.bash > replies.txt 2> errors.txt";
  // NOLINTNEXTLINE(cert-env33-c): the shell is what is tested
  REQUIRE(std::system(command.c_str()) == 0);
  CHECK(read_text_file(folder.path() + "/replies.txt") ==
        "cluster= cluster. stragglers= stragglers.\n"
        "cluster.node= cluster.node. cluster.nodes=\n"
        "cluster.node.gpu=\n"
        "stragglers.12.gpu=\n\n");
  CHECK(read_text_file(folder.path() + "/errors.txt").empty());
}

TEST_CASE("completion: what an option's text says to be in a list is completed from that list") {
  std::size_t found = 0;
  for (const Command* command : commands()) {
    for (const OptionSpec& option : command->spec->options) {
      constexpr std::string_view kList = "lockstep list ";
      const std::size_t at = option.text.find(kList);
      if (at == option.text.npos) continue;
      std::string_view kind = option.text.substr(at + kList.size());
      kind = kind.substr(0, kind.find_first_not_of("abcdefghijklmnopqrstuvwxyz-"));
      CAPTURE(command->spec->name);
      CAPTURE(option.name);
      CHECK(values_of(option).words == kind);
      ++found;
    }
  }
  CHECK(found > 20);
}

TEST_CASE("completion: zsh's script names every command, and parses where there is a zsh") {
  const test::TemporaryFolder folder;
  const test::Ran script = lockstep_with({"completion", "zsh"});
  CHECK(script.out.starts_with("#compdef lockstep\n"));
  for (const Command* command : commands()) {
    CHECK(script.out.find("    " + std::string(command->spec->name) + ")\n") != std::string::npos);
  }
  folder.write("_lockstep", script.out);
  const std::string check =
      "command -v zsh > /dev/null || exit 0; zsh -n '" + folder.path() + "/_lockstep'";
  // NOLINTNEXTLINE(cert-env33-c): the shell is what is tested
  CHECK(std::system(check.c_str()) == 0);
  CHECK(lockstep_with({"completion", "csh"}).err ==
        "lockstep completion: found \"csh\"; allowed: bash, zsh, fish\n");
}

TEST_CASE("completion: fish completes commands, options and values where there is a fish") {
  const test::TemporaryFolder folder;
  const test::Ran script = lockstep_with({"completion", "fish"});
  REQUIRE(script.exit == Exit::ok);
  for (const Command* command : commands()) {
    CHECK(script.out.find(" -a " + std::string(command->spec->name) + " -d ") != std::string::npos);
  }
  folder.write("lockstep.fish", script.out);
  // A column of what would be typed, and its description behind a tab.
  folder.write(
      "run.fish",
      "function lockstep; echo name; echo name_of_$argv[2],lockstep run; end\n"
      "source lockstep.fish\n"
      "for line in 'lockstep compa' 'lockstep tune --sha' 'lockstep run --format j' "
      "'lockstep completion ' 'lockstep replay --node n' 'lockstep show gpu n' "
      "'lockstep run --set n' 'lockstep run --model=n' 'lockstep plan --node one,n' "
      "'lockstep run --format json name_' 'lockstep explain file name_' "
      "'lockstep plan name_' 'lockstep export job name_' 'lockstep tune --sharding a,zero3'\n"
      "  complete -C $line | cut -f1\nend\n");
  const std::string command = "command -v fish > /dev/null || exit 7; cd '" + folder.path() +
                              "' && HOME=$PWD fish -N run.fish > replies.txt 2> errors.txt";
  // NOLINTNEXTLINE(cert-env33-c): the shell is what is tested
  const int status = std::system(command.c_str());
  if (status == 7 << 8) return;
  REQUIRE(status == 0);
  CHECK(read_text_file(folder.path() + "/errors.txt").empty());
  CHECK(read_text_file(folder.path() + "/replies.txt") ==
        "compare\n--sharding\njson\nbash\nfish\nzsh\nname_of_nodes\nname_of_gpu\nname_of_keys=\n"
        "--model=name_of_models\none,name_of_nodes\nname_of_scenarios\nname_of_fields\n"
        "name_of_scenarios\na,zero3\n");
}

}  // namespace lockstep
