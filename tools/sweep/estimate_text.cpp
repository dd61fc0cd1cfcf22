#include "tools/sweep/estimate_text.hpp"

#include <fmt/format.h>
#include <ostream>
#include <unistd.h>

#include "models/base/number_text.hpp"
#include "sim/search/sweep/engine.hpp"
#include "sim/search/sweep/estimate.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/sweep/local_sweep.hpp"

namespace lockstep {
namespace {

/// "about 37 s (30 to 45 s) at 0.4 s a point on 2 cores, by 20 points tried".
std::string estimate_words(const SweepEstimate& of, std::size_t points, int jobs) {
  const std::string range =
      of.high_s ? fmt::format("{} to {}", duration_text(of.low_s), duration_text(*of.high_s))
                : fmt::format("no less than {}", duration_text(of.low_s));
  return fmt::format(
      "about {} ({}) at {} a point on {}, by {} tried", duration_text(of.seconds), range,
      duration_text(of.seconds_per_point), counted(jobs, "core"),
      of.tried == points ? "all of them" : counted(static_cast<double>(of.tried), "point"));
}

}  // namespace

void print_estimate(const SweepRun& run, const std::string& format, int jobs) {
  constexpr double kLimitS = 3;
  const std::size_t count = run.numbers.size();
  const auto candidates = static_cast<double>(run.sweep.candidates());
  const SweepEstimate of = estimate_sweep(run.engine.try_points(run.numbers, kLimitS), count, jobs);
  if (format == "json") {
    nlohmann::ordered_json out{{"candidates", run.sweep.candidates()},
                               {"points", count},
                               {"seconds_per_point", twelve_digits(of.seconds_per_point)},
                               {"jobs", jobs},
                               {"estimate_s", twelve_digits(of.seconds)},
                               {"estimate_low_s", twelve_digits(of.low_s)},
                               {"estimate_high_s", nullptr},
                               {"tried", of.tried}};
    if (of.high_s) out["estimate_high_s"] = twelve_digits(*of.high_s);
    run.console.out << JsonText(out).str();
    return;
  }
  const auto points = static_cast<double>(count);
  std::string out = fmt::format("{}: {}", run.sweep.file, counted(points, "point"));
  if (points < candidates) {
    out += fmt::format(" of {} combinations keep the constraints", grouped(candidates));
  }
  out += "\n" + estimate_words(of, count, jobs) + "\n";
  run.console.out << Answer::terminal(out).str();
}

}  // namespace lockstep
