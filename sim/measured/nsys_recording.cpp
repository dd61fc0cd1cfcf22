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
#include "sim/measured/nsys_ranks.hpp"
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
    GpuTable{"CUPTI_ACTIVITY_KIND_KERNEL", "", "0"},
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

/// Refuses a row whose times are none, and one so late that a step could not be counted.
void check_times(const std::string& file, std::string_view table, SQLite::Statement& row) {
  constexpr std::int64_t kLatest = 1'000'000'000'000'000'000;  // ns; 32 years
  const auto is_time = [&row](int column) {
    const SQLite::Column at = row.getColumn(column);
    return at.isInteger() && at.getInt64() >= 0 && at.getInt64() <= kLatest;
  };
  if (is_time(3) && is_time(4)) return;
  refuse_nsys(file, fmt::format("{} of {} without a start and an end in nanoseconds",
                                in_quotes(row.getColumn(6).getString()), table));
}

/// Refuses what lasts too long for picoseconds.
void check_span(const std::string& file, const std::vector<NsysEvent>& events) {
  constexpr std::int64_t kLongest = 864'000'000'000'000;  // ns; ten days
  for (const NsysEvent& event : events) {
    if (event.end - events.front().start <= kLongest) continue;
    refuse_nsys(file, in_quotes(event.name) + " more than ten days after the first event");
  }
}

bool has_column(SQLite::Database& db, const std::string& table, std::string_view column) {
  SQLite::Statement rows(db, "SELECT name FROM pragma_table_info(?)");
  rows.bind(1, table);
  while (rows.executeStep()) {
    if (rows.getColumn(0).getString() == column) return true;
  }
  return false;
}

/// "k.streamId"; what older exports do not have is `otherwise`.
std::string column_or(SQLite::Database& db, std::string_view table, std::string_view column,
                      std::string_view otherwise) {
  const bool there = has_column(db, std::string(table), column);
  return there ? fmt::format("IFNULL(k.{}, {})", column, otherwise) : std::string(otherwise);
}
/// The text that a column numbers; '' where there is none.
std::string text_of(SQLite::Database& db, std::string_view table, std::string_view column) {
  if (!has_column(db, std::string(table), column) || !db.tableExists("StringIds")) return "''";
  return fmt::format("IFNULL((SELECT value FROM StringIds s WHERE s.id = k.{}), '')", column);
}
/// A kernel by its whole name, else by the short one.
std::string kernel_text(SQLite::Database& db, std::string_view table) {
  return fmt::format("COALESCE(NULLIF({}, ''), NULLIF({}, ''), 'kernel')",
                     text_of(db, table, "demangledName"), text_of(db, table, "shortName"));
}

