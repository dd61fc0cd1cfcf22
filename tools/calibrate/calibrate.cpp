#include "tools/calibrate/calibrate.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <fmt/format.h>
#include <optional>
#include <ostream>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "models/base/output_file.hpp"
#include "models/base/quantity.hpp"
#include "models/power/gpu_power.hpp"
#include "sim/scenario/preset_store.hpp"
#include "tools/calibrate/collective_plan.hpp"
#include "tools/calibrate/course.hpp"
#include "tools/calibrate/hang_guard.hpp"
#include "tools/console/interrupt.hpp"
#include "tools/console/shared_options.hpp"

namespace lockstep {
namespace {

constexpr int kDefaultMinutes = 8, kMostMinutes = 1440;
constexpr int kMostDevices = 1024;

constexpr OptionSpec kProfileOption{
    "output",
    'o',
    "FILE",
    false,
    "Write the profile to this file; it appears only when it is complete.",
    "-o h100.profile.json"};
constexpr OptionSpec kMinutesOption{
    "minutes",
    0,
    "N",
    false,
    "Measure what fits into so many minutes (default: 8), the most useful first; what is left out "
    "is said.",
    "--minutes 3"};
constexpr OptionSpec kDeviceOption{
    "device", 0, "N", false, "Number of the card, from 0 (the default).", "--device 1"};
constexpr OptionSpec kGpuOption{
    "gpu",
    0,
    "NAME",
    false,
    "The card's preset, where its own name does not tell: `lockstep list gpus`.",
    "--gpu h100_pcie_80gb"};
constexpr std::array kOptions{
    kProfileOption,
    kMinutesOption,
    OptionSpec{"only", 0, "LIST", true,
               "Measure only these: launch, copies, memory, gemm, attention.",
               "--only gemm,memory"},
    kDeviceOption,
    kGpuOption,
    kPresetsOption,
};
constexpr std::array kOptionsWithNccl{
    kProfileOption,
    kMinutesOption,
    OptionSpec{
        "only", 0, "LIST", true,
        "Measure only these: launch, copies, memory, gemm, attention; with --nccl: all_reduce, "
        "all_gather, reduce_scatter, alltoall, sendrecv, overlap, variants.",
        "--only gemm,memory"},
    kDeviceOption,
    kGpuOption,
    OptionSpec{"nccl", 0, "", false,
               "Time NCCL's collectives instead, over the GPUs of all processes that mpirun, srun "
               "or torchrun started, one each; without a launcher over all GPUs of this machine.",
               "--nccl"},
    OptionSpec{"node", 0, "NAME", false,
               "With --nccl: the preset of the machines, which says what joins them: `lockstep "
               "list nodes`.",
               "--node dgx_h100"},
    OptionSpec{"nccl-id-file", 0, "FILE", false,
               "With --nccl: how the names of the files begin by which the ranks find each other, "
               "in a folder that all of them see (default: that of the profile).",
               "--nccl-id-file /scratch/me/id"},
    kPresetsOption,
};
constexpr std::array<std::string_view, 3> kExamples{
    "lockstep-calibrate -o h100.profile.json",
    "lockstep-calibrate --only gemm --minutes 3 --device 1 -o gemm.profile.json",
    "srun -N 2 --ntasks-per-node 8 lockstep-calibrate --nccl --node dgx_h100 -o "
    "fabric.profile.json"};

constexpr CommandSpec kCalibrate{
    .name = "calibrate",
    .usage = "calibrate -o FILE [options]",
    .summary = "Time the kernels of a card.",
    .about =
        "Times matrix products, attention, memory-bound kernels, launches and copies on one CUDA\n"
        "card and writes them as a profile (scenarios/profile.schema.json), which `lockstep run\n"
        "--profile` and `lockstep validate --profile` take. Nothing else may run on the card\n"
        "meanwhile.\n\n"
        "Exit status: 0 done, 1 a call failed or never came back, or a result was wrong (what is\n"
        "good is written), 2 bad input, 3 no card that could be timed, 130 interrupted by Ctrl-C\n"
        "or SIGTERM (what was measured until then is written).",
    .positionals = 0,
    .options = kOptions,
    .examples = std::span(kExamples).first(2),
    .program = "lockstep-",
};

/// Without NCCL nothing of it is offered.
CommandSpec command_in(const CalibrateWorld& world) {
  CommandSpec out = kCalibrate;
  if (world.open_communicator) {
    out.options = kOptionsWithNccl;
    out.examples = kExamples;
  }
  return out;
}

std::vector<std::string> subjects_of(const ParsedOptions& options,
                                     std::span<const std::string_view> allowed) {
  std::vector<std::string> subjects;
  for (const std::string& list : options.all("only")) {
    for (std::size_t at = 0; at <= list.size();) {
      const std::size_t end = std::min(list.find(',', at), list.size());
      const std::string word = list.substr(at, end - at);
      if (std::ranges::find(allowed, word) == allowed.end()) {
        const std::vector<std::string> names(allowed.begin(), allowed.end());
        throw UsageError(fmt::format("--only: found {}; allowed: {}{}", in_quotes(word),
                                     listed(names), did_you_mean(word, names)));
      }
      subjects.push_back(word);
      at = end + 1;
    }
  }
  return subjects;
}

int device_of(const ParsedOptions& options) {
  const std::string text = options.get("device", "0");
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < 0 ||
      number > kMostDevices) {
    throw UsageError(
        fmt::format("--device: found {}; allowed: a whole number from 0", in_quotes(text)));
  }
  return number;
}

/// Options that would do nothing.
void refuse_idle_options(const ParsedOptions& options) {
  if (options.has("nccl")) {
    if (options.has("device")) {
      throw UsageError(
          "lockstep-calibrate: --device is not for --nccl: the launcher says which rank has which "
          "card, CUDA_VISIBLE_DEVICES which cards there are");
    }
    return;
  }
  for (const std::string_view name : {"node", "nccl-id-file"}) {
    if (options.has(name)) {
      throw UsageError(fmt::format("lockstep-calibrate: --{} is for --nccl", name));
    }
  }
}

CalibrateSettings settings_of(const ParsedOptions& options) {
  if (!options.has("output")) {
    throw UsageError("lockstep-calibrate: no --output; for example: -o h100.profile.json");
  }
  refuse_idle_options(options);
  const bool nccl = options.has("nccl");
  return {.output = options.get("output"),
          .gpu = options.get("gpu"),
          .node = options.get("node"),
          .id_file = options.get("nccl-id-file"),
          .only = subjects_of(options, nccl ? std::span<const std::string_view>(kCollectiveSubjects)
                                            : std::span<const std::string_view>(kSubjects)),
          .presets = options.all("presets"),
          .minutes = whole_number(options, "minutes", kDefaultMinutes, kMostMinutes),
          .device = device_of(options)};
}

std::vector<TransformerShape> all_models(const PresetStore& presets) {
  std::vector<TransformerShape> models;
  for (const std::string& name : presets.names("models")) models.push_back(presets.model(name));
  return models;
}

/// The limit that the driver enforces, where the card was held below its preset's.
std::optional<Watts> own_power_limit(const CardFacts& card, const GpuSpec& gpu) {
  const auto said = std::ranges::find(card.conditions, "power limit",
                                      &std::pair<std::string, std::string>::first);
  if (said == card.conditions.end() || !gpu.power) return std::nullopt;
  const auto parsed = parse_quantity(said->second, Dimension::power);
  const double* watts = std::get_if<double>(&parsed);
  if (watts == nullptr) return std::nullopt;
  const Watts limit{*watts};
  if (limit < lowest_cap(gpu) || limit >= gpu.power_limit) return std::nullopt;
  return limit;
}

Calibration calibration_of(const Session& session, const CardFacts& card, const GpuSpec& gpu,
                           const CalibrateWorld& world) {
  Calibration out{
      .gpu = gpu.name,
      .about = "Kernels of " + card.name + ", timed by lockstep-calibrate " LOCKSTEP_VERSION ".",
      .source = "lockstep-calibrate " LOCKSTEP_VERSION ", measured by whoever ran it",
      .date = world.date,
      .conditions = card.conditions,
      .power_limit = own_power_limit(card, gpu),
      .measured = session.measured(),
      .collectives = {},
      .shape = {},
      .node = {}};
  if (!card.no_attention.empty()) out.conditions.emplace_back("attention", card.no_attention);
  for (const auto& condition : session.conditions()) out.conditions.push_back(condition);
  return out;
}

/// A driver that lost its card can hang before anything is measured.
std::unique_ptr<Card> opened_card(int device, Console& console, const CalibrateWorld& world) {
  HangGuard guard([&](const char* call) {
    console.err << fmt::format("lockstep-calibrate: {} {}: its driver did not answer within {}\n",
                               call, device, duration_text(world.patience.base_units()))
                << std::flush;
    world.end_now(CalibrateExit::no_card);
  });
  const HangGuard::Watched watched(guard, "card", world.patience);
  return world.open_card(device);
}

CalibrateExit calibrate(const CalibrateSettings& settings, Console& console,
                        const CalibrateWorld& world) {
  const double start = world.seconds();
  const PresetStore presets(settings.presets);
  if (!settings.gpu.empty()) (void)presets.gpu(settings.gpu);
  const InterruptGuard guard(InterruptGuard::Second::ends_program, {SIGINT, SIGTERM});
  const std::unique_ptr<Card> card = opened_card(settings.device, console, world);
  const GpuSpec& gpu = card_preset(settings, card->facts().name, presets);
  // Nobody should wait minutes to learn that the folder is not there.
  (void)OutputFile(settings.output);

  const std::vector<PlannedTask> plan =
      plan_tasks(gpu, card->facts(), all_models(presets), settings.only);
  console.out << fmt::format("{} as {}: {} measurements in at most {} min\n", card->facts().name,
                             gpu.name, plan.size(), settings.minutes);
  const std::string& no_attention = card->facts().no_attention;
  const bool wanted =
      settings.only.empty() || std::ranges::find(settings.only, "attention") != settings.only.end();
  if (wanted && !no_attention.empty()) {
    console.out << fmt::format("without attention: {}\n", no_attention);
  }
  const auto write = [&](const Session& session) {
    write_profile(calibration_of(session, card->facts(), gpu, world), settings, start, console,
                  world);
  };
  std::optional<Session> session;
  session.emplace(
      *card, world.seconds, console,
      HangAnswer{world.patience, [&] { save_and_end([&] { write(*session); }, console, world); }});
  const SessionEnd end = session->run(plan, start + 60.0 * settings.minutes - kReserveSeconds);
  write(*session);
  return exit_of(end, session->failed());
}

}  // namespace

CalibrateExit run_calibrate(const std::vector<std::string>& args, Console& console,
                            const CalibrateWorld& world) {
  const auto fail = [&](std::string_view text, CalibrateExit status) {
    console.err << text << "\n";
    return status;
  };
  try {
    const CommandSpec command = command_in(world);
    const ParsedOptions options = parse_options(command, args);
    if (options.has("help")) {
      console.out << help_text(command);
      return CalibrateExit::ok;
    }
    const CalibrateSettings settings = settings_of(options);
    return options.has("nccl") ? calibrate_collectives(settings, console, world)
                               : calibrate(settings, console, world);
  } catch (const InputError& e) {
    return fail(e.what(), CalibrateExit::bad_input);
  } catch (const UsageError& e) {
    return fail(e.what(), CalibrateExit::bad_input);
  } catch (const CardUnavailable& e) {
    return fail(fmt::format("lockstep-calibrate: {}", e.what()), CalibrateExit::no_card);
  } catch (const std::exception& e) {
    return fail(fmt::format("lockstep-calibrate: {}", e.what()), CalibrateExit::failed);
  }
}

}  // namespace lockstep
