#include "tools/views/replay/replay_output.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <numeric>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "models/base/output_file.hpp"
#include "models/base/quantity.hpp"
#include "models/base/write_json.hpp"
#include "sim/answer/answer_fields.hpp"
#include "tools/views/tables/command_fields.hpp"

namespace lockstep {
namespace {

using ReplayJson = nlohmann::ordered_json;

constexpr std::size_t kShownRanks = 5;
constexpr std::size_t kShownCalls = 10;

struct RankPart {
  std::string_view name;     ///< in the table
  std::string_view in_json;  ///< without "_s"
  StepTime TraceRankTimes::* time;
};
constexpr std::array kParts{
    RankPart{"compute", "compute", &TraceRankTimes::compute},
    RankPart{"exposed communication", "exposed_communication", &TraceRankTimes::communication},
    RankPart{"waiting for other ranks", "waiting", &TraceRankTimes::waiting},
    RankPart{"idle, host", "idle", &TraceRankTimes::idle},
    RankPart{"rest after its own end", "after_end", &TraceRankTimes::after_end}};

double seconds_of(StepTime time) { return to_seconds(time).base_units(); }

double mean_of(const TraceReplay& replay, const RankPart& part) {
  double sum = 0;
  for (const TraceRankTimes& rank : replay.ranks) sum += seconds_of(rank.*part.time);
  return sum / static_cast<double>(replay.ranks.size());
}

std::string_view op_text(CollectiveOp op) {
  return collective_kinds()[static_cast<std::size_t>(op)].name;
}

/// Ranks by how long they compute, longest first.
std::vector<std::size_t> busiest(const TraceReplay& replay) {
  std::vector<std::size_t> order(replay.ranks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return replay.ranks[a].compute > replay.ranks[b].compute;
  });
  return order;
}

std::string parts_table(const TraceReplay& replay, const TextStyle& style) {
  TextTable table(
      {{"rank's time", TextTable::Align::left}, {"mean"}, {"share"}, {"least"}, {"most"}});
  for (const RankPart& part : kParts) {
    const auto of = [&](const TraceRankTimes& rank) { return rank.*part.time; };
    const auto [least, most] = std::ranges::minmax(replay.ranks, {}, of);
    const double mean = mean_of(replay, part);
    table.add({std::string(part.name), duration_text(mean),
               percent_text(replay.end > StepTime{} ? mean / seconds_of(replay.end) : 0),
               duration_text(seconds_of(of(least))), duration_text(seconds_of(of(most)))});
  }
  return table.text(style);
}

std::string calls_table(const TraceReplay& replay, const TextStyle& style) {
  TextTable table({{"collective", TextTable::Align::left},
                   {"size"},
                   {"ranks"},
                   {"calls"},
                   {"each"},
                   {"wait each"},
                   {"algorithm", TextTable::Align::left}});
  for (std::size_t i = 0; i < std::min(kShownCalls, replay.calls.size()); ++i) {
    const TraceCallTimes& call = replay.calls[i];
    const auto calls = static_cast<double>(call.calls);
    table.add({std::string(op_text(call.op)),
               format_quantity(call.payload.base_units(), Dimension::data), grouped(call.members),
               grouped(calls), duration_text(call.moving.base_units() / calls),
               duration_text(call.waiting.base_units() / calls), call.algorithm});
  }
  return table.text(style);
}

/// Replayed time over recorded time; empty where nothing was recorded.
std::optional<double> over_recorded(const ReplayStudy& study) {
  if (study.trace.recorded == StepTime{}) return std::nullopt;
  return seconds_of(study.replay.end) / seconds_of(study.trace.recorded);
}

constexpr double kSame = 0.02;  // a replay that differs by more says so

/// The longest time: with waits that the recording does not tell.
std::string longest_line(const ReplayStudy& study) {
  if (!study.longest || *study.longest <= study.replay.end) return {};
  const double most = seconds_of(*study.longest);
  return labelled_line(
      "or up to", 24,
      fmt::format("{} ({}), if kernels need the communication that was hidden behind others",
                  duration_text(most), error_text(most / seconds_of(study.replay.end) - 1)));
}

/// What calls and messages took in the recording, a rank's on average; nothing where it does not
/// say.
std::optional<double> recorded_calls(const Trace& trace) {
  double sum = 0;
  for (const TraceNode& node : trace.nodes) {
    const bool calls = node.kind == TraceNodeKind::collective || node.kind == TraceNodeKind::send ||
                       node.kind == TraceNodeKind::receive;
    if (calls) sum += seconds_of(node.duration);
  }
  if (!(sum > 0)) return std::nullopt;
  return sum / trace.ranks;
}

/// Which part of the time differs: calls hold waits, and no other part costs anything anew.
std::string differing_calls(const ReplayStudy& study) {
  const std::optional<double> recorded = recorded_calls(study.trace);
  if (!recorded) return {};
  double moving = study.replay.messages_moving.base_units() * 2, waiting = 0;
  for (const TraceCallTimes& call : study.replay.calls) {
    moving += call.moving.base_units() * call.members;
  }
  for (const TraceRankTimes& rank : study.replay.ranks) waiting += seconds_of(rank.waiting);
  return fmt::format(
      ": the calls of a rank took {}, waits for others in it, and take {} here, with {} of waits "
      "(--as-recorded keeps what they took)",
      duration_text(*recorded), duration_text(moving / study.trace.ranks),
      duration_text(waiting / study.trace.ranks));
}

}  // namespace