std::vector<NsysEvent> events_in(const std::string& file, SQLite::Database& db) {
  std::vector<NsysEvent> out;
  for (const GpuTable& of : kGpuTables) {
    if (!db.tableExists(std::string(of.table))) continue;
    const bool copies = of.name == "'Memcpy'";
    const bool computes = &of == &kGpuTables.front() || &of == &kGpuTables.back();
    SQLite::Statement rows(
        db, fmt::format("SELECT {}, {}, {}, k.start, k.end, {}, {}, {} FROM {} k",
                        column_or(db, of.table, "globalPid", "0"),
                        column_or(db, of.table, "deviceId", "0"),
                        column_or(db, of.table, "streamId", "0"),
                        column_or(db, of.table, "correlationId", "-1"),
                        of.name.empty() ? kernel_text(db, of.table) : std::string(of.name), of.kind,
                        of.table));
    while (rows.executeStep()) {
      check_times(file, of.table, rows);
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
  check_span(file, out);
  return out;
}

/// What the host did, in nanoseconds.
struct HostCall {
  std::int64_t thread = 0, start = 0, end = 0;
  std::string name;  ///< where the export has it
};
/// By process and number.
using HostCalls = std::map<std::pair<std::int64_t, std::int64_t>, HostCall>;

/// "cudaLaunchKernel" of "cudaLaunchKernel_ptsz_v7000", as Nsight Systems calls it.
std::string runtime_name(std::string name) {
  const std::size_t version = name.rfind("_v");
  if (version != std::string::npos &&
      name.find_first_not_of("0123456789", version + 2) == std::string::npos) {
    name.resize(version);
  }
  for (const std::string_view stream : {"_ptsz", "_ptds"}) {  // of a default stream per thread
    if (name.ends_with(stream)) name.resize(name.size() - stream.size());
  }
  return name;
}

HostCalls calls_in(SQLite::Database& db) {
  constexpr const char* kCalls = "CUPTI_ACTIVITY_KIND_RUNTIME";
  HostCalls out;
  if (!db.tableExists(kCalls) || !has_column(db, kCalls, "globalTid")) return out;
  SQLite::Statement rows(db,
                         fmt::format("SELECT globalTid, correlationId, start, end, {} FROM {} k "
                                     "WHERE correlationId IS NOT NULL",
                                     text_of(db, kCalls, "nameId"), kCalls));
  while (rows.executeStep()) {
    const std::int64_t thread = rows.getColumn(0).getInt64();
    out.try_emplace({thread >> kProcessShift, rows.getColumn(1).getInt64()},
                    HostCall{thread, rows.getColumn(2).getInt64(), rows.getColumn(3).getInt64(),
                             runtime_name(rows.getColumn(4).getString())});
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
  constexpr const char* kRanges = "NVTX_EVENTS";
  if (!db.tableExists(kRanges) || !has_column(db, kRanges, "end")) return out;
  SQLite::Statement rows(
      db, fmt::format("SELECT k.globalTid, k.start, k.end, COALESCE({}, {}) FROM {} k "
                      "WHERE k.eventType IN (?, ?) AND k.end > k.start ORDER BY k.start",
                      has_column(db, kRanges, "text") ? "k.text" : "NULL",
                      text_of(db, kRanges, "textId"), kRanges));
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

/// Processes number the GPUs that they see: the machine's numbers, by process and its own number.
class MachineGpus {
 public:
  explicit MachineGpus(SQLite::Database& db) {
    if (!db.tableExists("TARGET_INFO_CUDA_DEVICE")) return;
    SQLite::Statement rows(db,
                           "SELECT pid, cudaId, gpuId FROM TARGET_INFO_CUDA_DEVICE "
                           "WHERE pid IS NOT NULL AND gpuId IS NOT NULL");
    while (rows.executeStep()) {
      numbers_[{rows.getColumn(0).getInt64(), rows.getColumn(1).getInt64()}] =
          rows.getColumn(2).getInt64();
    }
  }
  [[nodiscard]] std::int64_t of(std::int64_t process, std::int64_t device) const {
    // Above the process is the number of the machine.
    constexpr std::int64_t kPid = (std::int64_t{1} << kProcessShift) - 1;
    const auto found = numbers_.find({process & kPid, device});
    return found == numbers_.end() ? device : found->second;
  }

 private:
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> numbers_;
};

/// Whether PyTorch's emit_nvtx() wrote the range, for an operator.
bool is_operator_range(std::string_view text) {
  return std::ranges::any_of(
      std::array<std::string_view, 3>{"::", ", seq = ", ", op_id = "},
      [&](std::string_view mark) { return text.find(mark) != std::string_view::npos; });
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
    if (event.computes && is_communication_kernel(event.name)) {
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
      added.name = name_index(call.name);
      added.what = kineto_call_named(call.name);
    }
    std::ranges::stable_sort(out_.runtime, {}, &KinetoRecording::RuntimeCall::start);
    find_launchers(out_);
  }
  KinetoRecording take(const std::vector<MarkedRange>& steps, std::string device, NsysHost host) {
    const std::vector<std::int64_t> numbers = numbers_of(steps);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      out_.marks.push_back({numbers[i], picos(steps[i].start), picos(steps[i].end)});
    }
    out_.device = std::move(device);
    out_.streams = streams_.size();
    out_.threads = threads_.size();
    if (host == NsysHost::all) {
      begin_with_host();
    } else {
      forget_host(out_);  // time begins with the GPU's first event
    }
    return std::move(out_);
  }

 private:
  /// Time begins with whatever was first, as in Kineto's recordings.
  void begin_with_host() {
    std::int64_t first = out_.gpu.front().start;
    for (const auto& each : out_.operators) first = std::min(first, each.start);
    for (const auto& each : out_.runtime) first = std::min(first, each.start);
    const auto shift = [&](auto& events) {
      for (auto& event : events) {
        event.start -= first;
        event.end -= first;
      }
    };
    shift(out_.gpu);
    shift(out_.runtime);
    shift(out_.operators);
    for (auto& event : out_.gpu) {
      event.launch -= first;
      out_.end = std::max(out_.end, event.end);
    }
    for (const auto& call : out_.runtime) out_.end = std::max(out_.end, call.end);
    for (const auto& own : out_.operators) {
      if (!own.is_range) out_.end = std::max(out_.end, own.end);
    }
    for (auto& mark : out_.marks) {
      mark.start -= first;
      mark.end -= first;
    }
  }
  [[nodiscard]] std::int64_t picos(std::int64_t nanos) const {
    return (nanos - zero_) * kPicosPerNano;
  }
  void add_range(const MarkedRange& range) {
    constexpr std::string_view kSequence = ", seq = ";
    KinetoRecording::Operator& added = out_.operators.emplace_back();
    added.start = picos(range.start);
    added.end = picos(range.end);
    added.thread = thread(range.thread);
    added.is_range = !is_operator_range(range.text);
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

void read_gpus(SQLite::Database& db, NsysHost host, NsysExport& out) {
  const std::vector<NsysEvent> events = events_in(out.file, db);
  const MachineGpus machine(db);
  // By the machine's number of the GPU, then process, then the process's number of it.
  std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> gpus;
  for (const NsysEvent& event : events) {
    if (event.computes) {
      gpus.emplace(machine.of(event.process, event.device), event.process, event.device);
    }
  }
  const HostCalls calls = calls_in(db);
  const std::vector<MarkedRange> ranges = marked_ranges_in(db);
  const std::map<std::int64_t, int> mpi_ranks = nsys_mpi_ranks(db);
  for (const auto& [number, process, device] : gpus) {
    GpuRecorder recorder(out.file, events.front().start);
    for (const NsysEvent& event : events) {
      if (event.device == device && event.process == process) recorder.add(event, calls);
    }
    if (host != NsysHost::none) recorder.add_host(process, ranges, calls);
    NsysGpu& gpu = out.gpus.emplace_back();
    gpu.recording = recorder.take(steps_of(process, ranges), device_named(db, number), host);
    gpu.process = process;
    const auto rank = mpi_ranks.find(process);
    if (rank != mpi_ranks.end()) gpu.mpi_rank = rank->second;
  }
  read_launched_rank(db, out);
}

}  // namespace

bool marks_step(std::string_view range) {
  constexpr std::array<std::string_view, 9> kWords{"step",           "iteration",    "iter",
                                                   "trainstep",      "trainingstep", "trainingiter",
                                                   "trainiteration", "profilerstep", "globalstep"};
  return std::ranges::find(kWords, range_word(range)) != kWords.end();
}

NsysExport read_nsys_export(const std::string& file, NsysHost host) {
  NsysExport out;
  out.file = file;
  try {
    SQLite::Database db(file, SQLite::OPEN_READONLY);
    read_gpus(db, host, out);
  } catch (const SQLite::Exception& e) {
    refuse_nsys(file, std::string("a database that cannot be read: ") + e.what());
  }
  if (out.gpus.empty()) refuse_nsys(file, "no kernel");
  return out;
}

std::vector<KinetoRecording> read_nsys_recordings(const std::string& file, NsysHost host) {
  NsysExport read = read_nsys_export(file, host);
  place_nsys_ranks({&read, 1});
  std::vector<KinetoRecording> out;
  for (NsysGpu& gpu : read.gpus) out.push_back(std::move(gpu.recording));
  return out;
}

}  // namespace lockstep
