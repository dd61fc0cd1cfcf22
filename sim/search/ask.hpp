/// A question without a file: a model and a machine are given, the rest of a scenario is filled in,
/// and its layout is searched.
///
///     Ask ask{.model = "llama3_70b", .node = "dgx_h100", .nodes = "64"};
///     const std::string text = ask_scenario(ask, {}, presets);
///     answer_text(std::string(kAskedFile), text, presets);
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/scenario/scenario_file.hpp"

namespace lockstep {

/// What stands in messages for the name of the scenario's file.
inline constexpr std::string_view kAskedFile = "command line";

/// Begins the last sentence of "about", on how the layout was chosen.
inline constexpr std::string_view kLayoutIs = "The layout is ";

/// Options of the command line by the same names, as they were typed; empty: not given.
struct Ask {
  /// A preset, a model in a JSON file, or a Hugging Face config.json; or the text of such a file,
  /// which is then written out in the scenario.
  std::string model{};
  std::string cluster{};    ///< a preset, instead of `node`
  std::string node{};       ///< a preset
  std::string nodes{};      ///< how many; 1 if neither this nor `gpus` nor `cluster` is given
  std::string gpus{};       ///< instead of `nodes`; fewer than a node has: a part of one
  std::string fabric{};     ///< a preset
  std::string sequences{};  ///< of one step
  std::string tokens{};     ///< of one sequence
};

/// What is asked beside it.
struct AskOptions {
  std::vector<std::string> profiles{};  ///< files, or names of presets
  Folding folding = Folding::automatic;
  int threads = 0;  ///< at most so many; 0: one per core
  /// Told between rounds of replays: how many are done, and how many there are at most.
  std::function<void(std::size_t done, std::size_t most)> progress{};
};

/// The JSON of a scenario in the current folder; its "about" says what was filled in.
///
/// `sets` ("path=value") are applied before the search, which keeps what they say of the layout,
/// and may say the rest of a scenario: "lora.rank=16", "training.tokens=15 T tokens".
///
/// Not given: sequences of 4,096 tokens, and as many of them as make 4 Mi tokens a step, or one for
/// each node of a larger machine, rounded up to what the GPUs divide (Llama 2 took steps of
/// 4 M tokens: arXiv:2307.09288, section 2.2); of a "run" a checkpoint every 30 min. Throws
/// InputError, where the mistake is an option's in its name ("--node: found ..."), and where no
/// layout fits.
std::string ask_scenario(const Ask& ask, const std::vector<std::string>& sets,
                         const PresetStore& presets, const AskOptions& options = {});

/// What a scenario in the current folder has at "model" for what --model was given: the preset's
/// own name, {"huggingface": FILE or what it holds}, or what the file holds. Throws InputError as
/// ask_scenario() does.
nlohmann::ordered_json asked_model(const std::string& written, const PresetStore& presets);

/// The JSON of a collective on a machine: `ops` and `sizes` are lists with commas, of which no
/// sizes are those of lockstep comm. Of `machine` all but the model and the batch. Throws
/// InputError as ask_scenario() does.
std::string ask_collective(const Ask& machine, const std::string& ops, const std::string& sizes,
                           const PresetStore& presets);

/// What the scenario is about that the question and `sets` make, before a layout is searched.
/// Throws InputError as ask_scenario() does.
ScenarioKind asked_kind(const Ask& ask, const std::vector<std::string>& sets,
                        const PresetStore& presets);

}  // namespace lockstep
