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
#include "tests/fuzz/whole_lines.hpp"

namespace {

/// Takes what is before the next 0, and removes it with the 0.
std::string_view next_part(std::string_view& bytes) {
  const std::size_t end = bytes.find('\0');
  const std::string_view part = bytes.substr(0, end);
  bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
  return part;
}

template <class Read>
void read_or_lines(const Read& read) {
  try {
    read();
  } catch (const lockstep::InputError& error) {
    if (!are_whole_lines(error.what())) std::abort();
  }
}

}  // namespace

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
