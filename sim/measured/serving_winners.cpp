#include "sim/measured/serving_winners.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <vector>

namespace lockstep {
namespace {

constexpr double kApart = 0.1;  // of throughput: less is a matter of taste, and of noise

/// By time per token, each with more throughput than all faster ones.
std::vector<ServedPace> front_of(std::vector<ServedPace> paces) {
  std::ranges::sort(paces, [](const ServedPace& a, const ServedPace& b) {
    return a.tpot_s != b.tpot_s ? a.tpot_s < b.tpot_s : a.per_gpu > b.per_gpu;
  });
  std::vector<ServedPace> front;
  for (const ServedPace& pace : paces) {
    if (front.empty() || pace.per_gpu > front.back().per_gpu) front.push_back(pace);
  }
  return front;
}

/// Throughput at that time per token.
std::optional<double> front_at(const std::vector<ServedPace>& front, double tpot_s) {
  if (tpot_s < front.front().tpot_s) return std::nullopt;
  for (std::size_t i = 1; i < front.size(); ++i) {
    const ServedPace &low = front[i - 1], &high = front[i];
    if (tpot_s > high.tpot_s) continue;
    return std::lerp(low.per_gpu, high.per_gpu, (tpot_s - low.tpot_s) / (high.tpot_s - low.tpot_s));
  }
  return front.back().per_gpu;
}

/// Of one configuration.
void add_winners(const std::vector<const PacedRow*>& rows, WinnerCount& out) {
  std::vector<ServedPace> measured, predicted;
  for (const PacedRow* row : rows) {
    if (row->two_pools) continue;
    measured.push_back(row->measured);
    predicted.push_back(row->predicted);
  }
  if (measured.empty()) return;
  measured = front_of(std::move(measured));
  predicted = front_of(std::move(predicted));
  bool compares = false;
  for (const PacedRow* row : rows) {
    if (!row->two_pools) continue;
    const std::optional<double> was = front_at(measured, row->measured.tpot_s);
    const std::optional<double> said = front_at(predicted, row->predicted.tpot_s);
    if (!was || !said) continue;
    const bool right = (row->measured.per_gpu > *was) == (row->predicted.per_gpu > *said);
    const bool apart = std::abs(row->measured.per_gpu / *was - 1) >= kApart;
    compares = true;
    ++out.rows;
    out.right += right ? 1 : 0;
    out.apart += apart ? 1 : 0;
    out.right_apart += right && apart ? 1 : 0;
  }
  out.configurations += compares ? 1 : 0;
}

}  // namespace

ServedPace ServedPace::of_clients(double clients, double tokens, double ttft_s, double tpot_s,
                                  int gpus) {
  return {.tpot_s = tpot_s, .per_gpu = clients * tokens / (ttft_s + tpot_s * (tokens - 1)) / gpus};
}

WinnerCount count_winners(std::span<const PacedRow> rows) {
  std::map<std::string, std::vector<const PacedRow*>> by_configuration;
  for (const PacedRow& row : rows) by_configuration[row.configuration].push_back(&row);
  WinnerCount out;
  for (const auto& [configuration, alike] : by_configuration) add_winners(alike, out);
  return out;
}

std::string winner_note(std::span<const PacedRow> rows) {
  const WinnerCount count = count_winners(rows);
  if (count.rows == 0) return {};
  const auto share = [](std::size_t part, std::size_t all) {
    return all == 0 ? 0.0 : 100 * static_cast<double>(part) / static_cast<double>(all);
  };
  return fmt::format(
      "one pool or two at equal time per token, by tokens a second and GPU: {} of {} rows of two "
      "pools ({:.0f} %) win or lose as predicted, in {} configurations that have both; of those "
      "that are 10 % apart {} of {} ({:.0f} %)",
      count.right, count.rows, share(count.right, count.rows), count.configurations,
      count.right_apart, count.apart, share(count.right_apart, count.apart));
}

}  // namespace lockstep
