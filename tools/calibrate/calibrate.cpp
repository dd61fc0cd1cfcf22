#include "tools/calibrate/calibrate.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ostream>

#include "models/input/input_error.hpp"
#include "sim/scenario/preset_store.hpp"
#include "tools/calibrate/session.hpp"
#include "tools/lockstep/interrupt.hpp"
#include "tools/lockstep/kernel_catalogue.hpp"
#include "tools/lockstep/output_file.hpp"
#include "tools/lockstep/shared_options.hpp"

namespace lockstep {
namespace {

constexpr int kDefaultMinutes = 8, kMostMinutes = 1440;
constexpr int kMostDevices = 1024;
/// assumed: writing the file, and what an estimate was short of.
constexpr double kReserveSeconds = 5;

constexpr std::array kOptions{
    OptionSpec{"output", 'o', "FILE", false,
               "Write the profile to this file; it appears only when it is complete.",
               "-o h100.profile.json"},
    OptionSpec{"minutes", 0, "N", false,
               "Measure what fits into so many minutes (default: 8), the most useful first; what "
               "is left out is said.",
               "--minutes 3"},
    OptionSpec{"only", 0, "LIST", true, "Measure only these: launch, copies, memory, gemm.",
               "--only gemm,memory"},
    OptionSpec{"device", 0, "N", false, "Number of the card, from 0 (the default).", "--device 1"},
    OptionSpec{"gpu", 0, "NAME", false,
               "The card's preset, where its own name does not tell: `lockstep list gpus`.",
               "--gpu h100_pcie_80gb"},
    kPresetsOption,
};
constexpr std::array<std::string_view, 2> kExamples{
    "lockstep-calibrate -o h100.profile.json",
    "lockstep-calibrate --only gemm --minutes 3 --device 1 -o gemm.profile.json"};
constexpr CommandSpec kCalibrate{
    .name = "calibrate",
    .usage = "calibrate -o FILE [options]",
    .summary = "Time the kernels of a card.",
    .about =
        "Times matrix products, memory-bound kernels, launches and copies on one CUDA card and\n"
        "writes them as a profile (scenarios/profile.schema.json), which `lockstep run --profile`\n"
        "and `lockstep validate --profile` take. Nothing else may run on the card meanwhile.\n\n"
        "Exit status: 0 done, 1 a call failed or a result was wrong (what is good is written),\n"
        "2 bad input, 3 no card that could be timed, 130 interrupted by Ctrl-C (what was measured\n"
        "until then is written).",
    .positionals = 0,
    .options = kOptions,
    .examples = kExamples,
    .program = "lockstep-",
};

struct Settings {
  std::string output, gpu;
  std::vector<std::string> only, presets;
  int minutes = kDefaultMinutes;
  int device = 0;
};

std::vector<std::string> subjects_of(const ParsedOptions& options) {
  std::vector<std::string> subjects;
  for (const std::string& list : options.all("only")) {
    for (std::size_t at = 0; at <= list.size();) {
      const std::size_t end = std::min(list.find(',', at), list.size());
      const std::string word = list.substr(at, end - at);
      if (std::ranges::find(kSubjects, word) == kSubjects.end()) {
        const std::vector<std::string> names(kSubjects.begin(), kSubjects.end());
        throw UsageError(fmt::format("--only: found {}; allowed: {}{}", in_quotes(word),
                                     fmt::join(names, ", "), did_you_mean(word, names)));
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

Settings settings_of(const ParsedOptions& options) {
  if (!options.has("output")) {
    throw UsageError("lockstep-calibrate: no --output; for example: -o h100.profile.json");
  }
  return {.output = options.get("output"),
          .gpu = options.get("gpu"),
          .only = subjects_of(options),
          .presets = options.all("presets"),
          .minutes = whole_number(options, "minutes", kDefaultMinutes, kMostMinutes),
          .device = device_of(options)};
}

/// The preset that --gpu names, or that the card's own name tells.
const GpuSpec& preset_of(const Settings& settings, const CardFacts& card,
                         const PresetStore& presets) {
  if (!settings.gpu.empty()) return presets.gpu(settings.gpu);
  const std::string name = gpu_preset_named(card.name);
  if (name.empty()) {
    throw UsageError(
        fmt::format("lockstep-calibrate: no preset is known for {}; name one with --gpu: {}",
                    in_quotes(card.name), fmt::join(presets.names("gpus"), ", ")));
  }
  return presets.gpu(name);
}

std::vector<TransformerShape> all_models(const PresetStore& presets) {
  std::vector<TransformerShape> models;
  for (const std::string& name : presets.names("models")) models.push_back(presets.model(name));
  return models;
}

CalibrateExit exit_of(SessionEnd end, int failed) {
  if (end == SessionEnd::interrupted) return CalibrateExit::interrupted;
  return end == SessionEnd::card_error || failed > 0 ? CalibrateExit::failed : CalibrateExit::ok;
}

Calibration calibration_of(const Session& session, const CardFacts& card, const GpuSpec& gpu,
                           const CalibrateWorld& world) {
  Calibration out{
      .gpu = gpu.name,
      .about = "Kernels of " + card.name + ", timed by lockstep-calibrate " LOCKSTEP_VERSION ".",
      .source = "lockstep-calibrate " LOCKSTEP_VERSION ", measured by whoever ran it",
      .date = world.date,
      .conditions = card.conditions,
      .measured = session.measured()};
  for (const auto& condition : session.conditions()) out.conditions.push_back(condition);
  return out;
}

CalibrateExit calibrate(const Settings& settings, Console& console, const CalibrateWorld& world) {
  const double start = world.seconds();
  const PresetStore presets(settings.presets);
  if (!settings.gpu.empty()) (void)presets.gpu(settings.gpu);
  const InterruptGuard guard;
  const std::unique_ptr<Card> card = world.open_card(settings.device);
  const GpuSpec& gpu = preset_of(settings, card->facts(), presets);
  // Opened first: nobody should wait minutes to learn that the folder is not there.
  OutputFile file(settings.output);

  const std::vector<PlannedTask> plan =
      plan_tasks(gpu, card->facts(), all_models(presets), settings.only);
  console.out << fmt::format("{} as {}: {} measurements in at most {} min\n", card->facts().name,
                             gpu.name, plan.size(), settings.minutes);
  Session session(*card, world.seconds, console);
  const SessionEnd end = session.run(plan, start + 60.0 * settings.minutes - kReserveSeconds);

  const Calibration calibration = calibration_of(session, card->facts(), gpu, world);
  console.out << "\n";
  for (const auto& [name, text] : calibration.conditions) {
    console.out << fmt::format("{}: {}\n", name, text);
  }
  const auto points = std::ranges::count_if(calibration.measured,
                                            [](const MeasuredTask& m) { return is_point(m.task); });
  if (points == 0) {
    console.out << "No profile is written: there is no point for it.\n";
    return exit_of(end, session.failed());
  }
  file.write(profile_text(calibration));
  file.commit();
  console.out << fmt::format("{}: {} points after {:.1f} min\n", settings.output, points,
                             (world.seconds() - start) / 60);
  return exit_of(end, session.failed());
}

}  // namespace

CalibrateExit run_calibrate(const std::vector<std::string>& args, Console& console,
                            const CalibrateWorld& world) {
  const auto fail = [&](std::string_view text, CalibrateExit status) {
    console.err << text << "\n";
    return status;
  };
  try {
    const ParsedOptions options = parse_options(kCalibrate, args);
    if (options.has("help")) {
      console.out << help_text(kCalibrate);
      return CalibrateExit::ok;
    }
    return calibrate(settings_of(options), console, world);
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
