// lockstep replay, of a database with the tables that nsys export --type sqlite makes.
#include "sim/measured/nsys_recording.hpp"

#include <SQLiteCpp/Database.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/near.hpp"
#include "tests/support/nsys_database.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

namespace lockstep {
namespace {

using test::NsysDatabase;

nlohmann::json replayed(const std::vector<std::string>& words) {
  std::vector<std::string> args{"replay"};
  args.insert(args.end(), words.begin(), words.end());
  args.insert(args.end(), {"--node", "dgx_h100", "--format", "json"});
  const test::Ran ran = test::lockstep_with(args);
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  return nlohmann::json::parse(ran.out);
}

}  // namespace

TEST_CASE("replay of Nsight Systems: kernels on their streams, gaps and NCCL as recorded") {
  const test::TemporaryFolder folder;
  const std::string file = folder.path() + "/report1.sqlite";
  {
    NsysDatabase db(file);
    db.kernel("nvjet_tst_64x8", 100, 150, {0, 7});
    db.kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 150, 190, {0, 20});
    db.kernel("rmsnorm_fwd_tuned_kernel", 160, 170, {0, 7});
    db.copy(2, 200, 230, {0, 7});
  }
  const std::vector<KinetoRecording> recordings = read_nsys_recordings(file, NsysHost::none);
  REQUIRE(recordings.size() == 1);
  CHECK(recordings[0].streams == 2);
  CHECK(recordings[0].device == "NVIDIA H100 80GB HBM3");
  REQUIRE(recordings[0].gpu.size() == 4);
  CHECK(recordings[0].gpu[1].communicates());
  CHECK(recordings[0].gpu[1].start == 50'000'000);   // 50 us after the first event
  CHECK(recordings[0].gpu[0].launch == -5'000'000);  // 5 us before it
  CHECK(recordings[0].gpu[3].copies);
  const nlohmann::json json = replayed({file});
  CHECK(json["ranks"] == 1);
  CHECK(json["step_s"].get<double>() == test::near(130e-6));
  CHECK(json["recorded_s"].get<double>() == test::near(130e-6));
}

TEST_CASE("replay of Nsight Systems: columns that older exports do not have") {
  const test::TemporaryFolder folder;
  for (const char* sql :
       {"ALTER TABLE NVTX_EVENTS DROP COLUMN textId",
        "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME COLUMN demangledName TO shortName",
        "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN globalPid", "DROP TABLE StringIds",
        "ALTER TABLE NVTX_EVENTS DROP COLUMN end"}) {
    CAPTURE(sql);
    const std::string file = fmt::format("{}/{}.sqlite", folder.path(), std::string(sql).size());
    {
      NsysDatabase db(file);
      db.range("step 4", 0, 100);
      db.kernel("nvjet_tst_64x8", 20, 90, {0, 7});
      db.change(sql);
    }
    const std::vector<KinetoRecording> recordings = read_nsys_recordings(file, NsysHost::none);
    REQUIRE(recordings.size() == 1);
    REQUIRE(recordings[0].gpu.size() == 1);
    const bool named = std::string(sql) != "DROP TABLE StringIds";
    CHECK(recordings[0].names[recordings[0].gpu[0].name] == (named ? "nvjet_tst_64x8" : "kernel"));
  }
}

TEST_CASE("replay of Nsight Systems: NVTX ranges mark steps, by their number") {
  const test::TemporaryFolder folder;
  const std::string file = folder.path() + "/report1.sqlite";
  {
    NsysDatabase db(file);
    // Three steps of 100, 120 and 140 us, each a kernel; ranges inside are no steps.
    db.range("step 4", 0, 100);
    db.range("forward", 10, 60);
    db.range("step 5", 100, 220);
    db.range("step 6", 220, 360);
    db.kernel("nvjet_tst_64x8", 20, 90, {0, 7});
    db.kernel("nvjet_tst_64x8", 120, 210, {0, 7});
    db.kernel("nvjet_tst_64x8", 240, 350, {0, 7});
  }
  REQUIRE(read_nsys_recordings(file, NsysHost::none)[0].marks.size() == 3);
  CHECK(read_nsys_recordings(file, NsysHost::none)[0].marks[2].number == 6);
  CHECK(replayed({file})["step_s"].get<double>() == test::near(120e-6));
  CHECK(replayed({file, "--step", "6"})["step_s"].get<double>() == test::near(140e-6));
  CHECK(replayed({file, "--step", "all"})["step_s"].get<double>() == test::near(330e-6));
}

TEST_CASE("marks_step: words of loops, numbers and signs apart") {
  for (const char* const text :
       {"step 12", "Step: 3", "iteration=7", "ProfilerStep#5", "train_step", "iter_0"}) {
    CHECK_MESSAGE(marks_step(text), text);
  }
  for (const char* const text : {"optimizer step", "forward", "12", "", "stepwise", "epoch 1"}) {
    CHECK_FALSE_MESSAGE(marks_step(text), text);
  }
}

