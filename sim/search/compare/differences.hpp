/// What differs between two scenarios, as their files say it, and in which steps one becomes the
/// other.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace lockstep {

/// A value that two scenarios do not share. What one of them leaves open is discarded there.
struct Difference {
  std::string pointer;  ///< "/parallelism/tensor"
  nlohmann::ordered_json from = nlohmann::ordered_json::value_t::discarded;
  nlohmann::ordered_json to = nlohmann::ordered_json::value_t::discarded;
};

/// Keys that say nothing of the job: "$schema", "about", "expect".
void drop_remarks(nlohmann::ordered_json& scenario);

/// Values that differ: the model first, then the machine, the software, the layout, and what is
/// done with it. Objects are compared key by key; a preset's name against another name, or against
/// an object, is one difference.
std::vector<Difference> differences(const nlohmann::ordered_json& a,
                                    const nlohmann::ordered_json& b);

/// Makes `scenario` say what the second one says there.
void make_change(const Difference& difference, nlohmann::ordered_json& scenario);

/// Differences that are made together.
using Change = std::vector<Difference>;

/// The smallest changes that lead from `a` to the second scenario by way of scenarios that are all
/// `valid`: single differences first, then pairs, and so on, each time the first of `all` in their
/// order. What says one thing together counts as a single difference: nodes, sequences and
/// replicas; schedule and virtual stages; sharding; exchanges. `valid` is asked at most kMostTries
/// times for a change; after that all that is left is one change.
std::vector<Change> steps_between(const nlohmann::ordered_json& a,
                                  const std::vector<Difference>& all,
                                  const std::function<bool(const nlohmann::ordered_json&)>& valid);

}  // namespace lockstep
