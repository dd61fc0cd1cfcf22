#include <array>
#include <fmt/format.h>
#include <ostream>

#include "models/input/input_error.hpp"
#include "sim/scenario/preset_store.hpp"
#include "tools/lockstep/cli.hpp"
#include "tools/lockstep/import_kernels.hpp"
#include "tools/lockstep/shared_options.hpp"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 1> kImported{"kernels"};

constexpr std::array kOptions{
    OptionSpec{"gpu", 0, "NAME", false, "The card whose rows are taken; `lockstep list gpus`.",
               "--gpu h100_sxm5_80gb"},
    OptionSpec{"gemm", 0, "FILE", true, "Rows of matrix products (tests/reference/README.md).",
               "--gemm tests/reference/gemm.json"},
    OptionSpec{"attention", 0, "FILE", true, "Rows of attention kernels.",
               "--attention tests/reference/attention.json"},
    OptionSpec{"memory", 0, "FILE", true, "Rows of memory-bound kernels.",
               "--memory tests/reference/memory_kernels.json"},
    kPresetsOption,
    kOutputOption,
};

constexpr std::array<std::string_view, 1> kExamples{
    "lockstep import kernels --gpu h100_sxm5_80gb --gemm tests/reference/gemm.json -o "
    "h100.profile.json",
};

constexpr CommandSpec kSpec{
    .name = "import",
    .usage = "import kernels --gpu NAME [options]",
    .summary = "Make a profile of a card from measured kernels.",
    .about =
        "Writes the profile (scenarios/profile.schema.json) that `lockstep run --profile` and\n"
        "`lockstep validate --profile` take, from rows of kernels that somebody measured. What a\n"
        "benchmark timed besides its kernel is taken out; rows of other cards are passed over.",
    .positionals = 1,
    .options = kOptions,
    .examples = kExamples,
};

Exit run(const ParsedOptions& options, Console& console) {
  const std::string what = options.positionals.empty() ? "" : options.positionals.front();
  if (what != kImported[0]) {
    throw UsageError(fmt::format("lockstep import: found {}; allowed: kernels", in_quotes(what)));
  }
  if (!options.has("gpu")) {
    throw UsageError(fmt::format("lockstep import: no --gpu; usage: lockstep {}", kSpec.usage));
  }
  const PresetStore presets(options.all("presets"));
  const std::string gpu = options.get("gpu");
  if (!presets.has("gpus", gpu)) {
    const std::vector<std::string> names = presets.names("gpus");
    throw UsageError(fmt::format("--gpu: found {}; allowed: {}{}", in_quotes(gpu), listed(names),
                                 did_you_mean(gpu, names)));
  }
  const KernelFiles files{.gemm = options.all("gemm"),
                          .attention = options.all("attention"),
                          .memory = options.all("memory")};
  write_output(import_kernels(files, presets.gpu(gpu)), options, console);
  return Exit::ok;
}

constexpr Command kCommand{&kSpec, run};

}  // namespace

const Command& import_command() { return kCommand; }

}  // namespace lockstep
