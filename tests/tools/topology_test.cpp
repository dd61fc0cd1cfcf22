#include <doctest/doctest.h>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/input/text_file.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

const std::string kSource = LOCKSTEP_SOURCE_DIR;
const std::string kRails = kSource + "/tests/reference/infiniband/rails4x4.ibnetdiscover";

}  // namespace

TEST_CASE("lockstep topology: imports, exports to every format and imports the same again") {
  const TemporaryFolder folder;
  const std::string fabric = folder.path() + "/fabric.json";
  const std::string hosts = folder.write("hosts.txt", "node 3\nnode 1\n");
  const Ran ran = lockstep_with({"topology", "import", kRails, "--hosts", hosts, "-o", fabric});
  CHECK(ran.err.empty());
  CHECK(ran.exit == Exit::ok);
  CHECK(ran.out == "ibnetdiscover, ibsim: 4 hosts, 16 NICs, 6 switches, 32 cables\n");
  const auto written = nlohmann::json::parse(read_text_file(fabric));
  CHECK(written["hosts"][0]["name"] == "node 3");
  CHECK(written["hosts"][1]["name"] == "node 1");
  for (const char* format : {"ibsim", "graphml", "dot", "fabric"}) {
    CAPTURE(format);
    const std::string file = folder.path() + "/out." + format;
    CHECK(lockstep_with({"topology", "export", fabric, "--format", format, "-o", file}).exit ==
          Exit::ok);
    const Ran again = lockstep_with({"topology", "import", file, "--hosts", hosts});
    CHECK(again.exit == Exit::ok);
    const auto back = nlohmann::json::parse(again.out);
    for (const char* key : {"hosts", "switches", "cables"}) CHECK(back[key] == written[key]);
  }
}

TEST_CASE("lockstep topology show: figures as a table and as JSON, with a picture") {
  const TemporaryFolder folder;
  const std::string picture = folder.path() + "/fabric.svg";
  const Ran ran = lockstep_with({"topology", "show", kRails, "--svg", picture});
  CHECK(ran.exit == Exit::ok);
  CHECK(ran.out.find("4 cables at most") != std::string::npos);
  CHECK(read_text_file(picture).starts_with("<svg "));
  const auto json =
      nlohmann::json::parse(lockstep_with({"topology", "show", kRails, "--format", "json"}).out);
  CHECK(json["diameter_cables"] == 4);
  CHECK(json["bisection_bytes_per_s"] == json["half_injection_bytes_per_s"]);
}

TEST_CASE("lockstep topology show: a scenario's faults are down in the picture") {
  const TemporaryFolder folder;
  const std::string picture = folder.path() + "/fabric.svg";
  const Ran ran = lockstep_with({"topology", "show", kSource + "/scenarios/comm/broken-fabric.json",
                                 "--format", "json", "--svg", picture});
  REQUIRE(ran.exit == Exit::ok);
  const auto json = nlohmann::json::parse(ran.out);
  // The four cables of a spine, one by name, two by a seed, which takes one of them again.
  CHECK(json["down_cables"] == 6);
  CHECK(json["cables"] == 32 + 4 * 8 - 6);
  CHECK(read_text_file(picture).find("58 cables, 6 more are down") != std::string::npos);
}

TEST_CASE(
    "lockstep topology: a mistake is one line with the line's number, and nothing is written") {
  const TemporaryFolder folder;
  const std::string wrong = folder.write("topology.conf", "SwitchName=a Nodes=n[1-2]\nSwichName=b");
  const std::string out = folder.path() + "/fabric.json";
  const Ran ran = lockstep_with({"topology", "import", wrong, "--rate", "400 Gb/s", "-o", out});
  CHECK(ran.exit == Exit::bad_input);
  CHECK(ran.err.starts_with(wrong + ":2: found \"SwichName\"; allowed: SwitchName, "));
  CHECK(ran.err.ends_with("Did you mean \"SwitchName\"?\n"));
  CHECK_FALSE(std::filesystem::exists(out));
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes{
      {{"topology"}, "lockstep topology: nothing to do; "},
      {{"topology", "shew", "x"}, "lockstep topology: unknown action \"shew\"; allowed: import, "},
      {{"topology", "show"}, "lockstep topology show: no file; "},
      {{"topology", "show", "rail_optimised"}, "lockstep topology: fabric preset "},
      {{"topology", "export", kRails}, "lockstep topology export: --format is missing; "},
      {{"topology", "show", folder.path()}, folder.path() + ": found a directory; "},
      {{"topology", "show", kRails, "--nodes", "4"}, "lockstep topology: --nodes is for scenarios"},
  };
  for (const auto& [args, message] : mistakes) {
    const Ran found = lockstep_with(args);
    CHECK(found.exit == Exit::bad_input);
    CHECK_MESSAGE(found.err.starts_with(message), found.err);
  }
}
