#include <array>
#include <cstddef>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "sim/scenario/preset_store.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/lockstep/cli.hpp"
#include "tools/views/tables/list_tables.hpp"
#include "tools/views/tables/listing.hpp"

namespace lockstep {
namespace {

constexpr std::array kListOptions{kFormatOption, kPresetsOption, kOutputOption};

constexpr std::size_t kMostBeginnings = 16;

constexpr std::array<std::string_view, 4> kListExamples{
    "lockstep list gpus", "lockstep list scenarios", "lockstep list models --format csv",
    "lockstep list keys parallelism."};

/// "list gpus|nodes|... [BEGINNING...] [options]": every row of list_kinds().
std::string list_usage() {
  std::vector<std::string_view> names;
  for (const ListKind& kind : list_kinds()) names.push_back(kind.plural);
  return fmt::format("list {} [BEGINNING...] [options]", fmt::join(names, "|"));
}

const CommandSpec& list_spec() {
  static const std::string usage = list_usage();
  static const CommandSpec spec{
      .name = "list",
      .usage = usage,
      .summary = "List what scenarios can name: GPUs, nodes, models, software, ...",
      .about =
          "Lists the presets of a kind, the scenarios that ship (`lockstep run NAME` takes them by "
          "name),\n"
          "or what is built in: collectives, algorithms, schedules, "
          "kinds\n"
          "of fabrics and their routings, the members of answers with units and meaning, and the "
          "keys\n"
          "of scenarios with units, bounds and defaults, as files and --set have them. With\n"
          "BEGINNING, those whose name begins so: \"cluster.node.gpu.\".",
      .positionals = 1 + kMostBeginnings,
      .options = kListOptions,
      .examples = kListExamples,
  };
  return spec;
}

constexpr std::array<std::string_view, 2> kShowExamples{"lockstep show gpu h100_sxm5_80gb",
                                                        "lockstep show stack nemo --format json"};
constexpr CommandSpec kShowSpec{
    .name = "show",
    .usage = "show gpu|node|model|stack|nvlink|fabric|transport|collective|... NAME [options]",
    .summary = "Show one of them: every value, and where the value is from.",
    .about = "Prints every value of a preset with its source.",
    .positionals = 2,
    .options = kListOptions,
    .examples = kShowExamples,
};

Exit run_list(const ParsedOptions& options, Console& console) {
  if (options.positionals.empty()) {
    throw UsageError(fmt::format("lockstep list: no kind; usage: lockstep {}", list_spec().usage));
  }
  const ListKind& kind = list_kind(options.positionals.front());
  const std::string format = options.choice("format", kFormats);
  const PresetStore presets(options.all("presets"));
  Listing listing = kind.list(presets);
  if (options.positionals.size() > 1) {
    listing = beginning_with(kind, std::move(listing), std::span(options.positionals).subspan(1));
  }
  write_output(listing_text(listing, format, output_style(options, console)), options, console);
  return Exit::ok;
}

Exit run_show(const ParsedOptions& options, Console& console) {
  if (options.positionals.size() < 2) {
    throw UsageError(fmt::format("lockstep show: {} is missing; usage: lockstep {}",
                                 options.positionals.empty() ? "a kind and a name" : "a name",
                                 kShowSpec.usage));
  }
  const ListKind& kind = list_kind(options.positionals[0]);
  const std::string& name = options.positionals[1];
  const std::string format = options.choice("format", kFormats);
  const PresetStore presets(options.all("presets"));
  const std::vector<PresetRow> rows =
      kind.preset ? presets.show(kind.plural, name) : built_in_rows(kind, presets, name);
  write_output(rows_text(rows, format), options, console);
  return Exit::ok;
}

constexpr Command kShowCommand{&kShowSpec, run_show};

}  // namespace

const Command& list_command() {
  static const Command command{&list_spec(), run_list};
  return command;
}
const Command& show_command() { return kShowCommand; }

}  // namespace lockstep
