#include "sim/answer/filling_answer.hpp"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

Json shares_json(const std::vector<double>& shares) {
  Json out = Json::array();
  for (const double share : shares) out.push_back(twelve_digits(share));
  return out;
}

Json policy_json(const PolicyFilling& of) {
  std::vector<double> by_seed;
  for (const FilledCluster& one : of.by_seed) by_seed.push_back(one.allocated);
  return {{"allocated", twelve_digits(of.mean.allocated)},
          {"least_allocated", twelve_digits(of.least)},
          {"most_allocated", twelve_digits(of.most)},
          {"fragmented", twelve_digits(of.mean.fragmented)},
          {"placed_pods", twelve_digits(of.placed_pods)},
          {"refused_pods", twelve_digits(of.refused_pods)},
          {"allocated_by_seed", shares_json(by_seed)},
          {"allocated_by_asked", shares_json(of.mean.series)}};
}

}  // namespace

nlohmann::ordered_json filling_json(const FillingSpec& spec, const FillingResult& result) {
  Json policies = Json::object(), asked = Json::array();
  for (const PolicyFilling& of : result.policies) {
    const auto name = kFillingPolicyNames[static_cast<std::size_t>(of.policy)];
    policies[std::string(name)] = policy_json(of);
  }
  if (!result.policies.empty()) {
    const std::size_t steps = result.policies.front().mean.series.size();
    for (std::size_t step = 1; step <= steps; ++step) {
      asked.push_back(twelve_digits(static_cast<double>(step) * kFillingStep));
    }
  }
  return {{"kind", "filling"},
          {"nodes", result.nodes},
          {"gpus", result.gpus},
          {"pods", result.pods},
          {"workload", twelve_digits(result.workload)},
          {"typical_requests", result.typical},
          {"seeds", spec.seeds},
          {"at", spec.at},
          {"until", spec.until},
          {"policies", std::move(policies)},
          {"asked", std::move(asked)},
          {"assumptions", spec.assumptions}};
}

}  // namespace lockstep
