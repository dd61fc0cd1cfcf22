#include "sim/scenario/preset_store.hpp"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <string>
#include <vector>

#include "models/base/input_error.hpp"
#include "sim/scenario/preset_files.hpp"
#include "tests/support/temporary_folder.hpp"

namespace lockstep {
namespace {

constexpr std::string_view kTinyModel =
    R"({"about": "Tiny.", "source": "here", "layers": 2, "hidden": 8, "heads": 4, "ffn": 32,
        "vocabulary": {"value": 100, "source": "there", "note": "padded"}})";

}  // namespace

TEST_CASE("PresetStore: a folder of one's own comes first, and adds to what ships") {
  const test::TemporaryFolder folder;
  folder.write("models/gpt3_175b.json", kTinyModel);
  folder.write("models/zz_tiny.json", kTinyModel);
  const PresetStore presets({folder.path()});
  CHECK(presets.model("gpt3_175b").layers == 2);
  CHECK(presets.model("zz_tiny").name == "zz_tiny");
  CHECK(presets.model("llama3_8b").layers == 32);
  CHECK(presets.names("models").back() == "zz_tiny");
  CHECK(PresetStore().model("gpt3_175b").layers == 96);
}

TEST_CASE("PresetStore: LOCKSTEP_PRESETS adds folders behind one's own, before what ships") {
  const test::TemporaryFolder first;
  const test::TemporaryFolder second;
  second.write("models/gpt3_175b.json", kTinyModel);
  setenv("LOCKSTEP_PRESETS", (":" + first.path() + ":" + second.path()).c_str(), 1);
  const PresetStore presets;
  const PresetStore with_own({first.path()});
  unsetenv("LOCKSTEP_PRESETS");
  CHECK(presets.model("gpt3_175b").layers == 2);
  CHECK(presets.model("llama3_8b").layers == 32);
  first.write("models/gpt3_175b.json", R"({"layers": 3, "hidden": 8, "heads": 4, "ffn": 32,
                                           "vocabulary": 9})");
  CHECK(with_own.model("gpt3_175b").layers == 3);
}

TEST_CASE("PresetStore: a folder that is not there, or holds nothing, is an error that names it") {
  CHECK_THROWS_WITH_AS(PresetStore({"/no/such/presets"}),
                       "/no/such/presets: found no such folder; allowed: a folder of presets, "
                       "KIND/NAME.json",
                       InputError);
  const test::TemporaryFolder empty;
  CHECK_THROWS_WITH_AS(throw no_presets("models", {empty.path(), "/no/such/presets"}),
                       ("presets of models: found none in " + empty.path() +
                        ", /no/such/presets (no such folder); allowed: at least one; --presets DIR "
                        "or the environment variable LOCKSTEP_PRESETS names their folder")
                           .c_str(),
                       InputError);
}

TEST_CASE("PresetStore: presets that ship come from the first of their places that exists") {
  const test::TemporaryFolder source, installed;
  const auto last = [](const ShippedPresets& ships) { return preset_folders({}, ships).back(); };
  const std::string missing = source.path() + "/missing";
  CHECK(last({.beside_program = ".", .source_tree = source.path(), .installed = {}}) !=
        source.path());
  CHECK(last({.beside_program = "no/such",
              .source_tree = source.path(),
              .installed = installed.path()}) == source.path());
  CHECK(
      last({.beside_program = "no/such", .source_tree = missing, .installed = installed.path()}) ==
      installed.path());
  const std::vector<std::string> none = preset_folders(
      {}, {.beside_program = "no/such", .source_tree = missing, .installed = "/none"});
  CHECK(none == std::vector<std::string>{missing, "/none"});  // for the error, which names them
}

TEST_CASE("PresetStore: what a shape leaves out follows from the rest") {
  const test::TemporaryFolder folder;
  folder.write("models/tiny.json", kTinyModel);
  const PresetStore presets({folder.path()});
  CHECK(presets.model("tiny").kv_heads == 4);
  CHECK(presets.model("tiny").head_dim == 2);
}

TEST_CASE("PresetStore: show lists every value with the source that covers it") {
  const test::TemporaryFolder folder;
  folder.write("models/tiny.json", kTinyModel);
  const std::vector<PresetRow> rows = PresetStore({folder.path()}).show("models", "tiny");
  REQUIRE(rows.size() == 6);
  CHECK(rows[1].path == "layers");
  CHECK(rows[1].value == "2");
  CHECK(rows[1].source == "here");
  CHECK(rows[5].path == "vocabulary");
  CHECK(rows[5].value == "100");
  CHECK(rows[5].source == "there");
  CHECK(rows[5].note == "padded");
}

