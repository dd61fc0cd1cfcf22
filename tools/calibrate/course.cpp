#include "tools/calibrate/course.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <ostream>

#include "models/base/input_error.hpp"
#include "models/base/output_file.hpp"
#include "sim/measured/kernel_catalogue.hpp"

namespace lockstep {

const GpuSpec& card_preset(const CalibrateSettings& settings, const std::string& card,
                           const PresetStore& presets) {
  if (!settings.gpu.empty()) return presets.gpu(settings.gpu);
  const std::string name = GpuNames(presets).preset_of(card);
  if (name.empty()) {
    throw UsageError(
        fmt::format("lockstep-calibrate: no preset is known for {}; name one with --gpu: {}",
                    in_quotes(card), listed(presets.names("gpus"))));
  }
  return presets.gpu(name);
}

CalibrateExit exit_of(SessionEnd end, int failed) {
  if (end == SessionEnd::interrupted) return CalibrateExit::interrupted;
  return end == SessionEnd::card_error || failed > 0 ? CalibrateExit::failed : CalibrateExit::ok;
}

void write_profile(const Calibration& calibration, const CalibrateSettings& settings, double began,
                   Console& console, const CalibrateWorld& world) {
  console.out << "\n";
  for (const auto& [name, text] : calibration.conditions) {
    console.out << fmt::format("{}: {}\n", name, text);
  }
  const auto kernels = std::ranges::count_if(
      calibration.measured, [](const MeasuredTask& m) { return is_point(m.task); });
  const std::size_t points = static_cast<std::size_t>(kernels) + calibration.collectives.size();
  if (points == 0) {
    console.out << "No profile is written: there is no point for it.\n";
    return;
  }
  OutputFile file(settings.output);
  file.write(profile_text(calibration));
  file.commit();
  console.out << fmt::format("{}: {} points after {:.1f} min\n", settings.output, points,
                             (world.seconds() - began) / 60)
              << std::flush;
}

void save_and_end(const std::function<void()>& save, Console& console,
                  const CalibrateWorld& world) {
  try {
    save();
  } catch (const std::exception& e) {
    console.err << e.what() << '\n' << std::flush;
  }
  world.end_now(CalibrateExit::failed);
}

}  // namespace lockstep
