#include "sim/measured/recorded_stack.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "models/base/write_json.hpp"
#include "models/spec/compose_stack.hpp"
#include "sim/measured/kernel_kinds.hpp"
#include "sim/measured/nsys_range.hpp"
#include "sim/measured/recorded_step.hpp"
#include "sim/measured/stack_findings.hpp"
#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/names.hpp"
#include "sim/scenario/spec_readers.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFeaturesPath = "features", kAttentionPath = "attention";

/// "rank0.json.gz", "8 files from rank0.json.gz on".
std::string files_text(std::span<const KinetoRecording> recordings) {
  const std::string first = std::filesystem::path(recordings.front().file).filename().string();
  return recordings.size() == 1 ? first
                                : fmt::format("{} files from {} on", recordings.size(), first);
}

/// Products by the number format of their operands, as kernels' names say it. A job's, no stack's.
std::string products_note(std::span<const KinetoRecording> recordings) {
  std::map<std::string, std::size_t> formats;
  std::size_t all = 0;
  for (const KinetoRecording& recording : recordings) {
    for (const KinetoRecording::GpuEvent& event : recording.gpu) {
      const std::string& name = recording.names[event.name];
      if (event.communicates() || kernel_kind(name) != KernelKind::product) continue;
      ++all;
      const std::string type = operand_type_of(name);
      ++formats[type.empty() ? "a format that their names do not say" : type];
    }
  }
  std::vector<std::string> words;
  for (const auto& [format, count] : formats) words.push_back(fmt::format("{} {}", count, format));
  return fmt::format("matrix products: {} kernels{}{}; their precision is the scenario's", all,
                     all == 0 ? "" : ": ", fmt::join(words, ", "));
}

/// Mean over the ranks of what the GPU waits for its host.
std::string idle_note(std::span<const KinetoRecording> recordings) {
  double step = 0, idle = 0;
  for (const KinetoRecording& recording : recordings) {
    const RecordedRank rank = recorded_rank(recording, 0);
    step += rank.step_s;
    idle += rank.of(RecordedPart::idle);
  }
  return fmt::format("the GPU waits for its host {} of a step of {}", percent_text(idle / step),
                     duration_text(step / static_cast<double>(recordings.size())));
}

/// Kernels of a layer as the stack's features compose them, beside those recorded for each layer.
std::string kernels_note(std::span<const KinetoRecording> recordings, const KernelMarks& marks,
                         const StackSpec& composed) {
  const std::size_t layers = marks.of(KernelMark::attention_backward).kernels;
  if (layers == 0) return {};
  std::size_t kernels = 0;
  for (const KinetoRecording& recording : recordings) {
    for (const KinetoRecording::GpuEvent& event : recording.gpu) {
      const RecordedPart part = recorded_part(recording, event);
      if (part == RecordedPart::product || part == RecordedPart::memory) ++kernels;
    }
  }
  return fmt::format(
      "{} kernels for each backward pass of a layer's attention, what is outside of layers and "
      "recomputed among them; the features make {} of a layer both ways",
      significant(static_cast<double>(kernels) / static_cast<double>(layers)),
      significant(composed.kernels_forward + composed.kernels_backward));
}

/// What the base says at a path, as JSON.
class BaseValues {
 public:
  explicit BaseValues(StackSpec base) {
    declare_switches(DeclaredMembers::writing(features_), base.switches.value());
    declare_stack(DeclaredMembers::writing(stack_), base);
    stack_["launch_interval"] = duration_text(base.launch_interval.base_units());
  }
  [[nodiscard]] const Json& features() const { return features_; }
  [[nodiscard]] Json at(std::string_view path) const {
    const std::size_t dot = path.find('.');
    if (dot == std::string_view::npos) return stack_.value(std::string(path), Json());
    const std::string key(path.substr(dot + 1));
    const std::string part(path.substr(0, dot));
    return part == kFeaturesPath ? features_.value(key, Json())
                                 : stack_.value(part, Json::object()).value(key, Json());
  }

 private:
  Json features_ = Json::object(), stack_ = Json::object();
};

