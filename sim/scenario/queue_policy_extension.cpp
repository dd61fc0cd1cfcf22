#include "sim/scenario/queue_policy_extension.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <deque>
#include <exception>
#include <fmt/format.h>
#include <utility>

#include "models/base/input_error.hpp"

namespace lockstep {
namespace {

constexpr std::string_view kLastInOrder = "last";

std::deque<AdmissionExtension>& added_admissions() {
  static std::deque<AdmissionExtension> admissions;
  return admissions;
}
std::deque<VictimRule>& added_victim_rules() {
  static std::deque<VictimRule> rules;
  return rules;
}

const AdmissionExtension& extension_of(QueueAdmission admission) {
  assert(is_extension(admission));
  return added_admissions()[static_cast<std::size_t>(admission) - kAdmissionNames.size()];
}

}  // namespace

QueueAdmission add_queue_admission(AdmissionExtension admission, int interface) {
  std::deque<AdmissionExtension>& admissions = added_admissions();
  check_extension("admission", admission.name, interface, queue_admission_names(),
                  admissions.size());
  if (!admission.starts) {
    throw ExtensionError("admission \"" + admission.name +
                         "\": found no starts; allowed: a function that says who starts");
  }
  admissions.push_back(std::move(admission));
  return static_cast<QueueAdmission>(kAdmissionNames.size() + admissions.size() - 1);
}

bool is_extension(QueueAdmission admission) {
  return static_cast<std::size_t>(admission) >= kAdmissionNames.size();
}

std::vector<std::string_view> queue_admission_names() {
  std::vector<std::string_view> names(kAdmissionNames.begin(), kAdmissionNames.end());
  for (const AdmissionExtension& admission : added_admissions()) names.push_back(admission.name);
  return names;
}

std::string_view name_of(QueueAdmission admission) {
  if (is_extension(admission)) return extension_of(admission).name;
  return kAdmissionNames[static_cast<std::size_t>(admission)];
}

std::vector<std::size_t> added_starts(const QueueSpec& spec, const AdmissionCall& call) {
  const AdmissionExtension& admission = extension_of(spec.admission);
  const auto fail = [&](const std::string& found, const std::string& allowed) {
    throw InputError(
        {.file = spec.file,
         .pointer = "/queue/admission",
         .found = fmt::format("{}, at {} s: {}", extension_text("admission", admission.name),
                              call.now.base_units(), found),
         .allowed = allowed,
         .nearest = {}});
  };
  std::vector<std::size_t> starts;
  // Whatever the extension throws is a mistake of the extension.
  try {
    starts = admission.starts(call);
  } catch (const std::exception& error) {
    fail(error.what(), "numbers of waiting jobs");
  }
  std::vector<std::size_t> sorted = starts;
  std::ranges::sort(sorted);
  const auto twice = std::ranges::adjacent_find(sorted);
  if (twice != sorted.end()) fail(fmt::format("job {} twice", *twice), "each job once");
  std::vector<std::size_t> waiting;
  waiting.reserve(call.waiting.size());
  for (const JobNow& job : call.waiting) waiting.push_back(job.number);
  std::ranges::sort(waiting);
  const auto other = std::ranges::find_if_not(
      sorted, [&](std::size_t job) { return std::ranges::binary_search(waiting, job); });
  if (other != sorted.end()) {
    fail(fmt::format("job {}, which is not among the {} that wait", *other, waiting.size()),
         "numbers of waiting jobs");
  }
  return starts;
}

void add_victim_rule(VictimRule rule, int interface) {
  std::deque<VictimRule>& rules = added_victim_rules();
  check_extension("victim rule", rule.name, interface, victim_rule_names(), rules.size());
  if (!rule.key) {
    throw ExtensionError("victim rule \"" + rule.name +
                         "\": found no key; allowed: a function that gives a running job's");
  }
  rules.push_back(std::move(rule));
}

std::vector<std::string_view> victim_rule_names() {
  std::vector<std::string_view> names{kLastInOrder};
  for (const VictimRule& rule : added_victim_rules()) names.push_back(rule.name);
  return names;
}

double victim_key(const QueueSpec& spec, const VictimCall& call) {
  assert(spec.preemption.victims > 0);
  const VictimRule& rule = added_victim_rules().at(spec.preemption.victims - 1U);
  const auto fail = [&](const std::string& found) {
    throw InputError(
        {.file = spec.file,
         .pointer = "/queue/preemption/victims",
         .found = fmt::format("{}, {} of job {}", extension_text("victim rule", rule.name), found,
                              spec.job_name(call.running.number)),
         .allowed = "a finite key for every running job",
         .nearest = {}});
  };
  double key = 0;
  try {
    key = rule.key(call);
  } catch (const std::exception& error) {
    fail(error.what());
  }
  if (!std::isfinite(key)) fail(fmt::format("the key {}", key));
  return key;
}

}  // namespace lockstep
