#include "sim/scenario/checkpoint_rule_extension.hpp"

#include <cassert>
#include <deque>
#include <exception>
#include <fmt/format.h>
#include <utility>

#include "models/base/input_error.hpp"

namespace lockstep {
namespace {

constexpr std::string_view kFixedInterval = "fixed";
constexpr Seconds kLongestToCheckpoint{1e9};

std::deque<CheckpointRule>& added_checkpoint_rules() {
  static std::deque<CheckpointRule> rules;
  return rules;
}

}  // namespace

void add_checkpoint_rule(CheckpointRule rule, int interface) {
  std::deque<CheckpointRule>& rules = added_checkpoint_rules();
  check_extension("checkpoint rule", rule.name, interface, checkpoint_rule_names(), rules.size());
  if (!rule.next) {
    throw ExtensionError("checkpoint rule \"" + rule.name +
                         "\": found no times; allowed: a function that gives the next one");
  }
  rules.push_back(std::move(rule));
}

std::vector<std::string_view> checkpoint_rule_names() {
  std::vector<std::string_view> names{kFixedInterval};
  for (const CheckpointRule& rule : added_checkpoint_rules()) names.push_back(rule.name);
  return names;
}

Seconds next_checkpoint(const std::string& file, const NamedCheckpointRule& rule,
                        const CheckpointCall& call) {
  assert(rule.place > 0);
  const CheckpointRule& asked = added_checkpoint_rules().at(rule.place - 1);
  const auto fail = [&](const std::string& found) {
    throw InputError(
        {.file = file,
         .pointer = rule.pointer,
         .found = fmt::format("{}, at {} s: {}", extension_text("checkpoint rule", asked.name),
                              call.now.base_units(), found),
         .allowed = fmt::format("a time above 0 and up to {} s", kLongestToCheckpoint.base_units()),
         .nearest = {}});
  };
  Seconds next{};
  // Whatever the extension throws is a mistake of the extension.
  try {
    next = asked.next(call);
  } catch (const std::exception& error) {
    fail(error.what());
  }
  if (!(next > Seconds{} && next <= kLongestToCheckpoint)) {
    fail(fmt::format("the next one in {} s", next.base_units()));
  }
  return next;
}

}  // namespace lockstep
