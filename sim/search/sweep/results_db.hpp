/// The results of a sweep: a SQLite database with a row per finished point.
///
/// Table `points`: `point` (its number), a column per axis and derived value, `status` ("ok" or
/// "failed"), `error`, a column per metric, `hash` (of what the answer was made of) and `json` (all
/// that `lockstep run` says; null where the sweep keeps no answers). Table `manifest`: what the
/// results belong to, as keys and values. Nothing in it depends on when, where or by how many
/// threads it was made.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/search/sweep/metrics.hpp"
#include "sim/search/sweep/sql_value.hpp"
#include "sim/search/sweep/sweep.hpp"

namespace SQLite {  // NOLINT(readability-identifier-naming): theirs
class Database;
class Exception;
class Statement;
}  // namespace SQLite

namespace lockstep {

/// What is kept of an answer.
struct StoredAnswer {
  std::string error;  ///< of a point that failed; else empty
  std::string json;   ///< of one that did not; empty where answers are not kept
};

/// What is known of a point that was simulated before.
struct StoredPoint {
  std::vector<SqlValue> metrics;  ///< all or none
  StoredAnswer answer;
};

struct ResultRow {
  std::uint32_t number = 0;
  std::vector<SqlValue> values;   ///< one for each of Sweep::columns()
  std::vector<SqlValue> metrics;  ///< of metrics_of()
  std::string hash;
  StoredAnswer answer;
};

/// The metrics that have columns: a column of an axis stands in place of the metric of its name.
std::vector<SweepMetric> metrics_of(const Sweep& sweep);

/// The first 64 bits of a hash: enough to see that a point's input changed.
std::uint64_t short_hash(const std::string& hash);

struct FinishedPoint {
  std::uint32_t number = 0;
  std::uint64_t hash = 0;  ///< short_hash()
};

/// Keys and values, in order.
using Manifest = std::vector<std::pair<std::string, std::string>>;
Manifest manifest_of(const Sweep& sweep, const std::string& presets);

/// A database that points are added to. Every function throws InputError with the file's name and
/// what is wrong: no space left, a folder that cannot be written, results of another sweep. What
/// was added before stays in it.
class ResultsDb {
 public:
  /// In place of write-ahead logging, which needs a local disk, for a file of a single process on a
  /// network file system.
  enum class Journal : std::uint8_t { write_ahead, rollback };

  /// Makes the database, or opens the one that is there, if it is this sweep's.
  ResultsDb(std::string path, const Sweep& sweep, const Manifest& manifest, Journal journal);
  /// Commits, if it can.
  ~ResultsDb();
  ResultsDb(const ResultsDb&) = delete;
  ResultsDb& operator=(const ResultsDb&) = delete;

  /// Points in the database, in order.
  [[nodiscard]] std::vector<FinishedPoint> finished();
  /// A point made of the same things: its metrics and its answer.
  [[nodiscard]] std::optional<StoredPoint> find(const std::string& hash);
  /// Adds or replaces a point; commits now and then. From any thread.
  void add(const ResultRow& row);
  void remove(std::uint32_t number);
  void commit();
  /// Takes over all points of another database of the same sweep.
  void merge(const std::string& other);

 private:
  [[noreturn]] void fail(const SQLite::Exception& error) const;
  void create(const Sweep& sweep, const Manifest& manifest);
  void check(const Sweep& sweep, const Manifest& manifest);
  [[nodiscard]] bool in_transaction() const;
  void begin();

  std::string path_;
  std::vector<std::string> columns_;
  std::mutex mutex_;
  std::unique_ptr<SQLite::Database> database_;
  std::unique_ptr<SQLite::Statement> insert_, find_;
  std::chrono::milliseconds commit_every_;
  std::chrono::steady_clock::time_point committed_;
};

/// A database that is only read.
class ResultsReader {
 public:
  /// Throws InputError if it is no database of a sweep.
  explicit ResultsReader(std::string path);
  ~ResultsReader();
  ResultsReader(const ResultsReader&) = delete;
  ResultsReader& operator=(const ResultsReader&) = delete;

  /// Columns of `points`, without "json" and "hash".
  [[nodiscard]] const std::vector<std::string>& columns() const { return columns_; }
  /// A value of the manifest; empty if it has none.
  [[nodiscard]] std::string manifest(const std::string& key) const;
  /// As ResultsDb::find(), with the metrics of these names; with none where an axis stands in the
  /// place of one of them.
  [[nodiscard]] std::optional<StoredPoint> find(const std::string& hash,
                                                const std::vector<std::string>& metrics) const;
  /// Rows of a query over `points`, one call each.
  void each(const std::string& query,
            const std::function<void(const std::vector<SqlValue>&)>& take) const;

 private:
  [[noreturn]] void fail(const SQLite::Exception& error) const;

  std::string path_;
  mutable std::mutex mutex_;
  std::unique_ptr<SQLite::Database> database_;
  std::vector<std::string> columns_;
  std::vector<std::string> metrics_;  ///< columns behind "error"
};

}  // namespace lockstep
