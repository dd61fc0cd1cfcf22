/// The keys that scenarios may have, as readers declare them: what `lockstep list keys` prints and
/// shells complete.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/preset_store.hpp"

namespace lockstep {

struct ScenarioKey {
  std::string path{};   ///< "cluster.node.gpu.hbm_bandwidth"; "stragglers.*.gpu" of a list's items
  std::string of{};     ///< files that have it: "job", "queue", "serving", "filling", or several
  std::string value{};  ///< "time", "whole number", "preset", "list of text", "text or object"
  std::string unit{};   ///< of a bare number: "s", "B/s"; empty: none
  std::string allowed{};       ///< "1 to 8", "gpipe, 1f1b"; empty: anything of the kind
  std::string default_rule{};  ///< "required", "as many as heads"; empty: nothing, or the preset's
  std::string sentence{};      ///< without the default
};

/// Every key of the files that declare all of theirs: a job, a queue, serving, a filling. What
/// stands for the same key of a job (the "model" of a queue's training) is one row that names it.
/// Left out: scenarios with "jobs" and files of `lockstep comm`, whose schemas are written by hand.
std::vector<ScenarioKey> scenario_keys(const PresetStore& presets);

/// Types that the schema of a job defines by hand, with the sentence that it has.
struct WrittenType {
  std::string_view name, value, allowed, sentence;
};
/// By name under "$defs"; null: there is none.
const WrittenType* written_type_of(std::string_view name);

}  // namespace lockstep
