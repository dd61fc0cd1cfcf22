#include "tools/lockstep/replay/replay_loggops.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/trace/loggops/loggops.hpp"
#include "sim/trace/loggops/parameters.hpp"
#include "tools/console/assertion.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/console/table.hpp"
#include "tools/lockstep/replay/trace_asked.hpp"
#include "tools/views/replay/loggops_table.hpp"

namespace lockstep {
namespace {

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

}  // namespace

Exit answer_loggops(const ParsedOptions& options, Console& console) {
  check_only_loggops(options);
  const std::string format = options.choice("format", kFormats);
  const std::vector<Assertion> assertions = parse_assertions(options.all("assert"));
  LogGopsStudy study{.parameters = parse_loggops(options.get("loggops")), .replay = {}};
  const std::vector<GoalRank> ranks = read_goal_schedule(trace_asked(options));
  study.replay = replay_loggops(options.positionals.front(), ranks, study.parameters);
  const nlohmann::ordered_json answer = loggops_json(study);
  const std::vector<std::string> misses = all_missed(assertions, answer);
  write_output(format == "json" ? Answer(JsonText(answer))
               : format == "csv"
                   ? Answer(loggops_csv(study))
                   : Answer::terminal(loggops_table(study, output_style(options, console))),
               options, console);
  return report_misses(misses, console);
}

}  // namespace lockstep
