#include "sim/measured/nsys_recording.hpp"

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Exception.h>
#include <SQLiteCpp/Statement.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "models/base/input_error.hpp"
#include "models/base/letter_case.hpp"
#include "sim/measured/nsys_range.hpp"
#include "sim/measured/sqlite_report.hpp"
#include "sim/trace/pytorch/launching_operators.hpp"
#include "sim/trace/trace.hpp"

namespace lockstep {
namespace {

constexpr std::int64_t kPicosPerNano = 1000;
/// Bits of globalPid and globalTid below the process.
constexpr int kProcessShift = 24;
/// NVTX_EVENTS.eventType of ranges that a thread pushes and pops, and of those that it starts and
/// ends. Source: docs.nvidia.com, Nsight Systems User Guide, "SQLite Schema Reference".
constexpr int kPushedRange = 59, kStartedRange = 60;
/// CUPTI_ACTIVITY_KIND_MEMCPY.copyKind (the same, ENUM_CUDA_MEMCPY_OPER).
constexpr std::int64_t kToDevice = 1, kToHost = 2;

/// A table of what GPUs do, and how a row of it is called.
struct GpuTable {
  std::string_view table;
  std::string_view name;  ///< in SQL
  std::string_view kind;  ///< the same: of a copy its direction, else 0
};
constexpr std::array kGpuTables{
    GpuTable{"CUPTI_ACTIVITY_KIND_KERNEL",
             "(SELECT value FROM StringIds s WHERE s.id = k.demangledName)", "0"},
    GpuTable{"CUPTI_ACTIVITY_KIND_MEMCPY", "'Memcpy'", "k.copyKind"},
    GpuTable{"CUPTI_ACTIVITY_KIND_MEMSET", "'Memset (Device)'", "0"},
    GpuTable{"CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "'CUDA graph'", "0"},
};

/// An event of some GPU, in nanoseconds.
struct NsysEvent {
  std::int64_t process = 0, device = 0, stream = 0;
  std::int64_t start = 0, end = 0, correlation = 0;
  std::string name;
  bool copies = false;
  bool computes = false;  ///< a kernel or a graph
};

std::string copy_text(std::int64_t kind) {
  return kind == kToDevice ? "Memcpy HtoD" : kind == kToHost ? "Memcpy DtoH" : "Memcpy DtoD";
}

std::vector<NsysEvent> events_in(SQLite::Database& db) {
  std::vector<NsysEvent> out;
  for (const GpuTable& of : kGpuTables) {
    if (!db.tableExists(std::string(of.table))) continue;
    const bool copies = of.name == "'Memcpy'";
    const bool computes = &of == &kGpuTables.front() || &of == &kGpuTables.back();
    SQLite::Statement rows(
        db, fmt::format("SELECT k.globalPid, k.deviceId, k.streamId, k.start, k.end, "
                        "IFNULL(k.correlationId, -1), IFNULL({}, 'kernel'), {} FROM {} k",
                        of.name, of.kind, of.table));
    while (rows.executeStep()) {
      NsysEvent event{.process = rows.getColumn(0).getInt64() >> kProcessShift,
                      .device = rows.getColumn(1).getInt64(),
                      .stream = rows.getColumn(2).getInt64(),
                      .start = rows.getColumn(3).getInt64(),
                      .end = rows.getColumn(4).getInt64(),
                      .correlation = rows.getColumn(5).getInt64(),
                      .name = rows.getColumn(6).getString(),
                      .computes = computes};
      if (copies) {
        const std::int64_t kind = rows.getColumn(7).getInt64();
        event.name = copy_text(kind);
        event.copies = kind == kToDevice || kind == kToHost;
      }
      if (event.end >= event.start) out.push_back(std::move(event));
    }
  }
  std::ranges::stable_sort(out, {}, [](const NsysEvent& e) {
    return std::tuple(e.start, e.device, e.process, e.stream);
  });
  return out;
}

/// What the host did, in nanoseconds.
struct HostCall {
  std::int64_t thread = 0, start = 0, end = 0;
};
/// By process and number.
using HostCalls = std::map<std::pair<std::int64_t, std::int64_t>, HostCall>;

HostCalls calls_in(SQLite::Database& db) {
  HostCalls out;
  if (!db.tableExists("CUPTI_ACTIVITY_KIND_RUNTIME")) return out;
  SQLite::Statement rows(db,
                         "SELECT globalTid, correlationId, start, end FROM "
                         "CUPTI_ACTIVITY_KIND_RUNTIME WHERE correlationId IS NOT NULL");
  while (rows.executeStep()) {
    const std::int64_t thread = rows.getColumn(0).getInt64();
    out.try_emplace({thread >> kProcessShift, rows.getColumn(1).getInt64()},
                    HostCall{thread, rows.getColumn(2).getInt64(), rows.getColumn(3).getInt64()});
  }
  return out;
}

struct MarkedRange {
  std::int64_t thread = 0, start = 0, end = 0;
  std::string text;
  [[nodiscard]] std::int64_t process() const { return thread >> kProcessShift; }
};

std::vector<MarkedRange> marked_ranges_in(SQLite::Database& db) {
  std::vector<MarkedRange> out;
  if (!db.tableExists("NVTX_EVENTS")) return out;
  SQLite::Statement rows(db,
                         "SELECT n.globalTid, n.start, n.end, COALESCE(n.text, s.value, '') "
                         "FROM NVTX_EVENTS n LEFT JOIN StringIds s ON s.id = n.textId "
                         "WHERE n.eventType IN (?, ?) AND n.end > n.start ORDER BY n.start");
  rows.bind(1, kPushedRange);
  rows.bind(2, kStartedRange);
  while (rows.executeStep()) {
    out.push_back({rows.getColumn(0).getInt64(), rows.getColumn(1).getInt64(),
                   rows.getColumn(2).getInt64(), rows.getColumn(3).getString()});
  }
  return out;
}

/// "train step" of "Train_Step: 12".
std::string range_word(std::string_view text) {
  std::string out;
  for (const char c : lowered(text)) {
    if (c >= 'a' && c <= 'z') out += c;
  }
  return out;
}

/// The last number in it.
std::optional<std::int64_t> range_number(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789";
  const std::size_t last = text.find_last_of(kDigits);
  if (last == std::string_view::npos) return std::nullopt;
  const std::size_t before = text.substr(0, last).find_last_not_of(kDigits);
  const std::size_t first = before == std::string_view::npos ? 0 : before + 1;
  std::int64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data() + first, text.data() + last + 1, number);
  return error == std::errc{} ? std::optional(number) : std::nullopt;
}

/// The steps of a process: of ranges with several words those that cover most. Numbered as they
/// say, or in their order where some say none or the same.
std::vector<MarkedRange> steps_of(std::int64_t process, const std::vector<MarkedRange>& all) {
  std::map<std::string, std::vector<MarkedRange>> by_word;
  std::map<std::string, std::int64_t> covered;
  for (const MarkedRange& range : all) {
    if (range.process() != process || !marks_step(range.text)) continue;
    const std::string word = range_word(range.text);
    // Of ranges in each other (a thread each for forward and backward) the outer one counts.
    if (!by_word[word].empty() && range.start < by_word[word].back().end) continue;
    by_word[word].push_back(range);
    covered[word] += range.end - range.start;
  }
  const auto most = std::ranges::max_element(covered, {}, [](const auto& e) { return e.second; });
  return most == covered.end() ? std::vector<MarkedRange>() : by_word[most->first];
}

std::vector<std::int64_t> numbers_of(const std::vector<MarkedRange>& steps) {
  std::set<std::int64_t> seen;
  std::vector<std::int64_t> said, counted;
  for (const MarkedRange& step : steps) {
    counted.push_back(std::ssize(counted));
    const auto number = range_number(step.text);
    if (number && seen.insert(*number).second) said.push_back(*number);
  }
  return said.size() == steps.size() ? said : counted;
}

std::string device_named(SQLite::Database& db, std::int64_t device) {
  if (!db.tableExists("TARGET_INFO_GPU")) return {};
  SQLite::Statement rows(db, "SELECT COALESCE(name, '') FROM TARGET_INFO_GPU WHERE id = ?");
  rows.bind(1, device);
  return rows.executeStep() ? rows.getColumn(0).getString() : std::string();
}

/// Puts one GPU's recording together. Times are picoseconds since `zero`.
class GpuRecorder {
 public:
  GpuRecorder(const std::string& file, std::int64_t zero) : zero_(zero) { out_.file = file; }

