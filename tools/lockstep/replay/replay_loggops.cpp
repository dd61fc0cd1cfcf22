#include "tools/lockstep/replay/replay_loggops.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "tools/console/assertion.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/console/table.hpp"
#include "tools/lockstep/replay/trace_asked.hpp"
#include "tools/views/replay/loggops_table.hpp"

namespace lockstep {
namespace {

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

}  // namespace

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
