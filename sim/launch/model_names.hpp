/// Which preset a launch file's name of a model means.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/scenario/preset_store.hpp"

namespace lockstep {

/// Of "meta-llama/Llama-3.1-8B-Instruct", "llama3 405B", "llama3.1-8b", "llama32_1b_pretrain";
/// empty where there is none.
std::string preset_of_model_name(std::string_view name, const PresetStore& presets);

/// The node preset whose GPU a file speaks of ("H100", "GB200"); empty where it names none, or
/// several.
std::string node_of_words(std::string_view text);

/// The number of GPUs that a comment ("# ... 128 H100 GPUs") speaks of; 0 where none does, or
/// several.
std::int64_t gpus_of_comments(std::string_view text);

}  // namespace lockstep
