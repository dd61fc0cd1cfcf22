#include "sim/scenario/openb_trace.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "models/base/csv_reader.hpp"
#include "models/base/input_error.hpp"
#include "sim/scenario/trace_row.hpp"

namespace lockstep {
namespace {

constexpr double kMostMilliCpus = 1e9, kMostMemoryMib = 1e9;
constexpr double kMostWrittenMilli = 1e6;

/// A column by the name that it has here, and by that of the published files.
struct OpenbColumn {
  std::string_view name, published;
  bool optional = false;
};

/// Where the columns stand; -1 of one that is optional and missing.
template <std::size_t N>
std::array<int, N> openb_columns(const std::string& file, std::span<const std::string> heading,
                                 const std::array<OpenbColumn, N>& wanted) {
  std::array<int, N> out{};
  for (std::size_t c = 0; c < N; ++c) {
    const auto at = std::ranges::find_if(heading, [&](const std::string& name) {
      return name == wanted[c].name || name == wanted[c].published;
    });
    out[c] = at == heading.end() ? -1 : static_cast<int>(at - heading.begin());
    if (out[c] >= 0 || wanted[c].optional) continue;
    const std::string name(wanted[c].name);
    const std::vector<std::string> names(heading.begin(), heading.end());
    throw InputError({.file = file,
                      .pointer = {},
                      .found = fmt::format("no column {}", in_quotes(name)),
                      .allowed = fmt::format("{} or {} among the columns, which are {}", name,
                                             wanted[c].published, listed(names)),
                      .nearest = nearest_name(name, names)});
  }
  return out;
}

/// Calls `use` with each row, whose cells are those of `wanted`.
template <std::size_t N, class Use>
void each_openb_row(const std::string& file, std::string_view text,
                    const std::array<OpenbColumn, N>& wanted, const Use& use) {
  std::vector<std::string> heading;
  std::array<int, N> columns{};
  read_csv(
      file, text,
      [&](std::span<const std::string> cells) {
        heading.assign(cells.begin(), cells.end());
        columns = openb_columns(file, heading, wanted);
      },
      [&](std::size_t row, std::span<const std::string> cells) {
        use(TraceRow(file, row, heading, cells), columns);
      });
}

/// "V100M16|V100M32": names, each of which will do.
std::vector<std::string> models_in(std::string_view cell) {
  std::vector<std::string> out;
  while (!cell.empty()) {
    const std::size_t end = std::min(cell.find('|'), cell.size());
    if (end > 0) out.emplace_back(cell.substr(0, end));
    cell.remove_prefix(std::min(end + 1, cell.size()));
  }
  return out;
}

template <class Shape>
void unite(std::vector<Shape>& shapes) {
  std::map<Shape, int> counts;
  for (Shape shape : shapes) {
    const int count = std::exchange(shape.count, 1);
    counts[shape] += count;
  }
  shapes.clear();
  for (const auto& [shape, count] : counts) {
    shapes.push_back(shape);
    shapes.back().count = count;
  }
}

}  // namespace

void read_openb_nodes(const std::string& file, std::string_view text, std::vector<NodeShape>& out) {
  constexpr std::array kWanted{OpenbColumn{"cpu_milli", "cpu_milli"},
                               OpenbColumn{"memory_mib", "memory_mib"}, OpenbColumn{"gpus", "gpu"},
                               OpenbColumn{"gpu_model", "model"}};
  each_openb_row(file, text, kWanted, [&](const TraceRow& row, const auto& columns) {
    const auto [cpu, memory, gpus, model] = columns;
    out.push_back({.cpu_milli = static_cast<std::int64_t>(row.number(cpu, 0, kMostMilliCpus)),
                   .memory_mib = static_cast<std::int64_t>(row.number(memory, 0, kMostMemoryMib)),
                   .gpus = row.integer(gpus, 0, kMostNodeGpus),
                   .gpu_model = row.text(model)});
  });
}

void read_openb_pods(const std::string& file, std::string_view text, std::vector<PodShape>& out) {
  constexpr std::array kWanted{
      OpenbColumn{"cpu_milli", "cpu_milli"}, OpenbColumn{"memory_mib", "memory_mib"},
      OpenbColumn{"gpus", "num_gpu"}, OpenbColumn{"gpu_milli", "gpu_milli"},
      OpenbColumn{"gpu_models", "gpu_spec", true}};
  each_openb_row(file, text, kWanted, [&](const TraceRow& row, const auto& columns) {
    const auto [cpu, memory, gpus, milli, models] = columns;
    PodShape pod{.cpu_milli = static_cast<std::int64_t>(row.number(cpu, 0, kMostMilliCpus)),
                 .memory_mib = static_cast<std::int64_t>(row.number(memory, 0, kMostMemoryMib)),
                 .gpus = row.integer(gpus, 0, kMostNodeGpus),
                 .gpu_models = {}};
    if (pod.gpus > 0) {
      // As FGD's importer has it: no more than a whole GPU.
      const double written = row.number(milli, 1, kMostWrittenMilli);
      pod.gpu_milli = static_cast<int>(std::min<double>(written, kGpuMilli));
      if (pod.gpus > 1 && pod.gpu_milli < kGpuMilli) {
        row.fail(milli, "1000: only of a single GPU a share can be asked for");
      }
      if (models >= 0) pod.gpu_models = models_in(row.text(models));
    }
    out.push_back(std::move(pod));
  });
}

void unite_shapes(std::vector<NodeShape>& shapes) { unite(shapes); }
void unite_shapes(std::vector<PodShape>& shapes) { unite(shapes); }

}  // namespace lockstep
