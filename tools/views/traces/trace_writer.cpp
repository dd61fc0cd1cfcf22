#include "tools/views/traces/trace_writer.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <numeric>
#include <set>

#include <nlohmann/json.hpp>

#include "models/base/output_file.hpp"
#include "models/base/write_json.hpp"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 5> kStreams{"compute", "send to next", "send to previous",
                                                   "data parallel", "host copies"};
constexpr std::size_t kFlushBytes = std::size_t{1} << 16;
constexpr std::uint64_t kPsPerUs = 1'000'000;

/// Collects text and hands it on in large pieces.
class Writer {
 public:
  explicit Writer(OutputFile& file) : file_(file) {}
  template <class... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(buffer_), format, std::forward<Args>(args)...);
    if (buffer_.size() >= kFlushBytes) flush();
  }
  void flush() {
    file_.write({buffer_.data(), buffer_.size()});
    buffer_.clear();
  }

 private:
  OutputFile& file_;
  fmt::memory_buffer buffer_;
};

std::string ascii_string(std::string_view text) { return json_string(text, JsonLetters::ascii); }

/// Microseconds with all digits of a picosecond count: 12345678 -> "12.345678".
std::string microseconds_text(StepTime t) {
  return fmt::format("{}.{:06}", t.ps / kPsPerUs, t.ps % kPsPerUs);
}

std::string process_name(const ActorReport& actor, bool folded) {
  std::string name = fmt::format("stage {}", actor.stage);
  if (!folded || actor.replica > 0) name += fmt::format(" replica {}", actor.replica);
  if (actor.copies > 1) name += fmt::format(" ({} replicas alike)", actor.copies);
  return name;
}

/// Process number of each actor: sorted by stage, then replica, from 1.
std::vector<std::size_t> process_numbers(const std::vector<ActorReport>& actors) {
  std::vector<std::size_t> order(actors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return std::pair(actors[a].stage, actors[a].replica) <
           std::pair(actors[b].stage, actors[b].replica);
  });
  std::vector<std::size_t> number(actors.size());
  for (std::size_t i = 0; i < order.size(); ++i) number[order[i]] = i + 1;
  return number;
}

void write_names(Writer& out, const StepReport& report, const std::vector<std::size_t>& pids) {
  std::set<std::pair<std::size_t, std::uint8_t>> threads;  // (actor, stream) that have slices
  for (const TimelineSlice& slice : report.timeline) threads.emplace(slice.actor, slice.stream);
  for (std::size_t i = 0; i < report.actors.size(); ++i) {
    const std::string name = ascii_string(process_name(report.actors[i], report.folded));
    out.print("{{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":{},\"args\":{{\"name\":{}}}}},\n",
              pids[i], name);
    out.print(
        "{{\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":{0},\"args\":"
        "{{\"sort_index\":{0}}}}},\n",
        pids[i]);
  }
  for (const auto& [actor, stream] : threads) {
    out.print(
        "{{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":"
        "\"{}\"}}}},\n",
        pids[actor], stream, kStreams[stream]);
    out.print(
        "{{\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":{0},\"tid\":{1},\"args\":"
        "{{\"sort_index\":{1}}}}},\n",
        pids[actor], stream);
  }
}

void write_slice(Writer& out, const TimelineSlice& slice, std::size_t pid) {
  const SliceKind& kind = slice_kinds()[slice.kind];
  out.print(R"({{"name":"{}","cat":"{}","ph":"X","ts":{},"dur":{},"pid":{},"tid":{})", kind.name,
            kStreams[slice.stream], microseconds_text(slice.start),
            microseconds_text(slice.end - slice.start), pid, slice.stream);
  if (!kind.colour.empty()) out.print(R"(,"cname":"{}")", kind.colour);
  if (slice.micro_batch >= 0 && slice.chunk >= 0) {
    out.print(R"(,"args":{{"micro_batch":{},"chunk":{}}})", slice.micro_batch, slice.chunk);
  } else if (slice.micro_batch >= 0) {
    out.print(R"(,"args":{{"micro_batch":{}}})", slice.micro_batch);
  } else if (slice.chunk >= 0) {
    out.print(R"(,"args":{{"chunk":{}}})", slice.chunk);
  }
  out.print("}},\n");
}

}  // namespace

void write_trace(OutputFile& file, const StepReport& report, const std::string& title) {
  const std::vector<std::size_t> pids = process_numbers(report.actors);
  std::vector<std::size_t> order(report.timeline.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    const TimelineSlice &x = report.timeline[a], &y = report.timeline[b];
    return std::tuple(x.start, pids[x.actor], x.stream) <
           std::tuple(y.start, pids[y.actor], y.stream);
  });
  Writer out(file);
  out.print(
      "{{\"displayTimeUnit\":\"ms\",\"otherData\":{{\"title\":{},\"producer\":\"lockstep {}\"}},"
      "\n\"traceEvents\":[\n",
      ascii_string(title), LOCKSTEP_VERSION);
  write_names(out, report, pids);
  for (const std::size_t i : order) {
    write_slice(out, report.timeline[i], pids[report.timeline[i].actor]);
  }
  out.print(
      "{{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":0,\"args\":{{\"name\":\"step\"}}}},\n");
  // The step itself, as a counterpart to all rows; it also ends the list without a comma.
  out.print(
      "{{\"name\":\"step\",\"cat\":\"step\",\"ph\":\"X\",\"ts\":0.000000,\"dur\":{},\"pid\":0,"
      "\"tid\":0}}\n]}}\n",
      microseconds_text(to_step_time(Seconds{report.step_s})));
  out.flush();
}

}  // namespace lockstep
