#include "sim/search/sweep/results_db.hpp"

#include <SQLiteCpp/SQLiteCpp.h>
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <sqlite3.h>

#include "models/base/input_error.hpp"
#include "sim/search/sweep/digest.hpp"
#include "sim/search/sweep/sql_value.hpp"

namespace lockstep {
namespace {

constexpr const char* kFormat = "1";  ///< of the tables
constexpr int kPatienceMs = 60'000;   ///< while another program writes
/// What a kill may cost. A commit to the write-ahead log is cheap; one without it waits for the
/// disk, and a shard that is killed begins anew anyway.
constexpr std::chrono::milliseconds kCommitEvery{100}, kCommitShardEvery{10'000};

/// Columns of `points` in order, with their types.
struct DbColumn {
  std::string name, type;
};
std::vector<DbColumn> columns_of(const Sweep& sweep) {
  std::vector<DbColumn> columns{{"point", "INTEGER PRIMARY KEY"}};
  for (const std::string& name : sweep.columns()) columns.push_back({name, ""});
  columns.push_back({"status", "TEXT NOT NULL"});
  columns.push_back({"error", "TEXT"});
  for (const SweepMetric& metric : metrics_of(sweep)) columns.push_back({metric.name, ""});
  columns.push_back({"hash", "TEXT NOT NULL"});
  columns.push_back({"json", "TEXT"});
  return columns;
}

std::vector<std::string> table_columns(SQLite::Database& database) {
  std::vector<std::string> names;
  SQLite::Statement query(database, "SELECT name FROM pragma_table_info('points')");
  while (query.executeStep()) names.push_back(query.getColumn(0).getString());
  return names;
}

std::string words_of(int code) {
  switch (code & 0xff) {
    case SQLITE_FULL:
      return "a disk without space left";
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return "a place that cannot be written";
    case SQLITE_CANTOPEN:
      return "a file that cannot be opened or made";
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
      return "something that is no database, or a broken one";
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return "a database that another program keeps locked";
    case SQLITE_IOERR:
      return "a file that cannot be read or written";
    default:
      return {};
  }
}

[[noreturn]] void fail_about(const std::string& path, const SQLite::Exception& error) {
  const std::string words = words_of(error.getErrorCode());
  throw InputError({.file = path,
                    .pointer = {},
                    .found = words.empty() ? std::string(error.what()) : words,
                    .allowed = "a results database in a folder that can be written, with space on "
                               "its disk; the points that were finished before are kept",
                    .nearest = {}});
}

std::string manifest_value(SQLite::Database& database, const std::string& key) {
  SQLite::Statement query(database, "SELECT value FROM manifest WHERE key = ?");
  query.bind(1, key);
  return query.executeStep() ? query.getColumn(0).getString() : std::string{};
}

std::optional<StoredPoint> point_of(SQLite::Statement& query, const std::string& hash) {
  constexpr int kAnswer = 2;  // columns before the metrics
  query.reset();
  query.bind(1, hash);
  if (!query.executeStep()) return std::nullopt;
  StoredPoint point;
  point.answer = {.error = query.getColumn(0).getText(""), .json = query.getColumn(1).getText("")};
  for (int i = kAnswer; i < query.getColumnCount(); ++i) {
    point.metrics.push_back(value_of(query.getColumn(i)));
  }
  return point;
}
std::string find_query(const std::vector<std::string>& metrics) {
  std::string columns = "error, json";
  for (const std::string& metric : metrics) columns += ", " + quoted_name(metric);
  return "SELECT " + columns + " FROM points WHERE hash = ? LIMIT 1";
}
std::vector<std::string> names_of(const std::vector<SweepMetric>& metrics) {
  std::vector<std::string> names;
  for (const SweepMetric& metric : metrics) names.push_back(metric.name);
  return names;
}

}  // namespace

std::vector<SweepMetric> metrics_of(const Sweep& sweep) {
  const std::vector<std::string> axes = sweep.columns();
  std::vector<SweepMetric> metrics = sweep_metrics(sweep.is_run);
  std::erase_if(metrics, [&](const SweepMetric& metric) {
    return std::ranges::find(axes, metric.name) != axes.end();
  });
  return metrics;
}

std::uint64_t short_hash(const std::string& hash) {
  constexpr std::size_t kDigits = 16;
  std::uint64_t number = 0;
  std::from_chars(hash.data(), hash.data() + std::min(kDigits, hash.size()), number, 16);
  return number;
}

Manifest manifest_of(const Sweep& sweep, const std::string& presets) {
  const auto name = [](const std::string& path) {
    return std::filesystem::path(path).filename().string();
  };
  return {
      {"format", kFormat},
      {"lockstep", LOCKSTEP_VERSION},
      {"about", sweep.about},
      {"sweep", name(sweep.file)},
      {"sweep_sha256", sweep.digest},
      {"scenario", name(sweep.scenario_file)},
      {"scenario_sha256", sweep.scenario_digest},
      {"presets_sha256", presets},
      {"input_sha256", sha256(LOCKSTEP_VERSION + sweep.digest + sweep.scenario_digest + presets)},
      {"seed", std::to_string(sweep.seed)},
      {"kind", sweep.is_run ? "run" : "step"}};
}

ResultsDb::ResultsDb(std::string path, const Sweep& sweep, const Manifest& manifest,
                     Journal journal)
    : path_(std::move(path)),
      commit_every_(journal == Journal::write_ahead ? kCommitEvery : kCommitShardEvery),
      committed_(std::chrono::steady_clock::now()) {
  for (const DbColumn& column : columns_of(sweep)) columns_.push_back(column.name);
  try {
    database_ = std::make_unique<SQLite::Database>(
        path_, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE, kPatienceMs);
    database_->exec(journal == Journal::write_ahead ? "PRAGMA journal_mode = WAL"
                                                    : "PRAGMA journal_mode = DELETE");
    database_->exec("PRAGMA synchronous = NORMAL");
    if (database_->tableExists("manifest")) {
      check(sweep, manifest);
    } else {
      create(sweep, manifest);
    }
    std::vector<std::string> quoted(columns_.size());
    std::ranges::transform(columns_, quoted.begin(), quoted_name);
    const std::vector<std::string> marks(columns_.size(), "?");
    insert_ = std::make_unique<SQLite::Statement>(
        *database_, fmt::format("INSERT OR REPLACE INTO points ({}) VALUES ({})",
                                fmt::join(quoted, ", "), fmt::join(marks, ", ")));
    find_ =
        std::make_unique<SQLite::Statement>(*database_, find_query(names_of(metrics_of(sweep))));
  } catch (const SQLite::Exception& error) {
    fail(error);
  }
}

ResultsDb::~ResultsDb() {
  // Whoever had to know of a failure has called commit(); what is lost the next run makes again.
  if (in_transaction()) database_->tryExec("COMMIT");
}

void ResultsDb::fail(const SQLite::Exception& error) const { fail_about(path_, error); }

void ResultsDb::create(const Sweep& sweep, const Manifest& manifest) {
  SQLite::Statement other(*database_, "SELECT count(*) FROM sqlite_master");
  other.executeStep();
  if (other.getColumn(0).getInt() > 0) {
    throw InputError({.file = path_,
                      .pointer = {},
                      .found = "a database that is no sweep's",
                      .allowed = "results of " + sweep.file + ", or a new file",
                      .nearest = {}});
  }
  other.reset();
  std::vector<std::string> columns;
  for (const DbColumn& column : columns_of(sweep)) {
    columns.push_back(quoted_name(column.name) + (column.type.empty() ? "" : " " + column.type));
  }
  SQLite::Transaction transaction(*database_, SQLite::TransactionBehavior::IMMEDIATE);
  // Another process may have been faster.
  if (!database_->tableExists("manifest")) {
    database_->exec("CREATE TABLE manifest (key TEXT PRIMARY KEY, value TEXT NOT NULL)");
    database_->exec(fmt::format("CREATE TABLE points ({})", fmt::join(columns, ", ")));
    database_->exec("CREATE INDEX points_by_hash ON points (hash)");
  }
  SQLite::Statement insert(*database_, "INSERT OR REPLACE INTO manifest VALUES (?, ?)");
  for (const auto& [key, value] : manifest) {
    insert.reset();
    insert.bind(1, key);
    insert.bind(2, value);
    insert.exec();
  }
  transaction.commit();
}

void ResultsDb::check(const Sweep& sweep, const Manifest& manifest) {
  const auto refuse = [&](const std::string& found) {
    throw InputError({.file = path_,
                      .pointer = {},
                      .found = found,
                      .allowed = "results of " + sweep.file +
                                 " as it is (or another -o FILE, to "
                                 "which --reuse " +
                                 path_ + " brings what is the same)",
                      .nearest = {}});
  };
  const std::string made_by = manifest_value(*database_, "lockstep");
  if (made_by != LOCKSTEP_VERSION) refuse("results of lockstep " + in_quotes(made_by));
  if (manifest_value(*database_, "sweep_sha256") != sweep.digest) {
    refuse("results of another sweep, " + in_quotes(manifest_value(*database_, "sweep")));
  }
  if (table_columns(*database_) != columns_) refuse("other columns than this sweep's");
  SQLite::Transaction transaction(*database_, SQLite::TransactionBehavior::IMMEDIATE);
  SQLite::Statement update(*database_,
                           "UPDATE manifest SET value = ?2 WHERE key = ?1 AND value <> ?2");
  for (const auto& [key, value] : manifest) {
    update.reset();
    update.bind(1, key);
    update.bind(2, value);
    update.exec();
  }
  transaction.commit();
}

std::vector<FinishedPoint> ResultsDb::finished() {
  const std::lock_guard lock(mutex_);
  try {
    std::vector<FinishedPoint> points;
    SQLite::Statement query(*database_, "SELECT point, hash FROM points ORDER BY point");
    while (query.executeStep()) {
      points.push_back({query.getColumn(0).getUInt(), short_hash(query.getColumn(1).getString())});
    }
    return points;
  } catch (const SQLite::Exception& error) {
    fail(error);
  }
}

std::optional<StoredPoint> ResultsDb::find(const std::string& hash) {
  const std::lock_guard lock(mutex_);
  try {
    std::optional<StoredPoint> point = point_of(*find_, hash);
    find_->reset();
    return point;
  } catch (const SQLite::Exception& error) {
    fail(error);
  }
}

// SQLite knows: where a disk is full it has rolled the transaction back by itself.
bool ResultsDb::in_transaction() const {
  return sqlite3_get_autocommit(database_->getHandle()) == 0;
}

void ResultsDb::begin() {
  if (!in_transaction()) database_->exec("BEGIN IMMEDIATE");
}

void ResultsDb::add(const ResultRow& row) {
  const std::lock_guard lock(mutex_);
  try {
    begin();
    insert_->reset();
    int index = 0;
    insert_->bind(++index, row.number);
    for (const SqlValue& value : row.values) bind_value(*insert_, ++index, value);
    const bool failed = !row.answer.error.empty();
    insert_->bind(++index, failed ? "failed" : "ok");
    bind_value(*insert_, ++index, failed ? SqlValue{row.answer.error} : SqlValue{});
    for (const SqlValue& value : row.metrics) bind_value(*insert_, ++index, value);
    insert_->bind(++index, row.hash);
    const bool has_json = !failed && !row.answer.json.empty();
    bind_value(*insert_, ++index, has_json ? SqlValue{row.answer.json} : SqlValue{});
    insert_->exec();
    insert_->reset();
  } catch (const SQLite::Exception& error) {
    fail(error);
  }
  if (std::chrono::steady_clock::now() - committed_ < commit_every_) return;
  try {
    database_->exec("COMMIT");
    committed_ = std::chrono::steady_clock::now();
  } catch (const SQLite::Exception& error) {
    fail(error);
  }
}

void ResultsDb::remove(std::uint32_t number) {
  const std::lock_guard lock(mutex_);
  try {
    begin();
    SQLite::Statement query(*database_, "DELETE FROM points WHERE point = ?");
    query.bind(1, number);
    query.exec();
  } catch (const SQLite::Exception& error) {
    fail(error);
  }
}

void ResultsDb::commit() {
  const std::lock_guard lock(mutex_);
  if (!in_transaction()) return;
  try {
    database_->exec("COMMIT");
  } catch (const SQLite::Exception& error) {
    fail(error);
  }
}

void ResultsDb::merge(const std::string& other) {
  commit();
  const std::string digest = manifest_value(*database_, "sweep_sha256");
  try {
    SQLite::Database from(other, SQLite::OPEN_READONLY, kPatienceMs);
    if (manifest_value(from, "sweep_sha256") != digest || table_columns(from) != columns_) {
      throw InputError({other, {}, "results of another sweep", "a shard of " + path_, {}});
    }
  } catch (const SQLite::Exception& error) {
    fail_about(other, error);
  }
  const std::lock_guard lock(mutex_);
  try {
    SQLite::Statement attach(*database_, "ATTACH DATABASE ? AS shard");
    attach.bind(1, other);
    attach.exec();
    database_->exec("INSERT OR REPLACE INTO points SELECT * FROM shard.points ORDER BY point");
    database_->exec("DETACH DATABASE shard");
  } catch (const SQLite::Exception& error) {
    fail(error);
  }
}

ResultsReader::ResultsReader(std::string path) : path_(std::move(path)) {
  try {
    std::error_code error;
    if (!std::filesystem::is_regular_file(path_, error)) {
      throw InputError({path_, {}, "no such file", "a results database of lockstep sweep", {}});
    }
    // Where it may be written: the last to close a file in WAL mode then tidies up beside it.
    database_ = std::make_unique<SQLite::Database>(path_, SQLite::OPEN_READWRITE, kPatienceMs);
    if (!database_->tableExists("manifest") || !database_->tableExists("points")) {
      throw InputError(
          {path_, {}, "a database that is no sweep's", "a results database of lockstep sweep", {}});
    }
    columns_ = table_columns(*database_);
    const auto behind = std::ranges::find(columns_, "error");
    if (behind != columns_.end()) metrics_.assign(behind + 1, columns_.end());
    std::erase_if(columns_,
                  [](const std::string& name) { return name == "json" || name == "hash"; });
  } catch (const SQLite::Exception& error) {
    fail(error);
  }
}
ResultsReader::~ResultsReader() = default;

void ResultsReader::fail(const SQLite::Exception& error) const { fail_about(path_, error); }

std::string ResultsReader::manifest(const std::string& key) const {
  try {
    return manifest_value(*database_, key);
  } catch (const SQLite::Exception& error) {
    fail(error);
  }
}

std::optional<StoredPoint> ResultsReader::find(const std::string& hash,
                                               const std::vector<std::string>& metrics) const {
  const bool has_all = std::ranges::all_of(metrics, [&](const std::string& metric) {
    return std::ranges::find(metrics_, metric) != metrics_.end();
  });
  const std::lock_guard lock(mutex_);
  try {
    SQLite::Statement query(*database_, find_query(has_all ? metrics : std::vector<std::string>{}));
    return point_of(query, hash);
  } catch (const SQLite::Exception& error) {
    fail(error);
  }
}

void ResultsReader::each(const std::string& query,
                         const std::function<void(const std::vector<SqlValue>&)>& take) const {
  try {
    SQLite::Statement rows(*database_, query);
    std::vector<SqlValue> values(static_cast<std::size_t>(rows.getColumnCount()));
    while (rows.executeStep()) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = value_of(rows.getColumn(static_cast<int>(i)));
      }
      take(values);
    }
  } catch (const SQLite::Exception& error) {
    fail(error);
  }
}

}  // namespace lockstep
