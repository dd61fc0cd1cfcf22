#include "tools/views/replay/loggops_table.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "sim/answer/answer_fields.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/console/table.hpp"
#include "tools/views/tables/command_fields.hpp"

namespace lockstep {
namespace {

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

}  // namespace

std::vector<FieldInfo> loggops_fields() { return loggops_study_fields().infos(); }

nlohmann::ordered_json loggops_json(const LogGopsStudy& study) {
  return Value(loggops_study_fields().values(study)).json();
}

std::string loggops_table(const LogGopsStudy& study, const TextStyle& style) {
  constexpr std::size_t kMostRanks = 16;  // as many as LogGOPSim prints
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
  const bool whole = ends.size() <= kMostRanks;
  if (!whole) std::ranges::stable_sort(ends, std::ranges::greater{}, &RankEnd::end);
  TextTable table({{whole ? "rank" : "rank (the last)"}, {"ends"}});
  for (std::size_t i = 0; i < std::min(kMostRanks, ends.size()); ++i) {
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

}  // namespace lockstep