std::string recorded_difference(const ReplayStudy& study) {
  const std::optional<double> ratio = over_recorded(study);
  if (!ratio || study.what_if || std::abs(*ratio - 1) <= kSame) return {};
  if (study.replay.calls.empty() && study.replay.messages == 0) {
    return "kernels of one stream overlapped in the recording, or the host waited for what the "
           "trace does not tell";
  }
  return "communication costs what it does on this cluster, and waits for other ranks are new" +
         differing_calls(study);
}

namespace {

/// The lines that hold the replay against the recording.
std::string recorded_lines(const ReplayStudy& study) {
  const std::optional<double> ratio = over_recorded(study);
  if (!ratio) return {};
  std::string out = labelled_line(
      "recorded", 24,
      fmt::format("{}; the replay takes {}", duration_text(seconds_of(study.trace.recorded)),
                  error_text(*ratio - 1)));
  const std::string why = recorded_difference(study);
  return why.empty() ? out : out + wrap("differs: " + why, kTextColumns, 2) + "\n";
}

/// What a faster card can change, and what it cannot.
std::string what_if_lines(const ReplayStudy& study) {
  if (!study.what_if) return {};
  const auto mean = [&](Seconds sum) {
    return duration_text(sum.base_units() / static_cast<double>(study.trace.ranks));
  };
  const KernelBounds& before = study.what_if->recorded;
  const KernelBounds& after = study.what_if->wanted;
  double idle = 0;
  for (const TraceRankTimes& rank : study.replay.ranks) idle += seconds_of(rank.idle);
  idle /= static_cast<double>(study.replay.ranks.size());
  const double whole = seconds_of(study.replay.end);
  const std::string kernels = fmt::format(
      "kernels of a rank: {} bound by their launch (recorded {}), {} by the GPU (recorded {})",
      mean(after.launch), mean(before.launch), mean(after.gpu), mean(before.gpu));
  const std::string waits = fmt::format(
      "for {}, {} of the step, the GPU waits for the host, as recorded: another GPU does not "
      "shorten that, another host may",
      duration_text(idle), percent_text(whole > 0 ? idle / whole : 0));
  return wrap(kernels, kTextColumns, 2) + "\n" +
         (idle > 0 ? wrap(waits, kTextColumns, 2) + "\n" : "");
}

/// Collects text and hands it on in large pieces.
class TimelineWriter {
 public:
  explicit TimelineWriter(OutputFile& file) : file_(file) {}
  template <class... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    constexpr std::size_t kFlushBytes = std::size_t{1} << 16;
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

std::string micros_text(StepTime t) {
  constexpr std::uint64_t kPsPerMicro = 1'000'000;
  return fmt::format("{}.{:06}", t.ps / kPsPerMicro, t.ps % kPsPerMicro);
}

}  // namespace

std::string replay_table(const ReplayStudy& study, const TextStyle& style) {
  const TraceReplay& replay = study.replay;
  std::string out = fmt::format(
      "{}, {} of the trace, on {} of {}, fabric {}\n", counted(study.trace.ranks, "rank"),
      counted(static_cast<double>(study.trace.size()), "node"),
      study.cluster.nodes == 1 ? "1 node" : grouped(study.cluster.nodes) + " nodes",
      study.cluster.node.name, study.cluster.fabric.name);
  for (const std::string& line : study.cluster.assumptions) {
    out += wrap("assumed: " + line, kTextColumns, 2) + "\n";
  }
  for (const std::string& line : study.trace.notes) {
    out += wrap("note: " + line, kTextColumns, 2) + "\n";
  }
  for (const std::string& line : study.trace.repaired) {
    out += wrap("repaired: " + line, kTextColumns, 2) + "\n";
  }
  out += "\n" + labelled_line("step time", 24, duration_text(seconds_of(replay.end)));
  out += longest_line(study);
  if (study.hash) {
    const HashAnswer& hash = *study.hash;
    out += hash.draws == 1 ? labelled_line("hash", 24, one_draw_text(hash))
                           : labelled_line(fmt::format("{} hash draws", hash.draws), 24,
                                           hash_text(hash.bands[0]));
  }
  out += recorded_lines(study);
  out += labelled_line("longest path of a rank", 24,
                       duration_text(seconds_of(replay.longest_path)) + " without communication");
  out += what_if_lines(study) + "\n";
  out += parts_table(replay, style);
  if (replay.ranks.size() > 1) {
    out += "\nranks that compute longest:";
    const std::vector<std::size_t> order = busiest(replay);
    for (std::size_t i = 0; i < std::min(kShownRanks, order.size()); ++i) {
      out += fmt::format("{} {} ({})", i == 0 ? "" : ",", order[i],
                         duration_text(seconds_of(replay.ranks[order[i]].compute)));
    }
    out += "\n";
  }
  if (!replay.calls.empty()) out += "\n" + calls_table(replay, style);
  if (replay.messages > 0) {
    out += fmt::format(
        "\n{} messages, {} each\n", grouped(static_cast<double>(replay.messages)),
        duration_text(replay.messages_moving.base_units() / static_cast<double>(replay.messages)));
  }
  return out;
}

namespace {

using Study = ReplayStudy;

const FieldTable<Cluster>& replay_cluster_fields() {
  static const FieldTable<Cluster> fields =
      FieldTable<Cluster>()
          .add("node", "Kind of node.", [](const Cluster& c) { return c.node.name; })
          .add("nodes", "How many.", [](const Cluster& c) { return c.nodes; })
          .add("fabric", "Network between them.", [](const Cluster& c) { return c.fabric.name; })
          .add("transport", "Network transport.",
               [](const Cluster& c) { return c.transport.name; });
  return fields;
}

const FieldTable<TraceCallTimes>& call_fields() {
  using Of = TraceCallTimes;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("op", "Collective.", [](const Of& c) { return op_text(c.op); })
          .add("size_bytes", "Payload.",
               [](const Of& c) { return AllDigits{c.payload.base_units()}; })
          .add("ranks", "Members of its group.", [](const Of& c) { return c.members; })
          .add("algorithm", "How it runs.", [](const Of& c) { return c.algorithm; })
          .add("calls", "How often.", [](const Of& c) { return c.calls; })
          .add("moving_s", Better::less, "Time in which all of them move bytes.",
               [](const Of& c) { return c.moving; })
          .add("waiting_s", Better::less, "Time in which all of them wait for the last rank.",
               [](const Of& c) { return c.waiting; });
  return fields;
}

/// A rank, by number.
struct RankAnswer {
  std::size_t rank = 0;
  const TraceRankTimes* times = nullptr;
};
std::vector<RankAnswer> rank_answers(const Study& study) {
  std::vector<RankAnswer> out;
  for (std::size_t r = 0; r < study.replay.ranks.size(); ++r) {
    out.push_back({r, &study.replay.ranks[r]});
  }
  return out;
}

const FieldTable<RankAnswer>& rank_fields() {
  static const FieldTable<RankAnswer> fields = [] {
    FieldTable<RankAnswer> out;
    out.add("rank", "Its number.", [](const RankAnswer& r) { return r.rank; });
    for (const RankPart& part : kParts) {
      out.add(fmt::format("{}_s", part.in_json), Better::less,
              fmt::format("Its time of {}.", part.name),
              [time = part.time](const RankAnswer& r) { return seconds_of(r.times->*time); });
    }
    return out;
  }();
  return fields;
}

/// A number of the mean rank, as the parts of its time are.
template <class Get>
auto of_what_if(Get get) {
  return [get](const Study& s) -> std::optional<double> {
    if (!s.what_if) return std::nullopt;
    return get(*s.what_if).base_units() / static_cast<double>(s.trace.ranks);
  };
}
void add_recorded(FieldTable<Study>& fields) {
  fields
      .add("recorded_s", Better::less, "The step as it was recorded, where the trace says it.",
           [](const Study& s) -> std::optional<double> {
             if (!over_recorded(s)) return std::nullopt;
             return seconds_of(s.trace.recorded);
           })
      .add("replayed_over_recorded", "step_s over recorded_s, where there is that.",
           [](const Study& s) { return over_recorded(s); })
      .add("kernels_launch_bound_s", Better::less,
           "With --recorded-on: kernels of the mean rank that are as short as a launch.",
           of_what_if([](const WhatIf& w) { return w.wanted.launch; }))
      .add("kernels_gpu_bound_s", Better::less, "With --recorded-on: its other kernels.",
           of_what_if([](const WhatIf& w) { return w.wanted.gpu; }))
      .add("recorded_kernels_launch_bound_s", Better::less,
           "With --recorded-on: the same as they were recorded.",
           of_what_if([](const WhatIf& w) { return w.recorded.launch; }))
      .add("recorded_kernels_gpu_bound_s", Better::less,
           "With --recorded-on: the same as they were recorded.",
           of_what_if([](const WhatIf& w) { return w.recorded.gpu; }));
  for (const RankPart& part : kParts) {
    fields.add(fmt::format("mean_{}_s", part.in_json), Better::less,
               fmt::format("Mean over ranks: {}.", part.name),
               [&part](const Study& s) { return mean_of(s.replay, part); });
  }
}

const FieldTable<Study>& study_fields() {
  static const FieldTable<Study> fields = [] {
    FieldTable<Study> out;
    out.add("step_s", Better::less,
            "The step: the longest that a rank takes from its beginning to its end.",
            [](const Study& s) { return seconds_of(s.replay.end); })
        .add("step_s_high", Better::less,
             "The step if kernels wait for all communication that was hidden behind others in the "
             "recording, which does not tell who needs it; absent where none was.",
             [](const Study& s) -> std::optional<double> {
               if (!s.longest) return std::nullopt;
               return seconds_of(std::max(*s.longest, s.replay.end));
             })
        .add("longest_path_s", Better::less, "Longest path of a rank without communication.",
             [](const Study& s) { return seconds_of(s.replay.longest_path); })
        .add("ranks", "Ranks of the trace.", [](const Study& s) { return s.trace.ranks; })
        .add("trace_nodes", "Nodes of the trace's graph.",
             [](const Study& s) { return s.trace.size(); });
    add_recorded(out);
    out.add("messages", "Messages between two ranks.",
            [](const Study& s) { return s.replay.messages; })
        .add("messages_s", Better::less, "Time in which all of them move.",
             [](const Study& s) { return s.replay.messages_moving; });
    add_hash_headline(out, "step", [](const Study& s) -> std::optional<HashBand> {
      if (!s.hash || s.hash->draws <= 1) return std::nullopt;
      return s.hash->bands[0];
    });
    out.object("hashing", "Draws of the hashes, where they decide anything.", hash_fields(),
               [](const Study& s) -> const HashAnswer* { return s.hash ? &*s.hash : nullptr; })
        .object("cluster", "The machine.", replay_cluster_fields(),
                [](const Study& s) -> const Cluster& { return s.cluster; })
        .add("assumptions", "What was filled in.",
             [](const Study& s) { return s.cluster.assumptions; })
        .add("notes", "What is to be known of the trace.",
             [](const Study& s) { return s.trace.notes; })
        .add("repaired", "What of the trace was put right.",
             [](const Study& s) { return s.trace.repaired; })
        .list("collectives", "Longest first.", call_fields(),
              [](const Study& s) -> const auto& { return s.replay.calls; })
        .list("rank_times", "Each rank.", rank_fields(), rank_answers);
    return out;
  }();
  return fields;
}

}  // namespace

ReplayJson replay_json(const ReplayStudy& study) {
  return Value(study_fields().values(study)).json();
}

std::vector<FieldInfo> replay_fields() { return study_fields().infos(); }

CsvText replay_csv(const ReplayStudy& study) {
  std::vector<std::string> cells{"rank"};
  for (const RankPart& part : kParts) cells.push_back(fmt::format("{}_s", part.in_json));
  CsvText out = csv_line(cells);
  for (std::size_t r = 0; r < study.replay.ranks.size(); ++r) {
    cells = {std::to_string(r)};
    for (const RankPart& part : kParts) {
      cells.push_back(number_text(seconds_of(study.replay.ranks[r].*part.time)));
    }
    out += csv_line(cells);
  }
  return out;
}

void write_replay_timeline(OutputFile& file, const ReplayStudy& study) {
  const Trace& trace = study.trace;
  std::vector<std::string> names;  // as JSON writes them
  names.reserve(trace.strings.size());
  for (const std::string& text : trace.strings) {
    names.push_back(json_string(text, JsonLetters::ascii));
  }
  TimelineWriter out(file);
  out.print(
      "{{\"displayTimeUnit\":\"ms\",\"otherData\":{{\"producer\":\"lockstep {}\"}},\n"
      "\"traceEvents\":[\n",
      LOCKSTEP_VERSION);
  for (int rank = 0; rank < trace.ranks; ++rank) {
    out.print(
        "{{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":{0},\"args\":{{\"name\":"
        "\"rank {0}\"}}}},\n",
        rank);
    const auto first = trace.rank_first[static_cast<std::size_t>(rank)];
    const auto end = trace.rank_first[static_cast<std::size_t>(rank) + 1];
    for (std::uint32_t n = first; n < end; ++n) {
      const TraceNode& node = trace.nodes[n];
      // Communication has rows of its own, above every stream.
      constexpr int kCollectives = 100'000, kMessages = 100'001;
      int row = node.stream;
      if (node.kind == TraceNodeKind::collective) row = kCollectives;
      if (node.kind == TraceNodeKind::send || node.kind == TraceNodeKind::receive) row = kMessages;
      const StepTime start = study.replay.starts[n];
      out.print(
          "{{\"name\":{},\"ph\":\"X\",\"ts\":{},\"dur\":{},\"pid\":{},\"tid\":{},"
          "\"args\":{{\"node\":{}}}}},\n",
          names[trace.names[n]], micros_text(start), micros_text(study.replay.ends[n] - start),
          rank, row, trace.ids[n]);
    }
  }
  // This entry also ends the list without a comma.
  out.print(
      "{{\"name\":\"step\",\"ph\":\"X\",\"ts\":0.000000,\"dur\":{},\"pid\":{},\"tid\":0}}\n]}}\n",
      micros_text(study.replay.end), trace.ranks);
  out.flush();
}

}  // namespace lockstep
