#include "tools/lockstep/replay/replay_loggops.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "models/base/quantity.hpp"
#include "sim/answer/answer_fields.hpp"
#include "tools/console/assertion.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/console/table.hpp"
#include "tools/lockstep/command_fields.hpp"
#include "tools/lockstep/trace_files.hpp"

namespace lockstep {
namespace {

struct LogGopsStudy {
  LogGopsParameters parameters;
  LogGopsReplay replay;
};

/// Sets what the letter stands for; nothing for a number that it cannot be.
bool set_loggops(LogGopsParameters& out, char letter, double value) {
  // A second for a message and a millisecond for a byte: slower than any network.
  constexpr double kMostNs = 1e9, kMostNsPerByte = 1e6, kPsPerNs = 1000;
  const auto time = [&] {
    return StepTime{static_cast<std::uint64_t>(std::llround(value * kPsPerNs))};
  };
  const bool of_byte = letter == 'G' || letter == 'O';
  if (letter == 'S') {
    if (value != std::floor(value) || value > static_cast<double>(kMostGoalMessage)) return false;
    out.largest_eager = static_cast<std::uint64_t>(value);
  } else if (value > (of_byte ? kMostNsPerByte : kMostNs)) {
    return false;
  } else if (of_byte) {
    (letter == 'G' ? out.gap_per_byte_ps : out.overhead_per_byte_ps) = value * kPsPerNs;
  } else {
    (letter == 'L' ? out.latency : letter == 'o' ? out.overhead : out.gap) = time();
  }
  return true;
}

void read_loggops_part(std::string_view part, LogGopsParameters& out) {
  constexpr std::string_view kLetters = "LogGOS";
  double value = -1;
  const char* end = part.data() + part.size();
  const bool has_letter =
      part.size() > 2 && part[1] == '=' && kLetters.find(part[0]) != std::string_view::npos;
  if (has_letter) {
    const auto [stop, error] = std::from_chars(part.data() + 2, end, value);
    if (error != std::errc{} || stop != end) value = -1;
  }
  if (std::isfinite(value) && value >= 0 && set_loggops(out, part[0], value)) return;
  throw UsageError(fmt::format(
      "--loggops: found {}; allowed: L, o and g up to 1e9 ns, G and O up to 1e6 ns a byte, and "
      "whole bytes S up to {}, as in L=2500,o=1500,g=1000,G=0.02,O=0,S=65535",
      in_quotes(part), kMostGoalMessage));
}

/// A schedule has no cluster, recording or collectives that other options could change.
void check_only_loggops(const ParsedOptions& options) {
  constexpr std::array<std::string_view, 5> kAllowed{"assert", "format", "from", "loggops",
                                                     "output"};
  for (const auto& [name, values] : options.values) {
    if (std::ranges::find(kAllowed, name) != kAllowed.end()) continue;
    throw UsageError(fmt::format(
        "--loggops: found --{} beside it; allowed: --assert, --format, --from and --output, since "
        "its parameters stand for the whole cluster",
        name));
  }
}

const FieldTable<LogGopsParameters>& parameter_fields() {
  using Of = LogGopsParameters;
  constexpr double kSecondsPerPs = 1e-12;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("latency_s", "L.", [](const Of& p) { return to_seconds(p.latency); })
          .add("overhead_s", "o, of a message at each end.",
               [](const Of& p) { return to_seconds(p.overhead); })
          .add("gap_s", "g, between messages.", [](const Of& p) { return to_seconds(p.gap); })
          .add("gap_per_byte_s", "G.",
               [](const Of& p) { return Seconds{p.gap_per_byte_ps * kSecondsPerPs}; })
          .add("overhead_per_byte_s", "O.",
               [](const Of& p) { return Seconds{p.overhead_per_byte_ps * kSecondsPerPs}; })
          .add("largest_eager_bytes", "S: what is longer goes by rendezvous.",
               [](const Of& p) { return p.largest_eager; });
  return fields;
}

/// When a rank ends.
struct RankEnd {
  std::size_t rank = 0;
  Seconds end;
};
std::vector<RankEnd> rank_ends(const LogGopsStudy& study) {
  std::vector<RankEnd> out;
  for (std::size_t r = 0; r < study.replay.ends.size(); ++r) {
    out.push_back({r, to_seconds(study.replay.ends[r])});
  }
  return out;
}

const FieldTable<LogGopsStudy>& loggops_study_fields() {
  using Of = LogGopsStudy;
  static const FieldTable<RankEnd> ranks =
      FieldTable<RankEnd>()
          .add("rank", "Its number.", [](const RankEnd& r) { return r.rank; })
          .add("end_s", Better::less, "When its last operation ends.",
               [](const RankEnd& r) { return r.end; });
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("step_s", Better::less, "When the last rank ends.",
               [](const Of& s) { return to_seconds(s.replay.end); })
          .add("ranks", "Ranks of the schedule.", [](const Of& s) { return s.replay.ends.size(); })
          .add("operations", "Calculations, sends and receives.",
               [](const Of& s) { return s.replay.operations; })
          .add("messages", "Messages between two ranks.",
               [](const Of& s) { return s.replay.messages; })
          .add("rendezvous_messages", "Those longer than S, whose sender waits for the receive.",
               [](const Of& s) { return s.replay.rendezvous; })
          .object("loggops", "The parameters.", parameter_fields(),
                  [](const Of& s) -> const LogGopsParameters& { return s.parameters; })
          .list("rank_times", "Each rank.", ranks, rank_ends);
  return fields;
}

std::string loggops_table(const LogGopsStudy& study, const TextStyle& style) {
  constexpr std::size_t kMostRows = 16;  // as many as LogGOPSim prints
  constexpr int kLabel = 24;
  std::vector<RankEnd> ends = rank_ends(study);
  const auto last = std::ranges::max_element(ends, {}, &RankEnd::end);
  std::string out =
      fmt::format("{}, {}, by LogGOPS\n\n", counted(static_cast<double>(ends.size()), "rank"),
                  counted(static_cast<double>(study.replay.operations), "operation"));
  out += labelled_line(
      "last end", kLabel,
      fmt::format("{}, of rank {}", duration_text(last->end.base_units()), last->rank));
  out += labelled_line("messages", kLabel,
                       fmt::format("{}, {} of them by rendezvous",
                                   grouped(static_cast<double>(study.replay.messages)),
                                   grouped(static_cast<double>(study.replay.rendezvous))));
  const bool whole = ends.size() <= kMostRows;
  if (!whole) std::ranges::stable_sort(ends, std::ranges::greater{}, &RankEnd::end);
  TextTable table({{whole ? "rank" : "rank (the last)"}, {"ends"}});
  for (std::size_t i = 0; i < std::min(kMostRows, ends.size()); ++i) {
    table.add({std::to_string(ends[i].rank), duration_text(ends[i].end.base_units())});
  }
  return out + "\n" + table.text(style);
}

CsvText loggops_csv(const LogGopsStudy& study) {
  std::vector<std::string> cells{"rank", "end_s"};
  CsvText out = csv_line(cells);
  for (const auto& [rank, end] : rank_ends(study)) {
    cells = {std::to_string(rank), number_text(end.base_units())};
    out += csv_line(cells);
  }
  return out;
}

}  // namespace

std::vector<FieldInfo> loggops_fields() { return loggops_study_fields().infos(); }

LogGopsParameters parse_loggops(const std::string& text) {
  LogGopsParameters out;
  std::string_view rest = text;
  std::string seen;
  while (true) {
    const std::size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    read_loggops_part(part, out);
    if (seen.find(part[0]) != std::string::npos) {
      throw UsageError(fmt::format("--loggops: found {}, a second {}; allowed: each letter once",
                                   in_quotes(part), part[0]));
    }
    seen += part[0];
    if (comma == std::string_view::npos) return out;
    rest.remove_prefix(comma + 1);
  }
}

Exit answer_loggops(const ParsedOptions& options, Console& console) {
  check_only_loggops(options);
  const std::string format = options.choice("format", kFormats);
  const std::vector<Assertion> assertions = parse_assertions(options.all("assert"));
  LogGopsStudy study{.parameters = parse_loggops(options.get("loggops")), .replay = {}};
  const std::vector<GoalRank> ranks = read_goal_schedule(options);
  study.replay = replay_loggops(options.positionals.front(), ranks, study.parameters);
  const nlohmann::ordered_json answer = Value(loggops_study_fields().values(study)).json();
  const std::vector<std::string> misses = all_missed(assertions, answer);
  write_output(format == "json" ? Answer(JsonText(answer))
               : format == "csv"
                   ? Answer(loggops_csv(study))
                   : Answer::terminal(loggops_table(study, output_style(options, console))),
               options, console);
  return report_misses(misses, console);
}

}  // namespace lockstep
