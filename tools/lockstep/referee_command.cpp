// `lockstep referee`: the built-in cases, or one's own, at flow level and at packet level.
#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <string>
#include <tbb/parallel_for.h>
#include <thread>
#include <vector>

#include "models/base/number_text.hpp"
#include "models/base/text_file.hpp"
#include "sim/measured/reference_files.hpp"
#include "sim/referee/referee.hpp"
#include "sim/scenario/preset_store.hpp"
#include "tools/console/progress.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/console/work_budget.hpp"
#include "tools/lockstep/cli.hpp"
#include "tools/views/tables/referee_table.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMaxFiles = 100;

constexpr std::array kRefereeOptions{
    OptionSpec{"layer", 0, "credit|pfc|dcqcn", true,
               "Only this link layer: InfiniBand's credits, Ethernet with priority flow control, "
               "or with DCQCN as well. Otherwise all three.",
               "--layer credit"},
    OptionSpec{"case", 0, "NAME", true, "Only this case.", "--case \"incast of 8, ecmp\""},
    OptionSpec{"messages", 0, "", false, "One line for each message, instead of one for each case.",
               "--messages"},
    kFormatOption,
    kOutputOption,
};
constexpr std::array<std::string_view, 3> kRefereeExamples{
    "lockstep referee --layer credit",
    "lockstep referee my-cases.json --format csv -o errors.csv",
    "lockstep referee --case \"victims of an incast\" --messages",
};
constexpr CommandSpec kRefereeSpec{
    .name = "referee",
    .usage = "referee [FILE...] [options]",
    .summary = "Hold flow-level completion times against a packet-level simulation.",
    .about =
        "Runs small fabrics with messages and collectives twice: at flow level, as all other\n"
        "commands do, and packet by packet over the same links and paths. Prints when the last\n"
        "message arrives in both, and the error of the flow level over the messages. Without a\n"
        "file: the project's cases (tests/reference/packet_referee.json). sim/packet/README.md\n"
        "explains the results.",
    .positionals = kMaxFiles,
    .options = kRefereeOptions,
    .examples = kRefereeExamples,
};

std::vector<const RefereeLayer*> chosen_layers(const ParsedOptions& options) {
  std::vector<const RefereeLayer*> layers;
  std::vector<std::string> names;
  for (const RefereeLayer& layer : referee_layers()) names.emplace_back(layer.name);
  const std::vector<std::string> wanted = options.has("layer") ? options.all("layer") : names;
  for (const std::string& name : wanted) {
    const auto at = std::ranges::find(names, name);
    if (at == names.end()) {
      throw UsageError(fmt::format("--layer: found {}; allowed: {}{}", in_quotes(name),
                                   listed(names), did_you_mean(name, names)));
    }
    layers.push_back(&referee_layers()[static_cast<std::size_t>(at - names.begin())]);
  }
  return layers;
}

std::vector<RefereeCase> chosen_cases(const ParsedOptions& options) {
  std::vector<std::string> files = options.positionals;
  if (files.empty()) files.push_back(reference_file(PresetStore(), "packet_referee.json"));
  std::vector<RefereeCase> cases;
  std::vector<std::string> names;
  for (const std::string& file : files) {
    for (RefereeCase& read : read_referee_cases(file, read_text_file(file))) {
      names.push_back(read.name);
      cases.push_back(std::move(read));
    }
  }
  if (!options.has("case")) return cases;
  const std::vector<std::string> wanted = options.all("case");
  for (const std::string& name : wanted) {
    if (std::ranges::find(names, name) != names.end()) continue;
    throw UsageError(fmt::format("--case: found {}; allowed: {}{}", in_quotes(name), listed(names),
                                 did_you_mean(name, names)));
  }
  std::erase_if(cases, [&](const RefereeCase& read) {
    return std::ranges::find(wanted, read.name) == wanted.end();
  });
  return cases;
}

/// Measured on one core of 3 GHz.
WorkEstimate referee_work(const std::vector<RefereeCase>& cases, std::size_t layers) {
  constexpr double kSecondsPerHop = 7e-8;
  WorkEstimate work;
  double hops = 0, most = 0;
  for (const RefereeCase& of : cases) {
    const double own = packet_hops(of);
    hops += own;
    if (own > most) work.place = of.place;
    most = std::max(most, own);
  }
  const auto all = static_cast<double>(layers);
  const double cores = std::max(1U, std::thread::hardware_concurrency());
  work.what = fmt::format("{} cases in {} layers, together {} packets over links", cases.size(),
                          layers, plain_number(all * hops, 2));
  // The largest case keeps one core busy to the end.
  work.seconds = kSecondsPerHop * std::max(most, all * hops / cores);
  return work;
}

std::vector<RefereeRow> run_cases(const std::vector<RefereeCase>& cases,
                                  const std::vector<const RefereeLayer*>& layers,
                                  Console& console) {
  std::vector<RefereeRow> rows(layers.size() * cases.size());
  Progress progress(console.err, "cases", rows.size(), console.err_is_terminal);
  tbb::parallel_for(std::size_t{0}, rows.size(), [&](std::size_t i) {
    rows[i] = run_referee(cases[i % cases.size()], *layers[i / cases.size()]);
    progress.one_done();
  });
  return rows;
}

Exit run_referee(const ParsedOptions& options, Console& console) {
  const std::string format = options.choice("format", kFormats);
  const std::vector<const RefereeLayer*> layers = chosen_layers(options);
  const std::vector<RefereeCase> cases = chosen_cases(options);
  announce_work(referee_work(cases, layers.size()), console.err);
  const std::vector<RefereeRow> rows = run_cases(cases, layers, console);
  const TextStyle style = output_style(options, console);
  write_output(options.has("messages") ? referee_messages_text(rows, format, style)
                                       : referee_text(rows, format, style),
               options, console);
  return Exit::ok;
}

constexpr Command kRefereeCommand{&kRefereeSpec, run_referee};

}  // namespace

const Command& referee_command() { return kRefereeCommand; }

}  // namespace lockstep
