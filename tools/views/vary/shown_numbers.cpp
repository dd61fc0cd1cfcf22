#include "tools/views/vary/shown_numbers.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "models/base/number_text.hpp"
#include "models/base/quantity.hpp"
#include "sim/answer/assertion.hpp"
#include "tools/views/report/page_numbers.hpp"

namespace lockstep {
namespace {

std::string money_text(double usd) { return compact(usd) + " USD"; }
std::string draw_text(double watts) { return compact(watts) + "W"; }
std::string megawatt_hours_text(double joules) { return significant(joules / 3.6e9) + " MWh"; }
std::string gib_memory_text(double gib) { return fmt::format("{:.1f} GiB", gib); }
std::string page_memory(double gib) { return page_with(gib, "GiB"); }
std::string ratio_text(double ratio) { return fmt::format("{:.3f}", ratio); }
std::string bandwidth_text(double rate) { return fmt::format("{:.2f} GB/s", rate / 1e9); }
std::string page_bandwidth(double rate) { return page_with(rate / 1e9, "GB/s"); }
std::string payload_text(double bytes) { return format_quantity(bytes, Dimension::data); }
std::string page_share(double share) { return page_percent(share, 1); }
std::string fine_share(double share) { return fmt::format("{:.2f} %", 100 * share); }
std::string page_fine_share(double share) { return page_percent(share, 2); }
std::string three_digits(double value) { return significant(value); }
std::string whole_text(double count) { return grouped(count); }
std::string dear_text(double usd) { return significant(usd) + " USD"; }
std::string page_dear(double usd) { return page_with(usd, "USD"); }

constexpr NumberScale kInSeconds{duration_text, page_duration, "s"};
constexpr NumberScale kInMilliseconds{duration_text, page_duration, "ms", 1e-3};
constexpr NumberScale kInHours{duration_text, page_duration, "h", 3600};
constexpr NumberScale kInDays{duration_text, page_setting, "days", 86'400};
constexpr NumberScale kAsShare{percent_text, page_share, "%", 0.01};
constexpr NumberScale kAsFineShare{fine_share, page_fine_share, "%", 0.01};
constexpr NumberScale kAsRatio{ratio_text, page_times, "×"};
constexpr NumberScale kAsCount{compact, page_count, ""};
constexpr NumberScale kInBillions{compact, page_count, "B", 1e9};
constexpr NumberScale kAsWhole{whole_text, whole_text, ""};
constexpr NumberScale kInGib{gib_memory_text, page_memory, "GiB"};
constexpr NumberScale kInUsd{money_text, page_usd, "M USD", 1e6};
constexpr NumberScale kInFewUsd{dear_text, page_dear, "USD"};
constexpr NumberScale kInWatts{draw_text, page_watts, "MW", 1e6};
constexpr NumberScale kInJoules{megawatt_hours_text, page_energy, "MWh", 3.6e9};
constexpr NumberScale kInBytes{payload_text, page_bytes, "GB", 1e9};
constexpr NumberScale kInRate{bandwidth_text, page_bandwidth, "GB/s", 1e9};

constexpr std::array kShownNumbers{
    ShownNumber{.field = "tokens_per_s_per_gpu",
                .column = "tokens/s/GPU",
                .title = "Tokens/s per GPU",
                .scale = kAsCount,
                .better = Better::more,
                .best = "the most tokens/s per GPU",
                .leads = true,
                .when = ShownWhen::unlike_steps},
    ShownNumber{.field = "goodput",
                .column = "goodput",
                .title = "Goodput",
                .scale = kAsFineShare,
                .better = Better::more,
                .best = "the highest goodput",
                .leads = true,
                .interval = {.half_width = "goodput_half_width_95", .words = "95 % interval"}},
    ShownNumber{.field = "step_s",
                .column = "step",
                .title = "Step time",
                .scale = kInSeconds,
                .best = "the shortest step time",
                .leads = true,
                .interval = {.low = "step_s_low", .high = "step_s_high"},
                .when = ShownWhen::not_in_weeks},
    ShownNumber{.field = "recorded_s",
                .column = "recorded",
                .title = "Step as recorded",
                .scale = kInSeconds,
                .better = Better::neither},
    ShownNumber{.field = "mean_compute_s",
                .column = "compute",
                .title = "Compute of the mean rank",
                .scale = kInSeconds,
                .best = "the least compute"},
    ShownNumber{.field = "mean_exposed_communication_s",
                .column = "exposed comm.",
                .title = "Exposed communication of the mean rank",
                .scale = kInSeconds,
                .best = "the least exposed communication"},
    ShownNumber{.field = "mean_waiting_s",
                .column = "waiting",
                .title = "Waiting of the mean rank for others",
                .scale = kInSeconds,
                .best = "the least waiting"},
    ShownNumber{.field = "slowdown_max",
                .column = "worst slowdown",
                .title = "Worst slowdown",
                .scale = kAsRatio,
                .best = "the smallest worst slowdown",
                .leads = true},
    ShownNumber{.field = "completion_mean_s",
                .column = "mean completion",
                .title = "Mean completion time",
                .scale = kInHours,
                .best = "the shortest mean completion time",
                .leads = true},
    ShownNumber{.field = "wait_mean_s",
                .column = "mean wait",
                .title = "Mean wait",
                .scale = kInHours,
                .best = "the shortest mean wait"},
    ShownNumber{.field = "wait_p99_s",
                .column = "99 % wait",
                .title = "99 % wait at most",
                .scale = kInHours,
                .best = "the shortest wait of 99 %"},
    ShownNumber{.field = "never_started",
                .column = "never started",
                .title = "Never started",
                .scale = kAsWhole,
                .best = "the fewest jobs that never start",
                .when = ShownWhen::above_zero},
    ShownNumber{.field = "tpot_mean_s",
                .column = "per token",
                .title = "Time per token",
                .scale = kInMilliseconds,
                .best = "the shortest time per token",
                .leads = true,
                .interval = {.low = "interval.tpot_low_s", .high = "interval.tpot_high_s"}},
    ShownNumber{.field = "ttft_mean_s",
                .column = "first token",
                .title = "Time to the first token",
                .scale = kInMilliseconds,
                .best = "the shortest time to the first token",
                .interval = {.low = "interval.ttft_low_s", .high = "interval.ttft_high_s"}},
    ShownNumber{.field = "e2e_s.mean",
                .column = "request",
                .title = "Time of the mean request",
                .scale = kInSeconds,
                .best = "the shortest time of the mean request"},
    ShownNumber{.field = "output_tokens_per_s_per_gpu",
                .column = "tokens/s/GPU",
                .title = "Output tokens/s per GPU",
                .scale = kAsCount,
                .better = Better::more,
                .best = "the most output tokens a second and GPU"},
    ShownNumber{.field = "attained_share",
                .column = "attained",
                .title = "Requests within the objectives",
                .scale = kAsShare,
                .better = Better::more,
                .best = "the most requests within the objectives"},
    ShownNumber{.field = "utilisation",
                .column = "utilisation",
                .title = "Utilisation",
                .scale = kAsShare,
                .better = Better::more,
                .best = "the highest utilisation"},
    ShownNumber{.field = "best.0.goodput_requests_per_s",
                .column = "requests/s",
                .title = "Requests/s within the objectives",
                .scale = {three_digits, three_digits, ""},
                .better = Better::more,
                .best = "the most requests a second within the objectives",
                .leads = true},
    ShownNumber{.field = "best.0.output_tokens_per_s",
                .column = "tokens/s",
                .title = "Output tokens/s",
                .scale = kAsCount,
                .better = Better::more,
                .best = "the most output tokens a second",
                .leads = true},
    ShownNumber{.field = "best.0.ttft_p99_s",
                .column = "99 % first token",
                .title = "Time to the first token of 99 %",
                .scale = kInMilliseconds,
                .best = "the shortest time to the first token of 99 %"},
    ShownNumber{.field = "best.0.tpot_p99_s",
                .column = "99 % per token",
                .title = "Time per token of 99 %",
                .scale = kInMilliseconds,
                .best = "the shortest time per token of 99 %"},
    ShownNumber{.field = "choice_time_s",
                .column = "time",
                .title = "Time of the choice",
                .scale = kInDays,
                .best = "the shortest time",
                .leads = true,
                .interval = {.low = "choice_time_s_p05", .high = "choice_time_s_p95"}},
    ShownNumber{.field = "choice_usd",
                .column = "money",
                .title = "Money of the choice",
                .scale = kInUsd,
                .best = "the least money",
                .interval = {.low = "choice_usd_p05", .high = "choice_usd_p95"}},
    ShownNumber{.field = "choice_chance",
                .column = "chance",
                .title = "Chance that it keeps the limits",
                .scale = kAsShare,
                .better = Better::more,
                .best = "the best chance"},
    ShownNumber{.field = "choice_gpus",
                .column = "GPUs",
                .title = "GPUs of the choice",
                .scale = kAsWhole,
                .best = "the fewest GPUs",
                .leads = true},
    ShownNumber{.field = "choice_spare_gpus",
                .column = "spares",
                .title = "GPUs for spares",
                .scale = kAsWhole,
                .best = "the fewest GPUs for spares"},
    ShownNumber{.field = "choice_ttft_p99_s",
                .column = "99 % first token",
                .title = "Time to the first token of 99 %",
                .scale = kInMilliseconds,
                .best = "the shortest time to the first token of 99 %"},
    ShownNumber{.field = "choice_tpot_p99_s",
                .column = "99 % per token",
                .title = "Time per token of 99 %",
                .scale = kInMilliseconds,
                .best = "the shortest time per token of 99 %"},
    ShownNumber{.field = "choice_usd_per_million_output_tokens",
                .column = "of 1 M tokens",
                .title = "Money of a million output tokens",
                .scale = kInFewUsd,
                .best = "the least money of a million output tokens"},
    ShownNumber{.field = "mfu",
                .column = "MFU",
                .title = "MFU",
                .scale = kAsShare,
                .better = Better::more,
                .best = "the highest MFU",
                .when = ShownWhen::not_in_weeks},
    ShownNumber{.field = "training_mfu",
                .column = "MFU",
                .title = "MFU of training",
                .scale = kAsShare,
                .better = Better::more,
                .best = "the highest MFU of training"},
    ShownNumber{.field = "generation_s",
                .column = "generation",
                .title = "Generation",
                .scale = kInSeconds,
                .best = "the shortest generation"},
    ShownNumber{.field = "training_s",
                .column = "training",
                .title = "Training",
                .scale = kInSeconds,
                .best = "the shortest training"},
    ShownNumber{.field = "tokens_per_s_per_gpu",
                .column = "tokens/s/GPU",
                .title = "Tokens/s per GPU",
                .scale = kAsCount,
                .better = Better::more,
                .best = "the most tokens a second and GPU",
                .when = ShownWhen::alike_steps},
    ShownNumber{.field = "needed_memory_gib",
                .column = "memory",
                .title = "Memory",
                .scale = kInGib,
                .best = "the smallest need of memory"},
    ShownNumber{.field = "best.0.needed_memory_gib",
                .column = "memory",
                .title = "Memory of the best",
                .scale = kInGib,
                .best = "the smallest need of memory"},
    ShownNumber{.field = "wall_s",
                .column = "wall time",
                .title = "Wall time",
                .scale = kInDays,
                .best = "the shortest wall time",
                .when = ShownWhen::differing},
    ShownNumber{.field = "done_s",
                .column = "done after",
                .title = "Done after, with what comes before the first step",
                .scale = kInDays,
                .best = "the earliest end",
                .when = ShownWhen::differing},
    ShownNumber{.field = "tokens_done",
                .column = "tokens",
                .title = "Tokens trained",
                .scale = kInBillions,
                .better = Better::more,
                .best = "the most tokens",
                .when = ShownWhen::differing},
    ShownNumber{.field = "interruptions",
                .column = "stops",
                .title = "Interruptions",
                .scale = {three_digits, three_digits, ""},
                .best = "the fewest interruptions",
                .when = ShownWhen::differing},
    ShownNumber{.field = "facility_mean_w",
                .column = "facility",
                .title = "Power of the site",
                .scale = kInWatts,
                .best = "the lowest power of the site",
                .when = ShownWhen::not_in_weeks},
    ShownNumber{.field = "energy_j",
                .column = "energy",
                .title = "Energy",
                .scale = kInJoules,
                .best = "the least energy"},
    ShownNumber{.field = "time_to_train_s",
                .column = "whole training",
                .title = "Whole training",
                .scale = kInDays,
                .best = "the shortest whole training"},
    ShownNumber{.field = "price_usd",
                .column = "price",
                .title = "Price",
                .scale = kInUsd,
                .best = "the lowest price"},
    ShownNumber{.field = "owned_usd",
                .column = "owned",
                .title = "Cost of owning",
                .scale = kInUsd,
                .best = "the lowest cost of owning",
                .when = ShownWhen::above_zero},
    ShownNumber{.field = "purchase.usd",
                .column = "as bought",
                .title = "Cost as bought",
                .scale = kInUsd,
                .best = "the lowest cost as bought"},
    ShownNumber{.field = "running_usd",
                .column = "running",
                .title = "Running cost",
                .scale = kInUsd,
                .best = "the lowest running cost",
                .when = ShownWhen::differing},
    ShownNumber{.field = "site.grid_usd",
                .column = "energy bill",
                .title = "Energy bill",
                .scale = kInUsd,
                .best = "the smallest energy bill",
                .when = ShownWhen::differing},
    ShownNumber{.field = "site.imported_j",
                .column = "from the grid",
                .title = "Energy from the grid",
                .scale = kInJoules,
                .best = "the least energy from the grid",
                .when = ShownWhen::differing},
    ShownNumber{.field = "site.imported_peak_w",
                .column = "highest hour",
                .title = "Highest hour from the grid",
                .scale = kInWatts,
                .best = "the lowest highest hour from the grid",
                .when = ShownWhen::differing},
    ShownNumber{.field = "site.slowed_s",
                .column = "lost to limits",
                .title = "Full speed lost to limits of the site",
                .scale = kInHours,
                .best = "the least lost to limits of the site",
                .when = ShownWhen::differing},
    ShownNumber{.field = "site.stopped_s",
                .column = "without power",
                .title = "Stops without power",
                .scale = kInHours,
                .best = "the least time without power",
                .when = ShownWhen::differing},
    ShownNumber{.field = "simulated_s",
                .column = "simulated",
                .title = "Time simulated",
                .scale = kInSeconds,
                .better = Better::neither},
    ShownNumber{.field = "end_s",
                .column = "end",
                .title = "End of all traffic",
                .scale = kInMilliseconds,
                .best = "the earliest end of all traffic",
                .leads = true},
    ShownNumber{.field = "size_bytes",
                .column = "size",
                .title = "Size",
                .scale = kInBytes,
                .better = Better::neither},
    ShownNumber{.field = "busbw_bytes_per_s",
                .column = "busbw",
                .title = "Its bus bandwidth",
                .scale = kInRate,
                .better = Better::more,
                .best = "the highest bus bandwidth of the largest size"},
    ShownNumber{.field = "time_s",
                .column = "time",
                .title = "Time of the largest size",
                .scale = kInMilliseconds,
                .best = "the shortest time of the largest size",
                .leads = true}};

bool some_point_has(const Varied& varied, std::string_view path) {
  return std::ranges::any_of(varied.points, [path](const VariedPoint& point) {
    return number_at_point(point, path).has_value();
  });
}

bool differs(const Varied& varied, std::string_view path) {
  std::optional<double> first;
  for (const VariedPoint& point : varied.points) {
    const std::optional<double> number = number_at_point(point, path);
    if (number && first && *number != *first) return true;
    if (number) first = number;
  }
  return false;
}

/// Running cost that is the bill for energy, which has a column of its own.
bool is_energy_bill(const Varied& varied, const ShownNumber& number) {
  if (number.field != "running_usd") return false;
  return std::ranges::all_of(varied.points, [&number](const VariedPoint& point) {
    const std::optional<double> grid = number_at_point(point, "site.grid_usd");
    return !point.ok() || (grid && grid == number_at_point(point, number.field));
  });
}

bool is_shown(const Varied& varied, const ShownNumber& number) {
  if (is_energy_bill(varied, number)) return false;
  switch (number.when) {
    case ShownWhen::above_zero:
      return std::ranges::any_of(varied.points, [&number](const VariedPoint& point) {
        return number_at_point(point, number.field).value_or(0) > 0;
      });
    case ShownWhen::differing:
      return differs(varied, number.field);
    case ShownWhen::not_in_weeks:
      if (some_point_has(varied, "goodput")) return differs(varied, number.field);
      break;
    case ShownWhen::unlike_steps:
      if (!differs(varied, "tokens_per_step")) return false;
      break;
    case ShownWhen::alike_steps:
      if (differs(varied, "tokens_per_step")) return false;
      break;
    case ShownWhen::always:
      break;
  }
  return some_point_has(varied, number.field);
}

}  // namespace

std::vector<const ShownNumber*> shown_numbers(const Varied& varied) {
  std::vector<const ShownNumber*> out;
  for (const ShownNumber& number : kShownNumbers) {
    if (is_shown(varied, number)) out.push_back(&number);
  }
  return out;
}

const ShownNumber* shown_number(std::string_view field) {
  const auto at = std::ranges::find(kShownNumbers, field, &ShownNumber::field);
  return at == kShownNumbers.end() ? nullptr : &*at;
}

const ShownNumber* leading_number(const std::vector<const ShownNumber*>& shown) {
  const auto leads = std::ranges::find_if(shown, &ShownNumber::leads);
  if (leads != shown.end()) return *leads;
  return shown.empty() ? nullptr : shown.front();
}

std::optional<double> number_at_point(const VariedPoint& point, std::string_view path) {
  if (!point.ok() || path.empty()) return std::nullopt;
  return number_at(point.answer, path);
}

std::optional<NumberInterval> interval_at_point(const VariedPoint& point,
                                                const ShownNumber& number) {
  const IntervalPlace& place = number.interval;
  const std::optional<double> value = number_at_point(point, number.field);
  const std::optional<double> half = number_at_point(point, place.half_width);
  // Of a share, and of few runs wider than one can be.
  if (value && half)
    return NumberInterval{std::max(0.0, *value - *half), std::min(1.0, *value + *half)};
  const std::optional<double> low = number_at_point(point, place.low);
  const std::optional<double> high = number_at_point(point, place.high);
  if (!value || !low || !high) return std::nullopt;
  return NumberInterval{*low, *high};
}

bool has_interval(const Varied& varied, const ShownNumber& number) {
  return std::ranges::any_of(varied.points, [&number](const VariedPoint& point) {
    return interval_at_point(point, number).has_value();
  });
}

std::vector<std::string> deeper_paths(const Varied& varied) {
  std::vector<std::string> out;
  for (const ShownNumber* number : shown_numbers(varied)) {
    for (const std::string_view path : {number->field, number->interval.low, number->interval.high,
                                        number->interval.half_width}) {
      if (path.find('.') != std::string_view::npos && some_point_has(varied, path))
        out.emplace_back(path);
    }
  }
  return out;
}

}  // namespace lockstep
