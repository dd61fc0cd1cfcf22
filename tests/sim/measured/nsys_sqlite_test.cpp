// lockstep import nsys, of a database with the tables that nsys export --type sqlite makes.
#include <SQLiteCpp/Database.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>

#include "sim/measured/sqlite_report.hpp"
#include "sim/scenario/read_profile.hpp"
#include "tests/support/near.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

namespace lockstep {
namespace {

/// Process 7 and its thread 9, as Nsight Systems packs them; another process has the same numbers.
constexpr long long kProcess = 7LL << 24, kThread = kProcess + 9, kOther = (8LL << 24) + 9;

class Recording {
 public:
  explicit Recording(const std::string& file)
      : db_(file, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE) {
    db_.exec(
        "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
        "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, "
        "globalTid INTEGER, textId INTEGER);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, "
        "correlationId INTEGER);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, globalPid INTEGER, "
        "correlationId INTEGER, demangledName INTEGER)");
  }
  void range(long long thread, int start, int end, const std::string& text, int kind = 59) {
    db_.exec(fmt::format("INSERT INTO NVTX_EVENTS VALUES ({}, {}, {}, '{}', {}, NULL)", start, end,
                         kind, text, thread));
  }
  /// Launched at `at`, for so long.
  void kernel(long long thread, int at, int nanoseconds, const std::string& name) {
    ++number_;
    db_.exec(fmt::format("INSERT INTO StringIds VALUES ({}, '{}')", number_, name));
    db_.exec(fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES ({}, {}, {}, {})", at,
                         at + 1, thread, thread == kOther ? 1 : number_));
    db_.exec(fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({}, {}, {}, {}, {})",
                         10 * at, 10 * at + nanoseconds, thread >> 24 << 24,
                         thread == kOther ? 1 : number_, number_));
  }

  /// The machine's card, as nsys export lists it.
  void card(const std::string& name) {
    db_.exec("CREATE TABLE TARGET_INFO_GPU (vmId INTEGER, id INTEGER, name TEXT)");
    db_.exec(fmt::format("INSERT INTO TARGET_INFO_GPU VALUES (0, 0, '{}')", name));
  }

 private:
  SQLite::Database db_;
  int number_ = 0;
};

}  // namespace

TEST_CASE("import nsys: a database gives kernels the innermost range of the thread that launches") {
  const test::TemporaryFolder folder;
  const std::string file = folder.path() + "/step.sqlite";
  CHECK_FALSE(is_sqlite(file));
  {
    Recording recording(file);
    const std::string product = "aten::mm, seq = 1, sizes = [[4096, 1024], [1024, 2048]]";
    recording.range(kThread, 100, 900, "train");
    recording.range(kThread, 200, 300, "aten::linear, seq = 1, sizes = [[4096, 1024]]");
    recording.range(kThread, 210, 290, product);
    recording.range(kThread, 205, 295, "not pushed", 60);
    recording.range(kOther, 200, 400, "aten::mm, seq = 1, sizes = [[64, 64], [64, 64]]");
    recording.kernel(kThread, 250, 100'000, "nvjet_tst_128x256_64x4_2x1_v_bz_TNT");
    recording.kernel(kThread, 260, 20'000, "void cublasLt::splitKreduce_kernel<32>");
    recording.kernel(kThread, 400, 5'000, "ampere_bf16_s16816gemm_bf16_128x64");  // in "train"
    recording.kernel(kThread, 950, 5'000, "ampere_bf16_s16816gemm_bf16_128x64");  // in none
    recording.kernel(kOther, 250, 7'000, "ampere_fp16_s16816gemm_fp16_128x64");
  }
  REQUIRE(is_sqlite(file));
  const NsysReport report = read_nsys_sqlite(file);
  CHECK(report.rows.size() == 5);
  CHECK(report.broken == 0);

  const test::Ran ran = test::lockstep_with({"import", "nsys", file, "--gpu", "h100_sxm5_80gb"});
  REQUIRE(ran.exit == Exit::ok);
  CHECK(ran.err.find("2 rows") != std::string::npos);
  const Profile profile = read_profile("a.json", ran.out, test::presets());
  REQUIRE(profile.gemm.size() == 2);
  const bool first = profile.gemm[0].shape.n == 2048;
  const GemmPoint &large = profile.gemm[first ? 0 : 1], &small = profile.gemm[first ? 1 : 0];
  CHECK(large.shape.m == 4096);
  CHECK(large.precision == Precision::bf16);
  CHECK(large.time.base_units() == test::near(120e-6));
  CHECK(small.shape.n == 64);
  CHECK(small.precision == Precision::fp16);
  CHECK(small.time.base_units() == test::near(7e-6));
}

TEST_CASE("import nsys: a database of another card than --gpu is refused") {
  const test::TemporaryFolder folder;
  const std::string file = folder.path() + "/step.sqlite";
  {
    Recording recording(file);
    recording.range(kThread, 1, 100, "aten::mm, seq = 1, sizes = [[64, 64], [64, 64]]");
    recording.kernel(kThread, 5, 900, "ampere_bf16_s16816gemm_bf16_128x128");
    recording.card("NVIDIA A100-SXM4-80GB");
  }
  const test::Ran other = test::lockstep_with({"import", "nsys", file, "--gpu", "h100_sxm5_80gb"});
  CHECK(other.exit == Exit::bad_input);
  CHECK(other.err.starts_with(file + ": found recorded on \"NVIDIA A100-SXM4-80GB\"; allowed: "));
  const test::Ran own = test::lockstep_with({"import", "nsys", file, "--gpu", "a100_sxm4_80gb"});
  CHECK(own.exit == Exit::ok);
  CHECK(own.out.find(R"("device":"NVIDIA A100-SXM4-80GB")") != std::string::npos);
}

TEST_CASE("import nsys: a database of something else is one line") {
  const test::TemporaryFolder folder;
  const std::string file = folder.path() + "/x.sqlite";
  SQLite::Database(file, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE)
      .exec("CREATE TABLE points (x INTEGER)");
  const test::Ran ran = test::lockstep_with({"import", "nsys", file, "--gpu", "h100_sxm5_80gb"});
  CHECK(ran.exit == Exit::bad_input);
  CHECK(ran.out.empty());
  CHECK(ran.err == file +
                       ": found no table of kernels; allowed: an export of Nsight Systems with "
                       "kernels, as nsys export --type sqlite makes it\n");
  const std::string broken = folder.write("y.sqlite", std::string("SQLite format 3\0 no more", 24));
  CHECK(test::lockstep_with({"import", "nsys", broken, "--gpu", "h100_sxm5_80gb"}).exit ==
        Exit::bad_input);
}

}  // namespace lockstep
