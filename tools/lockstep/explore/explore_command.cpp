#include <array>
#include <charconv>
#include <csignal>
#include <fmt/format.h>
#include <optional>
#include <ostream>
#include <string>

#include "models/base/input_error.hpp"
#include "models/base/output_file.hpp"
#include "sim/search/ask.hpp"
#include "tools/console/ask_options.hpp"
#include "tools/console/interrupt.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/explore/explore_page.hpp"
#include "tools/explore/server.hpp"
#include "tools/lockstep/cli.hpp"
#include "tools/views/report/assets.hpp"

namespace lockstep {
namespace {

constexpr std::array kExploreOptions{
    OptionSpec{"port", 0, "N", false,
               "Answer at this port of 127.0.0.1 instead of any that is free.", "--port 8080"},
    OptionSpec{"output", 'o', "FILE", false,
               "Write the page as one file that needs no server, with Lockstep itself in it, which "
               "tools/package/wasm/build has made before the program was built.",
               "-o explore.html", PathUse::writes},
    OptionSpec{"set", 0, "PATH=VALUE", true,
               "Change a value of the scenario before it is read, as lockstep run does.",
               "--set cluster.nodes=64"},
    kAskModel,
    kAskNode,
    kAskCluster,
    kAskNodes,
    kAskGpus,
    kAskFabric,
    kAskSequences,
    kAskTokens,
    kStackOption,
    kPresetsOption,
};

constexpr std::array<std::string_view, 5> kExploreExamples{
    "lockstep explore", "lockstep explore llama3-405b-16k", "lockstep explore my.json --port 8080",
    "lockstep explore my.json -o explore.html",
    "lockstep explore --model llama3_8b --node dgx_h100 --nodes 4"};

constexpr CommandSpec kExploreSpec{
    .name = "explore",
    .usage = "explore [FILE|NAME] [options]",
    .summary = "Serve a page on this machine where sliders move a step and its answer follows.",
    .about =
        "Prints the address of a page: controls for model, servers, network, layout, software and\n"
        "prices, and what follows from them: step, memory, congestion, power, money. A state is "
        "an\n"
        "address and a scenario to save; two are compared side by side. What has to divide\n"
        "follows what is moved, and the page says what did. Without a scenario it\n"
        "begins with Llama 3 70B on 64 DGX H100, a price of 2 USD per GPU-hour assumed.\n"
        "It answers at 127.0.0.1 alone, only to who has the address with its random part, and "
        "opens\n"
        "no file that a request names. Ctrl-C or SIGTERM ends it. With -o the page is a file that\n"
        "whoever has a browser can open: it simulates there, in one thread.",
    .positionals = 1,
    .options = kExploreOptions,
    .examples = kExploreExamples,
};

int port_of(const ParsedOptions& options) {
  constexpr int kLast = 65535;
  const std::string text = options.get("port", "0");
  int port = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, port);
  const int least = options.has("port") ? 1 : 0;
  if (error != std::errc{} || end != last || port < least || port > kLast) {
    throw UsageError(fmt::format("--port: found {}; allowed: a whole number from 1 to {}",
                                 in_quotes(text), kLast));
  }
  return port;
}

/// The scenario to begin with, and where it is from.
CommandInput explored_input(const ParsedOptions& options, const PresetStore& presets,
                            std::vector<std::string>& sets, Console& console) {
  std::optional<Ask> ask = ask_of(options);
  if (!options.positionals.empty()) {
    return read_scenario_input(options.positionals.front(), presets);
  }
  if (!ask) {
    ask = Ask{.model = "llama3_70b", .node = "dgx_h100", .nodes = "64"};
    sets.insert(sets.begin(), {"training.tokens=15 T tokens", "price.usd_per_gpu_hour=2"});
  }
  std::string text = asked_text(*ask, sets, options, presets, console);
  sets.clear();  // the text has them
  return {.file = std::string(kAskedFile), .text = std::move(text)};
}

Exit run_explore(const ParsedOptions& options, Console& console) {
  const int port = port_of(options);
  (void)chart_library();
  const bool alone = options.has("output");
  if (alone && options.has("port")) throw UsageError("--port is for a page that is served");
  if (alone) (void)browser_module();
  const PresetStore presets(options.all("presets"));
  std::vector<std::string> sets = changes_of(options);
  const CommandInput input = explored_input(options, presets, sets, console);
  const Explorer explorer(input.file, input.text, sets, presets);
  if (alone) {
    OutputFile file(options.get("output"));
    file.write(explore_page_alone(explorer));
    file.commit();
    return Exit::ok;
  }
  ExploreServer server(port);
  const std::string token = random_token();
  const Door door(explorer, explore_page(explorer), token, server.port());
  const InterruptGuard guard(InterruptGuard::Second::ends_program, {SIGINT, SIGTERM});
  const Answer address =
      Answer::terminal(fmt::format("http://127.0.0.1:{}/{}/\n", server.port(), token));
  console.out << address.str() << std::flush;
  console.err << "Ctrl-C ends it.\n" << std::flush;
  server.run(door, [] { return InterruptGuard::interrupted(); });
  return Exit::ok;
}

constexpr Command kExploreCommand{&kExploreSpec, run_explore};

}  // namespace

const Command& explore_command() { return kExploreCommand; }

}  // namespace lockstep
