#include "tools/views/queue/filling_table.hpp"

#include <cstddef>
#include <fmt/format.h>
#include <string>

#include "models/base/json_cursor.hpp"
#include "models/base/number_text.hpp"
#include "sim/cluster/fill_cluster.hpp"
#include "sim/scenario/preset_store.hpp"
#include "tools/console/progress.hpp"
#include "tools/console/table.hpp"

namespace lockstep {
namespace {

using Align = TextTable::Align;

std::string points_text(double share) { return fmt::format("{:.2f} %", 100 * share); }

std::string filling_head(const FillingSpec& spec, const FillingResult& result,
                         const TextStyle& style) {
  const auto count = [](std::size_t n, const char* what) {
    return counted(static_cast<double>(n), what);
  };
  std::string out = style.bold(fmt::format("{} with {}", count(result.nodes, "node"),
                                           count(result.gpus, "GPU"))) +
                    fmt::format(", a workload of {} that asks for {} of them\n",
                                count(result.pods, "pod"), percent_text(result.workload));
  if (!spec.about.empty()) out += wrap(spec.about, kTextColumns, 0) + "\n";
  const std::string text = fmt::format(
      "Allocated and fragmented GPUs as shares of all, when {} of them have been asked for: means "
      "of {}. Fragments are free and of no use to the {} that most pods make.",
      percent_text(spec.at), count(static_cast<std::size_t>(spec.seeds), "drawn order"),
      count(result.typical, "request"));
  return out + wrap(text, kTextColumns, 0) + "\n\n";
}

}  // namespace

std::string filling_table(const FillingSpec& spec, const FillingResult& result,
                          const TextStyle& style) {
  TextTable table({{"policy", Align::left},
                   {"allocated"},
                   {"least"},
                   {"most"},
                   {"fragmented"},
                   {"pods refused in the end"}});
  for (const PolicyFilling& of : result.policies) {
    table.add({std::string(kFillingPolicyNames[static_cast<std::size_t>(of.policy)]),
               points_text(of.mean.allocated), points_text(of.least), points_text(of.most),
               points_text(of.mean.fragmented), grouped(of.refused_pods)});
  }
  std::string out = filling_head(spec, result, style) + table.text(style);
  if (!spec.assumptions.empty()) out += "\n";
  return out + assumed_lines(spec.assumptions, style);
}

}  // namespace lockstep