TEST_CASE("replay of Nsight Systems: each GPU of the file is a rank, processes apart") {
  const test::TemporaryFolder folder;
  const std::string file = folder.path() + "/report1.sqlite";
  {
    NsysDatabase db(file);
    db.kernel("nvjet_tst_64x8", 100, 150, {0, 7, 3});
    db.kernel("nvjet_tst_64x8", 100, 180, {1, 7, 4});
    db.copy(1, 90, 95, {0, 7, 4});  // the second process looked at the first card, too
  }
  const std::vector<KinetoRecording> recordings = read_nsys_recordings(file, NsysHost::none);
  REQUIRE(recordings.size() == 2);
  CHECK(recordings[1].rank == 1);
  CHECK(recordings[1].world == 2);
  CHECK(recordings[0].gpu.size() == 1);
  const nlohmann::json json = replayed({folder.path()});  // a folder of them
  CHECK(json["ranks"] == 2);
  CHECK(json["step_s"].get<double>() == test::near(80e-6));
}

TEST_CASE("diagnose of Nsight Systems: ranges of emit_nvtx tell operators and their shapes") {
  const test::TemporaryFolder folder;
  const std::string file = folder.path() + "/report1.sqlite";
  {
    NsysDatabase db(file);
    db.range("aten::mm, seq = 4, sizes = [[2048, 4096], [4096, 11008]]", 90, 99);
    db.range("aten::silu, seq = 5, sizes = [[2048, 11008]]", 140, 149);
    db.range("autograd::engine::evaluate_function: MmBackward0, seq = 4", 190, 209);
    db.kernel("nvjet_tst_64x8", 100, 150, {0, 7});  // launched at 95
    db.kernel("vectorized_elementwise_kernel", 150, 160, {0, 7});
    db.kernel("vectorized_elementwise_kernel", 200, 240, {0, 7});
  }
  const KinetoRecording recording = read_nsys_recordings(file, NsysHost::launchers).at(0);
  REQUIRE(recording.launchers.size() == 3);
  const KinetoRecording::Enclosing& product = recording.launchers[recording.gpu[0].launcher].at(0);
  CHECK(recording.names[product.name] == "aten::mm");
  CHECK(product.sequence == 4);
  CHECK(recording.shapes.at(product.shapes).at(1) == TensorShape{4096, 11008});
  CHECK(recording.operators.empty());
  const std::string job = folder.write("job.json", R"({"model": "llama2_7b",
    "cluster": {"node": "dgx_h100", "nodes": 1, "fabric": "ideal"}, "parallelism": {"data": 8},
    "batch": {"sequences": 8, "micro": 1, "tokens": 2048}})");
  const test::Ran ran = test::lockstep_with({"diagnose", job, file, "--format", "json"});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  std::map<std::string, double> recorded;
  const nlohmann::json json = nlohmann::json::parse(ran.out);
  for (const nlohmann::json& row : json["operators"]) {
    recorded[row["name"]] = row["recorded_s"].get<double>();
  }
  // The kernel of the backward pass is of the call with its number.
  CHECK(recorded["mlp_up"] == test::near(90e-6));
  CHECK(recorded["activation"] == test::near(10e-6));
  CHECK(recorded["host"] == test::near(40e-6));
  CHECK(recorded["unassigned"] == 0);
}

TEST_CASE("replay of Nsight Systems: a kernel without times, or years later, is one line") {
  const test::TemporaryFolder folder;
  const auto refused = [&](const std::string& name, const std::string& times) {
    const std::string file = folder.path() + "/" + name + ".sqlite";
    {
      test::NsysDatabase(file).kernel("gemm", 0, 5, {});
    }
    SQLite::Database(file, SQLite::OPEN_READWRITE)
        .exec(
            "INSERT INTO StringIds VALUES (99, 'late'); "
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (" +
            times + ", 0, 7, 50331648, 98, 99)");
    const test::Ran ran = test::lockstep_with({"replay", file, "--node", "dgx_h100"});
    CHECK(ran.exit == Exit::bad_input);
    CHECK(ran.out.empty());
    return ran.err.substr(std::min(ran.err.size(), file.size()));
  };
  const std::string no_times =
      ": found \"late\" of CUPTI_ACTIVITY_KIND_KERNEL without a start and an end in nanoseconds; ";
  CHECK(refused("null", "NULL, NULL").starts_with(no_times));
  CHECK(refused("text", "'soon', 'later'").starts_with(no_times));
  CHECK(refused("before", "-5, 5").starts_with(no_times));
  CHECK(refused("overflow", "0, 4611686018427387904").starts_with(no_times));
  CHECK(refused("late", "900000000000000, 900000000000005")
            .starts_with(": found \"late\" more than ten days after the first event; "));
}

TEST_CASE("replay of Nsight Systems: a database of something else is one line") {
  const test::TemporaryFolder folder;
  const std::string file = folder.path() + "/x.sqlite";
  SQLite::Database(file, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE)
      .exec("CREATE TABLE points (x INTEGER)");
  const test::Ran ran = test::lockstep_with({"replay", file, "--node", "dgx_h100"});
  CHECK(ran.exit == Exit::bad_input);
  CHECK(ran.err == file +
                       ": found no kernel; allowed: an export of Nsight Systems with kernels, as "
                       "nsys export --type sqlite makes it\n");
  const std::string text = folder.write("y.json", "{}");
  const test::Ran other =
      test::lockstep_with({"replay", text, "--from", "nsys", "--node", "dgx_h100"});
  CHECK(other.exit == Exit::bad_input);
  CHECK(other.err.starts_with(text + ": found a database that cannot be read: "));
}

}  // namespace lockstep
