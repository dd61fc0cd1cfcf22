// Fuzz target: whatever bytes a launch file has, as a script, YAML, TOML or JSON, importing it
// gives a scenario that reads, or an InputError of whole lines.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <unistd.h>

#include "models/base/input_error.hpp"
#include "sim/launch/import_job.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "tests/fuzz/documents.hpp"

namespace {

const lockstep::PresetStore& presets() {
  static const lockstep::PresetStore store;
  return store;
}

void require(bool holds) {
  if (!holds) std::abort();
}

void import(const std::string& file) {
  lockstep::JobImportOptions options;
  options.model = "llama3_8b";
  try {
    const lockstep::JobImport found = lockstep::import_job({file}, options, presets());
    (void)lockstep::read_scenario("my.json", found.scenario, presets());
  } catch (const lockstep::InputError& error) {
    require(are_whole_lines(error.what()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  constexpr const char* kEndings[] = {".sh", ".yaml", ".toml", ".json"};
  const std::string file = "/tmp/launch_fuzz." + std::to_string(getpid()) + kEndings[data[0] % 4];
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(data + 1), static_cast<std::streamsize>(size - 1));
  import(file);
  (void)std::remove(file.c_str());
  return 0;
}
