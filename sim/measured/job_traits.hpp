/// What a job is compared with published ones by: `lockstep explain` shows the nearest of them.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "sim/measured/rows.hpp"
#include "sim/scenario/preset_store.hpp"

namespace lockstep {

struct JobTraits {
  std::string model{}, gpu{}, architecture{}, stack{};  ///< as presets name them, if they do
  double parameters = 1, gpus = 1;
  bool experts = false;
};

/// 0: the same model, GPU, number of them and software.
double distance_of(const JobTraits& a, const JobTraits& b);

/// Of an answer to a step, or to what repeats one.
JobTraits traits_of_answer(const nlohmann::ordered_json& answer, const PresetStore& presets);

/// Of a published run; its GPU is as it was printed where no preset is about it.
JobTraits traits_of_job(const ReferenceRow& row, const PresetStore& presets);

/// The same name, however a source and a preset spell it: "Llama-2 70B" is "llama270b".
std::string plain_name(std::string_view name);
/// "llama" of "llama3_70b".
std::string name_family(std::string_view name);

/// The text at a JSON pointer; empty: there is none.
std::string answer_text_at(const nlohmann::ordered_json& object, std::string_view pointer);

}  // namespace lockstep
