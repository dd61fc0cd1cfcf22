#include "tools/views/measured/learnt_text.hpp"

#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "sim/answer/fields.hpp"
#include "sim/measured/learnt.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/console/table.hpp"
#include "tools/views/tables/command_fields.hpp"

namespace lockstep {
namespace {

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
               error_text(std::expm1(level.log_level)), deviations_text(kind),
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

/// A part of the description, and how much of these steps it governs.
struct MixedPart {
  std::string_view words;
  double share = 0;
};
std::vector<MixedPart> mixed_of(const LearntKind& kind) {
  std::vector<MixedPart> out;
  for (const std::size_t i : mixed_parts(kind)) {
    out.push_back({description_parts()[i].words, kind.shares[i]});
  }
  return out;
}

const FieldTable<MixedPart>& mixed_part_fields() {
  using Of = MixedPart;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("part", "What it is.", [](const Of& m) { return m.words; })
          .add("share", "Share of these steps that it governs; below 0: a step is shorter with it.",
               [](const Of& m) { return m.share; });
  return fields;
}

const FieldTable<NextMeasurement>& next_measurement_fields() {
  using Of = NextMeasurement;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("measure", "What to measure.", [](const Of& n) { return n.words; })
          .add("half_width", Better::less, "To which share of its time a step would be known then.",
               [](const Of& n) { return n.half_width; });
  return fields;
}

const FieldTable<LearntKind>& learnt_kind_fields() {
  using Of = LearntKind;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("gpu", "Kind of GPU.", [](const Of& k) { return k.level.gpu; })
          .add("experts", "Whether the model has experts.",
               [](const Of& k) { return k.level.experts; })
          .add("adapters", "Whether adapters are trained.",
               [](const Of& k) { return k.level.adapters; })
          .add("jobs", "Jobs of this kind that were measured.",
               [](const Of& k) { return k.level.steps; })
          .add("kernels_take", Better::less,
               "Time of a kernel over what the stack said before: what was learnt.",
               [](const Of& k) { return std::exp(k.level.log_level); })
          .add("deviation", Better::less,
               "How unsure that is: standard deviation of its logarithm.",
               [](const Of& k) { return k.level.deviation; })
          .add("prior_deviations",
               "How far that is from what was expected, in deviations of stacks alike; beyond 2.5 "
               "the description does not fit the run.",
               [](const Of& k) { return k.misfit; })
          .add("half_width_before", Better::less,
               "Half of the 90 % interval of a step, as a share of it, before.",
               [](const Of& k) { return k.half_width_before; })
          .add("half_width_after", Better::less, "The same after it was learnt.",
               [](const Of& k) { return k.half_width_after; })
          .add("level_share", "Share of these steps that the level of the kernels governs.",
               [](const Of& k) { return k.shares.front(); })
          .list("cannot_tell_from", "What else could be the reason, by these steps alone.",
                mixed_part_fields(), mixed_of)
          .add("measured", "Each step, measured and predicted, in words.",
               [](const Of& k) { return k.evidence; })
          .object_or_null("next", "What is best measured next; null: nothing would help.",
                          next_measurement_fields(),
                          [](const Of& k) -> const auto& { return k.next; });
  return fields;
}

struct LearntAnswer {
  const MeasuredSteps& steps;
  const Learnt& learnt;
  const std::string& preset;
};

const FieldTable<LearntAnswer>& learnt_answer_fields() {
  using Of = LearntAnswer;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("stack", "The stack that was corrected.",
               [](const Of& a) { return a.steps.stack_name; })
          .add("steps", "Measured steps.", [](const Of& a) { return a.steps.steps.size(); })
          .list("kinds", "What was learnt, by kind of job.", learnt_kind_fields(),
                [](const Of& a) -> const auto& { return a.learnt.kinds; })
          .add("left_out", "Rows that say nothing of the stack, and why.",
               [](const Of& a) { return a.steps.left_out; })
          .add(
              "preset",
              "The stack that was learnt, as --stack takes it, and scenarios by the name of its "
              "file.",
              [](const Of& a) { return Value::document(nlohmann::ordered_json::parse(a.preset)); });
  return fields;
}

}  // namespace

std::string deviations_text(const LearntKind& kind) {
  const std::string text = fmt::format("{:+.1f}", kind.misfit);
  return text == "-0.0" ? "+0.0" : text;
}

std::string misfit_words(const LearntKind& kind) {
  if (std::abs(kind.misfit) <= kDoubtful) return {};
  return fmt::format(
      "the description does not fit the run: {:.1f} prior deviations. Before it is learnt, "
      "look at what is often wrong: recomputation, micro batch, dispatcher, width of experts, "
      "gradient format, transport, and the features of the stack",
      std::abs(kind.misfit));
}

std::string less_sure_words(const LearntKind& kind) {
  if (kind.half_width_after <= kind.half_width_before) return {};
  if (std::abs(kind.misfit) > kDoubtful) return "what was measured does not fit the stack";
  return "that was of the runs which the stack was fitted to, this is of descriptions of software "
         "with a level that was learnt, as those of this stack are from now on";
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
  if (const std::string words = less_sure_words(kind); !words.empty()) {
    out +=
        "  " + wrap("a step's interval is wider than before: " + words, kTextColumns, 4, 2) + "\n";
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

nlohmann::ordered_json learnt_json(const MeasuredSteps& steps, const Learnt& learnt,
                                   const std::string& preset) {
  return Value(learnt_answer_fields().values({steps, learnt, preset})).json();
}

std::vector<FieldInfo> learnt_fields() { return learnt_answer_fields().infos(); }

}  // namespace lockstep
