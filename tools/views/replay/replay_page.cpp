#include "tools/views/replay/replay_page.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "models/base/number_text.hpp"
#include "models/base/quantity.hpp"
#include "tools/views/report/assets.hpp"
#include "tools/views/report/chart_kit.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kDrawnRanks = 16, kDrawnCalls = 12;

struct RankShare {
  const char* title;
  StepTime TraceRankTimes::* time;
};
constexpr std::array kRankShares{RankShare{"compute", &TraceRankTimes::compute},
                                 RankShare{"exposed communication", &TraceRankTimes::communication},
                                 RankShare{"waiting for other ranks", &TraceRankTimes::waiting},
                                 RankShare{"idle, host", &TraceRankTimes::idle},
                                 RankShare{"rest after its own end", &TraceRankTimes::after_end}};

double in_seconds(StepTime time) { return to_seconds(time).base_units(); }

/// All ranks, or those that the others wait for: they wait least themselves, the least first.
std::vector<std::size_t> drawn_ranks(const std::vector<TraceRankTimes>& ranks) {
  std::vector<std::size_t> out(ranks.size());
  std::iota(out.begin(), out.end(), std::size_t{0});
  if (ranks.size() <= kDrawnRanks) return out;
  std::ranges::stable_sort(out, {}, [&](std::size_t r) { return ranks[r].waiting; });
  out.resize(kDrawnRanks);
  return out;
}

void add_ranks(Page& page, const TraceReplay& replay) {
  const AxisUnit unit = time_unit(in_seconds(replay.end));
  std::vector<std::string> names;
  std::vector<BarPart> parts;
  for (const RankShare& share : kRankShares) {
    parts.push_back({.name = share.title, .colour = chart_colour(parts.size()), .values = {}});
  }
  const std::vector<std::size_t> ranks = drawn_ranks(replay.ranks);
  for (const std::size_t r : ranks) {
    names.push_back(fmt::format("rank {}", r));
    for (std::size_t p = 0; p < parts.size(); ++p) {
      parts[p].values.push_back(in_seconds(replay.ranks[r].*kRankShares[p].time) / unit.size);
    }
  }
  const auto [least_wait, most_wait] =
      std::ranges::minmax(replay.ranks, {}, &TraceRankTimes::waiting);
  const bool some_wait = most_wait.waiting > least_wait.waiting;
  page.section("Where the ranks' time goes");
  page.chart(
      {.title = "Time of each rank",
       .about = ranks.size() < replay.ranks.size()
                    ? fmt::format("{} of {} ranks{}. The table has all: mean, least, most.",
                                  ranks.size(), grouped(static_cast<double>(replay.ranks.size())),
                                  some_wait ? ": those that wait least for others, which these "
                                              "wait for"
                                            : ", as none waits longer than another")
                    : std::string(),
       .summary = "Stacked bars of the parts of each rank's time.",
       .height_px = bars_height(names.size()) + 40},
      stacked_bars(names, parts, unit.name));
  PageTable table{.columns = {{.title = "Part"},
                              {.title = "Mean", .numeric = true},
                              {.title = "Share", .numeric = true},
                              {.title = "Least", .numeric = true},
                              {.title = "Most", .numeric = true}}};
  for (const RankShare& share : kRankShares) {
    std::vector<double> of;
    for (const TraceRankTimes& rank : replay.ranks) of.push_back(in_seconds(rank.*share.time));
    const double mean = std::accumulate(of.begin(), of.end(), 0.0) / static_cast<double>(of.size());
    const double part = in_seconds(replay.end) > 0 ? mean / in_seconds(replay.end) : 0;
    const auto [least, most] = std::ranges::minmax(of);
    table.rows.push_back({PageCell::text(share.title),
                          PageCell::number(page_duration(mean), mean),
                          {.content = with_bar(page_percent(part, 1), part), .sort = part},
                          PageCell::number(page_duration(least), least),
                          PageCell::number(page_duration(most), most)});
  }
  page.table(table);
}

