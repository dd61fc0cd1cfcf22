#include "sim/scenario/stack_choice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <vector>

#include "models/base/input_error.hpp"

namespace lockstep {
namespace {

/// Constants at a bound that are in force: those of other releases are not.
std::vector<std::string> at_bounds(const StackSpec& stack) {
  constexpr std::string_view kReleases = "releases.";
  const std::string own = fmt::format("{}{}.", kReleases, stack.release);
  std::vector<std::string> out;
  for (const std::string& path : stack.constants_at_bounds) {
    if (!path.starts_with(kReleases)) {
      out.push_back(path);
    } else if (path.starts_with(own)) {
      out.push_back(path.substr(own.size()));
    }
  }
  return out;
}

}  // namespace

void choose_stack(std::string_view name, std::string_view release, const PresetStore& presets,
                  ScenarioDraft& draft) {
  const StackPreset& preset = presets.stack(name, release);
  draft.stack = preset.spec;
  if (!preset.assumption.empty()) draft.assumptions.push_back(preset.assumption);
  if (const std::vector<std::string> constants = at_bounds(draft.stack); !constants.empty()) {
    draft.assumptions.push_back(
        fmt::format("stack: {} has fitted constants at a bound of what is plausible, which nobody "
                    "has explained: {}",
                    draft.stack.name, fmt::join(constants, ", ")));
  }
}

void choose_default_stack(std::string_view named, std::string_view release,
                          const PresetStore& presets, ScenarioDraft& draft) {
  if (named.empty()) {
    draft.assumptions.push_back(fmt::format("stack: {} (not given)", kDefaultStack));
    draft.unknown_software.emplace_back("no stack given");
  } else {
    draft.assumptions.push_back(fmt::format("stack: {} (stands in for {}, which has no preset)",
                                            kDefaultStack, in_quotes(named)));
    draft.unknown_software.push_back(fmt::format("no preset of {}", in_quotes(named)));
    release = {};  // of other software
  }
  choose_stack(kDefaultStack, release, presets, draft);
  draft.stack.stands_in = true;
  draft.stack_given = false;
}

}  // namespace lockstep
