/// Options that ask about a model on a machine, without a scenario file.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/preset_store.hpp"
#include "sim/search/ask.hpp"
#include "tools/console/console.hpp"
#include "tools/console/options.hpp"

namespace lockstep {

inline constexpr OptionSpec kAskModel{
    "model",
    0,
    "NAME|FILE",
    false,
    "Ask without a scenario file: of this model, a preset or a Hugging Face config.json, on the "
    "machine that --node or --cluster says. The fastest layout is searched, and what is assumed "
    "is said. --set adds the rest of a scenario, and what it says of the layout is kept.",
    "--model Qwen2.5-32B/config.json --node dgx_h100 --nodes 64"};
inline constexpr OptionSpec kAskNode{
    "node", 0, "NAME", false, "With --model: the server (lockstep list nodes).", "--node dgx_b200"};
inline constexpr OptionSpec kAskCluster{
    "cluster",
    0,
    "NAME",
    false,
    "With --model: a cluster that exists, instead of --node (lockstep list clusters).",
    "--cluster meta_24k_roce_h100"};
inline constexpr OptionSpec kAskNodes{
    "nodes", 0, "N", false, "With --model: how many servers (default: 1).", "--nodes 64"};
inline constexpr OptionSpec kAskGpus{
    "gpus", 0, "N", false, "With --model: how many GPUs, instead of --nodes.", "--gpus 512"};
inline constexpr OptionSpec kAskFabric{
    "fabric",
    0,
    "NAME",
    false,
    "With --model: what joins the servers (lockstep list fabrics); else what suits them.",
    "--fabric fat_tree_ecmp"};
inline constexpr OptionSpec kAskSequences{
    "sequences",
    0,
    "N",
    false,
    "With --model: sequences of a step, over all GPUs (default: what makes 4 Mi tokens, or one for "
    "each server).",
    "--sequences 1024"};
inline constexpr OptionSpec kAskTokens{
    "tokens",       0, "N", false, "With --model: tokens of a sequence (default: 4,096).",
    "--tokens 8192"};

/// All of them; none of them stands beside a scenario file.
inline constexpr std::array kAskOptions{kAskModel, kAskNode,   kAskCluster,   kAskNodes,
                                        kAskGpus,  kAskFabric, kAskSequences, kAskTokens};

/// Whether they ask a question without a file, which begins with `first`. Throws UsageError where a
/// file, in words a `what`, is given beside it, or without it one of `parts`, its other options.
bool asks_without_file(const ParsedOptions& options, std::string_view first,
                       std::span<const std::string_view> parts, std::string_view what = "scenario");

/// --model as Ask::model takes it: what can be read only once, standard input ("-") or a pipe, is
/// its text. Throws InputError where that is no JSON object.
std::string model_option(const ParsedOptions& options);

/// What the options ask; nothing where `first`, with which a question begins, is not given. Throws
/// UsageError where a file is given beside it, or another of these options without it.
std::optional<Ask> ask_of(const ParsedOptions& options, std::string_view first = "model");

/// The scenario that answers it, with the progress of its search on a terminal.
std::string asked_text(const Ask& ask, const std::vector<std::string>& sets,
                       const ParsedOptions& options, const PresetStore& presets, Console& console);

/// Writes the scenario to a file, for `lockstep run`.
void write_asked(const std::string& text, const std::string& path);

}  // namespace lockstep
