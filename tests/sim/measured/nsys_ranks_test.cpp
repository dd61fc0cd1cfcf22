// Which ranks the GPUs of several exports of Nsight Systems are.
#include "sim/measured/nsys_ranks.hpp"

#include <doctest/doctest.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "tests/support/nsys_database.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

/// Processes that ran a kernel on a GPU each.
struct MadeProcess {
  int process = 3, device = 0;
  int mpi_rank = -1;
};
std::string made_export(const std::string& file, const std::vector<MadeProcess>& processes,
                        const std::vector<std::pair<std::string, std::string>>& environment = {}) {
  NsysDatabase db(file);
  for (const MadeProcess& each : processes) {
    db.kernel("nvjet_tst_64x8", 100, 150, {each.device, 7, each.process});
    if (each.mpi_rank >= 0) db.mpi_rank(each.process, each.mpi_rank);
  }
  for (const auto& [name, value] : environment) db.environment(name, value);
  return file;
}

struct PlacedExports {
  std::vector<int> ranks;  ///< in the order of files, then GPUs
  std::vector<int> worlds;
  std::string note;
};
PlacedExports placed_exports(const std::vector<std::string>& files) {
  std::vector<NsysExport> exports;
  for (const std::string& file : files) exports.push_back(read_nsys_export(file, NsysHost::none));
  PlacedExports out;
  out.note = place_nsys_ranks(exports);
  for (const NsysExport& each : exports) {
    for (const NsysGpu& gpu : each.gpus) {
      out.ranks.push_back(gpu.recording.rank.value_or(-1));
      out.worlds.push_back(gpu.recording.world.value_or(-1));
    }
  }
  return out;
}
std::string export_mistake(const std::vector<std::string>& files) {
  try {
    (void)placed_exports(files);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

using ExportRanks = std::vector<int>;

}  // namespace

TEST_CASE("nsys ranks: MPI_RANKS counts processes, over all files") {
  const TemporaryFolder folder;
  const std::string b = made_export(folder.path() + "/b.sqlite", {{7, 0, 3}, {8, 1, 2}});
  const std::string a = made_export(folder.path() + "/a.sqlite", {{7, 0, 0}, {8, 1, 1}});
  const PlacedExports found = placed_exports({b, a});
  CHECK(found.ranks == ExportRanks{3, 2, 0, 1});
  CHECK(found.note.find("MPI ranks") != std::string::npos);
  // Of one file too, whatever the order of its GPUs.
  CHECK(placed_exports({b}).ranks == ExportRanks{3, 2});
  const std::string again = made_export(folder.path() + "/c.sqlite", {{5, 0, 2}});
  CHECK(export_mistake({b, again}) ==
        again + ": found MPI rank 2; allowed: each rank once; a process in " + b +
            " is of the same rank");
  const std::string silent = made_export(folder.path() + "/d.sqlite", {{5, 0, -1}});
  CHECK(export_mistake({a, silent})
            .starts_with(silent + ": found a process with kernels and without"));
}

TEST_CASE("nsys ranks: processes with two GPUs each are two ranks each") {
  const TemporaryFolder folder;
  const std::string a = made_export(folder.path() + "/a.sqlite", {{3, 0, 1}, {3, 1, 1}});
  const std::string b = made_export(folder.path() + "/b.sqlite", {{3, 0, 0}, {3, 1, 0}});
  CHECK(placed_exports({a, b}).ranks == ExportRanks{2, 3, 0, 1});
  const std::string one = made_export(folder.path() + "/c.sqlite", {{3, 0, 2}});
  CHECK(export_mistake({a, b, one})
            .starts_with(one + ": found 1 GPU of MPI rank 2; allowed: as many"));
}

TEST_CASE("nsys ranks: the environment tells the export's, a variable a row or all in one") {
  const TemporaryFolder folder;
  const std::string a =
      made_export(folder.path() + "/a.sqlite", {{}},
                  {{"DeviceEnvironment", "HOME=/root\nMY_PMI_RANK=7\nPMI_RANK=1\nPMI_SIZE=4\n"}});
  const std::string b =
      made_export(folder.path() + "/b.sqlite", {{}}, {{"PMI_RANK", "0"}, {"PMI_SIZE", "4"}});
  const PlacedExports found = placed_exports({a, b});
  CHECK(found.ranks == ExportRanks{1, 0});
  CHECK(found.worlds == ExportRanks{4, 4});
  const std::string same = made_export(folder.path() + "/c.sqlite", {{}}, {{"RANK", "1"}});
  CHECK(export_mistake({a, same}) ==
        same + ": found rank 1; allowed: each rank once; " + a + " is of the same rank");
  const std::string none = made_export(folder.path() + "/d.sqlite", {{}});
  CHECK(export_mistake({a, none}).starts_with(none +
                                              ": found no rank in the recorded environment; "));
  const std::string two =
      made_export(folder.path() + "/e.sqlite", {{3, 0}, {3, 1}}, {{"PMI_RANK", "2"}});
  CHECK(export_mistake({a, two}).starts_with(two + ": found 2 GPUs; allowed: as many as in " + a));
}

TEST_CASE("nsys ranks: Slurm's task is a rank in a step alone, and a node of GPUs is several") {
  const TemporaryFolder folder;
  const auto node = [&](const std::string& name, const char* task, bool step) {
    std::vector<std::pair<std::string, std::string>> environment{{"SLURM_PROCID", task},
                                                                 {"SLURM_STEP_NUM_TASKS", "2"}};
    if (step) environment.emplace_back("SLURM_STEP_ID", "0");
    return made_export(folder.path() + "/" + name, {{4, 0}, {5, 1}}, environment);
  };
  const PlacedExports found =
      placed_exports({node("x.sqlite", "1", true), node("y.sqlite", "0", true)});
  CHECK(found.ranks == ExportRanks{2, 3, 0, 1});
  CHECK(found.worlds == ExportRanks{4, 4, 4, 4});
  // A batch script's task says nothing: the order of the files does.
  CHECK(placed_exports({node("v.sqlite", "0", false), node("w.sqlite", "0", false)}).ranks ==
        ExportRanks{0, 1, 2, 3});
}

TEST_CASE("nsys ranks: numbers of the names, else the order of the files") {
  const TemporaryFolder folder;
  const auto one = [&](const std::string& name) {
    return made_export(folder.path() + "/" + name, {{}});
  };
  const std::string ten = one("run-rank10.sqlite"), two = one("run-rank2.sqlite");
  CHECK(placed_exports({ten, two}).ranks == ExportRanks{10, 2});
  CHECK(placed_exports({one("report1.sqlite"), one("report2.sqlite")}).ranks == ExportRanks{0, 1});
  CHECK(placed_exports({one("step.4.sqlite"), one("step.0.sqlite")}).ranks == ExportRanks{4, 0});
  const PlacedExports counted = placed_exports({one("b.sqlite"), one("a.sqlite")});
  CHECK(counted.ranks == ExportRanks{0, 1});
  CHECK(counted.note.find("in the order of the files") != std::string::npos);
  const std::string other = one("other-rank2.sqlite");
  CHECK(export_mistake({two, other}) ==
        other + ": found rank 2; allowed: each rank once; " + two + " is of the same rank");
  CHECK(export_mistake({two, folder.path() + "/a.sqlite"})
            .starts_with(folder.path() + "/a.sqlite: found no rank in the file's name; "));
  CHECK(export_mistake({two, two}) == two + ": found the file twice; allowed: each file once");
}

TEST_CASE("nsys ranks: GPUs count on through exports of several, by the machine's numbers") {
  const TemporaryFolder folder;
  const std::string second = made_export(folder.path() + "/node-12.sqlite", {{3, 0}, {3, 1}});
  const std::string first = folder.path() + "/node-2.sqlite";
  {
    // Both processes see one GPU, which they call 0.
    NsysDatabase db(first);
    db.kernel("nvjet_tst_64x8", 100, 150, {0, 7, 3});
    db.kernel("rmsnorm_fwd", 100, 180, {0, 7, 4});
    db.renumber(3, 0, 1);
    db.renumber(4, 0, 0);
  }
  CHECK(placed_exports({second, first}).ranks == ExportRanks{2, 3, 0, 1});
  const NsysExport read = read_nsys_export(first, NsysHost::none);
  REQUIRE(read.gpus.size() == 2);
  CHECK(read.gpus[0].process == NsysDatabase::process_id(4) >> 24);
  CHECK(read.gpus[0].recording.names.at(0) == "rmsnorm_fwd");
}

TEST_CASE("replay of Nsight Systems: an export a rank, in one folder, and what went wrong") {
  const TemporaryFolder folder;
  made_export(folder.path() + "/a.sqlite", {{3, 0}, {4, 1}});
  made_export(folder.path() + "/b.sqlite", {{3, 0}, {4, 1}});
  const Ran ran =
      lockstep_with({"replay", folder.path(), "--node", "dgx_h100", "--format", "json"});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  const nlohmann::json json = nlohmann::json::parse(ran.out);
  CHECK(json["ranks"] == 4);
  CHECK(json["notes"].dump().find("in the order of the files") != std::string::npos);
  made_export(folder.path() + "/rank0.sqlite", {{3, 0, 0}});
  const Ran mixed = lockstep_with({"replay", folder.path(), "--node", "dgx_h100"});
  CHECK(mixed.exit == Exit::bad_input);
  CHECK(mixed.err.find("a process with kernels and without an MPI rank") != std::string::npos);
}
