#include "sim/answer/formulas.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

#include "sim/answer/fields.hpp"

namespace lockstep {
namespace {

constexpr WithStepTime kWithStep = WithStepTime::proportional, kAgainstStep = WithStepTime::inverse;
constexpr std::string_view kMachine =
    "gpus nodes peak=hardware.peak_flops_per_gpu memory=hardware.hbm_bytes_per_s "
    "nvlink=hardware.nvlink_bytes_per_s nics=hardware.nics_per_node nic=hardware.nic_bytes_per_s "
    "parameters=job.parameters sequences=job.batch.sequences micro=job.batch.micro "
    "tokens=job.batch.tokens";
constexpr std::string_view kMemory =
    "stage=peak_memory_stage parameters=job.parameters tensor=job.parallelism.tensor "
    "pipeline=job.parallelism.pipeline expert=job.parallelism.expert data=job.parallelism.data "
    "micro=job.batch.micro tokens=job.batch.tokens";
constexpr std::string_view kPower = "gpu=power.gpu.mean_w node=power.node.mean_w nodes step_s";
constexpr std::string_view kIterationPower =
    "gpu=power.gpu.mean_w node=power.node.mean_w gpus step_s";
constexpr std::string_view kRun = "step_s gpus trajectories";
constexpr std::string_view kRollout =
    "replicas generation_gpus response_mean_tokens sequences_mean";

// Of a service: what the times of its requests are made of.
constexpr std::string_view kServedBy =
    "requests input_tokens output_tokens gpus replicas=pools.0.replicas passes=pools.0.passes "
    "busy_s=pools.0.busy_s cache_tokens=pools.0.cache_tokens";
// Of two pools the second one decodes.
constexpr std::string_view kDecodedBy =
    "requests input_tokens output_tokens gpus replicas=pools.1.replicas|pools.0.replicas "
    "passes=pools.1.passes|pools.0.passes busy_s=pools.1.busy_s|pools.0.busy_s "
    "cache_tokens=pools.1.cache_tokens|pools.0.cache_tokens";
constexpr std::string_view kFirstToken =
    "over served requests, first token less arrival: the wait for a place in a replica's passes "
    "and "
    "cache, then the passes with the prompt's parts. A pass takes its matrix products at what the "
    "card reaches of peak and HBM bandwidth, attention over the cached tokens, exchanges within "
    "the "
    "replica and the host's time (waterfall)";
constexpr std::string_view kPerToken =
    "over served requests, (last token less first) over the tokens behind the first: the passes in "
    "between, each as long as weights and cached keys and values take through HBM, or the products "
    "of all tokens in it, whichever is longer, with exchanges and the host's time (waterfall); "
    "prompts of others in the same pass make it longer";
// Of a queue.
constexpr std::string_view kQueued =
    "jobs gpus simulated_s never_started utilisation evictions waiting=all.waiting";
// An input of 0 is named as the reason where there is no value.
constexpr std::string_view kEnded = "ended jobs gpus simulated_s utilisation";
constexpr std::string_view kQueueWait =
    "over jobs that have started or wait, the time between submission and end in which they held "
    "no GPU, as the queue was played event by event: who is next by the scenario's order, what may "
    "start by its admission and backfill, on which nodes by its placement. Of those that still "
    "wait at the end, what has passed";
constexpr std::string_view kQueueCompletion =
    "over ended jobs, end less submission: wait, start, the job's own duration, and what "
    "evictions, failures and slower cards or links add to it";
constexpr std::string_view kQueueSlowdown =
    "over ended jobs, completion over duration, of which 10 s count at least, and 1 at least "
    "(bounded slowdown): 1 of a job that neither waits nor is slowed";

constexpr std::array kFormulas{
    Formula{"step_s", "s", false,
            "end of the last event of one training step: kernels at what the card and the software "
            "reach, messages over links that share their bandwidth, in the order of the schedule",
            kMachine, kWithStep},
    Formula{"step_s", "r", false,
            R"(one healthy step, or iteration of "rl", simulated as for a scenario without "run")",
            "gpus nodes", kWithStep},
    Formula{"step_s", "l", false,
            "end of the step's last phase: generation, scores, training, offloading and weights to "
            "the engine, one after another or beside each other as the schedule says",
            "generation_s scores_s training_s offload_s weight_sync_s", kWithStep},
    Formula{"step_s_low", "sr", true, "step_s * low", "step_s low=interval.low"},
    Formula{"step_s_high", "sr", true, "step_s * high", "step_s high=interval.high"},
    Formula{"exact_low_s", "sl", false,
            "step_s, less what replicas that were not simulated could be faster by", "step_s"},
    Formula{"exact_high_s", "sl", false,
            "step_s, and what replicas that were not simulated could be slower by", "step_s"},
    Formula{"hash_least_s", "srl", false, "least of step_s over the draws of --hash-seeds",
            "step_s"},
    Formula{"hash_median_s", "srl", false, "median of step_s over the draws of --hash-seeds",
            "step_s"},
    Formula{"hash_most_s", "srl", false, "most of step_s over the draws of --hash-seeds", "step_s"},
    Formula{"mfu", "s", true, "tflops_per_gpu * 1e12 / peak",
            "tflops_per_gpu peak=hardware.peak_flops_per_gpu", kAgainstStep},
    Formula{
        "mfu", "r", false,
        "model FLOP of a healthy step, attention in full, over step_s and the peak of all GPUs; "
        "with \"rl\" those of all updates of actor and critic",
        "step_s gpus", kAgainstStep},
    Formula{"mfu_causal", "s", true, "tflops_per_gpu_causal * 1e12 / peak",
            "tflops_per_gpu_causal peak=hardware.peak_flops_per_gpu", kAgainstStep},
    Formula{"hfu", "s", false,
            "FLOP of a step, what recomputation repeats included, over step_s and the peak of all "
            "GPUs",
            "mfu step_s peak=hardware.peak_flops", kAgainstStep},
    Formula{"tokens_per_s", "s", true, "tokens_per_step / step_s", "tokens_per_step step_s",
            kAgainstStep},
    Formula{"tokens_per_s_per_gpu", "s", true, "tokens_per_s / gpus", "tokens_per_s gpus",
            kAgainstStep},
    Formula{"tokens_per_s_per_gpu", "l", true, "tokens_per_step / step_s / gpus",
            "tokens_per_step step_s gpus", kAgainstStep},
    Formula{"tflops_per_gpu", "s", false,
            "model FLOP of a step (for each parameter of a product and token six where it is "
            "trained, four where it is frozen and gradients pass through it, two where none come; "
            "and those of attention in full) over step_s and gpus",
            "parameters=job.active_parameters tokens_per_step step_s gpus", kAgainstStep},
    Formula{"tflops_per_gpu_causal", "s", false, "as tflops_per_gpu, with half of attention",
            "parameters=job.active_parameters tokens_per_step step_s gpus", kAgainstStep},
    Formula{"tokens_per_step", "s", true, "sequences * tokens",
            "sequences=job.batch.sequences tokens=job.batch.tokens"},
    Formula{"tokens_per_step", "l", false, "prompts and responses that the step trains on",
            "response_mean_tokens"},
    Formula{"gpus", "s", false, "product of the layout's widths: tensor, context, pipeline, data",
            "nodes of=hardware.gpus_per_node"},
    Formula{"steps_done", "r", false,
            "time that advances training, as of a job at full speed, over step_s",
            "wall_s goodput step_s"},
    Formula{"tokens_done", "r", false, "tokens of steps_done", "steps_done"},
    Formula{"gpus", "r", false,
            "product of the layout's widths: tensor, context, pipeline, data; with \"rl\" those of "
            "an engine's own nodes too",
            "nodes"},
    Formula{"gpus", "l", false, "those that train, and those that generate where they are others",
            "training_gpus generation_gpus"},
    Formula{"nodes", "sr", false, "as the scenario or its cluster says", ""},
    Formula{"peak_memory_gib", "s", false,
            "weights, gradients, optimiser, activations, buffers, context and the framework's "
            "reserve on the fullest stage (\"stages\" has each)",
            kMemory},
    Formula{"needed_memory_gib", "s", false,
            "as peak_memory_gib, without what the allocator would give back", kMemory},
    Formula{"peak_memory_stage", "s", false, "stage with the largest memory", "peak_memory_gib"},
    Formula{"usable_memory_gib", "s", false,
            "memory of the card less what its driver and the scenario keep", "memory_capacity_gib"},
    Formula{"memory_capacity_gib", "s", true, "capacity / 1073741824",
            "capacity=hardware.hbm_bytes"},
    Formula{"training_tokens", "sl", false, "as the scenario says", ""},
    Formula{"time_to_train_s", "s", true, "training_tokens / tokens_per_s",
            "training_tokens tokens_per_s", kWithStep},
    Formula{"time_to_train_s", "l", true, "training_tokens / tokens_per_step * step_s",
            "training_tokens tokens_per_step step_s", kWithStep},
    Formula{"gpu_hours", "sl", true, "gpus * time_to_train_s / 3600", "gpus time_to_train_s",
            kWithStep},
    Formula{"gpu_hours", "r", false,
            "gpus * wall_s / 3600; with run.purchase the GPUs that the job runs on, over time",
            "gpus wall_s"},
    Formula{"usd_per_gpu_hour", "sl", false, "as the scenario says, else the card's list price",
            ""},
    Formula{"price_usd", "sl", true, "gpu_hours * usd_per_gpu_hour", "gpu_hours usd_per_gpu_hour",
            kWithStep},
    Formula{"price_usd", "r", false, "held_gpu_hours at the price of a GPU hour", "held_gpu_hours"},
    Formula{"facility_mean_w", "s", false,
            "power of GPUs in each phase of the step, and of what is around them, through power "
            "supplies, cooling and transformers; mean over the step",
            kPower},
    Formula{
        "facility_mean_w", "l", false,
        "power of GPUs in each phase of the iteration (\"power.phases\"), and of what is around "
        "them, through power supplies, cooling and transformers; mean over step_s",
        kIterationPower},
    Formula{"facility_mean_w", "r", false,
            "power of the site in each state of the run, weighted by its time", "step_s gpus"},
    Formula{"facility_peak_w", "s", false, "the same at the instant of the most", kPower},
    Formula{"facility_peak_w", "l", false, "the same at the instant of the most", kIterationPower},
    Formula{"energy_per_step_j", "sl", true, "facility_mean_w * step_s", "facility_mean_w step_s"},
    Formula{"energy_j", "sl", false, "facility_mean_w over the time that power.bill is of",
            "facility_mean_w"},
    Formula{"energy_j", "r", false, "facility_mean_w over the wall time", "facility_mean_w wall_s"},
    Formula{"joules_per_token", "sl", true, "energy_per_step_j / tokens_per_step",
            "energy_per_step_j tokens_per_step"},
    Formula{"joules_per_token", "r", false, "energy_j over the tokens that the run trains on",
            "energy_j"},
    Formula{"tonnes_co2", "srl", false,
            "energy_j at the grid's carbon intensity, hour by hour where "
            "the scenario has hours",
            "energy_j"},
    Formula{"capital_usd", "s", false, "machines, network and building at the scenario's prices",
            "gpus nodes"},
    Formula{"capital_usd", "l", false, "machines, network and building at the scenario's prices",
            "gpus"},
    Formula{"capital_usd", "r", true,
            "capital_machines_usd + capital_network_usd + capital_building_usd",
            "capital_machines_usd capital_network_usd capital_building_usd"},
    Formula{"owned_usd", "sl", false,
            "what the capital loses in value meanwhile, and energy, people and hosting",
            "capital_usd energy_j"},
    Formula{"owned_usd", "r", true, "write_off_usd + running_usd", "write_off_usd running_usd"},
    Formula{"site_limit_w", "srlj", false, "power.site_limit, else the cluster preset's", ""},
    Formula{"site_peak_w", "srl", false,
            "the most that a meter at the site reads, whose window smooths the swing of a step",
            "step_s"},
    Formula{"site_excess_w", "srlj", true, "site_peak_w - site_limit_w",
            "site_peak_w site_limit_w"},
    Formula{"goodput", "r", false,
            "time that advances training over wall time, of all random runs together, with "
            "failures, restarts and checkpoints",
            kRun},
    Formula{"goodput_half_width_95", "r", false,
            "Student's t times the standard error of that ratio over the runs that were drawn",
            "goodput trajectories"},
    Formula{"wall_s", "r", false, "mean wall time of the runs that were drawn", kRun},
    Formula{"begins_s", "r", false,
            "days until there are machines for the job and its dataset is staged, hop by hop, "
            "whichever is later",
            ""},
    Formula{"done_s", "r", true, "begins_s + wall_s", "begins_s wall_s"},
    Formula{"h100_equivalents", "r", false,
            "GPUs by their dense 16-bit peak, over the 989.4 TFLOP/s of an H100 SXM", "gpus"},
    Formula{"interruptions", "r", false, "mean count of failures that stop the job", kRun},
    Formula{"mttf_s", "r", false, "all wall time over all interruptions", "wall_s interruptions"},
    Formula{"mttf_at_least_s", "r", false,
            "lower end by the counts that a Poisson law gives with 95 % confidence",
            "wall_s interruptions trajectories"},
    Formula{"useful_flops_share", "r", true, "mfu * goodput", "mfu goodput", kAgainstStep},
    Formula{"held_gpu_hours", "r", false,
            "gpu_hours, and those of hot spares or of nodes of lots without a place in the job",
            "gpu_hours"},
    Formula{"trajectories", "r", false,
            "run.trajectories or --trajectories; more until "
            "run.within is kept",
            ""},
    Formula{"finished_share", "r", false, "runs that did all of their work over all",
            "trajectories"},
    Formula{"checkpoints", "r", false, "mean count of checkpoints that were written", kRun},
    Formula{"checkpoint_bytes", "r", false,
            "weights and optimiser state of the model in the precisions that are kept", ""},
    Formula{"unreadable_checkpoints", "r", false, "mean count of checkpoints found unreadable",
            "checkpoints"},
    Formula{"data_read_bytes_per_s", "r", false, "bytes of a sample by the samples of a second",
            "step_s"},
    Formula{"data_speed", "r", false, "speed of the job over one that never waits for data",
            "data_read_bytes_per_s"},
    Formula{"capital_usd_per_node", "r", false, "capital_usd over the nodes and the hot spares",
            "capital_usd nodes"},
    Formula{"energy_usd", "r", false, "energy_j by the tariff of its hours", "energy_j"},
    Formula{"usd_per_kwh", "r", true, "energy_usd / (energy_j / 3600000)", "energy_usd energy_j"},
    Formula{"capital_machines_usd", "r", false, "nodes at the scenario's price", "nodes"},
    Formula{"capital_network_usd", "r", false, "switches and cables at the scenario's prices",
            "nodes"},
    Formula{"capital_building_usd", "r", false,
            "the building at the scenario's price per watt, and the site's battery, path and "
            "cooling at theirs",
            "gpu_nameplate_w"},
    Formula{"write_off_usd", "r", false,
            "each part of the capital over its life, for the run's "
            "time",
            "capital_usd wall_s"},
    Formula{"running_usd", "r", false, "energy, people and hosting for the run's time",
            "energy_j wall_s"},
    Formula{"owned_usd_per_trillion_tokens", "r", false, "owned_usd over the tokens trained on",
            "owned_usd"},
    Formula{"owned_usd_per_eflop", "r", false, "owned_usd over the model FLOP done", "owned_usd"},
    Formula{"gpu_nameplate_w", "r", false,
            "GPUs of the job and its hot spares at their datasheet's power", "gpus"},
    Formula{"simulated_s", "j", false, "time of the fabric until what was asked for is over", ""},
    Formula{"slowdown_max", "j", false,
            "step beside the others over step alone, of the job that is slowed most", ""},
    Formula{"facility_mean_w", "j", false,
            "of each job the energy of its step alone, and while others make it wait the power of "
            "GPUs that spin, over its step; of all jobs, and idle_w",
            "idle_w"},
    Formula{"idle_w", "j", false,
            "nodes that no job has, at rest, with their share of switches and of what cools and "
            "feeds them",
            ""},
    Formula{"owned_usd_per_hour", "j", false,
            "what all machines lose in value in an hour, and energy, people and hosting",
            "facility_mean_w"},
    Formula{"rent_usd_per_hour", "j", false, "GPUs of all nodes at the price of a GPU-hour", ""},
    Formula{"site_peak_w", "j", false,
            "the most that a meter of each job alone reads, of all at once, and idle_w", "idle_w"},
    Formula{"links_used", "j", false, "links over which at least one byte went", ""},
    Formula{
        "peak_memory_gib", "l", false,
        "weights, gradients, optimiser, activations, buffers and the framework's reserve on the "
        "fullest stage, and the frozen models in the same layout",
        "frozen_weights_gib training_gpus"},
    Formula{"needed_memory_gib", "l", false,
            "as peak_memory_gib, without what the allocator would give back", "training_gpus"},
    Formula{"frozen_weights_gib", "l", false,
            "weights of the reference or the teacher, cut as the layout cuts them",
            "training_gpus"},
    Formula{"usable_memory_gib", "l", false,
            "memory of the card less what its driver and the scenario keep", ""},
    Formula{"training_flops", "l", false,
            "forward and backward passes of every update over all its tokens", "tokens_per_step"},
    Formula{
        "scores_flops", "l", false,
        "forward passes of the reference or the teacher over the same tokens; of kto two of the "
        "reference and one of the actor",
        "tokens_per_step"},
    Formula{"training_gpus", "l", false, "product of the training layout's widths", ""},
    Formula{"generation_gpus", "l", false, "nodes that generate, 0 where they train too", ""},
    Formula{"generation_s", "l", false,
            "rollout: every replica decodes its sequences token by token until the last one ends",
            kRollout},
    Formula{"scores_s", "l", false, "forward passes of reward, reference, teacher and value models",
            "training_gpus"},
    Formula{"training_s", "l", false, "updates of the step, each a simulated optimiser step",
            "update_s"},
    Formula{"offload_s", "l", false, "bytes of the training state over the link to the host",
            "training_gpus"},
    Formula{"weight_sync_s", "l", false, "bytes of the weights over the links to the engine",
            "training_gpus generation_gpus"},
    Formula{"generated_tokens_per_s", "l", false, "tokens of all responses over generation_s",
            "response_mean_tokens generation_s"},
    Formula{"generated_tokens_per_s_per_gpu", "l", false,
            "generated_tokens_per_s over the GPUs that generate",
            "generated_tokens_per_s generation_gpus training_gpus"},
    Formula{"generation_idle_share", "l", false, "share of step_s that the engine's GPUs wait",
            "generation_s step_s"},
    Formula{"training_idle_share", "l", false, "share of step_s that the trainers' GPUs wait",
            "training_s step_s"},
    Formula{"response_mean_tokens", "l", false, "mean of the lengths that were drawn", ""},
    Formula{"response_most_tokens", "l", false, "longest of the lengths that were drawn", ""},
    Formula{"replicas", "l", false, "GPUs that generate over those of a replica",
            "generation_gpus training_gpus"},
    Formula{"sequences_mean", "l", false, "sequences decoded at once, mean over generation_s",
            "replicas"},
    Formula{"sequences_most", "l", false, "the most sequences decoded at once", "replicas"},
    Formula{"cache_tokens", "l", false,
            "memory left beside weights and state, over the bytes of a token's keys and values",
            "replicas"},
    Formula{"preempted", "l", false, "how often a sequence had to leave a full cache",
            "cache_tokens sequences_most"},
    Formula{"update_s", "l", false, "one optimiser step, simulated like a training step",
            "training_gpus", kWithStep},
    Formula{"training_mfu", "l", false,
            "model FLOP of an update, attention in full, over update_s and the GPUs' peak",
            "update_s training_gpus", kAgainstStep},
    Formula{"training_mfu_causal", "l", false, "the same with half of attention",
            "update_s training_gpus", kAgainstStep},
    Formula{"gpus", "q", false, "GPUs of the cluster's nodes", ""},
    Formula{"jobs", "q", false, "rows of the traces and drawn jobs", ""},
    Formula{"ended", "q", false,
            "counted while the queue is played event by event: jobs whose work was done, or whose "
            "limit of time was reached, within the simulated time",
            "jobs simulated_s"},
    Formula{"never_started", "q", false,
            "counted at the end: jobs for which the order, the admission and the placement left no "
            "free GPUs within the simulated time",
            "jobs simulated_s gpus utilisation"},
    Formula{"cut", "q", false,
            "ended jobs that run longer than their limit, or their reservation, allows", "ended"},
    Formula{"cancelled", "q", false,
            "jobs beyond a limit of submissions, preempted where that cancels, or whose dependency "
            "cannot be met",
            "jobs simulated_s"},
    Formula{"simulated_s", "q", false, "to the last end, or as long as the scenario says", ""},
    Formula{"makespan_s", "q", false, "last end less first submission", "ended"},
    Formula{"utilisation", "q", false,
            "useful + starting + lost: GPU time that jobs held over that of the cluster",
            "useful=waterfall.useful.share starting=waterfall.starting.share "
            "lost=waterfall.lost.share"},
    Formula{"useful_share", "q", true, "useful", "useful=waterfall.useful.share"},
    Formula{"evictions", "q", false,
            "how often a job gave its GPUs to one before it in the order, or to a queue that took "
            "its share back",
            "jobs"},
    Formula{"resizes", "q", false, "how often a job's width changed while it ran", "jobs"},
    Formula{"suspensions", "q", false,
            "how often a job stopped on its nodes for one that may preempt it", "jobs"},
    Formula{"suspended_jobs", "q", false, "jobs that are suspended at the end", "suspensions"},
    Formula{"suspended_s", "q", false,
            "from each suspension to where the job goes on, its node breaks or the queue ends",
            "suspensions"},
    Formula{"node_failures", "q", false, "exponential, drawn node by node at the given rate",
            "gpus simulated_s"},
    Formula{"backfilled", "q", false, "jobs that started in a pass of the backfill scheduler",
            "jobs"},
    Formula{"owned_usd", "q", false,
            "what all machines, the network and the building lose in value meanwhile, and energy, "
            "people and hosting",
            "simulated_s gpus energy=power.energy_j"},
    Formula{"rent_usd", "q", false, "all GPUs, for all of the time, at the price of a GPU-hour",
            "simulated_s gpus"},
    Formula{"usd_with_burst", "q", false,
            "what the cluster costs, owned, rented or in part, and what bursts cost",
            "burst_usd=burst.usd gpus simulated_s"},
    Formula{"partial_usd", "q", false,
            "energy, people, hosting, and what network and building lose in value meanwhile, as "
            "far as they have prices",
            "simulated_s energy=power.energy_j"},
    Formula{"usd_per_held_gpu_hour", "q", false,
            "owned_usd where the machines have a price, else rent_usd, else partial_usd, "
            "over the GPU hours that jobs held",
            "held=all.gpu_hours"},
    Formula{"wait_mean_s", "q", false, kQueueWait, kQueued},
    Formula{"wait_p50_s", "q", false, kQueueWait, kQueued},
    Formula{"wait_p90_s", "q", false, kQueueWait, kQueued},
    Formula{"wait_p99_s", "q", false, kQueueWait, kQueued},
    Formula{"completion_mean_s", "q", false, kQueueCompletion, kEnded},
    Formula{"completion_p99_s", "q", false, kQueueCompletion, kEnded},
    Formula{"slowdown_mean", "q", false, kQueueSlowdown, kEnded},
    Formula{"slowdown_p99", "q", false, kQueueSlowdown, kEnded},
    Formula{"gpus", "v", false, "GPUs of all replicas of all pools", ""},
    Formula{"requests", "v", false, "rows of the trace, or as many as are drawn", ""},
    Formula{"served", "v", false,
            "counted while the load is played pass by pass: requests whose last token came",
            "requests refused"},
    Formula{"refused", "v", false,
            "requests whose prompt and answer exceed a replica's cache, which is the memory beside "
            "weights and reserve over the bytes of a token's keys and values",
            "requests cache_tokens=pools.0.cache_tokens"},
    Formula{"span_s", "v", false,
            "last token less first arrival: the load's own length, and the time in which its last "
            "answers are worked off",
            kDecodedBy},
    Formula{"input_tokens", "v", false,
            "sum over the served requests of lengths that the trace has, or that the load's law "
            "drew",
            "served"},
    Formula{"output_tokens", "v", false,
            "sum over the served requests of lengths that the trace has, or that the load's law "
            "drew",
            "served"},
    Formula{"ttft_mean_s", "v", false, kFirstToken, kServedBy},
    Formula{"ttft_p99_s", "v", false, kFirstToken, kServedBy},
    Formula{"tpot_mean_s", "v", false, kPerToken, kDecodedBy},
    Formula{"tpot_p99_s", "v", false, kPerToken, kDecodedBy},
    Formula{"output_tokens_per_s", "v", true, "output_tokens / span_s", "output_tokens span_s"},
    Formula{"output_tokens_per_s_per_gpu", "v", true, "output_tokens / span_s / gpus",
            "output_tokens span_s gpus"},
    Formula{"tokens_per_s_per_user", "v", true, "1 / tpot", "tpot=tpot_s.mean"},
    Formula{"requests_per_s", "v", true, "served / span_s", "served span_s"},
    Formula{"in_system", "v", true, "served * e2e / span_s", "served e2e=e2e_s.mean span_s"},
    Formula{"attained_share", "v", false,
            "requests whose times to the first token, per token and to the last are all within the "
            "objectives, over all requests, refused ones included",
            "requests served ttft_p99_s tpot_p99_s"},
    Formula{"replica_failures", "v", false,
            "exponential, drawn replica by replica at the given rate, until the last request ended",
            "gpus span_s"},
    Formula{"retried_requests", "v", false,
            "requests that a failed or restarted replica held; another one begins with them again",
            "requests served"},
    Formula{"shed", "v", false,
            "requests that found on every replica most_waiting waiting, or more than most_cache of "
            "its cache in use",
            "requests served"},
    Formula{"gave_up", "v", false,
            "requests that no replica had let in when their user's patience was over",
            "requests served"},
    Formula{"replica_restarts", "v", false,
            "of each pool at_once replicas at a time, each when it has ended what it had, or grace "
            "is over",
            "gpus span_s"},
    Formula{"replica_restarts_left", "v", false,
            "replicas whose turn to be restarted had not come when the last request ended",
            "replica_restarts span_s"},
    Formula{"prefix_found_share", "v", false,
            "tokens of prompts that a replica held, over all of prompts that were worked on",
            "input_tokens"},
    Formula{"usd_per_million_output_tokens", "v", false,
            "1e6 * usd / output_tokens, of owning where the machines have a price, else of rent, "
            "else of what has a price, as energy",
            "output_tokens"},
    Formula{"good_requests_per_s", "v", true, "attained_share * requests / span_s",
            "attained_share requests span_s"},
    Formula{"transfer_s", "v", false,
            "mean over served requests of the time from the first token to keys and values in the "
            "other pool",
            "served transferred_bytes"},
    Formula{
        "transfer_alone_s", "v", false,
        "mean over served requests of latency + max(rest / r, B / r - p (L - 1) / L): B bytes at "
        "the rate r of their way, rest of them after the prompt, which took p for L layers",
        "served transferred_bytes"},
    Formula{"transferred_bytes", "v", false,
            "prompt tokens times the bytes of a token's keys and values, each copied once",
            "input_tokens"},
};

/// A recursive descent over "a + b * (c - 1)".
class Reader {
 public:
  Reader(std::string_view text,
         const std::function<std::optional<double>(std::string_view)>& value_of)
      : text_(text), value_of_(value_of) {}