  void add(const NsysEvent& event, const HostCalls& calls) {
    KinetoRecording::GpuEvent added;
    added.start = picos(event.start);
    added.end = picos(event.end);
    const auto call = calls.find({event.process, event.correlation});
    added.launch = call == calls.end() ? added.start : picos(call->second.start);
    added.correlation = event.correlation;
    added.stream = stream(event.stream);
    added.copies = event.copies;
    added.name = name_index(event.name);
    if (event.computes && lowered(event.name).find("nccl") != std::string::npos) {
      added.call = static_cast<std::uint32_t>(out_.calls.size());
      out_.calls.emplace_back();
      out_.ranged_calls.emplace_back();
    }
    out_.gpu.push_back(added);
  }
  /// What launches kernels, of the process.
  void add_host(std::int64_t process, const std::vector<MarkedRange>& ranges,
                const HostCalls& calls) {
    for (const MarkedRange& range : ranges) {
      if (range.process() == process) add_range(range);
    }
    for (const auto& [key, call] : calls) {
      if (key.first != process) continue;
      KinetoRecording::RuntimeCall& added = out_.runtime.emplace_back();
      added.start = picos(call.start);
      added.end = picos(call.end);
      added.correlation = key.second;
      added.thread = thread(call.thread);
    }
    find_launchers(out_);
  }
  KinetoRecording take(const std::vector<MarkedRange>& steps, std::string device) {
    const std::vector<std::int64_t> numbers = numbers_of(steps);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      out_.marks.push_back({numbers[i], picos(steps[i].start), picos(steps[i].end)});
    }
    out_.device = std::move(device);
    out_.streams = streams_.size();
    forget_host(out_);  // time begins with the GPU's first event
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::int64_t picos(std::int64_t nanos) const {
    return (nanos - zero_) * kPicosPerNano;
  }
  void add_range(const MarkedRange& range) {
    constexpr std::string_view kSequence = ", seq = ";
    KinetoRecording::Operator& added = out_.operators.emplace_back();
    added.start = picos(range.start);
    added.end = picos(range.end);
    added.thread = thread(range.thread);
    const std::size_t behind = range.text.find(", ");
    added.name = name_index(range.text.substr(0, behind));
    if (const std::size_t at = range.text.find(kSequence); at != std::string::npos) {
      const char* const begin = range.text.data() + at + kSequence.size();
      std::int64_t sequence = 0;
      const auto [stop, error] =
          std::from_chars(begin, range.text.data() + range.text.size(), sequence);
      if (error == std::errc{} && sequence >= 0) added.sequence = sequence;
    }
    const auto parsed = parse_nsys_range(range.text);
    if (!parsed) return;
    added.name = name_index(parsed->op.name);
    const auto [at, is_new] =
        shapes_.try_emplace(parsed->op.dims, static_cast<std::uint32_t>(out_.shapes.size()));
    if (is_new) out_.shapes.push_back(parsed->op.dims);
    added.shapes = at->second;
  }
  std::uint32_t name_index(const std::string& name) {
    const auto [at, is_new] =
        names_.try_emplace(name, static_cast<std::uint32_t>(out_.names.size()));
    if (is_new) out_.names.push_back(name);
    return at->second;
  }
  std::uint32_t thread(std::int64_t number) {
    return threads_.try_emplace(number, static_cast<std::uint32_t>(threads_.size())).first->second;
  }
  std::uint16_t stream(std::int64_t number) {
    const auto [at, added] = streams_.try_emplace(number, streams_.size());
    if (at->second >= TraceNode::kNoStream) {
      throw InputError({.file = out_.file,
                        .pointer = {},
                        .found = "one stream more",
                        .allowed = "at most 65535 streams of a GPU",
                        .nearest = {}});
    }
    return static_cast<std::uint16_t>(at->second);
  }

