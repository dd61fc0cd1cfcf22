/// What questions without a file share: options as they were typed, and whose mistakes are whose.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "models/base/input_error.hpp"

namespace lockstep {

inline constexpr int kAskedTokens = 4096;  ///< of a sequence, where nobody says

/// Throws InputError: "--nodes: found "many"; allowed: ...".
[[noreturn]] void fail_option(std::string_view option, const std::string& found,
                              std::string allowed);
/// An error in the scenario that was made of options as one of the option that is its cause; others
/// stay as they are.
InputError told_of_option(const InputError& error);

/// A whole number from 1 to `most`. Throws InputError.
int whole_option(std::string_view option, const std::string& text, int most);
/// Throws InputError where so many GPUs, the `text` of --gpus, are not whole nodes.
void check_whole_nodes(const std::string& text, int gpus, int gpus_of_node);
/// What stands between commas.
std::vector<std::string> words_between_commas(const std::string& text);

/// Sequences of a step where nobody says: as many as make 4 Mi tokens, of a job that trains
/// adapters alone (`refines`) half a Mi, or one for each node of a larger machine, rounded up to
/// what the GPUs divide.
int asked_sequences(std::int64_t gpus, std::int64_t nodes, std::int64_t tokens,
                    bool refines = false);

/// Checkpoints of a run where nobody says: every 30 min, to storage.
nlohmann::ordered_json asked_checkpoint();

}  // namespace lockstep
