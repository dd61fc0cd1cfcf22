#include "sim/scenario/serving_admission.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/base/input_error.hpp"
#include "sim/scenario/serving_spec.hpp"

namespace lockstep {
namespace {

constexpr std::string_view kNamesSchema =
    R"({"type": "array", "minItems": 1, "items": {"type": "string"}})";

/// Which populations may be shed, by their names.
void settle_sheds(const JsonCursor& admission, ServingSpec& out) {
  ServingAdmission& of = *out.admission;
  const auto list = admission.find("sheds");
  if (!list) return;
  if (!of.limits()) list->fail(R"(no such key without "most_waiting" or "most_cache")");
  if (out.populations.empty()) list->fail(R"(no such key without "load.populations")");
  std::vector<std::string> names;
  for (const ServingPopulation& each : out.populations) names.push_back(each.name);
  of.may_shed.assign(names.size(), false);
  for (const JsonCursor& one : list->elements(kMostPopulations)) {
    const std::string name = one.string();
    const auto found = std::ranges::find(names, name);
    if (found == names.end()) {
      one.fail(fmt::format("users that \"load.populations\" names: {}", fmt::join(names, ", ")),
               nearest_name(name, names));
    }
    of.may_shed[static_cast<std::size_t>(found - names.begin())] = true;
  }
}

}  // namespace

void declare_admission(const DeclaredMembers& member, ServingAdmission& out) {
  member.optional("most_waiting", out.most_waiting, 1, 1 << 24,
                  "A replica with so many waiting requests is busy; one that finds all replicas "
                  "busy is shed. Default: never busy");
  member.optional("most_cache", out.most_cache, Dimension::share, Interval{0, 1, true},
                  "A replica with more than this share of its cache in use is busy. Default: never "
                  "busy");
  member.optional("sheds", written_type(std::string(kNamesSchema)),
                  "Users (load.populations) whose requests are shed; others' wait. Default: all",
                  [&](const JsonCursor& list) {
                    out.sheds.clear();
                    for (const JsonCursor& one : list.elements(kMostPopulations)) {
                      out.sheds.push_back(one.string());
                    }
                    if (out.sheds.empty()) list.fail("at least one name");
                  });
  member.optional("patience", out.patience, Interval{0, 1e6, true},
                  "After which a user hangs up whose request still waits to be worked on. Default: "
                  "users wait");
  member.optional("retry_after", out.retry_after, Interval{1e-3, 1e6},
                  "Until a client of a closed loop that was turned away sends its next request. "
                  "Default: 1 s");
}

void declare_restarts(const DeclaredMembers& member, ServingRestarts& out) {
  member.required("at", out.at, Interval{0, 1e9},
                  "When the first replica of each pool takes nothing new any more");
  member.optional("every", out.every, Interval{1, 1e9},
                  "Between the beginnings of two rounds. Default: one round");
  member.optional("at_once", out.at_once, 1, kMaxGpus,
                  "Replicas of a pool that are away together (maxUnavailable of a Kubernetes "
                  "Deployment). Default: 1");
  member.optional("grace", out.grace, Interval{0, 1e7},
                  "To end what a replica has; what is left is sent to others then "
                  "(terminationGracePeriodSeconds). Default: 10 min");
}

void settle_admission(const JsonCursor& serving, ServingSpec& out) {
  if (out.admission) {
    const JsonCursor admission = serving.at("admission");
    if (!out.admission->limits() && !out.admission->patience) {
      admission.fail(R"("most_waiting", "most_cache" or "patience")");
    }
    settle_sheds(admission, out);
    if (const auto retry = admission.find("retry_after"); retry && out.clients == 0) {
      retry->fail(R"(no such key without "load.clients")");
    }
    if (out.clients > 0 && !admission.find("retry_after")) {
      out.assumptions.push_back(fmt::format("admission.retry_after: {:g} s (not given)",
                                            out.admission->retry_after.base_units()));
    }
  }
  if (!out.restarts) return;
  const JsonCursor restarts = serving.at("restarts");
  if (restarts.find("grace")) return;
  out.assumptions.push_back(
      fmt::format("restarts.grace: {:g} s (not given)", out.restarts->grace.base_units()));
}

}  // namespace lockstep
