// Holds what the library answers to a command beside `run` against what the program printed:
//
//     searches comm|tune|plan FILE ANSWER
#include <cstdio>
#include <exception>
#include <string>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "models/base/text_file.hpp"
#include "sim/answer/comm_collective.hpp"
#include "sim/scenario/read_traffic.hpp"
#include "sim/scenario/run_spec.hpp"
#include "sim/search/evaluate_plan.hpp"
#include "sim/search/read_plan.hpp"
#include "sim/search/search_base.hpp"
#include "sim/search/tune.hpp"
#include "sim/traffic/simulate_traffic.hpp"

namespace {

using namespace lockstep;
using Json = nlohmann::ordered_json;

Json of_comm(const std::string& file, const PresetStore& presets) {
  const JsonCursor root = JsonCursor::parse(file, read_text_file(file));
  if (!root.find("collective")) {
    return {{"end_s", twelve_digits(simulate_traffic(read_traffic(root, presets)).end_s)}};
  }
  const CollectiveStudy study = run_collective_study(root, presets);
  Json rows = Json::array();
  for (const CollectiveRow& row : study.rows) {
    rows.push_back({{"time_s", twelve_digits(row.time.base_units())},
                    {"busbw_bytes_per_s", twelve_digits(row.busbw_bytes_per_s)},
                    {"algorithm", row.choice.cost->algorithm}});
  }
  return {{"rows", std::move(rows)}};
}

Json of_tune(const std::string& file, const PresetStore& presets) {
  const SearchBase base =
      search_base_of(read_job_file(file, read_text_file(file), presets, {}).draft, presets);
  TuneOptions how;
  how.own_problem = base.own_problem;
  const TuneResult result = tune(base.scenario, how);
  Json best = Json::array();
  for (const TunedLayout& layout : result.best) {
    best.push_back({{"step_s", twelve_digits(layout.step_s)},
                    {"mfu", twelve_digits(layout.mfu)},
                    {"lower_bound_s", twelve_digits(layout.bound_s)}});
  }
  return {{"fastest_step_s", twelve_digits(result.fastest_s)},
          {"considered", result.considered},
          {"best", std::move(best)}};
}

Json of_plan(const std::string& file, const PresetStore& presets) {
  const PlanSpec spec = read_plan(file, read_text_file(file), presets, {"samples=20"});
  const PlanReport report = evaluate_plan(spec, {});
  Json candidates = Json::array();
  for (const PlanResult& result : report.results) {
    if (!result.model.impossible.empty()) {
      candidates.push_back({{"possible", false}});
      continue;
    }
    candidates.push_back({{"step_s", twelve_digits(result.model.step_s)},
                          {"goodput", twelve_digits(result.expected.goodput)},
                          {"time_s",
                           {{"point", twelve_digits(result.expected.time_s)},
                            {"p95", twelve_digits(result.time_s.high)}}},
                          {"best_share", twelve_digits(result.best_share)}});
  }
  return {{"candidates", std::move(candidates)}};
}

/// Whether all that `part` has is in `whole`, with the same values. Says what is not.
bool is_part(const Json& part, const Json& whole, const std::string& place = {}) {
  if (!part.is_structured()) {
    if (part == whole) return true;
    std::printf("%s: %s of the library, %s of the program\n", place.c_str(), part.dump().c_str(),
                whole.dump().c_str());
    return false;
  }
  if (part.is_array() && part.size() != whole.size()) {
    std::printf("%s: %zu of the library, %zu of the program\n", place.c_str(), part.size(),
                whole.size());
    return false;
  }
  bool same = true;
  for (const auto& [name, value] : part.items()) {
    const Json& other = part.is_array() ? whole.at(std::stoul(name)) : whole.at(name);
    same = is_part(value, other, place + "/" + name) && same;
  }
  return same;
}

}  // namespace

int main(int count, char** words) {
  if (count != 4) return 1;
  const std::string command = words[1], file = words[2];
  try {
    const PresetStore presets;
    const Json of_library = command == "comm"   ? of_comm(file, presets)
                            : command == "tune" ? of_tune(file, presets)
                                                : of_plan(file, presets);
    return is_part(of_library, Json::parse(read_text_file(words[3]))) ? 0 : 1;
  } catch (const std::exception& error) {
    std::puts(error.what());
    return 2;
  }
}
