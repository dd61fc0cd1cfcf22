/// A plan without a file: a model, tokens to train it on, servers to compare, and a deadline or
/// sizes are given; the rest of a plan is filled in.
///
///     const std::string text = ask_plan({.model = "llama3_70b", .training = "15 T tokens",
///                                        .node = "dgx_h100,dgx_b200", .time = "90 d"},
///                                       {}, presets);
///     read_plan(std::string(kAskedFile), text, presets);
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/preset_store.hpp"

namespace lockstep {

/// Options of the command line by the same names, as they were typed; empty: not given.
struct PlanAsk {
  std::string model{};     ///< a preset, a model in a JSON file, or a Hugging Face config.json
  std::string training{};  ///< tokens
  std::string node{};      ///< presets, with commas between them
  std::string gpus{};      ///< sizes of each, with commas; not given: they follow from `time`
  std::string time{};      ///< limit, from start to end
  std::string usd{};       ///< limit of the money in all
  std::string price{};  ///< USD of a GPU and hour: of all, or each, with commas; none: list prices
};

/// The JSON of a plan in the current folder; its "about" says what was filled in.
///
/// Each server of each size is a candidate with the layout that is fastest there, rented where it
/// has a price. Sizes that follow from the time: the least power of two of nodes that trains the
/// tokens in it at 40 % of the cards' 16-bit peak, 6 FLOP for each weight that a token meets, and
/// whose memory holds 18 bytes a weight; and twice as many, which 20 % suffices for.
///
/// `sets` ("path=value") are changes that are made to the plan later: where they say the batch, no
/// candidate has one of its own. Throws InputError, where the mistake is an option's in its name.
std::string ask_plan(const PlanAsk& ask, const std::vector<std::string>& sets,
                     const PresetStore& presets);

}  // namespace lockstep
