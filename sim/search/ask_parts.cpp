#include "sim/search/ask_parts.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "sim/search/ask.hpp"

namespace lockstep {
namespace {

constexpr std::int64_t kAskedTokensPerStep = 4 << 20;            // of a step
constexpr std::int64_t kAskedTokensPerRefiningStep = 512 << 10;  // where only adapters are trained

/// Which option gave the value at a pointer of the scenario.
struct OptionPlace {
  std::string_view pointer, option;
};
constexpr std::array kPlaces{OptionPlace{"/model", "--model"},
                             OptionPlace{"/cluster", "--cluster"},
                             OptionPlace{"/cluster/preset", "--cluster"},
                             OptionPlace{"/cluster/node", "--node"},
                             OptionPlace{"/cluster/nodes", "--nodes"},
                             OptionPlace{"/cluster/fabric", "--fabric"},
                             OptionPlace{"/batch/sequences", "--sequences"},
                             OptionPlace{"/batch/tokens", "--tokens"}};

}  // namespace

void fail_option(std::string_view option, const std::string& found, std::string allowed) {
  throw InputError({.file = std::string(option),
                    .pointer = {},
                    .found = in_quotes(found),
                    .allowed = std::move(allowed),
                    .nearest = {}});
}

InputError told_of_option(const InputError& error) {
  return retold(error, [](InputProblem& problem) {
    if (problem.file != kAskedFile || problem.found.find("(--set ") != std::string::npos) return;
    const auto place = std::ranges::find(kPlaces, problem.pointer, &OptionPlace::pointer);
    if (place == kPlaces.end()) return;
    problem.file = place->option;
    problem.pointer.clear();
  });
}

int whole_option(std::string_view option, const std::string& text, int most) {
  int number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (error != std::errc{} || end != last || number < 1 || number > most) {
    fail_option(option, text, fmt::format("a whole number from 1 to {}", most));
  }
  return number;
}

void check_whole_nodes(const std::string& text, int gpus, int gpus_of_node) {
  if (gpus % gpus_of_node == 0) return;
  const int below = gpus / gpus_of_node * gpus_of_node;
  const std::string sizes = below == 0 ? fmt::format("{}", gpus_of_node)
                                       : fmt::format("{} or {}", below, below + gpus_of_node);
  fail_option("--gpus", text, fmt::format("whole nodes of {} GPUs: {}", gpus_of_node, sizes));
}

std::vector<std::string> words_between_commas(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

int asked_sequences(std::int64_t gpus, std::int64_t nodes, std::int64_t tokens, bool refines) {
  const std::int64_t in_step = refines ? kAskedTokensPerRefiningStep : kAskedTokensPerStep;
  const std::int64_t wanted = std::max(in_step / tokens, nodes);
  const std::int64_t of = gpus <= wanted ? gpus : nodes;
  return static_cast<int>((wanted + of - 1) / of * of);
}

nlohmann::ordered_json asked_checkpoint() {
  return {{"to", "storage"}, {"interval", "30 min"}, {"storage", "minio_nvme"}};
}

}  // namespace lockstep
