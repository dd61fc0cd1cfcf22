#include "sim/measured/nccl_series.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <regex>
#include <utility>

#include "models/base/letter_case.hpp"
#include "sim/scenario/names.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostSeries = 100'000;
constexpr std::size_t kMostSamples = 100'000;
constexpr std::size_t kMostFlags = 100;
constexpr int kMostSeriesRanks = 10'000'000;
constexpr Interval kSampleSize{0, 1e15};
constexpr Interval kSampleTime{0, 1e12, true};

// Columns of a row, in the order of the file.
constexpr std::size_t kSizeColumn = 0, kOutOfPlaceColumn = 1, kInPlaceColumn = 4,
                      kSampleColumns = 7;

std::string text_or_empty(const JsonCursor& series, std::string_view key) {
  const std::optional<JsonCursor> member = series.find(key);
  return member && member->is_string() ? member->string() : std::string();
}

NcclSample read_sample(const JsonCursor& row) {
  const std::vector<JsonCursor> cells = row.elements(kSampleColumns);
  if (cells.size() <= kOutOfPlaceColumn) row.fail("an array of size_bytes, time_us, ...");
  NcclSample sample;
  sample.size = Bytes{cells[kSizeColumn].number(kSampleSize)};
  for (const std::size_t column : {kOutOfPlaceColumn, kInPlaceColumn}) {
    if (column < cells.size() && !cells[column].is_null()) {
      sample.repeats_us.push_back(cells[column].number(kSampleTime));
    }
  }
  if (!sample.repeats_us.empty()) sample.time_us = sample.repeats_us.front();
  return sample;
}

NcclSeries read_series(const JsonCursor& from) {
  NcclSeries series;
  series.system = from.at("system").string();
  series.gpu = from.at("gpu").string();
  series.op = from.at("op").string();
  series.nodes = from.at("nodes").integer(1, kMostSeriesRanks);
  series.ranks = from.at("ranks").integer(1, kMostSeriesRanks);
  series.gpus_per_node = from.at("gpus_per_node").integer(1, kMostSeriesRanks);
  series.network = text_or_empty(from, "inter");
  series.algorithm = text_or_empty(from, "algo");
  if (const std::optional<JsonCursor> flags = from.find("flags")) {
    for (const JsonCursor& flag : flags->elements(kMostFlags)) {
      series.flags.push_back(flag.string());
    }
  }
  for (const JsonCursor& row : from.at("rows").elements(kMostSamples)) {
    series.samples.push_back(read_sample(row));
  }
  return series;
}

/// Runs of letters and digits, in lower case.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char c : lowered(text)) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      words.back() += c;
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

}  // namespace

std::vector<NcclSeries> parse_nccl_series(const std::string& file, std::string_view text) {
  const JsonCursor root = JsonCursor::parse(file, text);
  return root.read_whole([&] {
    std::vector<NcclSeries> out;
    for (const JsonCursor& series : root.at("series").elements(kMostSeries)) {
      out.push_back(read_series(series));
    }
    return out;
  });
}

std::optional<CollectiveOp> op_of(std::string_view nccl_tests_name) {
  const auto* const found = std::ranges::find(kNcclTestsNames, nccl_tests_name);
  if (found == kNcclTestsNames.end()) return std::nullopt;
  return static_cast<CollectiveOp>(found - kNcclTestsNames.begin());
}

std::string transport_of(std::string_view network) {
  // The longer name first where one contains the other.
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kNames{{
      {"tcpxo", "tcpxo"},
      {"tcpx", "tcpx"},
      {"tcp", "ethernet"},
      {"slingshot", "slingshot"},
      {"omni-path", "omni_path"},
      {"infiniband", "infiniband"},
      {"roce", "roce"},
      {"ethernet", "ethernet"},
      {"efa", "efa_v1"},
  }};
  const std::string text = lowered(network);
  static const std::regex efa_version("efa v([1-9])");
  std::smatch match;
  if (std::regex_search(text, match, efa_version)) return "efa_v" + match[1].str();
  for (const auto& [word, preset] : kNames) {
    if (text.find(word) != std::string::npos) return std::string(preset);
  }
  return {};
}

std::optional<BytesPerSecond> nic_bandwidth_per_gpu(std::string_view network, int gpus_per_node) {
  const std::string text(network);
  static const std::regex count_and_rate(
      "([0-9]{1,4}) ?(?:x|[A-Z][A-Za-z0-9_ ]*\\()[^0-9(]*"
      "([0-9]{1,5}) Gb/s");
  static const std::regex per_gpus(" per (?:([0-9]{1,4})-)?GPU");
  std::smatch match;
  if (!std::regex_search(text, match, count_and_rate)) return std::nullopt;
  const double gbps = std::stod(match[1].str()) * std::stod(match[2].str());
  double gpus = gpus_per_node;
  if (std::regex_search(text, match, per_gpus)) {
    gpus = match[1].matched ? std::stod(match[1].str()) : 1;
  }
  if (!(gbps > 0 && gpus > 0)) return std::nullopt;
  return gigabits_per_second(gbps / gpus);
}

std::string gpu_preset_of(std::string_view gpu, const std::vector<std::string>& presets) {
  const std::vector<std::string> words = words_of(gpu);
  if (words.empty()) return {};
  std::string best;
  std::ptrdiff_t best_shared = -1;
  for (const std::string& preset : presets) {
    const std::vector<std::string> parts = words_of(preset);
    if (parts.empty() || parts.front() != words.front()) continue;
    // "SXM" is shared by sxm4 and sxm5.
    const std::ptrdiff_t shared = std::ranges::count_if(parts, [&](const std::string& part) {
      return std::ranges::any_of(words, [&](const std::string& w) { return part.starts_with(w); });
    });
    if (shared > best_shared) {
      best = preset;
      best_shared = shared;
    }
  }
  return best;
}

}  // namespace lockstep
