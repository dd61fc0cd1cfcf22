#include <array>
#include <string>
#include <vector>

#include "sim/measured/fit_kernels.hpp"
#include "sim/measured/reference_files.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/lockstep/cli.hpp"

namespace lockstep {
namespace {

constexpr std::array kFitKernelsOptions{
    OptionSpec{"gemm", 0, "FILE", false,
               "Matrix products, instead of the project's tests/reference/gemm.json.",
               "--gemm my-products.json", PathUse::reads},
    OptionSpec{"attention", 0, "FILE", false,
               "Attention kernels, instead of the project's tests/reference/attention.json.",
               "--attention my-attention.json", PathUse::reads},
    OptionSpec{
        "memory", 0, "FILE", false,
        "Memory-bound kernels, instead of the project's tests/reference/memory_kernels.json.",
        "--memory my-kernels.json", PathUse::reads},
    kPresetsOption,
    kOutputOption,
};
constexpr std::array<std::string_view, 2> kFitKernelsExamples{
    "lockstep fit-kernels",
    "lockstep fit-kernels --gemm my-products.json -o constants.txt",
};
constexpr CommandSpec kFitKernelsSpec{
    .name = "fit-kernels",
    .usage = "fit-kernels [options]",
    .summary = "Re-make the kernel constants of GPU presets from measured kernels.",
    .about =
        "Fits the constants of each kernel model to the measured kernels of each GPU, and prints "
        "the\n"
        "errors with the constants that the preset has, with the fitted ones, and for kernels held "
        "out\n"
        "of the fit; then the constants, as JSON to copy into the preset.",
    .positionals = 0,
    .options = kFitKernelsOptions,
    .examples = kFitKernelsExamples,
};

/// The options that name a file, the project's own one, and the fit of its rows.
struct Part {
  std::string_view option;
  std::string_view reference;
  std::vector<KernelFit> (*fit)(const std::string& file, const PresetStore& presets);
};
constexpr std::array kFittedParts{
    Part{"gemm", "gemm.json", fit_gemm},
    Part{"attention", "attention.json", fit_attention},
    Part{"memory", "memory_kernels.json", fit_memory_kernels},
};

Exit run_fit_kernels(const ParsedOptions& options, Console& console) {
  const PresetStore presets(options.all("presets"));
  std::vector<KernelFit> fits;
  for (const Part& part : kFittedParts) {
    const std::string file = options.has(part.option) ? options.get(part.option)
                                                      : reference_file(presets, part.reference);
    for (KernelFit& fit : part.fit(file, presets)) fits.push_back(std::move(fit));
  }
  write_output(Answer::terminal(kernel_fits_text(fits)), options, console);
  return Exit::ok;
}

constexpr Command kFitKernelsCommand{&kFitKernelsSpec, run_fit_kernels};

}  // namespace

const Command& fit_kernels_command() { return kFitKernelsCommand; }

}  // namespace lockstep