void add_calls(Page& page, const TraceReplay& replay) {
  if (replay.calls.empty()) return;
  std::vector<std::string> names;
  BarPart moving{.name = "moving bytes", .colour = chart_colour(0), .values = {}};
  BarPart waiting{.name = "waiting for the last rank", .colour = chart_colour(1), .values = {}};
  const TraceCallTimes& first = replay.calls.front();
  const AxisUnit unit = time_unit((first.moving + first.waiting).base_units());
  PageTable table{.columns = {{.title = "Collective"},
                              {.title = "Size", .numeric = true},
                              {.title = "Ranks", .numeric = true},
                              {.title = "Calls", .numeric = true},
                              {.title = "Each", .numeric = true},
                              {.title = "Wait each", .numeric = true},
                              {.title = "Algorithm"}},
                  .first_rows = 20};
  for (const TraceCallTimes& call : replay.calls) {
    const std::string name(collective_kinds()[static_cast<std::size_t>(call.op)].name);
    const auto calls = static_cast<double>(call.calls);
    const double each = call.moving.base_units() / calls, wait = call.waiting.base_units() / calls;
    if (names.size() < kDrawnCalls) {
      names.push_back(fmt::format("{} of {}, {}", name,
                                  format_quantity(call.payload.base_units(), Dimension::data),
                                  counted(call.members, "rank")));
      moving.values.push_back(call.moving.base_units() / unit.size);
      waiting.values.push_back(call.waiting.base_units() / unit.size);
    }
    table.rows.push_back(
        {PageCell::text(name),
         PageCell::number(format_quantity(call.payload.base_units(), Dimension::data),
                          call.payload.base_units()),
         PageCell::number(grouped(call.members), call.members),
         PageCell::number(grouped(calls), calls), PageCell::number(page_duration(each), each),
         PageCell::number(page_duration(wait), wait), PageCell::text(call.algorithm)});
  }
  page.section(
      "Collectives",
      "By the time that their bytes move over all calls, longest first; ranks that wait for the "
      "last one come on top.");
  page.chart({.title = "Time of all calls",
              .about = {},
              .summary = "Bars of the time of each kind of call; the table has the same.",
              .height_px = bars_height(names.size()) + 40},
             stacked_bars(names, std::vector<BarPart>{moving, waiting}, unit.name));
  page.table(table);
}

}  // namespace

std::string replay_page(const ReplayStudy& study, const AnswerBasis& basis) {
  const TraceReplay& replay = study.replay;
  const double end = in_seconds(replay.end), recorded = in_seconds(study.trace.recorded);
  Page page("Replay", fmt::format("{} on {}", counted(study.trace.ranks, "recorded rank"),
                                  study.cluster.node.name));
  page.about(fmt::format(
      "{}, {} of the trace, on {} of {}, fabric {}.", counted(study.trace.ranks, "rank"),
      counted(static_cast<double>(study.trace.size()), "node"),
      study.cluster.nodes == 1 ? "1 node" : grouped(study.cluster.nodes) + " nodes",
      study.cluster.node.name, study.cluster.fabric.name));
  Html words = escaped("The step takes ") + strong(page_duration(end));
  if (recorded > 0) {
    words += escaped(fmt::format("; as recorded it took {}: {}", page_duration(recorded),
                                 error_text(end / recorded - 1)));
  }
  if (study.longest && *study.longest > replay.end) {
    words += escaped(fmt::format("; up to {} if kernels need the communication that was hidden",
                                 page_duration(in_seconds(*study.longest))));
  }
  page.headline(words + escaped("."));
  std::vector<PageFigure> figures{{.value = page_duration(end), .label = "step time"},
                                  {.value = page_duration(in_seconds(replay.longest_path)),
                                   .label = "longest path of a rank, without communication"}};
  if (recorded > 0) figures.push_back({.value = page_duration(recorded), .label = "recorded"});
  if (study.what_if) {
    const double ranks = study.trace.ranks;
    const KernelBounds& before = study.what_if->recorded;
    const KernelBounds& after = study.what_if->wanted;
    const double was = (before.gpu + before.launch).base_units() / ranks;
    const double is = (after.gpu + after.launch).base_units() / ranks;
    figures.push_back(
        {.value = page_duration(is), .label = "kernels of a rank; recorded " + page_duration(was)});
  }
  page.figures(figures);
  add_ranks(page, replay);
  add_calls(page, replay);
  std::vector<std::string> notes;
  if (const std::string why = recorded_difference(study); !why.empty()) {
    notes.push_back("The replay differs from the recording: " + why);
  }
  notes.insert(notes.end(), study.trace.notes.begin(), study.trace.notes.end());
  for (const std::string& line : study.trace.repaired) notes.push_back("repaired: " + line);
  if (replay.messages > 0) {
    notes.push_back(fmt::format(
        "{} messages, {} each", grouped(static_cast<double>(replay.messages)),
        page_duration(replay.messages_moving.base_units() / static_cast<double>(replay.messages))));
  }
  if (!notes.empty()) {
    page.section("Notes");
    page.list(notes);
  }
  add_basis(page, basis);
  page.foot("Trace: " + study.trace.files.front() + ".");
  return page.html(chart_library());
}

std::string files_words(const ReplayStudy& study) {
  const std::vector<std::string>& files = study.trace.files;
  const auto unlike = static_cast<double>(std::set<std::string>(files.begin(), files.end()).size());
  return unlike > 1 ? fmt::format("{} files, the first {}", grouped(unlike), files.front())
                    : files.front();
}

}  // namespace lockstep
