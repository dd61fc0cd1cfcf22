/// What is explained of answers whose members have no rows: collectives and traffic (`lockstep
/// comm`), plans of trainings and of services (`lockstep plan`), replays of traces.
#pragma once

#include <cstdint>
#include <span>

#include <nlohmann/json_fwd.hpp>

#include "models/spec/hardware.hpp"
#include "sim/answer/formulas.hpp"
#include "sim/measured/explanation.hpp"

namespace lockstep {

enum class CommandAnswer : std::uint8_t { collectives, traffic, plan, serving_plan, replay };

/// The letter of an answer's rows among command_formulas(): "c", "t", "p", "w", "y".
char letter_of(CommandAnswer which);
/// Each row's `about` says what the number is.
std::span<const Formula> command_formulas();

/// The command's JSON with the document that it is the answer to, `written`, for inputs that this
/// says. `node`: that of a comm's cluster, whose preset says the others; null: none.
ExplainedAnswer explained_command(CommandAnswer which, nlohmann::ordered_json answer,
                                  const nlohmann::ordered_json& written,
                                  const NodeSpec* node = nullptr);

}  // namespace lockstep
