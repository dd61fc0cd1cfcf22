/// AMD's Primus: one YAML names a framework, a model's file and what it changes of both.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/launch/key_table.hpp"
#include "sim/launch/setting.hpp"

namespace lockstep {

/// What one module of such a file trains with, in the words of its framework.
struct PrimusJob {
  std::string framework;          ///< "megatron", "torchtitan", "maxtext", "megatron_bridge"
  std::vector<Setting> settings;  ///< the model's file, then `overrides`, each key once
  std::vector<std::string> remarks;
  std::string texts;  ///< of the files that were read besides
};

/// Whether a tree has "modules.pre_trainer.framework", or another module's.
bool is_primus(const std::vector<Setting>& settings);

/// Reads the trained module (AMD-AGI/Primus, primus/core/config: presets are merged in the order
/// module, model, overrides; `extends`, formerly `includes` and `bases`, name files that go
/// before). Files of Primus are looked for beside `file` and in primus/configs of the folders
/// above; a remark says what is not there. Throws InputError for what such a file cannot say.
PrimusJob read_primus(const std::string& file, const std::vector<Setting>& settings);

/// Keys that Primus adds to those of its frameworks.
std::span<const KeyRow> primus_keys();

}  // namespace lockstep
