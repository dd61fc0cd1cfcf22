#include <array>

#include "sim/answer/formulas.hpp"

namespace lockstep {
namespace {

// Of a stage's memory: widths that cut it, and how many layers it has.
constexpr std::string_view kOfWeights =
    "parameters=job.parameters layers=..layers tensor=job.parallelism.tensor "
    "expert=job.parallelism.expert data=job.parallelism.data";
constexpr std::string_view kOfActivations =
    "layers=..layers micro=job.batch.micro tokens=job.batch.tokens tensor=job.parallelism.tensor "
    "context=job.parallelism.context pipeline=job.parallelism.pipeline";
constexpr std::string_view kShape =
    "parameters=job.parameters micro=job.batch.micro "
    "tokens=job.batch.tokens layers=..layers";
constexpr std::string_view kQueueGroup = "jobs=..jobs ended=..ended waiting=..waiting";

// In words: all numbers of the member that have no row of their own. Rows of a member before those
// of the members around it need no order: the longest path that fits is taken.
constexpr std::array kPathFormulas{
    Formula{"memory_band", "s", false,
            "needed_memory_gib once more, with what is assumed of buffers, fragmentation and the "
            "framework at its least and at its most",
            "needed_memory_gib usable_memory_gib"},
    Formula{"interval", "sr", false,
            "quantiles of measured over predicted step times of published runs that are like it in "
            "software, card and scale; 5 % lie below low, 5 % above high",
            "rows=interval.rows sources=interval.sources"},
    Formula{"interval", "v", false,
            "the mean times and the quantiles of measured over predicted times of published "
            "services: an offset of the source and a spread about it, 5 % to either side",
            "ttft_mean_s tpot_mean_s"},
    Formula{"job", "s", false, "as the scenario, the presets it names and their defaults say", ""},
    Formula{"job.parameters", "s", false,
            "counted from the model's shape: layers, widths, heads, experts and vocabulary", ""},
    Formula{"job.active_parameters", "s", false,
            "counted as parameters are, of the experts only those that a token goes through",
            "parameters=job.parameters"},
    Formula{"job.routing", "s", false,
            "expected loads of the experts under the given skew, cut at the capacity factor",
            "tokens=job.batch.tokens micro=job.batch.micro"},
    Formula{"hardware", "s", false,
            "of the presets of the GPU and the node, with what the scenario changes", ""},
    Formula{"hardware.peak_flops", "s", false, "dense peaks of all GPUs of the job together",
            "peak=hardware.peak_flops_per_gpu gpus"},
    Formula{"power", "s", false,
            "power of a GPU in each phase of the step (idle, memory, products, links, by what the "
            "phase uses of each and the card's limit), of its node, and of what is around it",
            "step_s nodes gpus limit=power.gpu.limit_w"},
    Formula{"power.facility", "s", false,
            "power of all nodes and the fabric through power supplies, cooling and transformers",
            "node=power.node.mean_w fabric=power.fabric_w nodes"},
    Formula{
        "power", "l", false,
        "power of a GPU in each phase of the iteration (prompts and decoding, scores, training, "
        "offload, weights on their way, waits) by what the phase uses of it and the card's "
        "limit, of its node, and of what is around it",
        "step_s gpus limit=power.gpu.limit_w"},
    Formula{"power.facility", "l", false,
            "power of all nodes and the fabric through power supplies, cooling and transformers",
            "node=power.node.mean_w fabric=power.fabric_w gpus"},
    Formula{
        "power.phases", "l", false,
        "mean power of a GPU in the phase times its GPU-seconds, through the power supplies; of "
        "what surrounds the GPUs the phase has its share by GPU-seconds",
        "energy=power.energy_per_step_j gpus"},
    Formula{"power.phases.*.share", "l", true, "part / energy",
            "part=.energy_j energy=power.energy_per_step_j"},
    Formula{"power.facility.pue", "sl", false,
            "power at the site's meter over that of nodes and switches", "power.facility.mean_w"},
    Formula{"power.joules_per_token", "sl", true, "energy / tokens_per_step",
            "energy=power.energy_per_step_j tokens_per_step"},
    Formula{"power.levels", "sl", false,
            "power of the site while the job trains, waits for a restart, starts or is gone",
            "facility_mean_w"},
    Formula{"power.shares", "sl", false,
            "energy at the site's meter by what takes it, over one step", "energy_per_step_j"},
    Formula{"power.bill", "sl", false,
            "usage over the time that it is of, at the scenario's prices; capital over its life",
            "seconds=power.bill.seconds energy_j capital_usd"},
    Formula{"waterfall.*.share", "s", true, "seconds / step_s", "seconds=.seconds step_s"},
    Formula{"waterfall", "s", false,
            "what a GPU's time goes into, mean over all GPUs of the job: each stretch of each of "
            "them is given to the one cause that it would not be there without; all add up to the "
            "step",
            "step_s gpus"},
    Formula{"pools", "s", false,
            "what the step is for the GPUs of this kind of node: their stages or replicas, with "
            "their own peaks, memory and power",
            "step_s gpus=.gpus nodes=.nodes"},
    Formula{"stages", "s", false,
            "passes of the stage's layers for one micro batch: kernels at what the card and the "
            "software reach, and exchanges within the stage",
            "layers=.layers micro=job.batch.micro tokens=job.batch.tokens"},
    Formula{"stages.*.stage", "s", false, "counted along the pipeline; the first is 0", ""},
    Formula{"stages.*.layers", "s", false,
            "layers of the model that the stage has, by the scenario's layout of the pipeline",
            "pipeline=job.parallelism.pipeline virtual_stages=job.parallelism.virtual_stages"},
    Formula{"stages.*.buckets_s", "s", false,
            "GPU time of the stage by cause, mean over its GPUs; all add up to the step", "step_s"},
    Formula{"stages.*.memory", "s", false, "bytes on the stage's fullest GPU, part by part",
            kShape},
    Formula{"stages.*.memory.weights_gib", "s", false,
            "parameters of the stage's layers on a rank, times the bytes of the formats they are "
            "kept in, cut as tensor and expert parallelism and sharding say",
            kOfWeights},
    Formula{"stages.*.memory.gradients_gib", "s", false,
            "parameters of the rank times the bytes of a gradient, cut as sharding says",
            kOfWeights},
    Formula{"stages.*.memory.optimiser_gib", "s", false,
            "parameters of the rank times the bytes of master weights and moments, cut as sharding "
            "says",
            kOfWeights},
    Formula{"stages.*.memory.activations_gib", "s", false,
            "what a layer keeps for its backward pass, times its layers and the micro batches that "
            "are in flight at once; less what recomputation does without",
            kOfActivations},
    Formula{
        "stages.*.memory.logits_gib", "s", false,
        "tokens of a micro batch times the vocabulary's part of the rank, in the loss's formats",
        kShape},
    Formula{"stages.*.memory.communication_gib", "s", false,
            "buffers of the collectives' channels and of messages between stages", kShape},
    Formula{"stages.*.memory.framework_gib", "s", false,
            "context of the card, libraries and workspaces of the framework", ""},
    Formula{"critical_path.*.share", "s", true, "seconds / step_s", "seconds=.seconds step_s"},
    Formula{"critical_path", "s", false,
            "from the step's last event back along what each one waited for, summed by cause",
            "step_s"},
    Formula{"largest_loss", "s", false,
            "the largest share of the waterfall that a change can attack", "step_s"},
    Formula{"jitter", "s", false,
            "the step with every transfer's start late by a drawn time of at most most_s",
            "step_s"},
    Formula{"hashing", "srjl", false,
            "the same simulation with the paths' hashes drawn again, for each draw", "step_s"},
    Formula{"fabric", "s", false, "the step simulated once more, on the fabric that is named",
            "step_s"},
    Formula{"fabric.held_back_by", "s", false,
            "of the time in which transfers of the kind moved, the part in which this link set "
            "their rate",
            "step_s"},
    Formula{"expectation", "s", false, "as the scenario says, held against the prediction", ""},
    Formula{"expectation.checks.*.error", "s", true, "predicted / expected - 1",
            "predicted=.predicted expected=.expected"},
    Formula{"simulation", "s", false, "counted while the step was simulated", "gpus"},
    Formula{"claim", "srlqv", false, "as the scenario's claim says, held against the answer", ""},

    Formula{"wall_time", "r", false,
            "wall time of all drawn runs together, by what it was spent on", "wall_s trajectories"},
    Formula{
        "causes", "r", false,
        "failures of this cause in a run, mean over those drawn, and the wall time that they cost",
        "interruptions wall_s trajectories"},
    Formula{
        "checkpoint_tiers", "r", false,
        "bytes of the state over the rate of where it is written, every interval; drag: what of "
        "the interval the job stands still or is slower",
        "checkpoint_bytes step_s"},
    Formula{"distributions", "r", false, "of the runs that were drawn, one value each",
            "trajectories"},
    Formula{"mttf_by_rates", "r", false,
            "one over the sum of the failure rates of all components of a job of that many GPUs",
            ""},
    Formula{
        "optimum", "r", false,
        "the same failures with checkpoints at other intervals: the best that was simulated, and "
        "those of Young's and of Daly's formula",
        "goodput trajectories"},
    Formula{"facility_power", "r", false,
            "power of the site while the job trains, waits, starts or is gone", "facility_mean_w"},
    Formula{"site.restart_ramp_s", "r", true, "start / 2", "start=.start_ramp_s"},
    Formula{"purchase.lots.*.usd_per_node", "r", false,
            "the lot's price times (1 - price_fall) to the years until it is ordered", ""},
    Formula{"purchase.lots.*.paid_usd", "r", false,
            "nodes x usd_per_node; of a lease usd_per_month x months, of the others gpu_hours x "
            "usd_per_gpu_hour",
            "nodes=.nodes"},
    Formula{"purchase.usd_per_kwh", "r", true, "energy_usd / energy_kwh",
            "energy_usd=.energy_usd energy_kwh=.energy_kwh"},
    Formula{"purchase", "r", false,
            "machines as their lots arrive, are paid and are given back, month by month", "wall_s"},
    Formula{
        "iteration_phases", "r", false,
        "mean power of a GPU in the phase times its GPU-seconds, through the power supplies; of "
        "what surrounds the GPUs the phase has its share by GPU-seconds",
        "iteration=step_s"},
    Formula{"iteration", "r", false,
            "one healthy iteration, simulated as for a scenario without \"run\"", "step_s"},
    Formula{"data", "r", false,
            "bytes of the dataset over the slowest of the way's rates, hop by hop; months at the "
            "prices of the tiers",
            "data_read_bytes_per_s"},
    Formula{
        "site", "r", false,
        "the run whose goodput is the median, hour by hour of the site's weather, grid, cooling "
        "and batteries",
        "wall_s facility_mean_w"},

    Formula{
        "staggered", "j", false,
        "power of each job over its step and then waiting for the longest one, shifted to where "
        "the sum's highest is least, the job that swings most first; and idle_w",
        "idle_w"},
    Formula{"jobs.*.slowdown", "j", true, "step_s / alone_s", "step_s=.step_s alone_s=.alone_s"},
    Formula{
        "jobs", "j", false,
        "mean step of the job beside all others, and alone, of the same simulation of the fabric",
        "simulated_s"},
    Formula{"jobs.*.bytes", "j", false, "bytes of all messages that the job puts on the fabric",
            "simulated_s"},
    Formula{"jobs.*.mfu", "j", false,
            "model FLOP of a step, attention in full, over step_s and the peak of the job's GPUs",
            "step_s=.step_s"},
    Formula{"jobs.*.alone_mfu", "j", false,
            "model FLOP of a step, attention in full, over alone_s and the peak of the job's GPUs",
            "alone_s=.alone_s"},
    Formula{"jobs.*.power", "j", false,
            "power of the job's nodes in each phase of its steps, with what cools and feeds them; "
            "over its steps beside all others",
            "step_s=..step_s"},
    Formula{"jobs.*.rent_usd_per_hour", "j", false, "GPUs of the job at the price of a GPU-hour",
            ""},
    Formula{"jobs.*.hash", "j", false,
            "the same simulation with the paths' hashes drawn again, for each draw",
            "step_s=..step_s"},
    Formula{
        "staggered", "j", false,
        "power of each job over its step and then waiting for the longest one, shifted to where "
        "the sum's highest is least, the job that swings most first; and idle_w",
        "idle_w period=staggered.period_s"},
    Formula{"staggered.period_s", "j", false, "the longest step of all jobs alone", ""},
    Formula{"staggered.longer_shares", "j", false, "period_s over the job's own step, less 1",
            "period=staggered.period_s"},
    Formula{"transfers.*.slowdown", "j", true, "mean_s / alone_s",
            "mean_s=.mean_s alone_s=.alone_s"},
    Formula{"transfers.*.cause_share", "j", false,
            "bytes of the job that is named over all bytes that crossed the worst link while the "
            "transfer ran",
            "simulated_s"},
    Formula{"transfers", "j", false,
            "each run of the transfer, its links shared max-min fairly with all others meanwhile",
            "simulated_s"},
    Formula{"links", "j", false, "bytes that crossed the link, over its capacity and the time",
            "capacity=.capacity_bytes_per_s simulated_s"},
    Formula{"links.*.capacity_bytes_per_s", "j", false,
            "rate of the link at its efficiency, as the fabric's preset or file says", ""},
    Formula{"events", "j", false,
            "what the scenario says that happens to the fabric, as it met the jobs while they ran",
            "simulated_s"},

    Formula{"buckets", "l", false,
            "time of every GPU of the step by what it goes into; all add up to step_s of all GPUs",
            "step_s gpus"},
    Formula{"buckets.*.share", "l", true, "gpu_s / (step_s * gpus)", "gpu_s=.gpu_s step_s gpus"},

    Formula{"waterfall.*.share", "q", true, "gpu_hours * 3600 / (gpus * simulated_s)",
            "gpu_hours=.gpu_hours gpus simulated_s"},
    Formula{"waterfall", "q", false,
            "GPU time of the cluster by what it went into, as the queue was played event by event",
            "gpus simulated_s"},
    Formula{
        "power", "q", false,
        "power of every node by what its GPUs do, through cooling and power supplies; integrated "
        "over what was simulated",
        "simulated_s gpus utilisation"},
    Formula{"all", "q", false, "counted over all jobs", "jobs ended"},
    Formula{"all.wait_s", "q", false, "of all jobs: as wait_mean_s is made", kQueueGroup},
    Formula{"all.completion_s", "q", false, "of all jobs: as completion_mean_s is made",
            kQueueGroup},
    Formula{"all.slowdown", "q", false, "of all jobs: as slowdown_mean is made", kQueueGroup},
    Formula{"by_gpus", "q", false, "counted over the jobs of this many GPUs, as for all jobs",
            "jobs=.jobs"},
    Formula{"by_account", "q", false, "counted over the jobs of this account, as for all jobs",
            "jobs=.jobs"},
    Formula{"by_user", "q", false, "counted over the jobs of this user, as for all jobs",
            "jobs=.jobs"},
    Formula{"by_partition", "q", false, "counted over the jobs of this partition, as for all jobs",
            "jobs=.jobs"},
    Formula{"by_qos", "q", false,
            "counted over the jobs of this quality of service, as for all jobs", "jobs=.jobs"},
    Formula{"licenses", "q", false,
            "how many jobs held, integrated over what was simulated and divided by it",
            "count=.count simulated_s"},
    Formula{"health", "q", false,
            "counted while the queue was played: nodes that were drained, that broke, and that "
            "detection took out",
            "simulated_s"},
    Formula{"burst.usd", "q", true, "gpu_usd + egress_usd",
            "gpu_usd=burst.gpu_usd egress_usd=burst.egress_usd"},
    Formula{"burst.usd_per_held_gpu_hour", "q", true, "usd / held",
            "usd=burst.usd held=all.burst_gpu_hours"},
    Formula{"burst.wait_saved_s", "q", true, "without - with",
            "without=burst.wait_mean_without_s with=wait_mean_s"},
    Formula{"burst.usd_per_saved_hour", "q", true, "usd / saved",
            "usd=burst.usd saved=burst.saved_hours"},
    Formula{"burst.waterfall.*.share", "q", true, "gpu_hours / rented",
            "gpu_hours=.gpu_hours rented=burst.rented_gpu_hours"},
    Formula{
        "burst", "q", false,
        "counted while the queue was played: who waited for too long went on rented nodes, which "
        "are paid for from when they are rented until they are given back; without: the same "
        "queue, played once more with nothing to rent",
        "jobs simulated_s"},
    Formula{"campaigns", "q", false,
            "trials of the search as the queue ran them, stopped where its rungs say", "jobs"},
    Formula{"campaign_order", "q", false,
            "campaigns one after another, each as long as it takes alone, those first that take "
            "the least time for what they count (Smith 1956)",
            "campaigns"},
    Formula{
        "trainings", "q", false,
        "steps of the training on the nodes that it got, beside what shares their links, over a "
        "step alone on the cluster's first nodes",
        "jobs=.jobs"},
    Formula{"recorded", "q", false,
            "starts that the trace recorded against those of the same jobs here", "jobs"},
    Formula{"recorded.wait_error", "q", true, "simulated / recorded - 1",
            "simulated=recorded.simulated_mean_wait_s recorded=recorded.mean_wait_s"},

    Formula{"waterfall.*.share", "v", false,
            "gpu_seconds over the GPU time of all replicas that were on",
            "gpu_seconds=.gpu_seconds"},
    Formula{"waterfall", "v", false,
            "GPU time of all replicas by what their passes spent it on: products and cached tokens "
            "at what the card reaches, exchanges within a replica, the host, and none",
            "gpus span_s passes=pools.0.passes"},
    Formula{"ttft_s", "v", false,
            "of the served requests, one value each: as ttft_mean_s is made, which says the model",
            "served input_tokens"},
    Formula{"tpot_s", "v", false,
            "of the served requests, one value each: as tpot_mean_s is made, which says the model",
            "served output_tokens"},
    Formula{"itl_s", "v", false,
            "of all gaps between two tokens of an answer: the pass in between, with the prompts of "
            "others that were in it",
            "served output_tokens passes=pools.1.passes|pools.0.passes"},
    Formula{
        "e2e_s", "v", false,
        "of the served requests, last token less arrival: time to the first token, and time per "
        "token for all behind it",
        "served ttft_mean_s tpot_mean_s output_tokens"},
    Formula{"objectives", "v", false, "the objective's number of the answer, against its limit",
            "requests"},
    Formula{
        "populations", "v", false,
        "what requests of these users saw, with the network there and back; replicas as pass by "
        "pass elsewhere",
        "ttft_mean_s tpot_mean_s requests"},
    Formula{"regions", "v", false,
            "requests served there, passes of its replicas over the run, and what these draw and "
            "cost by the region's own prices",
            "requests span_s output_tokens"},
    Formula{
        "pools", "v", false,
        "counted while the pool's replicas ran the load, pass by pass; weights and cache are its "
        "layout's share of the card's memory",
        "replicas=.replicas gpus=.gpus"},
    Formula{
        "adapters", "v", false,
        "sums over replicas of what was counted pass by pass: room of on_gpu adapters, loads at "
        "the rates of host and storage, and kernels by adapters and tokens of each pass",
        "requests=adapters.requests loads=adapters.loads"},
    Formula{"cache_tiers", "v", false,
            "keys and values that went to and came from memory behind the GPU's, over their links",
            "input_tokens served"},
    Formula{
        "power", "v", false,
        "power of the replicas' GPUs by what their passes do, of their nodes, and of what cools "
        "and feeds them; integrated over the load",
        "gpus span_s"},
    Formula{"power.joules_per_output_token", "v", true, "energy / output_tokens",
            "energy=power.energy_j output_tokens"},
    Formula{"power.joules_per_token", "v", true, "energy / (input_tokens + output_tokens)",
            "energy=power.energy_j input_tokens output_tokens"},
    Formula{"owned", "v", false,
            "what machines lose in value over the load's time, and energy, people and hosting",
            "gpus span_s"},
    Formula{"owned.usd_per_million_output_tokens", "v", true, "1000000 * usd / output_tokens",
            "usd=owned.usd output_tokens"},
    Formula{"rent", "v", false, "all GPUs, for the load's time, at the price of a GPU-hour",
            "gpus span_s"},
    Formula{"rent.usd_per_million_output_tokens", "v", true, "1000000 * usd / output_tokens",
            "usd=rent.usd output_tokens"},
    Formula{"partial", "v", false, "what of owning has a price, as energy", "gpus span_s"},
    Formula{"transfer_links", "v", false,
            "keys and values that crossed the link between pools, over its capacity and the time",
            "transferred_bytes span_s"},
    Formula{"beside", "v", false,
            "the service and the trainings simulated on the same links, and each of them alone",
            "span_s"},
    Formula{"beside.jobs.*.slowdown", "v", true, "step_s / alone_s",
            "step_s=.step_s alone_s=.alone_s"},
    Formula{"beside.transfers.*.slowdown", "v", true, "mean_s / alone_s",
            "mean_s=.mean_s alone_s=.alone_s"},
};

}  // namespace

std::span<const Formula> path_formulas() { return kPathFormulas; }

}  // namespace lockstep
