/// Scenarios to begin with, one for each kind: complete, with a comment at each choice.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "sim/scenario/preset_store.hpp"

namespace lockstep {

/// What a new scenario is made for.
struct NewWish {
  std::string model = "llama3_8b";  ///< as Ask::model
  std::string node = "dgx_h100";
  int nodes = 4;
  std::string scenario{};  ///< of a sweep: the file whose values are varied
  std::string file{};      ///< where it is written: files that it names start from that folder
};

/// A kind of scenario that `lockstep new` writes, with files from the current folder. To add one:
/// its row.
struct NewKind {
  std::string_view name;      ///< "weeks"
  std::string_view sentence;  ///< what it answers
  std::string_view command;   ///< what reads it: "run"
  nlohmann::ordered_json (*make)(const NewWish& wish, const PresetStore& presets);
};
std::span<const NewKind> new_kinds();

/// Throws UsageError where there is such a file: a scenario that somebody has edited would be lost.
/// "-", the terminal, is none, and neither are devices and pipes.
void refuse_existing(const std::string& file);

/// The text of the file. Throws InputError for names that are none, and where no layout fits.
std::string new_scenario_text(const NewKind& kind, const NewWish& wish, const PresetStore& presets);

}  // namespace lockstep
