// Fuzz target: whatever bytes a scenario has, reading it, and its "run" by itself, gives a scenario
// or an InputError of whole lines; and so does reading it as a profile. Bytes behind the first 0
// are --set options, so that overrides are tried too.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "models/base/input_error.hpp"
#include "sim/scenario/read_profile.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/scenario/run_spec.hpp"
#include "tests/fuzz/documents.hpp"

namespace {}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const lockstep::PresetStore presets;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string_view text = next_part(bytes);
  lockstep::ScenarioOptions options;
  while (!bytes.empty() && options.set.size() < 8) options.set.emplace_back(next_part(bytes));
  read_or_lines([&] { (void)lockstep::read_scenario("fuzz.json", text, presets, options); });
  read_or_lines([&] {
    const auto root =
        lockstep::JsonCursor::parse("fuzz.json", text, lockstep::JsonStyle::plain, options.set);
    if (const auto run = root.find("run")) (void)lockstep::read_run_spec(*run, presets);
  });
  read_or_lines([&] {
    const lockstep::Profile profile = lockstep::read_profile("fuzz.json", text, presets);
    const lockstep::GpuSpec& gpu = presets.gpu(profile.gpu);
    (void)lockstep::KernelProfile({&profile, 1}, {&gpu, 1}, profile.network);
  });
  return 0;
}
