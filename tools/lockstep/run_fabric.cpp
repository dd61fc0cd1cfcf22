#include <array>
#include <cmath>
#include <fmt/format.h>
#include <string>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "tools/lockstep/run_result.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kNetworkBuckets{Bucket::tensor_exposed, Bucket::context_exposed,
                                     Bucket::expert_exposed, Bucket::pipeline_exposed,
                                     Bucket::data_exposed};

double of_bucket(const BucketTimes& times, Bucket bucket) {
  return times[static_cast<std::size_t>(bucket)];
}

Json what_if_json(const FabricWhatIf& what_if) {
  Json exposed;
  for (const Bucket bucket : kNetworkBuckets) {
    exposed[std::string(buckets()[static_cast<std::size_t>(bucket)].name)] =
        twelve_digits(of_bucket(what_if.seconds, bucket));
  }
  return {{"change", what_if.change},
          {"step_s", twelve_digits(what_if.step_s)},
          {"exposed_s", std::move(exposed)}};
}

Json holds_json(const std::vector<TrafficHold>& holds) {
  Json out = Json::array();
  for (const TrafficHold& hold : holds) {
    Json by = Json::array();
    for (const TrafficHold::Part& part : hold.by) {
      by.push_back({{"links", part.links}, {"share", twelve_digits(part.share)}});
    }
    out.push_back({{"traffic", hold.traffic}, {"by", std::move(by)}});
  }
  return out;
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
    out += "  " + wrap(hold.traffic + ", held back by: " + by, kTextColumns - 2, 4) + "\n";
  }
  return out;
}

}  // namespace

Json fabric_json(const RunResult& result) {
  Json relief = Json::array();
  for (const FabricWhatIf& what_if : result.relief) relief.push_back(what_if_json(what_if));
  return {{"full_fabric", what_if_json(*result.full_fabric)},
          {"held_back_by", holds_json(result.report.holds)},
          {"relief", std::move(relief)}};
}

std::string fabric_table(const RunResult& result, const TextStyle& style) {
  const double here = result.report.step_s, full = result.full_fabric->step_s;
  constexpr double kNothing = 5e-4;
  const std::string waits = longer_waits(result);
  std::string text = std::abs(full / here - 1) < kNothing
                         ? "its switches cost this step nothing"
                         : fmt::format("on one whose switches never limit the step takes {} ({})",
                                       duration_text(full), error_text(full / here - 1));
  if (!waits.empty()) text += "; here: " + waits;
  std::string out = "\n" + style.bold("Fabric: ") + wrap(text + ".", kTextColumns - 8, 2) + "\n" +
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
