/// `--vary` and `lockstep run --advise`: options in, a table of answers out.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "models/base/input_error.hpp"
#include "sim/answer/advice.hpp"
#include "sim/answer/step_answer.hpp"
#include "sim/scenario/preset_store.hpp"
#include "tools/console/console.hpp"
#include "tools/console/options.hpp"

namespace lockstep {

/// The answer to a point, by its changes ("path=value"). It may say which share of the point is
/// done, as often as it likes.
using AskPoint = std::function<nlohmann::ordered_json(const std::vector<std::string>& changes,
                                                      const std::function<void(double)>& reached)>;

/// What is asked about, and what a page says of it: `written`, null where the answers have it.
struct VariedInput {
  std::string path;
  WrittenScenario written{};
  const PresetStore& presets;
  WrittenScenario varied{};  ///< what --vary changes, where `written` is null and it can be read
};

/// The answers over --vary as a table, JSON, CSV, and a page where --report asks for one; a line on
/// standard error where a point has none. Ctrl-C ends the asking: the points that are left have no
/// answer. Throws UsageError where an option of `of_one_point` is given too.
Exit answer_varied(const VariedInput& input, const AskPoint& answer_to,
                   std::span<const std::string_view> of_one_point, std::string_view command,
                   const ParsedOptions& options, Console& console);

/// What a point says that Ctrl-C took the answer from.
InputError interruption_of(const std::string& file);

/// The answers of `lockstep run` over --vary, each to the text that `text_of` gives for a point's
/// changes; paths in it are relative to the folder of `path`. Throws UsageError for options about
/// one answer alone.
Exit run_varied(const std::string& path,
                const std::function<std::string(const std::vector<std::string>&)>& text_of,
                const PresetStore& presets, const ParsedOptions& options, Console& console);

/// What would help most; `page_of` makes the page of it that --report asks for. Throws
/// UsageError for options that the advice would say nothing about.
Exit run_advice(const std::string& path, const std::string& text, const PresetStore& presets,
                const ParsedOptions& options,
                const std::function<std::string(const Advice&)>& page_of, Console& console);

}  // namespace lockstep
