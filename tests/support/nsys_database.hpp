/// Databases with the tables that `nsys export --type sqlite` makes.
#pragma once

#include <SQLiteCpp/Database.h>
#include <fmt/format.h>
#include <string>

namespace lockstep::test {

/// Times in microseconds. Every call of the runtime takes 0.9 us.
class NsysDatabase {
 public:
  static constexpr long long process_id(int number) { return static_cast<long long>(number) << 24; }

  explicit NsysDatabase(const std::string& file)
      : db_(file, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE) {
    const std::string common =
        "start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, globalPid INTEGER, "
        "correlationId INTEGER";
    db_.exec("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY");
    db_.exec(
        "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
        "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, "
        "globalTid INTEGER, textId INTEGER);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, "
        "correlationId INTEGER, nameId INTEGER);"
        "CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT);"
        "INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H100 80GB HBM3');"
        "INSERT INTO TARGET_INFO_GPU VALUES (1, 'NVIDIA H100 80GB HBM3');"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (" +
        common + ", demangledName INTEGER);" + "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (" +
        common + ", copyKind INTEGER)");
  }
  struct Place {
    int device = 0, stream = 7, process = 3;
  };
  /// Launched 5 us before.
  void kernel(const std::string& name, int start, int end, const Place& at) {
    launch(start - 5, at.process);
    db_.exec(fmt::format("INSERT INTO StringIds VALUES ({}, '{}')", number_, name));
    db_.exec(fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({}, {})",
                         times(start, end, at), number_));
  }
  void copy(int kind, int start, int end, const Place& at) {
    launch(start - 5, at.process);
    db_.exec(fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES ({}, {})",
                         times(start, end, at), kind));
  }
  void range(const std::string& text, int start, int end, int process = 3) {
    db_.exec(fmt::format("INSERT INTO NVTX_EVENTS VALUES ({}, {}, 59, '{}', {}, NULL)",
                         start * 1000, end * 1000, text, process_id(process) + 11));
  }

  /// The host waits for the GPU.
  void synchronise(int at, int process = 3) { call("cudaStreamSynchronize_v3020", at, process); }
  void mpi_rank(int process, int rank) {
    db_.exec("CREATE TABLE IF NOT EXISTS MPI_RANKS (globalTid INTEGER, rank INTEGER)");
    db_.exec(fmt::format("INSERT INTO MPI_RANKS VALUES ({}, {})", process_id(process) + 11, rank));
  }
  void environment(const std::string& name, const std::string& value) {
    db_.exec("CREATE TABLE IF NOT EXISTS TARGET_INFO_SYSTEM_ENV (name TEXT, value TEXT)");
    db_.exec(fmt::format("INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES ('{}', '{}')", name, value));
  }
  /// What a process calls its GPU `cuda` is the machine's GPU `gpu`.
  void renumber(int process, int cuda, int gpu) {
    db_.exec(
        "CREATE TABLE IF NOT EXISTS TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER, "
        "pid INTEGER)");
    db_.exec(
        fmt::format("INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES ({}, {}, {})", gpu, cuda, process));
  }

  /// A statement, as where an older version has fewer columns.
  void change(const std::string& sql) { db_.exec(sql); }

 private:
  void launch(int at, int process) { call("cudaLaunchKernel_v7000", at, process); }
  void call(const std::string& name, int at, int process) {
    ++number_;
    constexpr int kNames = 1'000'000;  // above the kernels' numbers
    const int id = kNames + number_;
    db_.exec(fmt::format("INSERT INTO StringIds VALUES ({}, '{}')", id, name));
    db_.exec(fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES ({}, {}, {}, {}, {})",
                         at * 1000, at * 1000 + 900, process_id(process) + 11, number_, id));
  }
  [[nodiscard]] std::string times(int start, int end, const Place& at) const {
    return fmt::format("{}, {}, {}, {}, {}, {}", start * 1000, end * 1000, at.device, at.stream,
                       process_id(at.process), number_);
  }

  SQLite::Database db_;
  int number_ = 0;
};

}  // namespace lockstep::test