Json sourced(Json value, const std::string& source) {
  return {{"value", std::move(value)}, {"source", source}};
}

/// The findings over the base, each value with where it is from.
Json recorded_preset(const RecordedStack& found, const RecordedStackBase& base,
                     const BaseValues& values, const std::string& files) {
  const std::string assumed =
      fmt::format("assumed: as in {}{}", base.stack,
                  base.named ? "" : ", as nobody named a stack that is like");
  Json out{{"about", fmt::format("Read off a recorded step, {} (lockstep import recording); what "
                                 "that does not show is as in {}.",
                                 files, base.stack)},
           {"framework", sourced(base.stack, assumed)}};
  Json& features = out[std::string(kFeaturesPath)] = Json::object();
  for (const auto& [key, value] : values.features().items()) {
    features[key] = sourced(value, assumed);
  }
  out[std::string(kAttentionPath)] = sourced(values.at(kAttentionPath), assumed);
  for (const StackFinding& finding : found.read) {
    const Json value =
        sourced(Json::parse(finding.value), fmt::format("read off {}: {}", files, finding.from));
    const std::size_t dot = finding.path.find('.');
    if (dot == std::string::npos) {
      out[finding.path] = value;
    } else {
      out[finding.path.substr(0, dot)][finding.path.substr(dot + 1)] = value;
    }
  }
  return out;
}

void require_training(std::span<const KinetoRecording> recordings, const KernelMarks& marks) {
  if (marks.count(KernelMark::backward) > 0) return;
  throw InputError(
      {.file = recordings.front().file,
       .pointer = {},
       .found = "no kernel or operator of a backward pass: inference, or a part of a step",
       .allowed = "a recorded training step",
       .nearest = {}});
}

/// What no kernel tells of any software.
void list_unread(const BaseValues& values, StackFindings& out) {
  for (const auto& [key, value] : values.features().items()) {
    const std::string path = fmt::format("{}.{}", kFeaturesPath, key);
    const auto is_path = [&](const auto& each) { return each.path == path; };
    if (std::ranges::any_of(out.read, is_path) || std::ranges::any_of(out.untold, is_path)) {
      continue;
    }
    out.not_told(path, "no kernel or call tells it");
  }
}

}  // namespace

RecordedStack recorded_stack(std::span<const KinetoRecording> recordings,
                             const RecordedStackBase& base, const PresetStore& presets) {
  StackSpec like = presets.stack(base.stack).spec;
  if (!like.switches) {
    throw InputError({.file = presets.path("stacks", base.stack),
                      .pointer = {},
                      .found = "no features",
                      .allowed = "a stack that says what it does (\"features\")",
                      .nearest = {}});
  }
  const KernelMarks marks = kernel_marks(recordings);
  require_training(recordings, marks);
  StackFindings findings;
  find_layer_features(marks, findings);
  find_merged_products(recordings, marks, findings);
  find_optimiser_features(recordings, marks, findings);
  find_host_features(recordings, base.host_slowness, findings);
  find_exchange_features(recordings, marks, findings);
  if (!like.composed) compose(*like.switches, presets.operator_costs(), {}, like);
  const BaseValues values(like);
  list_unread(values, findings);
  RecordedStack out;
  out.read = std::move(findings.read);
  out.untold = std::move(findings.untold);
  for (UntoldValue& untold : out.untold) untold.base = write_json(values.at(untold.path));
  const Json preset = recorded_preset(out, base, values, files_text(recordings));
  out.preset = write_json(preset, 1) + "\n";
  out.notes.push_back(idle_note(recordings));
  out.notes.push_back(products_note(recordings));
  // The features once more, as the program reads them back.
  const JsonCursor read = JsonCursor::parse("stack", out.preset, JsonStyle::sourced);
  StackSwitches switches;
  declare_switches({read.at(kFeaturesPath), Extent::changes}, switches);
  StackSpec composed;
  compose(switches, presets.operator_costs(), {}, composed);
  if (std::string note = kernels_note(recordings, marks, composed); !note.empty()) {
    out.notes.push_back(std::move(note));
  }
  return out;
}

}  // namespace lockstep
