#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <optional>
#include <string_view>
#include <tuple>

#include "sim/answer/advice.hpp"

namespace lockstep {
namespace {

/// What a maker sold to data centres at one time; of one maker, generations can be counted.
struct CardGeneration {
  std::string_view architecture;
  int number;
};
constexpr std::array kCardGenerations{
    CardGeneration{"volta", 0},  CardGeneration{"ampere", 1},    CardGeneration{"ada", 2},
    CardGeneration{"hopper", 2}, CardGeneration{"blackwell", 3}, CardGeneration{"blackwell_rtx", 3},
    CardGeneration{"cdna2", 0},  CardGeneration{"cdna3", 1},     CardGeneration{"cdna4", 2}};
constexpr int kGenerationsAhead = 2;

/// The share of its own that a card must reach in everything: cards of one size differ by what they
/// set aside (81,920 MiB of an A100, 81,559 of an H100).
constexpr double kAsMuch = 0.99;
/// And in one thing at least, to be clearly better.
constexpr double kClearlyMore = 1.05;

std::optional<int> generation_of(const GpuSpec& gpu) {
  const auto at =
      std::ranges::find(kCardGenerations, gpu.architecture, &CardGeneration::architecture);
  return at == kCardGenerations.end() ? std::nullopt : std::optional(at->number);
}

bool of_generations_ahead(const GpuSpec& other, const GpuSpec& gpu) {
  const std::optional<int> now = generation_of(gpu), then = generation_of(other);
  return !now || !then || (*then >= *now && *then <= *now + kGenerationsAhead);
}

/// Of one maker, and joined within a node in the same way.
bool of_one_form(const GpuSpec& a, const GpuSpec& b) {
  const auto amd = [](const GpuSpec& of) { return of.architecture.starts_with("cdna"); };
  const auto linked = [](const GpuSpec& of) { return of.nvlink_bandwidth > BytesPerSecond{}; };
  return amd(a) == amd(b) && linked(a) == linked(b);
}

bool better(const GpuSpec& other, const GpuSpec& gpu) {
  const auto ratios = [&] {
    const auto of = [](auto then, auto now) {
      return now.base_units() > 0 ? then.base_units() / now.base_units() : 1;
    };
    return std::array{
        of(other.peak_fp16, gpu.peak_fp16), of(other.hbm_bandwidth, gpu.hbm_bandwidth),
        of(other.hbm_capacity, gpu.hbm_capacity), of(other.nvlink_bandwidth, gpu.nvlink_bandwidth)};
  }();
  return std::ranges::min(ratios) >= kAsMuch && std::ranges::max(ratios) >= kClearlyMore;
}

}  // namespace

std::vector<std::string> newer_cards(const GpuSpec& gpu, const PresetStore& presets) {
  std::vector<std::string> out;
  for (const std::string& name : presets.names("gpus")) {
    const GpuSpec& other = presets.gpu(name);
    if (name != gpu.name && of_one_form(other, gpu) && of_generations_ahead(other, gpu) &&
        better(other, gpu)) {
      out.push_back(name);
    }
  }
  std::ranges::stable_sort(out, {}, [&](const std::string& name) {
    const GpuSpec& card = presets.gpu(name);
    return std::tuple(card.peak_fp16, card.hbm_bandwidth, card.hbm_capacity);
  });
  return out;
}

void add_newer_cards(const GpuSpec& gpu, const PresetStore& presets,
                     std::vector<StandardChange>& out) {
  for (const std::string& card : newer_cards(gpu, presets)) {
    out.push_back({.words = fmt::format("{} -> {}, nodes as they are", gpu.name, card),
                   .sets = {"cluster.node.gpu=" + card},
                   .other_gpu = true});
  }
}

}  // namespace lockstep
