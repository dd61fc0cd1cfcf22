/// What each key of a launch file means to a prediction.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/launch/job_sketch.hpp"
#include "sim/launch/setting.hpp"

namespace lockstep {

enum class KeyFate : std::uint8_t {
  used,        ///< the scenario says it
  harmless,    ///< changes no step time, memory or traffic
  unmodelled,  ///< does, and the simulator has no word for it
  unknown,     ///< nobody listed it
};

struct KeyFinding {
  Setting setting;
  KeyFate fate = KeyFate::unknown;
  std::string note;  ///< why it matters, or what it was taken as
};

/// A row of a framework's table. Keys are in small letters with "_", several with blanks between;
/// one "*" in a key stands for any letters.
struct KeyRow {
  std::string_view keys;
  KeyFate fate = KeyFate::harmless;
  void (*use)(JobSketch& job, const Setting& from) = nullptr;  ///< of a key that is used
  std::string_view why{};                                      ///< of one that is not modelled
};

/// A setting that is used, by a member of the sketch.
template <auto Member>
void take_count(JobSketch& job, const Setting& from) {
  job.*Member = from.count();
}
template <auto Member>
void take_flag(JobSketch& job, const Setting& from) {
  job.*Member = from.flag();
}
template <auto Member>
void take_model_count(JobSketch& job, const Setting& from) {
  job.model.*Member = from.count();
}
template <auto Member>
void take_model_flag(JobSketch& job, const Setting& from) {
  job.model.*Member = from.flag();
}
/// The opposite of what the key says.
template <auto Member>
void take_model_no(JobSketch& job, const Setting& from) {
  job.model.*Member = !from.flag();
}

/// Takes a sharding strategy of PyTorch's FSDP, in small letters: "shard_grad_op". That one and its
/// hybrid keep weights from the forward to the backward pass of a micro batch and split them in
/// between: zero3 that does not reshard. False, and nothing taken: there is no such strategy.
bool take_fsdp_name(JobSketch& job, std::string_view strategy);

/// The row of a key (as plain_key() gives it): whole names before those with "*". Null: there is
/// none.
const KeyRow* find_row(std::span<const std::span<const KeyRow>> tables, std::string_view key);

/// Every whole name of the tables, for "did you mean".
std::vector<std::string> known_keys(std::span<const std::span<const KeyRow>> tables);

/// The kernel of attention as frameworks call it: "eager", "sdpa", "flash_attention_2", "fused";
/// "auto" leaves it to the stack.
void take_attention(JobSketch& job, const Setting& from);
/// Adam in any of its spellings is what stacks have: "adam", "adamw_torch_fused", "fused_adam",
/// "DeepSpeedCPUAdam"; "paged_adamw_8bit" has states of 8 bits. Others are not modelled.
void take_optimiser(JobSketch& job, const Setting& from);
inline constexpr const char* kOtherOptimiser =
    "another optimiser than AdamW: set stack.optimiser and stack.optimiser_states";
/// A flag that asks for a fused kernel; off, it leaves the choice to the stack.
void take_fused_attention(JobSketch& job, const Setting& from);

// The tables, each in a file of its own.
std::span<const KeyRow> launcher_keys();        ///< torchrun, srun, deepspeed, accelerate launch
std::span<const KeyRow> megatron_keys();        ///< Megatron-LM; NeMo and Megatron-Bridge as well
std::span<const KeyRow> megatron_other_keys();  ///< of them, those that no scenario says
std::span<const KeyRow> megatron_deepspeed_keys();  ///< what that fork adds
std::span<const KeyRow> nemo_keys();                ///< what these have beside it
std::span<const KeyRow> torchtitan_keys();
std::span<const KeyRow> deepspeed_keys();
std::span<const KeyRow> trainer_keys();  ///< Hugging Face Trainer and what builds on it
std::span<const KeyRow> accelerate_keys();
std::span<const KeyRow> maxtext_keys();
std::span<const KeyRow> neox_keys();  ///< GPT-NeoX, beside DeepSpeed's
std::span<const KeyRow> nanotron_keys();
std::span<const KeyRow> torchtune_keys();
std::span<const KeyRow> foundry_keys();
std::span<const KeyRow> levanter_keys();
std::span<const KeyRow> colossal_keys();
std::span<const KeyRow> post_training_keys();  ///< OpenRLHF and verl, beside the Trainer's

}  // namespace lockstep
