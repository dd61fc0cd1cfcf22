// Fuzz target: through to the answer. The first byte says what a drawn scenario is about, the next
// two which one it is; what follows, parted by zeros, are --set options. The answer comes, or an
// InputError of whole lines; it reads back as the same text, and its own "scenario" as a scenario.
// An input may take kMostSeconds.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "models/base/write_json.hpp"
#include "sim/answer/answer.hpp"
#include "sim/laws/random_scenario.hpp"
#include "sim/scenario/read_residuals.hpp"
#include "sim/scenario/scenario_file.hpp"
#include "tests/fuzz/documents.hpp"

namespace {

using namespace lockstep;

void require(bool holds) {
  if (!holds) std::abort();
}

/// Large counts are legal, and only slow.
bool is_large(std::string_view text) {
  int digits = 0;
  for (const char c : text) {
    digits = c >= '0' && c <= '9' ? digits + 1 : 0;
    if (digits > 3 || c == 'e' || c == 'E') return true;
  }
  return false;
}

/// Under sanitizers, with room.
constexpr std::chrono::seconds kMostSeconds{20};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const PresetStore presets;
  static const StepIntervals intervals(presets);
  if (size < 3) return 0;
  const AnswerKind kind = kAnswerKinds[data[0] % std::size(kAnswerKinds)];
  const auto number = static_cast<std::uint32_t>(data[1] | data[2] << 8);
  std::string_view bytes(reinterpret_cast<const char*>(data + 3), size - 3);
  const auto begin = std::chrono::steady_clock::now();
  Question question{.trajectories = std::nullopt};
  question.allow_oom = true;
  question.full_fabric = false;
  question.go_on = [&] { return std::chrono::steady_clock::now() - begin < kMostSeconds / 2; };
  while (!bytes.empty() && question.set.size() < 8) {
    const std::string_view set = next_part(bytes);
    // The value alone: a path may be long.
    if (is_large(set.substr(set.find('=') + 1))) return 0;
    question.set.emplace_back(set);
  }
  const std::string text = random_scenario({.seed = 26, .number = number, .kind = kind}, presets);
  read_or_lines([&] {
    const std::optional<ScenarioAnswer> answer =
        answer_text("fuzz.json", text, presets, intervals, question);
    if (!answer) return;
    const std::string said = write_json(answer->json());
    require(write_json(nlohmann::ordered_json::parse(said)) == said);
    if (answer->json().contains("scenario")) {
      (void)read_scenario_file(
          parse_scenario("fuzz.json", write_json(answer->json().at("scenario"))), presets);
    }
  });
  require(std::chrono::steady_clock::now() - begin < kMostSeconds);
  return 0;
}
