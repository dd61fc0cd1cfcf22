#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ostream>
#include <ranges>
#include <span>

#include "models/base/input_error.hpp"
#include "sim/measured/import_kernels.hpp"
#include "sim/measured/import_kineto.hpp"
#include "sim/measured/import_nccl.hpp"
#include "sim/measured/import_nsys.hpp"
#include "sim/measured/kineto_points.hpp"
#include "sim/measured/trace_files.hpp"
#include "sim/scenario/names.hpp"
#include "sim/scenario/preset_store.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/console/table.hpp"
#include "tools/lockstep/cli.hpp"
#include "tools/lockstep/job/job_import.hpp"
#include "tools/lockstep/recording/recording_import.hpp"
#include "tools/views/measured/import_table.hpp"

namespace lockstep {
namespace {

constexpr int kMostImportedRanks = 30'000;  // of nodes, and of GPUs in one
constexpr std::size_t kMostFiles = 1000;

constexpr std::array kImportOptions{
    OptionSpec{"gpu", 0, "NAME", false,
               "The card that was measured; `lockstep list gpus`. Without it, that of --node.",
               "--gpu h100_sxm5_80gb"},
    OptionSpec{"gemm", 0, "FILE", true,
               "kernels: rows of matrix products (tests/reference/README.md).",
               "--gemm tests/reference/gemm.json", PathUse::reads},
    OptionSpec{"attention", 0, "FILE", true, "kernels: rows of attention kernels.",
               "--attention tests/reference/attention.json", PathUse::reads},
    OptionSpec{"memory", 0, "FILE", true, "kernels: rows of memory-bound kernels.",
               "--memory tests/reference/memory_kernels.json", PathUse::reads},
    OptionSpec{"nccl", 0, "FILE", true,
               "kernels: series of nccl-tests, of which those inside one node are taken.",
               "--nccl tests/reference/nccl.json", PathUse::reads},
    OptionSpec{
        "node", 0, "NAME", false,
        "nccl-tests, kineto: the nodes, whose network and NVLink domain the profile is then of. "
        "job: the nodes that it runs on. recording: those that it was made on, where their hosts "
        "are slower than others. `lockstep list nodes`.",
        "--node dgx_h100"},
    OptionSpec{"nodes", 0, "N", false,
               "nccl-tests: how many nodes (NVLink domains), instead of the hosts of the log. "
               "job: how many nodes it runs on, instead of what its files say.",
               "--nodes 2"},
    OptionSpec{"gpus-per-node", 0, "N", false,
               "nccl-tests: GPUs of each node that took part, instead of the ranks of the log. "
               "kineto: ranks of each node (NVLink domain), instead of those of --node.",
               "--gpus-per-node 8"},
    OptionSpec{"op", 0, "NAME", false,
               "nccl-tests: the operation, where neither log nor file name says it.",
               "--op all_reduce"},
    OptionSpec{"precision", 0, "bf16|fp16|fp8|tf32", false,
               "nsys: number format of the products whose kernels' names do not say it.",
               "--precision bf16"},
    OptionSpec{"model", 0, "NAME|FILE", false,
               "job: the model, where no file says it: a preset (`lockstep list models`) or a "
               "config.json of Hugging Face.",
               "--model llama3_8b"},
    OptionSpec{"tokens", 0, "N", false, "job: tokens of a sequence, instead of what its files say.",
               "--tokens 4096"},
    OptionSpec{"set", 0, "NAME=VALUE", true,
               "job: the value of a variable of a script, of a key of a file, or of a path of the "
               "scenario.",
               "--set NNODES=16"},
    OptionSpec{"like", 0, "NAME", false,
               "recording: the stack that what the recording does not tell is taken from; "
               "`lockstep list stacks`. Without it, the neutral one.",
               "--like megatron_core"},
    OptionSpec{
        "job", 0, "SCENARIO", false,
        "recording: the job that was recorded: the level of the stack's kernels becomes that "
        "at which its simulated step takes as long as the recorded one.",
        "--job my-job.json"},
    OptionSpec{"step", 0, "N", false,
               "recording: the ProfilerStep that is read; else the median step.", "--step 16"},
    OptionSpec{"format", 0, "table|json", false,
               "job, recording: how to print what became of each key, or what was read: for people "
               "(the default), or JSON.",
               "--format json"},
    kPresetsOption,
    kOutputOption,
};

constexpr std::array<std::string_view, 10> kImportExamples{
    "lockstep import kernels --gpu h100_sxm5_80gb --gemm tests/reference/gemm.json -o "
    "h100.profile.json",
    "lockstep import nccl-tests all_reduce.log all_gather.log --node dgx_h100 -o "
    "fabric.profile.json",
    "lockstep import nccl-tests tests/reference/nccl.json --gpu a100_sxm4_80gb",
    "lockstep import kineto rank0.pt.trace.json.gz --node dgx_h100 -o step.profile.json",
    "lockstep import nsys nvtx_kern_sum.csv --gpu h100_sxm5_80gb -o step.profile.json",
    "lockstep import recording rank0.pt.trace.json.gz --like torchtitan -o my-stack.json",
    "lockstep import recording traces/ --like torchtitan --job my-job.json -o my-stack.json",
    "lockstep import recording report.sqlite --like megatron_core -o my-stack.json",
    "lockstep import job train.sh --node dgx_h100 --nodes 16 -o my.json",
    "lockstep import job train.sh ds_config.json --model llama3_8b --set MICRO=2 -o my.json",
};

constexpr CommandSpec kImportSpec{
    .name = "import",
    .usage = "import kernels|nccl-tests|kineto|nsys|recording|job [FILE...] [options]",
    .summary = "Make a profile, stack or scenario out of measurements, a recording, launch files.",
    .about =
        "Writes the profile (scenarios/profile.schema.json) that `lockstep run --profile` and\n"
        "`lockstep validate --profile` take.\n"
        "  kernels     rows of kernels that somebody published. What a benchmark timed besides "
        "its\n"
        "              kernel is taken out; rows of other cards are passed over.\n"
        "  nccl-tests  what nccl-tests or rccl-tests printed, or wrote as JSON, of any version; "
        "or\n"
        "              series of it (tests/reference/README.md).\n"
        "  kineto      traces of the PyTorch profiler, plain or .gz, recorded with shapes: "
        "products,\n"
        "              attention and collectives.\n"
        "  nsys        what `nsys stats --report nvtx_kern_sum --format csv` (or json) writes of "
        "a\n"
        "              run under PyTorch's emit_nvtx(record_shapes=True), or an SQLite export:\n"
        "              products and attention.\n"
        "  recording   a recorded training step becomes a stack, which --stack and scenarios "
        "take:\n"
        "              traces of the PyTorch profiler or SQLite exports of Nsight Systems, of one\n"
        "              rank or several, or their folder. Read off\n"
        "              the names of kernels and operators, launches and collectives: attention, "
        "what\n"
        "              is fused or compiled, merged products, the optimiser, format of reduced\n"
        "              gradients, overlap, host time of a launch. What they do not tell is named, "
        "and\n"
        "              is as in --like; each value of the stack says where it is from. With --job\n"
        "              the stack's kernels get the level at which that job's step takes as long "
        "as\n"
        "              was recorded.\n"
        "  job         the files that a training is launched with become a scenario: arguments "
        "and\n"
        "              shell scripts of Megatron-LM, YAML of NeMo and Megatron-Bridge, TOML of\n"
        "              TorchTitan, JSON of DeepSpeed with the script beside it, YAML of "
        "Accelerate,\n"
        "              arguments of the Hugging Face Trainer, YAML of MaxText, GPT-NeoX, "
        "Nanotron,\n"
        "              torchtune, LLM Foundry, Levanter and Primus, and what Colossal-AI, "
        "OpenRLHF\n"
        "              and verl launch to train with. Nothing is run. Each key is named: used, "
        "not\n"
        "              modelled although it matters, unknown, or harmless; so is what had to be\n"
        "              assumed, with the option that says it.\n"
        "What is left out is said on standard error.",
    .positionals = 1 + kMostFiles,
    .options = kImportOptions,
    .examples = kImportExamples,
};

ImportMachine machine_from(const ParsedOptions& options, const PresetStore& presets) {
  ImportMachine machine;
  if (options.has("node")) {
    machine.node = &presets.node(preset_option(options, "node", "nodes", presets));
    machine.gpu = machine.node->gpu.name;
  }
  if (!options.has("gpu")) {
    if (machine.node != nullptr) return machine;
    throw UsageError(
        fmt::format("lockstep import: no --gpu; usage: lockstep {}", kImportSpec.usage));
  }
  const std::string gpu = preset_option(options, "gpu", "gpus", presets);
  if (machine.node != nullptr && gpu != machine.gpu) {
    throw UsageError(fmt::format("--gpu: found {}; allowed: the card of --node {}, {}",
                                 in_quotes(gpu), machine.node->name, machine.gpu));
  }
  machine.gpu = gpu;
  return machine;
}

Imported from_kernels(const ParsedOptions& options, const std::vector<std::string>& /*files*/,
                      const PresetStore& presets) {
  const KernelFiles files{.gemm = options.all("gemm"),
                          .attention = options.all("attention"),
                          .memory = options.all("memory"),
                          .nccl = options.all("nccl")};
  return {import_kernels(files, presets.gpu(machine_from(options, presets).gpu), presets), {}};
}

Imported from_nccl(const ParsedOptions& options, const std::vector<std::string>& files,
                   const PresetStore& presets) {
  NcclLogOptions log;
  if (options.has("op")) log.op = options.choice("op", kNcclTestsNames);
  log.nodes = whole_number(options, "nodes", 0, kMostImportedRanks);
  log.gpus_per_node = whole_number(options, "gpus-per-node", 0, kMostImportedRanks);
  return import_nccl(files, machine_from(options, presets), log, presets);
}

Imported from_kineto(const ParsedOptions& options, const std::vector<std::string>& files,
                     const PresetStore& presets) {
  const ImportMachine machine = machine_from(options, presets);
  const int of_node = machine.node == nullptr ? 0 : machine.node->nvlink_domain;
  const int per_node = whole_number(options, "gpus-per-node", of_node, kMostImportedRanks);
  return import_kineto(files, machine, per_node, presets);
}

/// Number formats of --precision, and what PyTorch calls them.
constexpr std::array<std::string_view, 4> kNsysPrecisions{"bf16", "fp16", "fp8", "tf32"};
constexpr std::array<std::string_view, 4> kTorchTypes{"c10::BFloat16", "c10::Half",
                                                      "c10::Float8_e4m3fn", kTf32Type};

Imported from_nsys(const ParsedOptions& options, const std::vector<std::string>& files,
                   const PresetStore& presets) {
  std::string type;
  if (options.has("precision")) {
    const auto* const found =
        std::ranges::find(kNsysPrecisions, options.choice("precision", kNsysPrecisions));
    type = kTorchTypes.at(static_cast<std::size_t>(found - kNsysPrecisions.begin()));
  }
  return import_nsys(files, type, machine_from(options, presets), presets);
}

/// A kind of measurements: what `lockstep import NAME` reads.
struct ImportKind {
  std::string_view name;
  bool of_files;  ///< named without an option
  std::span<const std::string_view> options;
  Imported (*import)(const ParsedOptions&, const std::vector<std::string>& files,
                     const PresetStore&);
};
constexpr std::array<std::string_view, 4> kKernelOptions{"gemm", "attention", "memory", "nccl"};
constexpr std::array<std::string_view, 6> kJobOptions{"node",   "nodes", "model",
                                                      "tokens", "set",   "format"};
constexpr std::array<std::string_view, 5> kRecordingOptions{"like", "job", "step", "node",
                                                            "format"};
constexpr std::array<std::string_view, 4> kNcclOptions{"node", "nodes", "gpus-per-node", "op"};
constexpr std::array<std::string_view, 2> kKinetoOptions{"node", "gpus-per-node"};
constexpr std::array<std::string_view, 1> kNsysOptions{"precision"};
/// What reads launch files: no profile comes of them.
constexpr std::string_view kJobKind = "job";
/// What reads recorded steps: a stack comes of them.
constexpr std::string_view kRecordingKind = "recording";
constexpr std::array kImportKinds{ImportKind{"kernels", false, kKernelOptions, from_kernels},
                                  ImportKind{"nccl-tests", true, kNcclOptions, from_nccl},
                                  ImportKind{"kineto", true, kKinetoOptions, from_kineto},
                                  ImportKind{"nsys", true, kNsysOptions, from_nsys},
                                  ImportKind{kRecordingKind, true, kRecordingOptions, nullptr},
                                  ImportKind{kJobKind, true, kJobOptions, nullptr}};

const ImportKind& kind_of(const ParsedOptions& options) {
  const std::string what = options.positionals.empty() ? "" : options.positionals.front();
  const auto* const kind = std::ranges::find(kImportKinds, what, &ImportKind::name);
  if (kind != kImportKinds.end()) return *kind;
  std::vector<std::string> names;
  names.reserve(kImportKinds.size());
  for (const ImportKind& row : kImportKinds) names.emplace_back(row.name);
  throw UsageError(fmt::format("lockstep import: found {}; allowed: {}{}", in_quotes(what),
                               fmt::join(names, ", "), did_you_mean(what, names)));
}

/// Options that only another kind has.
void check_options_of(const ImportKind& kind, const ParsedOptions& options) {
  for (const ImportKind& other : kImportKinds) {
    for (const std::string_view option : other.options) {
      if (!options.has(option) || std::ranges::count(kind.options, option) > 0) continue;
      throw UsageError(
          fmt::format("lockstep import: --{} is for lockstep import {}", option, other.name));
    }
  }
}

Exit run_import(const ParsedOptions& options, Console& console) {
  const ImportKind& kind = kind_of(options);
  check_options_of(kind, options);
  const std::vector<std::string> files(options.positionals.begin() + 1, options.positionals.end());
  if (files.empty() == kind.of_files) {
    throw UsageError(kind.of_files
                         ? fmt::format("lockstep import {}: no file; usage: lockstep {}", kind.name,
                                       kImportSpec.usage)
                         : fmt::format("lockstep import {}: unexpected argument {}; its files are "
                                       "given by options",
                                       kind.name, in_quotes(files.front())));
  }
  const PresetStore presets(options.all("presets"));
  if (kind.name == kJobKind) return import_job_files(options, files, presets, console);
  if (kind.name == kRecordingKind) {
    return import_recorded_stack(options, trace_files(files), presets, console);
  }
  const Imported imported = kind.import(options, files, presets);
  for (const std::string& line : imported.left_out) console.err << terminal_text(line) << "\n";
  if (!imported.kernels.empty()) {
    console.err << terminal_text(kernels_table(imported.kernels, console.style));
  }
  if (imported.profile.empty()) {
    throw InputError({.file = fmt::format("{}", fmt::join(files, ", ")),
                      .pointer = {},
                      .found = "no kernel with shapes that a profile holds",
                      .allowed = "such kernels, recorded with record_shapes=True",
                      .nearest = {}});
  }
  write_output(Answer::file(imported.profile), options, console);
  return Exit::ok;
}

constexpr Command kImportCommand{&kImportSpec, run_import};

}  // namespace

const Command& import_command() { return kImportCommand; }

}  // namespace lockstep
