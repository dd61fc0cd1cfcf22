#include "sim/measured/sqlite_report.hpp"

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Exception.h>
#include <SQLiteCpp/Statement.h>
#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <string_view>
#include <utility>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/base/input_file.hpp"
#include "sim/trace/formats/read_trace.hpp"

namespace lockstep {
namespace {

/// NVTX_EVENTS.eventType of a range that a thread pushes and pops.
constexpr std::int64_t kPushPop = 59;

/// A range of a thread, in nanoseconds.
struct ThreadRange {
  std::int64_t thread, start, end;
  std::string text;
};

std::vector<ThreadRange> ranges_in(SQLite::Database& db) {
  std::vector<ThreadRange> out;
  if (!db.tableExists("NVTX_EVENTS")) return out;
  SQLite::Statement rows(db,
                         "SELECT n.globalTid, n.start, n.end, COALESCE(n.text, s.value, '') "
                         "FROM NVTX_EVENTS n LEFT JOIN StringIds s ON s.id = n.textId "
                         "WHERE n.eventType = ? AND n.end IS NOT NULL "
                         "ORDER BY n.globalTid, n.start, n.end DESC");
  rows.bind(1, kPushPop);
  while (rows.executeStep()) {
    out.push_back({rows.getColumn(0).getInt64(), rows.getColumn(1).getInt64(),
                   rows.getColumn(2).getInt64(), rows.getColumn(3).getString()});
  }
  return out;
}

/// Goes through launches in the order of threads and time, with the ranges that are open.
class OpenRanges {
 public:
  explicit OpenRanges(std::vector<ThreadRange> ranges) : ranges_(std::move(ranges)) {}

  /// The innermost one around the moment; empty: none.
  std::string around(std::int64_t thread, std::int64_t at) {
    while (next_ < ranges_.size() &&
           (ranges_[next_].thread < thread ||
            (ranges_[next_].thread == thread && ranges_[next_].start <= at))) {
      close(ranges_[next_].thread, ranges_[next_].start);
      open_.push_back(next_++);
    }
    close(thread, at);
    return open_.empty() ? std::string() : ranges_[open_.back()].text;
  }

 private:
  void close(std::int64_t thread, std::int64_t at) {
    const auto over = [&](const ThreadRange& r) { return r.thread != thread || r.end < at; };
    while (!open_.empty() && over(ranges_[open_.back()])) open_.pop_back();
  }

  std::vector<ThreadRange> ranges_;
  std::vector<std::size_t> open_;  ///< inner ones last
  std::size_t next_ = 0;
};

/// The first card of the machine; empty where the export does not list them.
std::string device_in(SQLite::Database& db) {
  if (!db.tableExists("TARGET_INFO_GPU")) return {};
  const std::string columns =
      db.execAndGet("SELECT group_concat(name) FROM pragma_table_info('TARGET_INFO_GPU')")
          .getString();
  if ((',' + columns + ',').find(",name,") == std::string::npos) return {};
  SQLite::Statement rows(db,
                         "SELECT COALESCE(name, '') FROM TARGET_INFO_GPU ORDER BY rowid LIMIT 1");
  return rows.executeStep() ? rows.getColumn(0).getString() : std::string();
}

NsysReport kernels_in(SQLite::Database& db) {
  // The upper bits of globalTid and globalPid are the process; numbers of calls are its own.
  SQLite::Statement rows(db,
                         "SELECT IFNULL(r.globalTid, -1), IFNULL(r.start, 0), k.end - k.start, "
                         "IFNULL(s.value, '') FROM CUPTI_ACTIVITY_KIND_KERNEL k "
                         "LEFT JOIN CUPTI_ACTIVITY_KIND_RUNTIME r "
                         "ON r.correlationId = k.correlationId AND r.globalTid >> 24 = "
                         "k.globalPid >> 24 LEFT JOIN StringIds s ON s.id = k.demangledName "
                         "ORDER BY r.globalTid, r.start, k.start");
  OpenRanges ranges(ranges_in(db));
  NsysReport out;
  while (rows.executeStep()) {
    NsysRow row;
    const std::int64_t thread = rows.getColumn(0).getInt64();
    row.range = ranges.around(thread, rows.getColumn(1).getInt64());
    if (!row.range.empty()) row.range += fmt::format("\n{}", thread);  // another's is another call
    row.kernel = rows.getColumn(3).getString();
    row.total_us = rows.getColumn(2).getDouble() * 1e-3;
    if (row.kernel.empty() || row.total_us < 0) {
      ++out.broken;
    } else {
      out.rows.push_back(std::move(row));
    }
  }
  return out;
}

}  // namespace

bool is_sqlite(const std::string& file) {
  constexpr std::size_t kHead = 16;
  return is_database(read_head(file, kHead));
}

void refuse_nsys(const std::string& file, const std::string& found) {
  throw InputError({.file = file,
                    .pointer = {},
                    .found = found,
                    .allowed = "an export of Nsight Systems with kernels, as nsys export --type "
                               "sqlite makes it",
                    .nearest = {}});
}

NsysReport read_nsys_sqlite(const std::string& file) {
  try {
    SQLite::Database db(file, SQLite::OPEN_READONLY);
    if (!db.tableExists("CUPTI_ACTIVITY_KIND_KERNEL")) refuse_nsys(file, "no table of kernels");
    NsysReport out = kernels_in(db);
    out.device = device_in(db);
    return out;
  } catch (const SQLite::Exception& e) {
    refuse_nsys(file, std::string("a database that cannot be read: ") + e.what());
  }
}

}  // namespace lockstep
