#include <array>
#include <cmath>
#include <fmt/format.h>
#include <string>

#include "models/base/number_text.hpp"
#include "tools/views/run/run_result.hpp"

namespace lockstep {
namespace {

constexpr std::array kNetworkBuckets{Bucket::tensor_exposed, Bucket::context_exposed,
                                     Bucket::expert_exposed, Bucket::pipeline_exposed,
                                     Bucket::data_exposed};

double of_bucket(const BucketTimes& times, Bucket bucket) {
  return times[static_cast<std::size_t>(bucket)];
}

/// Kinds of traffic that wait at least a thousandth of the step longer than on a full fabric.
std::string longer_waits(const RunResult& result) {
  constexpr double kNoticed = 1e-3;
  std::string out;
  for (const Bucket bucket : kNetworkBuckets) {
    const double here = of_bucket(result.report.seconds, bucket),
                 full = of_bucket(result.full_fabric->seconds, bucket);
    if (here - full < kNoticed * result.report.step_s) continue;
    out += fmt::format("{}{} {} instead of {}", out.empty() ? "" : ", ",
                       buckets()[static_cast<std::size_t>(bucket)].title, duration_text(here),
                       duration_text(full));
  }
  return out;
}

std::string holds_text(const std::vector<TrafficHold>& holds) {
  std::string out;
  for (const TrafficHold& hold : holds) {
    std::string by;
    for (const TrafficHold::Part& part : hold.by) {
      if (part.share < 0.005) continue;
      by += fmt::format("{}{} {}", by.empty() ? "" : ", ", part.links, percent_text(part.share));
    }
    out += "  " + wrap(hold.traffic + ", held back by: " + by, kTextColumns, 4, 2) + "\n";
  }
  return out;
}

}  // namespace

std::string fabric_table(const RunResult& result, const TextStyle& style) {
  const double here = result.report.step_s, full = result.full_fabric->step_s;
  constexpr double kNothing = 5e-4;
  const std::string waits = longer_waits(result);
  std::string text = std::abs(full / here - 1) < kNothing
                         ? "its switches cost this step nothing"
                         : fmt::format("on one whose switches never limit the step takes {} ({})",
                                       duration_text(full), error_text(full / here - 1));
  if (!waits.empty()) text += "; here: " + waits;
  std::string out = "\n" + style.bold("Fabric: ") + wrap(text + ".", kTextColumns, 2, 8) + "\n" +
                    holds_text(result.report.holds);
  if (result.relief.empty()) return out;
  TextTable table({{"simulated change", TextTable::Align::left}, {"step"}, {"saves"}});
  for (const FabricWhatIf& what_if : result.relief) {
    table.add(
        {what_if.change, duration_text(what_if.step_s), percent_text(1 - what_if.step_s / here)});
  }
  return out + table.text(style, 2);
}

}  // namespace lockstep
