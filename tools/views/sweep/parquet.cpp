#include "tools/views/sweep/parquet.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string_view>
#include <system_error>
#include <variant>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/base/output_file.hpp"
#include "models/base/usage_error.hpp"
#include "sim/search/sweep/sql_value.hpp"
#include "tools/views/sweep/results_csv.hpp"

namespace lockstep {
namespace {

/// What its C API hands back; all but the message's place is its own business
/// (duckdb.h, "duckdb_result", of DuckDB 1.x).
struct DuckResult {
  std::uint64_t columns, rows, changed;
  void* values;
  char* message;
  void* own;
};

[[noreturn]] void fail_without_duckdb(const std::string& why) {
  throw UsageError(fmt::format(
      "lockstep sweep export: Parquet needs libduckdb ({}); allowed: LOCKSTEP_DUCKDB with its path "
      "(npm's @duckdb/node-bindings-linux-x64 carries it), or a name that ends in .csv",
      why));
}

/// The library, a database in memory and a connection to it.
class Duck {
 public:
  Duck() {
    const char* named = std::getenv("LOCKSTEP_DUCKDB");
    library_ = dlopen(named != nullptr ? named : "libduckdb.so", RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) fail_without_duckdb(dlerror());
    const auto open = find<int (*)(const char*, void**)>("duckdb_open");
    const auto connect = find<int (*)(void*, void**)>("duckdb_connect");
    query_ = find<int (*)(void*, const char*, DuckResult*)>("duckdb_query");
    error_ = find<const char* (*)(DuckResult*)>("duckdb_result_error");
    destroy_ = find<void (*)(DuckResult*)>("duckdb_destroy_result");
    if (open(nullptr, &database_) != 0 || connect(database_, &connection_) != 0) {
      fail_without_duckdb("it does not start");
    }
  }
  ~Duck() {
    if (connection_ != nullptr) find<void (*)(void**)>("duckdb_disconnect")(&connection_);
    if (database_ != nullptr) find<void (*)(void**)>("duckdb_close")(&database_);
    // The library is not unloaded, because its threads may still be running.
  }
  Duck(const Duck&) = delete;
  Duck& operator=(const Duck&) = delete;

  void run(const std::string& sql) {
    DuckResult result{};
    const bool failed = query_(connection_, sql.c_str(), &result) != 0;
    const char* const words = failed ? error_(&result) : nullptr;
    const std::string why = words != nullptr ? words : "";
    destroy_(&result);
    if (failed) fail_without_duckdb(why.substr(0, why.find('\n')));
  }

 private:
  template <class Function>
  Function find(const char* name) const {
    void* const at = dlsym(library_, name);
    if (at == nullptr) fail_without_duckdb(fmt::format("it lacks {}", name));
    return reinterpret_cast<Function>(at);  // NOLINT: what dlsym() is for
  }

  void* library_ = nullptr;
  void* database_ = nullptr;
  void* connection_ = nullptr;
  int (*query_)(void*, const char*, DuckResult*) = nullptr;
  const char* (*error_)(DuckResult*) = nullptr;
  void (*destroy_)(DuckResult*) = nullptr;
};

/// A text in single quotes, as in SQL.
std::string quoted_text(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("''") : std::string(1, c);
  return out + "'";
}

/// A type that holds all of a column's values; of none, that of metrics, which are numbers.
std::vector<std::string_view> types_of(const ResultsReader& results) {
  std::vector<std::size_t> kinds(results.columns().size());
  std::vector<std::string> quoted;
  for (const std::string& column : results.columns()) quoted.push_back(quoted_name(column));
  results.each(fmt::format("SELECT {} FROM points", fmt::join(quoted, ", ")),
               [&](const std::vector<SqlValue>& row) {
                 for (std::size_t c = 0; c < row.size(); ++c) {
                   kinds[c] = std::max(kinds[c], row[c].index());
                 }
               });
  constexpr std::array<std::string_view, 4> kTypes{"DOUBLE", "BIGINT", "DOUBLE", "VARCHAR"};
  std::vector<std::string_view> out;
  for (std::size_t c = 0; c < kinds.size(); ++c) {
    out.push_back(results.columns()[c] == "error" ? "VARCHAR" : kTypes[kinds[c]]);
  }
  return out;
}

/// Removes a file when it goes out of scope.
struct TemporaryFile {
  std::string path;
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
};

}  // namespace

void export_parquet(const ResultsReader& results, const std::string& path) {
  Duck duck;
  const TemporaryFile csv{path + ".csv.part"}, parquet{path + ".part"};
  {
    OutputFile file(csv.path);
    export_csv(results, [&](const CsvText& line) { file.write(line.str()); });
    file.commit();
  }
  const std::vector<std::string_view> types = types_of(results);
  std::vector<std::string> columns;
  for (std::size_t c = 0; c < types.size(); ++c) {
    columns.push_back(fmt::format("{}: '{}'", quoted_text(results.columns()[c]), types[c]));
  }
  duck.run(
      fmt::format("COPY (SELECT * FROM read_csv({}, header = true, auto_detect = false, "
                  "delim = ',', quote = '\"', escape = '\"', columns = {{{}}})) TO {} "
                  "(FORMAT parquet, COMPRESSION zstd)",
                  quoted_text(csv.path), fmt::join(columns, ", "), quoted_text(parquet.path)));
  std::error_code error;
  std::filesystem::rename(parquet.path, path, error);
  if (error) throw InputError({path, {}, error.message(), "a file that can be written", {}});
}

}  // namespace lockstep
