#include "sim/trace/pytorch/aligned_starts.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fmt/format.h>
#include <optional>
#include <vector>

namespace lockstep {
namespace {

/// Ends that differ by less, of the longest step, are of one call.
constexpr double kSameEnd = 0.01;

std::vector<std::int64_t> ends_of_calls(const KinetoRecording& recording) {
  std::vector<std::int64_t> out;
  for (const KinetoRecording::GpuEvent& event : recording.gpu) {
    if (event.communicates()) out.push_back(event.end);
  }
  return out;
}

/// How much later the second rank begins; nothing where its calls are others.
std::optional<std::int64_t> offset_of(const std::vector<std::int64_t>& first,
                                      const std::vector<std::int64_t>& other,
                                      std::int64_t tolerance) {
  if (first.empty() || first.size() != other.size()) return std::nullopt;
  std::vector<std::int64_t> offsets;
  offsets.reserve(first.size());
  for (std::size_t k = 0; k < first.size(); ++k) offsets.push_back(first[k] - other[k]);
  const auto middle = offsets.begin() + static_cast<std::ptrdiff_t>(offsets.size() / 2);
  std::ranges::nth_element(offsets, middle);
  const std::int64_t offset = *middle;
  const bool agree = std::ranges::all_of(
      offsets, [&](std::int64_t each) { return std::abs(each - offset) <= tolerance; });
  return agree ? std::optional(offset) : std::nullopt;
}

void begin_later(KinetoRecording& recording, std::int64_t by) {
  for (KinetoRecording::GpuEvent& event : recording.gpu) {
    event.start += by;
    event.end += by;
    event.launch += by;
  }
  recording.begin += by;
  recording.end += by;
}

}  // namespace

std::string align_starts(std::span<KinetoRecording> recordings) {
  if (recordings.size() < 2) return {};
  std::int64_t longest = 0;
  for (const KinetoRecording& recording : recordings) longest = std::max(longest, recording.end);
  const auto tolerance = std::llround(kSameEnd * static_cast<double>(longest));
  const std::vector<std::int64_t> first = ends_of_calls(recordings.front());
  std::vector<std::int64_t> offsets;
  for (const KinetoRecording& recording : recordings) {
    const auto offset = offset_of(first, ends_of_calls(recording), tolerance);
    if (!offset) return {};
    offsets.push_back(*offset);
  }
  const auto [least, most] = std::ranges::minmax(offsets);
  if (least == most) return {};
  for (std::size_t r = 0; r < recordings.size(); ++r) {
    begin_later(recordings[r], offsets[r] - least);
  }
  return fmt::format(
      "ranks begin up to {:.4g} ms apart, as the ends of their calls tell, which they leave "
      "together; the recorded and the replayed step are the longest that a rank takes from its own "
      "beginning to its own end",
      static_cast<double>(most - least) * 1e-9);
}

}  // namespace lockstep
