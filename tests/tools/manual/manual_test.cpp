// lockstep manual: pages that man reads without a complaint, and that have all that --help has.
#include <algorithm>
#include <cstdlib>
#include <doctest/doctest.h>
#include <string>

#include "models/base/text_file.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

namespace lockstep::test {
namespace {

/// How many times a text stands in another.
std::size_t times(const std::string& text, std::string_view what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
    ++count;
  }
  return count;
}

}  // namespace

TEST_CASE(
    "manual: a page of each command has each of its options, and the program's its commands") {
  const Ran program = lockstep_with({"manual"});
  CHECK(program.exit == Exit::ok);
  CHECK(times(program.out, ".TP\n") == commands().size());
  for (const Command* command : commands()) {
    const Ran page = lockstep_with({"manual", std::string(command->spec->name)});
    CAPTURE(command->spec->name);
    CHECK(page.exit == Exit::ok);
    CHECK(page.out.starts_with(".TH LOCKSTEP\\-"));
    CHECK(times(page.out, ".TP\n") == command->spec->options.size());
  }
  CHECK(lockstep_with({"manual", "rnu"}).err.ends_with(". Did you mean run?\n"));
}

TEST_CASE("manual: man shows what --help says, without a warning") {
  const TemporaryFolder folder;
  for (const char* name : {"run", "completion", "explore"}) {
    folder.write("page.1", lockstep_with({"manual", name}).out);
    const std::string command =
        "command -v man > /dev/null || exit 7; cd '" + folder.path() +
        "' && MANWIDTH=200 LC_ALL=C.UTF-8 man --warnings -E UTF-8 -l page.1 "
        "> page.txt 2> errors.txt";
    // NOLINTNEXTLINE(cert-env33-c): man is what is tested
    const int status = std::system(command.c_str());
    if (status == 7 << 8) return;
    CHECK(status == 0);
    CHECK(read_text_file(folder.path() + "/errors.txt").empty());
    CHECK(read_text_file(folder.path() + "/page.txt").find("EXAMPLES") != std::string::npos);
  }
}

}  // namespace lockstep::test