  std::int64_t zero_;
  KinetoRecording out_;
  std::map<std::string, std::uint32_t> names_;
  std::map<std::vector<TensorShape>, std::uint32_t> shapes_;
  std::map<std::int64_t, std::uint32_t> threads_;
  std::map<std::int64_t, std::size_t> streams_;
};

std::vector<KinetoRecording> recordings_in(const std::string& file, SQLite::Database& db,
                                           bool with_launchers) {
  const std::vector<NsysEvent> events = events_in(db);
  std::set<std::pair<std::int64_t, std::int64_t>> gpus;  // by device, then process
  for (const NsysEvent& event : events) {
    if (event.computes) gpus.emplace(event.device, event.process);
  }
  const HostCalls calls = calls_in(db);
  const std::vector<MarkedRange> ranges = marked_ranges_in(db);
  std::vector<KinetoRecording> out;
  for (const auto& [device, process] : gpus) {
    GpuRecorder recorder(file, events.front().start);
    for (const NsysEvent& event : events) {
      if (event.device == device && event.process == process) recorder.add(event, calls);
    }
    if (with_launchers) recorder.add_host(process, ranges, calls);
    out.push_back(recorder.take(steps_of(process, ranges), device_named(db, device)));
  }
  if (out.size() < 2) return out;
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i].rank = static_cast<int>(i);
    out[i].world = static_cast<int>(out.size());
  }
  return out;
}

}  // namespace

bool marks_step(std::string_view range) {
  constexpr std::array<std::string_view, 9> kWords{"step",           "iteration",    "iter",
                                                   "trainstep",      "trainingstep", "trainingiter",
                                                   "trainiteration", "profilerstep", "globalstep"};
  return std::ranges::find(kWords, range_word(range)) != kWords.end();
}

std::vector<KinetoRecording> read_nsys_recordings(const std::string& file, bool with_launchers) {
  std::vector<KinetoRecording> out;
  try {
    SQLite::Database db(file, SQLite::OPEN_READONLY);
    out = recordings_in(file, db, with_launchers);
  } catch (const SQLite::Exception& e) {
    refuse_nsys(file, std::string("a database that cannot be read: ") + e.what());
  }
  if (out.empty()) refuse_nsys(file, "no kernel");
  return out;
}

}  // namespace lockstep
