#include "tools/views/measured/import_table.hpp"

#include <fmt/format.h>
#include <ranges>

#include "models/base/number_text.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/console/table.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostKernelLines = 40;  // of the table of kernels left out
constexpr std::size_t kLongestKernelName = 60;

}  // namespace

std::string kernels_table(const std::vector<LeftOutKernel>& kernels, TextStyle style) {
  style.colour = false;
  style.columns = 0;
  TextTable table({{"left out", TextTable::Align::left},
                   {"kind", TextTable::Align::left},
                   {"calls", TextTable::Align::right},
                   {"total", TextTable::Align::right},
                   {"median", TextTable::Align::right},
                   {"why", TextTable::Align::left}});
  for (const LeftOutKernel& kernel : kernels | std::views::take(kMostKernelLines)) {
    std::string name = kernel.name.substr(0, kLongestKernelName);
    if (name.size() < kernel.name.size()) name += "...";
    table.add({name, std::string(kernel.kind), grouped(static_cast<double>(kernel.calls)),
               duration_text(kernel.total_us * 1e-6), duration_text(kernel.median_us * 1e-6),
               kernel.why});
  }
  std::string text = table.text(style);
  if (kernels.size() > kMostKernelLines) {
    text += fmt::format("  and {} more\n", kernels.size() - kMostKernelLines);
  }
  return text;
}

}  // namespace lockstep
