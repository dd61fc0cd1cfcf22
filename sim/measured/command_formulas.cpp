#include "sim/measured/command_formulas.hpp"

#include <array>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

namespace lockstep {
namespace {

constexpr WithStepTime kStill = WithStepTime::unmoved;

constexpr std::string_view kCollectiveTime =
    "of each algorithm and protocol that NCCL's own cost model knows, latencies of its steps and "
    "bytes over the rate of its channels; of the fastest of them, with its links shared on the "
    "cluster's fabric";
constexpr std::string_view kBusBandwidth =
    "size over time, times the part of it that crosses the busiest link of a ring, as nccl-tests "
    "counts: 2 (n - 1) / n of all-reduce, (n - 1) / n of all-gather, reduce-scatter and "
    "all-to-all, 1 of the others";
constexpr std::string_view kGroup = "ranks nodes nic_bytes_per_s";
constexpr std::string_view kFlows =
    "nodes=scenario.nodes efficiency=scenario.efficiency flows=simulation.flows";
constexpr std::string_view kRunOfPlan =
    "tokens step_s=.step_s goodput=.goodput gpus=.gpus interruptions=.interruptions";
constexpr std::string_view kPointOfPlan =
    "tokens step_s=..step_s goodput=..goodput gpus=..gpus samples";

constexpr std::string_view kReplayed = "ranks trace_nodes";
constexpr std::string_view kPartOfRank =
    "the mean over ranks of this part of a rank's time, from the rank's beginning to the "
    "end of the step; rank_times has each rank's";
constexpr std::string_view kOnOtherCard =
    "the recorded duration of each kernel: up to the shortest kernel of its kind changed as those "
    "of the two cards are, above it as the rates that large kernels reach on them; summed, and "
    "over the ranks";
constexpr std::string_view kAsRecorded =
    "recorded durations of kernels, split at the shortest kernel of each kind on that card; "
    "summed, and over the ranks";

constexpr std::array kCommandFormulas{
    Formula{"ranks", "c", false, "GPUs of the group, as the scenario places it", "nodes", kStill,
            "GPUs that take part."},
    Formula{"nodes", "c", false, "NVLink domains that hold a member of the group", "ranks", kStill,
            "NVLink domains that take part."},
    Formula{"ranks_per_node_min", "c", false, "members in an NVLink domain, where there are least",
            "ranks nodes", kStill, "The least members of a domain."},
    Formula{"ranks_per_node_max", "c", false, "members in an NVLink domain, where there are most",
            "ranks nodes", kStill, "The most members of a domain."},
    Formula{"nic_bytes_per_s", "c", false,
            "rates of a node's NICs over its GPUs; of a fabric from a file its slowest NIC's", "",
            kStill, "What a member has of its node's NICs."},
    Formula{"largest_time_s", "c", false, kCollectiveTime, kGroup, kStill,
            "Time of the first operation at the largest size."},
    Formula{"best_busbw_bytes_per_s", "c", false, kBusBandwidth,
            "size_bytes=best_size_bytes time_s=best_time_s ranks", kStill,
            "The best bus bandwidth of all rows."},
    Formula{"best_size_bytes", "c", false, "size of the row with the best bus bandwidth", "ranks",
            kStill, "The size at which bus bandwidth is best."},
    Formula{"best_time_s", "c", false, kCollectiveTime, "size_bytes=best_size_bytes ranks nodes",
            kStill, "Time of the row with the best bus bandwidth."},
    Formula{"shapes", "c", false,
            "members of each group by NVLink domain, counted; groups that lie alike together",
            "ranks", kStill, "A way in which groups lie over NVLink domains."},
    Formula{"shapes.*.groups", "c", false, "groups that lie so, counted", "ranks", kStill,
            "Groups that lie so."},
    Formula{"rows.*.shape", "c", false,
            "which of shapes, from 0: that of the groups that end last, whose time the row has",
            "time_s=.time_s ranks", kStill, "How the groups lie that the row is of."},
    Formula{"operations.*.time_s", "c", false, kCollectiveTime, kGroup, kStill,
            "Time of the operation at its largest size."},
    Formula{"operations.*.busbw_bytes_per_s", "c", false, kBusBandwidth,
            "size_bytes=.size_bytes time_s=.time_s ranks", kStill,
            "Bus bandwidth of the operation at its largest size."},
    Formula{"operations", "c", false, "as the scenario says", "", kStill,
            "The operation at its largest size."},
    Formula{"rows.*.time_s", "c", false, kCollectiveTime,
            "size_bytes=.size_bytes channels=.channels ranks nodes nic_bytes_per_s", kStill,
            "Time of the operation at this size."},
    Formula{"rows.*.full_fabric_time_s", "c", false,
            "as time_s, on a fabric whose switches never limit",
            "size_bytes=.size_bytes time_s=.time_s", kStill,
            "Time where only the nodes' own links limit."},
    Formula{"rows.*.algbw_bytes_per_s", "c", true, "size_bytes / time_s",
            "size_bytes=.size_bytes time_s=.time_s", kStill,
            "Algorithm bandwidth, as nccl-tests prints it."},
    Formula{"rows.*.busbw_bytes_per_s", "c", false, kBusBandwidth,
            "size_bytes=.size_bytes time_s=.time_s ranks", kStill,
            "Bus bandwidth, as nccl-tests prints it."},
    Formula{"rows.*.candidates", "c", false,
            "NCCL's cost model of this algorithm and protocol: latencies of its steps, and bytes "
            "over the rate of its channels",
            "ranks nodes", kStill, "An algorithm and protocol that was compared."},
    Formula{"rows", "c", false, "as the algorithm and protocol that are taken have it",
            "size_bytes=.size_bytes ranks", kStill, "A row as nccl-tests prints it."},
    Formula{"hashing", "ct", false,
            "the same simulation with the paths' hashes drawn again, for each draw", "", kStill,
            "What other draws of the hashes give."},

    Formula{"end_s", "t", false,
            "flows at their max-min fair shares of the links on their ways, each at the efficiency "
            "of its rate, until the last byte has arrived",
            kFlows, kStill, "When all traffic has ended."},
    Formula{"scenario", "t", false, "as the scenario and the presets it names say", "", kStill,
            "What was simulated."},
    Formula{
        "traffic", "t", false,
        "messages of the entry, each at its share of the links on its way, from their starts to "
        "their last bytes",
        "messages=.messages bytes=.bytes", kStill, "An entry of the traffic."},
    Formula{"links", "t", false, "bytes that crossed the link, over its capacity and the time",
            "bytes=.bytes capacity=.capacity_bytes_per_s end_s", kStill, "A link by its use."},
    Formula{"simulation", "t", false, "counted while it was simulated", "", kStill,
            "What was simulated."},
    Formula{"expectation", "t", false, "as the scenario says, held against end_s", "end_s", kStill,
            "What the scenario expects."},

    Formula{"tokens", "p", false, "as the plan says, or its scaling law for the model", "", kStill,
            "Tokens of the training."},
    Formula{"samples", "pw", false, "as the plan or --samples says", "", kStill,
            "Samples of the uncertain inputs."},
    Formula{"seed", "p", false, "as the plan says", "", kStill, "Seed of the samples."},
    Formula{"choice_time_s", "p", false,
            "candidates.*.expected.time_s of the candidate that is chosen", "tokens samples",
            kStill, "Time of the choice, every input at its median."},
    Formula{"choice_usd", "p", false, "candidates.*.expected.usd of the candidate that is chosen",
            "tokens samples", kStill, "Money of the choice, every input at its median."},
    Formula{"choice_time_s_p05", "p", false,
            "candidates.*.time_s of the candidate that is chosen: its 5 % quantile",
            "tokens samples", kStill, "Time of the choice: 1 of 20 samples is below."},
    Formula{"choice_time_s_p95", "p", false,
            "candidates.*.time_s of the candidate that is chosen: its 95 % quantile",
            "tokens samples", kStill, "Time of the choice: 1 of 20 samples is above."},
    Formula{"choice_usd_p05", "p", false,
            "candidates.*.usd of the candidate that is chosen: its 5 % quantile", "tokens samples",
            kStill, "Money of the choice: 1 of 20 samples is below."},
    Formula{"choice_usd_p95", "p", false,
            "candidates.*.usd of the candidate that is chosen: its 95 % quantile", "tokens samples",
            kStill, "Money of the choice: 1 of 20 samples is above."},
    Formula{"choice_chance", "p", false, "candidates.*.chances.all of the candidate that is chosen",
            "samples", kStill, "In which share of the samples the choice keeps all limits."},
    Formula{"limits", "p", false, "as the plan says", "", kStill, "A limit of the plan."},
    Formula{"candidates", "p", false,
            "the candidate simulated, one step and a run with failures, checkpoints and restarts, "
            "at its power and prices",
            "tokens samples", kStill, "A number of a candidate."},
    Formula{"candidates.*.step_s", "p", false,
            "one step of the candidate's layout, simulated as lockstep run does", "gpus=.gpus",
            kStill, "Time of one training step."},
    Formula{"candidates.*.mfu", "p", false,
            "model FLOP of a step, attention in full, over step_s and the peak of all GPUs",
            "step_s=.step_s gpus=.gpus", kStill, "Model FLOP/s over the datasheet peak."},
    Formula{"candidates.*.goodput", "p", false,
            "time that advances training over wall time, with failures, restarts and checkpoints, "
            "every input at its median",
            "interruptions=.interruptions gpus=.gpus", kStill,
            "Share of the time that advances training."},
    Formula{"candidates.*.time_s", "p", false,
            "of all samples: steps for the tokens, at the step's time over the drawn efficiency, "
            "over the goodput with the drawn failures",
            kPointOfPlan, kStill, "Time of the training over the samples."},
    Formula{"candidates.*.usd", "p", false,
            "of all samples: rent for the drawn time at the drawn price, or what the machines lose "
            "in value over it, energy at the drawn tariff, people and hosting",
            kPointOfPlan, kStill, "Money of the training over the samples."},
    Formula{"candidates.*.energy_j", "p", false,
            "of all samples: mean power of the site, as drawn, over the drawn time", kPointOfPlan,
            kStill, "Energy of the training over the samples."},
    Formula{"candidates.*.peak_w", "p", false,
            "of all samples: the highest reading of the site's meter, whose window smooths a step, "
            "times the drawn factor of power",
            kPointOfPlan, kStill, "Highest reading of the site's meter, over the samples."},
    Formula{"candidates.*.expected", "p", false,
            "with every input at its median: what lockstep run gives for the tokens' time",
            "tokens step_s=..step_s goodput=..goodput gpus=..gpus", kStill,
            "With every input at its median."},
    Formula{"candidates.*.expected.time_s", "p", false,
            "tokens over those of a step, times step_s, over goodput; before and after it what "
            "moving data and checkpoints takes",
            "tokens step_s=..step_s goodput=..goodput", kStill,
            "Time of the training, every input at its median."},
    Formula{"candidates.*.expected.usd", "p", false,
            "rent of all GPUs for time_s, or write-off, energy, people and hosting of owning them "
            "for it, and moving data",
            "time_s=.time_s gpus=..gpus energy_usd=.energy_usd write_off_usd=.write_off_usd "
            "rent_usd=.rent_usd",
            kStill, "Money of the training, every input at its median."},
    Formula{"candidates.*.expected.capital_usd", "p", true, "machines + network + building",
            "machines=.capital_machines_usd network=.capital_network_usd "
            "building=.capital_building_usd",
            kStill, "What has to be spent before the machines can run."},
    Formula{"candidates.*.expected.energy_j", "p", false,
            "mean power of the site in each state of the run, weighted by its time, over time_s",
            "time_s=.time_s gpus=..gpus", kStill, "Energy at the site's meter."},
    Formula{"candidates.*.chances", "p", false,
            "samples in which the candidate keeps the limit, over all of them", "samples", kStill,
            "In which share of the samples it keeps a limit."},
    Formula{"candidates.*.best_share", "p", false,
            "samples in which it is the best of all candidates, over all of them", "samples",
            kStill, "In which share of the samples it is the best."},
    Formula{"candidates.*.unfinished_share", "p", false,
            "samples in which the training does not come to its end, over all of them", "samples",
            kStill, "In which share of the samples it does not end."},
    Formula{"candidates.*.interruptions", "p", false,
            "failures that stop the job, over the run with every input at its median", kRunOfPlan,
            kStill, "Failures that stop the job."},
    Formula{"candidates.*.sensitivity", "p", false,
            "the candidate with this input alone at its 5 % and its 95 % quantile", "samples",
            kStill, "What one uncertain input moves."},

    Formula{"choice", "w", false, "the first of the options by what the plan prefers", "", kStill,
            "Which option is recommended, from 0."},
    Formula{"choice_gpus", "w", false, "options.*.gpus of the option that is chosen", "choice",
            kStill, "GPUs of the choice, without spares."},
    Formula{"choice_spare_gpus", "w", false, "options.*.spare_gpus of the option that is chosen",
            "choice", kStill, "GPUs of the choice's spare replicas."},
    Formula{"choice_ttft_p99_s", "w", false, "options.*.ttft_p99_s of the option that is chosen",
            "choice", kStill, "Of the choice: 99 of 100 first tokens come no later."},
    Formula{"choice_tpot_p99_s", "w", false, "options.*.tpot_p99_s of the option that is chosen",
            "choice", kStill, "Of the choice: 99 of 100 requests see no longer."},
    Formula{"choice_usd_per_million_output_tokens", "w", false,
            "options.*.usd_per_million_output_tokens of the option that is chosen", "choice",
            kStill, "Money of a million tokens of the choice's answers, spares included."},
    Formula{"simulations", "w", false, "counted in the search", "", kStill,
            "How often the load was played."},
    Formula{"options", "w", false,
            "the option's best layout, with the load played on it pass by pass", "gpus=.gpus",
            kStill, "A number of a machine and a way of serving."},
    Formula{"options.*.gpus", "w", false,
            "GPUs of the fewest replicas, over all layouts that fit, on which the load keeps every "
            "objective",
            "layouts=.layouts simulations=.simulations", kStill,
            "The least GPUs that keep the objectives."},
    Formula{"options.*.spare_gpus", "w", false,
            "whole replicas beside, until enough of them are up as often as the plan asks",
            "gpus=.gpus", kStill, "GPUs of spare replicas."},
    Formula{"options.*.ttft_p99_s", "w", false,
            "over served requests, first token less arrival: waiting for a place in a replica's "
            "passes, then the passes with the prompt's parts; 99 % are not above",
            "gpus=.gpus requests=.requests", kStill, "99 of 100 first tokens come no later."},
    Formula{"options.*.tpot_p99_s", "w", false,
            "over served requests, time of the passes behind the first token over their tokens; 99 "
            "% are not above",
            "gpus=.gpus requests=.requests", kStill, "99 of 100 requests see no longer."},
    Formula{"options.*.usd_per_million_output_tokens", "w", false,
            "owning the GPUs and their spares where the machines have a price, else renting them, "
            "else what has a price, over the tokens of answers meanwhile",
            "gpus=.gpus spare_gpus=.spare_gpus", kStill,
            "Money of a million tokens of answers, spares included."},
    Formula{"curve", "w", false, "the choice's layout with half to twice the replicas", "", kStill,
            "The choice with other numbers of replicas."},
    Formula{
        "map", "w", false,
        "the least GPUs for a drawn load of these lengths and this rate, of one pool and of two",
        "", kStill, "One pool or two, for other loads."},

    Formula{"step_s", "y", false,
            "every rank runs its nodes as their dependencies and streams allow, with their "
            "recorded durations; collectives and messages take what the cluster's model gives and "
            "share its links; until the last rank ends",
            "ranks trace_nodes longest_path_s", kStill, "The step on this cluster."},
    Formula{"step_s_high", "y", false,
            "the same replay, where kernels wait for all communication that was hidden behind "
            "others in the recording",
            "step_s", kStill, "The step if all that can be waited for is."},
    Formula{"longest_path_s", "y", false,
            "over ranks, the longest chain of nodes that wait for each other, communication at no "
            "time",
            kReplayed, kStill, "The longest path of a rank without communication."},
    Formula{"ranks", "y", false, "as the trace says, ranks that were not recorded included", "",
            kStill, "Ranks of the trace."},
    Formula{"trace_nodes", "y", false, "counted in the trace, over all ranks", "ranks", kStill,
            "Nodes of the trace's graph."},
    Formula{"recorded_s", "y", false,
            "from the first to the last event of the recording, of the step that is replayed", "",
            kStill, "The step as it was recorded."},
    Formula{"replayed_over_recorded", "y", true, "step_s / recorded_s", "step_s recorded_s", kStill,
            "Replayed over recorded time."},
    Formula{"kernels_launch_bound_s", "y", false, kOnOtherCard, "recorded_kernels_launch_bound_s",
            kStill, "Kernels of the mean rank that are as short as a launch, on the new card."},
    Formula{"kernels_gpu_bound_s", "y", false, kOnOtherCard, "recorded_kernels_gpu_bound_s", kStill,
            "The other kernels of the mean rank, on the new card."},
    Formula{"recorded_kernels_launch_bound_s", "y", false, kAsRecorded, "ranks", kStill,
            "Kernels of the mean rank that are as short as a launch, as recorded."},
    Formula{"recorded_kernels_gpu_bound_s", "y", false, kAsRecorded, "ranks", kStill,
            "The other kernels of the mean rank, as recorded."},
    Formula{"mean_compute_s", "y", false, kPartOfRank, "step_s ranks", kStill,
            "Mean over ranks: compute."},
    Formula{"mean_exposed_communication_s", "y", false, kPartOfRank, "step_s ranks", kStill,
            "Mean over ranks: communication that nothing covers."},
    Formula{"mean_waiting_s", "y", false, kPartOfRank, "step_s ranks", kStill,
            "Mean over ranks: waiting for other ranks."},
    Formula{"mean_idle_s", "y", false, kPartOfRank, "step_s ranks", kStill,
            "Mean over ranks: nothing runs, or the host does."},
    Formula{"mean_after_end_s", "y", false, kPartOfRank, "step_s ranks", kStill,
            "Mean over ranks: from the rank's own end to the end of the step."},
    Formula{"messages", "y", false, "counted in the trace", kReplayed, kStill,
            "Messages between two ranks."},
    Formula{"messages_s", "y", false, "time that each message moves, at its share of the links",
            "messages", kStill, "Time in which all messages move."},
    Formula{"hash_least_s", "y", false, "the same replay with each draw of the paths' hashes",
            "step_s", kStill, "The shortest step over the draws."},
    Formula{"hash_median_s", "y", false, "the same replay with each draw of the paths' hashes",
            "step_s", kStill, "The median step over the draws."},
    Formula{"hash_most_s", "y", false, "the same replay with each draw of the paths' hashes",
            "step_s", kStill, "The longest step over the draws."},
    Formula{"hashing", "y", false, "the same replay with each draw of the paths' hashes", "step_s",
            kStill, "What other draws of the hashes give."},
    Formula{"cluster", "y", false, "as the options and the presets that they name say", "", kStill,
            "The machine that the trace is replayed on."},
    Formula{"collectives", "y", false,
            "over the calls of this kind, size and group: the time that the model's algorithm "
            "moves bytes on the shared links, and that members wait for the last one",
            "size_bytes=.size_bytes ranks=.ranks calls=.calls", kStill,
            "Collectives of one kind and size."},
    Formula{"rank_times", "y", false,
            "each instant of the rank in one part: its kernels run, communication that nothing "
            "covers moves, it waits for other ranks, nothing runs, or it has "
            "ended and the step has not",
            "step_s", kStill, "Where a rank's time went."},
};

}  // namespace

char letter_of(CommandAnswer which) {
  constexpr std::string_view kLetters = "ctpwy";
  return kLetters[static_cast<std::size_t>(which)];
}

std::span<const Formula> command_formulas() { return kCommandFormulas; }

ExplainedAnswer explained_command(CommandAnswer which, nlohmann::ordered_json answer,
                                  const nlohmann::ordered_json& written, const NodeSpec* node) {
  nlohmann::ordered_json& scenario = answer["scenario"];
  if (!scenario.is_object()) scenario = nlohmann::ordered_json::object();
  for (const auto& [key, value] : written.items()) {
    if (!scenario.contains(key)) scenario[key] = value;
  }
  if (node != nullptr) answer["job"] = {{"node", node->name}, {"gpu", node->gpu.name}};
  return {command_formulas(), letter_of(which), std::move(answer)};
}

}  // namespace lockstep