  std::optional<double> sum() {
    std::optional<double> left = product();
    while (const char sign = take("+-")) {
      const std::optional<double> right = product();
      left = left && right ? std::optional(sign == '+' ? *left + *right : *left - *right)
                           : std::nullopt;
    }
    return left;
  }

 private:
  std::optional<double> product() {
    std::optional<double> left = factor();
    while (const char sign = take("*/")) {
      const std::optional<double> right = factor();
      left = left && right ? std::optional(sign == '*' ? *left * *right : *left / *right)
                           : std::nullopt;
    }
    return left;
  }
  std::optional<double> factor() {
    if (take("(") != 0) {
      const std::optional<double> inside = sum();
      (void)take(")");
      return inside;
    }
    const std::size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 ||
                                  text_[at_] == '_' || text_[at_] == '.'))
      ++at_;
    const std::string word(text_.substr(begin, at_ - begin));
    if (!word.empty() && std::isdigit(static_cast<unsigned char>(word.front())) != 0)
      return std::strtod(word.c_str(), nullptr);
    return value_of_(word);
  }
  /// The next character, if it is one of these; 0 otherwise. Blanks before and behind are skipped.
  char take(std::string_view of) {
    skip();
    if (at_ >= text_.size() || of.find(text_[at_]) == std::string_view::npos) return 0;
    const char found = text_[at_++];
    skip();
    return found;
  }
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  std::string_view text_;
  const std::function<std::optional<double>(std::string_view)>& value_of_;
  std::size_t at_ = 0;
};