TEST_CASE("PresetStore: unknown names and kinds are errors that help") {
  const PresetStore presets;
  CHECK_THROWS_WITH_AS((void)presets.names("gpu"),
                       "presets: found the kind \"gpu\"; allowed: gpus, nodes, models, stacks, "
                       "fabrics, transports, nvlinks, reliability, storages, chassis, "
                       "facilities, clusters, profiles, engines, operators. Did you mean \"gpus\"?",
                       InputError);
  try {
    (void)presets.gpu("h100_sxm_80gb");
    FAIL("no such GPU, and no error");
  } catch (const InputError& error) {
    CHECK(error.problem().file == "presets of gpus");
    CHECK(error.problem().found == "\"h100_sxm_80gb\"");
    CHECK(error.problem().allowed == listed(presets.names("gpus")));
    CHECK(error.problem().nearest == "h100_sxm5_80gb");
  }
}

TEST_CASE("PresetStore: a name cannot lead out of the folder") {
  const test::TemporaryFolder folder;
  folder.write("secret.json", kTinyModel);
  folder.write("models/tiny.json", kTinyModel);
  const PresetStore presets({folder.path()});
  CHECK(presets.has("models", "tiny"));
  for (const char* name : {"../secret", "", ".", "..", "/etc/passwd", "models/../tiny"}) {
    CAPTURE(name);
    CHECK_FALSE(presets.has("models", name));
  }
}

TEST_CASE("PresetStore: a bad preset is an error in that file") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write(
      "transports/bad.json", R"({"efficiency": {"value": 1.5, "source": "x"}, "hop_latency": 0})");
  // And what it lacks.
  const std::string said =
      file + "#/efficiency/value: found 1.5; allowed: a number from 0.01 to 1\n";
  CHECK_THROWS_WITH_AS((void)PresetStore({folder.path()}).transport("bad"),
                       doctest::Contains(said.c_str()), InputError);
}

TEST_CASE(
    "PresetStore: a release changes only what it names, and an unknown one takes a neighbour") {
  const test::TemporaryFolder folder;
  folder.write("stacks/s.json",
               R"({"about": "S.", "source": "x", "attention": "flash2",
                   "elementwise": {"slowdown": 1.5, "loss_bytes": 20},
                   "releases": {"24.05": {}, "24.11": {"elementwise": {"slowdown": 1.2}},
                                "25.04.02": {"attention": "flash3"}}})");
  const PresetStore presets({folder.path()});
  CHECK(presets.stack("s").spec.release.empty());
  CHECK(presets.stack("s").spec.elementwise.slowdown == 1.5);
  CHECK(presets.stack("s", "24.11").spec.elementwise.slowdown == 1.2);
  CHECK(presets.stack("s", "24.11").spec.elementwise.loss_bytes == 20);
  CHECK(presets.stack("s", "24.11").assumption.empty());
  // A later release starts from the base, not from the one before.
  CHECK(presets.stack("s", "25.04.02").spec.elementwise.slowdown == 1.5);
  CHECK(presets.stack("s", "25.04.02").spec.attention == AttentionKernel::flash3);

  const StackPreset& between = presets.stack("s", "25.01");
  CHECK(between.spec.elementwise.slowdown == 1.2);
  CHECK(between.spec.release == "24.11");
  CHECK(between.assumption == "release 25.01: taken as 24.11, the nearest that s knows");
}

TEST_CASE("nearest_release: exact, nearest earlier, else earliest, without numbers, the newest") {
  const std::vector<std::string> known{"9.1", "24.05", "24.11", "25.04.02"};
  CHECK(nearest_release("24.05", known) == "24.05");
  CHECK(nearest_release("24.10", known) == "24.05");
  CHECK(nearest_release("24.12", known) == "24.11");
  CHECK(nearest_release("25.04", known) == "25.04.02");
  CHECK(nearest_release("99", known) == "25.04.02");
  CHECK(nearest_release("10", known) == "9.1");
  CHECK(nearest_release("1", known) == "9.1");
  CHECK(nearest_release("main", known) == "25.04.02");
}

}  // namespace lockstep
