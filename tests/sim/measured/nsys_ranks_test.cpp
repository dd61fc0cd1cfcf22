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
std::string made(const std::string& file, const std::vector<MadeProcess>& processes,
                 const std::vector<std::pair<std::string, std::string>>& environment = {}) {
  NsysDatabase db(file);
  for (const MadeProcess& each : processes) {
    db.kernel("nvjet_tst_64x8", 100, 150, {each.device, 7, each.process});
    if (each.mpi_rank >= 0) db.mpi_rank(each.process, each.mpi_rank);
  }
  for (const auto& [name, value] : environment) db.environment(name, value);
  return file;
}

struct Placed {
  std::vector<int> ranks;  ///< in the order of files, then GPUs
  std::vector<int> worlds;
  std::string note;
};
Placed placed(const std::vector<std::string>& files) {
  std::vector<NsysExport> exports;
  for (const std::string& file : files) exports.push_back(read_nsys_export(file, NsysHost::none));
  Placed out;
  out.note = place_nsys_ranks(exports);
  for (const NsysExport& each : exports) {
    for (const NsysGpu& gpu : each.gpus) {
      out.ranks.push_back(gpu.recording.rank.value_or(-1));
      out.worlds.push_back(gpu.recording.world.value_or(-1));
    }
  }
  return out;
}
std::string refused(const std::vector<std::string>& files) {
  try {
    (void)placed(files);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

using Ranks = std::vector<int>;

}  // namespace

TEST_CASE("nsys ranks: MPI_RANKS counts processes, over all files") {
  const TemporaryFolder folder;
  const std::string b = made(folder.path() + "/b.sqlite", {{7, 0, 3}, {8, 1, 2}});
  const std::string a = made(folder.path() + "/a.sqlite", {{7, 0, 0}, {8, 1, 1}});
  const Placed found = placed({b, a});
  CHECK(found.ranks == Ranks{3, 2, 0, 1});
  CHECK(found.note.find("MPI ranks") != std::string::npos);
  // Of one file too, whatever the order of its GPUs.
  CHECK(placed({b}).ranks == Ranks{3, 2});
  const std::string again = made(folder.path() + "/c.sqlite", {{5, 0, 2}});
  CHECK(refused({b, again}) == again +
                                   ": found MPI rank 2; allowed: each rank once; a process in " +
                                   b + " is of the same rank");
  const std::string silent = made(folder.path() + "/d.sqlite", {{5, 0, -1}});
  CHECK(refused({a, silent}).starts_with(silent + ": found a process with kernels and without"));
}

TEST_CASE("nsys ranks: processes with two GPUs each are two ranks each") {
  const TemporaryFolder folder;
  const std::string a = made(folder.path() + "/a.sqlite", {{3, 0, 1}, {3, 1, 1}});
  const std::string b = made(folder.path() + "/b.sqlite", {{3, 0, 0}, {3, 1, 0}});
  CHECK(placed({a, b}).ranks == Ranks{2, 3, 0, 1});
  const std::string one = made(folder.path() + "/c.sqlite", {{3, 0, 2}});
  CHECK(refused({a, b, one}).starts_with(one + ": found 1 GPU of MPI rank 2; allowed: as many"));
}

TEST_CASE("nsys ranks: the environment tells the export's, a variable a row or all in one") {
  const TemporaryFolder folder;
  const std::string a =
      made(folder.path() + "/a.sqlite", {{}},
           {{"DeviceEnvironment", "HOME=/root\nMY_PMI_RANK=7\nPMI_RANK=1\nPMI_SIZE=4\n"}});
  const std::string b =
      made(folder.path() + "/b.sqlite", {{}}, {{"PMI_RANK", "0"}, {"PMI_SIZE", "4"}});
  const Placed found = placed({a, b});
  CHECK(found.ranks == Ranks{1, 0});
  CHECK(found.worlds == Ranks{4, 4});
  const std::string same = made(folder.path() + "/c.sqlite", {{}}, {{"RANK", "1"}});
  CHECK(refused({a, same}) ==
        same + ": found rank 1; allowed: each rank once; " + a + " is of the same rank");
  const std::string none = made(folder.path() + "/d.sqlite", {{}});
  CHECK(refused({a, none}).starts_with(none + ": found no rank in the recorded environment; "));
  const std::string two = made(folder.path() + "/e.sqlite", {{3, 0}, {3, 1}}, {{"PMI_RANK", "2"}});
  CHECK(refused({a, two}).starts_with(two + ": found 2 GPUs; allowed: as many as in " + a));
}

TEST_CASE("nsys ranks: Slurm's task is a rank in a step alone, and a node of GPUs is several") {
  const TemporaryFolder folder;
  const auto node = [&](const std::string& name, const char* task, bool step) {
    std::vector<std::pair<std::string, std::string>> environment{{"SLURM_PROCID", task},
                                                                 {"SLURM_STEP_NUM_TASKS", "2"}};
    if (step) environment.emplace_back("SLURM_STEP_ID", "0");
    return made(folder.path() + "/" + name, {{4, 0}, {5, 1}}, environment);
  };
  const Placed found = placed({node("x.sqlite", "1", true), node("y.sqlite", "0", true)});
  CHECK(found.ranks == Ranks{2, 3, 0, 1});
  CHECK(found.worlds == Ranks{4, 4, 4, 4});
  // A batch script's task says nothing: the order of the files does.
  CHECK(placed({node("v.sqlite", "0", false), node("w.sqlite", "0", false)}).ranks ==
        Ranks{0, 1, 2, 3});
}

TEST_CASE("nsys ranks: numbers of the names, else the order of the files") {
  const TemporaryFolder folder;
  const auto one = [&](const std::string& name) { return made(folder.path() + "/" + name, {{}}); };
  const std::string ten = one("run-rank10.sqlite"), two = one("run-rank2.sqlite");
  CHECK(placed({ten, two}).ranks == Ranks{10, 2});
  CHECK(placed({one("report1.sqlite"), one("report2.sqlite")}).ranks == Ranks{0, 1});
  CHECK(placed({one("step.4.sqlite"), one("step.0.sqlite")}).ranks == Ranks{4, 0});
  const Placed counted = placed({one("b.sqlite"), one("a.sqlite")});
  CHECK(counted.ranks == Ranks{0, 1});
  CHECK(counted.note.find("in the order of the files") != std::string::npos);
  const std::string other = one("other-rank2.sqlite");
  CHECK(refused({two, other}) ==
        other + ": found rank 2; allowed: each rank once; " + two + " is of the same rank");
  CHECK(refused({two, folder.path() + "/a.sqlite"})
            .starts_with(folder.path() + "/a.sqlite: found no rank in the file's name; "));
  CHECK(refused({two, two}) == two + ": found the file twice; allowed: each file once");
}

TEST_CASE("nsys ranks: GPUs count on through exports of several, by the machine's numbers") {
  const TemporaryFolder folder;
  const std::string second = made(folder.path() + "/node-12.sqlite", {{3, 0}, {3, 1}});
  const std::string first = folder.path() + "/node-2.sqlite";
  {
    // Both processes see one GPU, which they call 0.
    NsysDatabase db(first);
    db.kernel("nvjet_tst_64x8", 100, 150, {0, 7, 3});
    db.kernel("rmsnorm_fwd", 100, 180, {0, 7, 4});
    db.renumber(3, 0, 1);
    db.renumber(4, 0, 0);
  }
  CHECK(placed({second, first}).ranks == Ranks{2, 3, 0, 1});
  const NsysExport read = read_nsys_export(first, NsysHost::none);
  REQUIRE(read.gpus.size() == 2);
  CHECK(read.gpus[0].process == NsysDatabase::process_id(4) >> 24);
  CHECK(read.gpus[0].recording.names.at(0) == "rmsnorm_fwd");
}

TEST_CASE("replay of Nsight Systems: an export a rank, in one folder, and what went wrong") {
  const TemporaryFolder folder;
  made(folder.path() + "/a.sqlite", {{3, 0}, {4, 1}});
  made(folder.path() + "/b.sqlite", {{3, 0}, {4, 1}});
  const Ran ran =
      lockstep_with({"replay", folder.path(), "--node", "dgx_h100", "--format", "json"});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  const nlohmann::json json = nlohmann::json::parse(ran.out);
  CHECK(json["ranks"] == 4);
  CHECK(json["notes"].dump().find("in the order of the files") != std::string::npos);
  made(folder.path() + "/rank0.sqlite", {{3, 0, 0}});
  const Ran mixed = lockstep_with({"replay", folder.path(), "--node", "dgx_h100"});
  CHECK(mixed.exit == Exit::bad_input);
  CHECK(mixed.err.find("a process with kernels and without an MPI rank") != std::string::npos);
}
