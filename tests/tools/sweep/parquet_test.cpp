// lockstep sweep export -o FILE.parquet.
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <string>

#include "models/base/text_file.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

namespace lockstep::test {
namespace {

std::string small_sweep(const TemporaryFolder& folder) {
  (void)folder.write("s.json", R"({"model": "llama3_8b", "stack": "megatron_core",
    "cluster": {"node": "dgx_h100", "nodes": 2},
    "parallelism": {"tensor": 4},
    "batch": {"sequences": 64, "micro": 1, "tokens": 4096}})");
  const std::string sweep = folder.write("sweep.json", R"({"scenario": "s.json", "axes": [
    {"at": "/batch/micro", "values": [1, 2]},
    {"at": "/parallelism/sharding", "values": ["zero1", "zero2"]}]})");
  const std::string database = folder.path() + "/results.db";
  const Ran ran = lockstep_with({"sweep", sweep, "-o", database, "-q"});
  CAPTURE(ran.err);
  REQUIRE(ran.exit == Exit::ok);
  return database;
}

}  // namespace

TEST_CASE("sweep export: without libduckdb Parquet says what to do, and leaves no file") {
  const TemporaryFolder folder;
  const std::string database = small_sweep(folder);
  const char* const before = std::getenv("LOCKSTEP_DUCKDB");
  const std::string kept = before != nullptr ? before : "";
  REQUIRE(setenv("LOCKSTEP_DUCKDB", "/nowhere/libduckdb.so", 1) == 0);
  const std::string file = folder.path() + "/results.parquet";
  const Ran ran = lockstep_with({"sweep", "export", database, "-o", file});
  if (before == nullptr) {
    REQUIRE(unsetenv("LOCKSTEP_DUCKDB") == 0);
  } else {
    REQUIRE(setenv("LOCKSTEP_DUCKDB", kept.c_str(), 1) == 0);
  }
  CHECK(ran.exit == Exit::bad_input);
  CHECK(ran.err.find("Parquet needs libduckdb (/nowhere/libduckdb.so") != std::string::npos);
  CHECK(ran.err.find("LOCKSTEP_DUCKDB") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(file));
}

TEST_CASE("sweep export: Parquet begins and ends as the format says, where libduckdb is there") {
  if (std::getenv("LOCKSTEP_DUCKDB") == nullptr) {
    MESSAGE("skipped: LOCKSTEP_DUCKDB is not set");
    return;
  }
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/it's.parquet";
  const Ran ran = lockstep_with({"sweep", "export", small_sweep(folder), "-o", file});
  CAPTURE(ran.err);
  REQUIRE(ran.exit == Exit::ok);
  const std::string bytes = read_text_file(file);
  CHECK(bytes.starts_with("PAR1"));
  CHECK(bytes.ends_with("PAR1"));
  // The footer's element of a column that no point fills: its type (5, DOUBLE), optional, its name.
  CHECK(bytes.find("\x15\x0A\x25\x02\x18\x0C"
                   "hash_least_s") != std::string::npos);
  for (const auto& each : std::filesystem::directory_iterator(folder.path())) {
    CHECK_FALSE(each.path().string().ends_with(".part"));
  }
}

}  // namespace lockstep::test