std::size_t parts_in(std::string_view path) {
  return 1 + static_cast<std::size_t>(std::ranges::count(path, '.'));
}

/// The first part of a dotted path, which it takes off.
std::string_view take_part(std::string_view& path) {
  const std::size_t dot = std::min(path.find('.'), path.size());
  const std::string_view part = path.substr(0, dot);
  path.remove_prefix(std::min(dot + 1, path.size()));
  return part;
}

/// How many parts a pattern has, if all of them are the path's first; else 0.
std::size_t parts_matched(std::string_view pattern, std::string_view path) {
  std::size_t parts = 0;
  while (!pattern.empty()) {
    if (path.empty()) return 0;
    const std::string_view wanted = take_part(pattern), found = take_part(path);
    if (wanted != "*" && wanted != found) return 0;
    ++parts;
  }
  return parts;
}

/// What an input's path means for the number at `path`: ".seconds" is beside it, "..layers" beside
/// the member around it.
std::string path_from(std::string_view path, std::string_view input) {
  if (!input.starts_with('.')) return std::string(input);
  while (input.starts_with('.')) {
    input.remove_prefix(1);
    path = path.substr(0, path.rfind('.') == std::string_view::npos ? 0 : path.rfind('.'));
  }
  return path.empty() ? std::string(input) : std::string(path) + "." + std::string(input);
}

