#include "tools/views/measured/learnt_text.hpp"

#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "sim/measured/learnt.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/console/table.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kDoubtful = 2.5;  ///< prior deviations
constexpr double kSeen = 0.02;     ///< of a step: a part that governs less cannot be told from none

std::string share_text(double share) { return fmt::format("{:.0f} %", 100 * share); }

std::string kind_text(const LearntLevel& level) {
  return level.gpu + (level.experts ? ", experts" : "") + (level.adapters ? ", adapters" : "");
}

std::string table_of_kinds(const Learnt& learnt, const TextStyle& style) {
  TextTable table({{"kind of job", TextTable::Align::left},
                   {"jobs"},
                   {"kernels take"},
                   {"prior deviations"},
                   {"sure to"},
                   {"step within: before"},
                   {"after"}});
  for (const LearntKind& kind : learnt.kinds) {
    const LearntLevel& level = kind.level;
    table.add({kind_text(level), std::to_string(level.steps),
               error_text(std::expm1(level.log_level)), fmt::format("{:+.1f}", kind.misfit),
               "+- " + share_text(level.deviation), "+- " + share_text(kind.half_width_before),
               "+- " + share_text(kind.half_width_after)});
  }
  return table.text(style);
}

/// The parts of the description that these steps cannot tell from the level of the kernels.
std::vector<std::size_t> mixed_parts(const LearntKind& kind) {
  std::vector<std::size_t> out;
  for (std::size_t i = 1; i < kDescriptionParts; ++i) {
    if (std::abs(kind.shares[i]) >= kSeen) out.push_back(i);
  }
  return out;
}

Json kind_json(const LearntKind& kind) {
  const LearntLevel& level = kind.level;
  Json mixed = Json::array(), next = nullptr;
  for (const std::size_t i : mixed_parts(kind)) {
    mixed.push_back(
        {{"part", description_parts()[i].words}, {"share", twelve_digits(kind.shares[i])}});
  }
  if (kind.next) {
    next = {{"measure", kind.next->words}, {"half_width", twelve_digits(kind.next->half_width)}};
  }
  return {{"gpu", level.gpu},
          {"experts", level.experts},
          {"adapters", level.adapters},
          {"jobs", level.steps},
          {"kernels_take", twelve_digits(std::exp(level.log_level))},
          {"deviation", twelve_digits(level.deviation)},
          {"prior_deviations", twelve_digits(kind.misfit)},
          {"half_width_before", twelve_digits(kind.half_width_before)},
          {"half_width_after", twelve_digits(kind.half_width_after)},
          {"level_share", twelve_digits(kind.shares.front())},
          {"cannot_tell_from", std::move(mixed)},
          {"measured", kind.evidence},
          {"next", std::move(next)}};
}

}  // namespace

std::string misfit_words(const LearntKind& kind) {
  if (std::abs(kind.misfit) <= kDoubtful) return {};
  return fmt::format(
      "the description does not fit the run: {:.1f} prior deviations. Before it is learnt, "
      "look at what is often wrong: recomputation, micro batch, dispatcher, width of experts, "
      "gradient format, transport, and the features of the stack",
      std::abs(kind.misfit));
}

std::string words_about(const LearntKind& kind) {
  std::string out = "\n" + kind_text(kind.level) + "\n";
  for (const std::string& step : kind.evidence) out += "  measured: " + step + "\n";
  std::vector<std::string> mixed;
  for (const std::size_t i : mixed_parts(kind)) {
    mixed.push_back(fmt::format("{} ({} of these steps)", description_parts()[i].words,
                                share_text(kind.shares[i])));
  }
  out += fmt::format("  the level governs {} of these steps\n", share_text(kind.shares.front()));
  if (!mixed.empty()) {
    out += fmt::format("  they cannot tell it from: {}\n", fmt::join(mixed, ", "));
  }
  if (const std::string doubt = misfit_words(kind); !doubt.empty()) out += "  " + doubt + "\n";
  if (kind.half_width_after > kind.half_width_before) {
    out += "  a step is known less surely than before: what was measured does not fit the stack\n";
  }
  if (kind.next) {
    out += fmt::format("  next: {}; the step would be known to +- {}\n", kind.next->words,
                       share_text(kind.next->half_width));
  }
  return out;
}

std::string words_about(const MeasuredSteps& steps, const Learnt& learnt, const TextStyle& style) {
  std::string out = fmt::format("{}, from {} measured step{}\n\n", steps.stack_name,
                                steps.steps.size(), steps.steps.size() == 1 ? "" : "s") +
                    table_of_kinds(learnt, style);
  for (const LearntKind& kind : learnt.kinds) out += words_about(kind);
  for (const std::string& row : steps.left_out) out += "\nleft out: " + row;
  return out + (steps.left_out.empty() ? "" : "\n");
}

Json learnt_json(const MeasuredSteps& steps, const Learnt& learnt, const std::string& preset) {
  Json kinds = Json::array();
  for (const LearntKind& kind : learnt.kinds) kinds.push_back(kind_json(kind));
  return {{"stack", steps.stack_name},
          {"steps", steps.steps.size()},
          {"kinds", std::move(kinds)},
          {"left_out", steps.left_out},
          {"preset", Json::parse(preset)}};
}

}  // namespace lockstep