char letter_of(AnswerKind kind) {
  constexpr std::string_view kLetters = "srjlqv";
  return kLetters[static_cast<std::size_t>(kind)];
}

}  // namespace

std::span<const Formula> formulas() { return kFormulas; }

const Formula* formula_of(AnswerKind kind, std::string_view field) {
  const auto* const found = std::ranges::find_if(kFormulas, [&](const Formula& each) {
    return each.field == field && each.kinds.find(letter_of(kind)) != std::string_view::npos;
  });
  return found == kFormulas.end() ? nullptr : found;
}

const Formula* formula_at(std::span<const Formula> among, char kind, std::string_view path) {
  const Formula* best = nullptr;
  std::size_t most = 0;
  for (const Formula& each : among) {
    if (each.kinds.find(kind) == std::string_view::npos) continue;
    const std::size_t parts = parts_matched(each.field, path);
    const bool whole = parts == parts_in(path);
    if (parts <= most || (!whole && each.arithmetic)) continue;
    best = &each;
    most = parts;
  }
  return best;
}

const Formula* formula_at(AnswerKind kind, std::string_view path) {
  if (path.find('.') == std::string_view::npos) return formula_of(kind, path);
  return formula_at(path_formulas(), letter_of(kind), path);
}

std::vector<FormulaInput> inputs_of(const Formula& formula, std::string_view path,
                                    const std::function<bool(std::string_view)>& has) {
  std::vector<FormulaInput> out;
  std::string_view rest = formula.inputs;
  while (!rest.empty()) {
    const std::size_t blank = std::min(rest.find(' '), rest.size());
    const std::string_view word = rest.substr(0, blank);
    rest.remove_prefix(std::min(blank + 1, rest.size()));
    const std::size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    std::string_view of = equals == std::string_view::npos ? word : word.substr(equals + 1);
    for (std::size_t bar = of.find('|'); bar != std::string_view::npos; bar = of.find('|')) {
      const std::string first = path_from(path, of.substr(0, bar));
      of = has && has(first) ? of.substr(0, bar) : of.substr(bar + 1);
    }
    out.push_back(
        {.name = std::string(name.substr(std::min(name.find_first_not_of('.'), name.size()))),
         .path = path_from(path, of)});
  }
  return out;
}

std::optional<double> evaluate(
    std::string_view expression,
    const std::function<std::optional<double>(std::string_view)>& value_of) {
  return Reader(expression, value_of).sum();
}

std::vector<std::string> explained_fields(AnswerKind kind) {
  std::vector<std::string> out;
  for (const FieldInfo& field : answer_fields(kind)) {
    if (field.is_number() && field.successor.empty()) out.push_back(field.name);
  }
  return out;
}

}  // namespace lockstep
