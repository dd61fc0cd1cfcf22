#include "tools/lockstep/sweep/metrics.hpp"

#include <array>
#include <span>
#include <string_view>

#include "sim/step/step_report.hpp"
#include "tools/lockstep/campaign_result.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

struct MetricRow {
  std::string_view name;
  int better;
  std::string_view place;  ///< empty: "/" and the name
};

constexpr std::array kStepMetrics{
    MetricRow{"step_s", -1, {}},
    MetricRow{"exact_low_s", 0, {}},
    MetricRow{"exact_high_s", 0, {}},
    MetricRow{"step_s_low", -1, {}},
    MetricRow{"step_s_high", -1, {}},
    MetricRow{"mfu", 1, {}},
    MetricRow{"mfu_causal", 1, {}},
    MetricRow{"hfu", 1, {}},
    MetricRow{"tokens_per_s", 1, {}},
    MetricRow{"tokens_per_s_per_gpu", 1, {}},
    MetricRow{"tflops_per_gpu", 1, {}},
    MetricRow{"tflops_per_gpu_causal", 1, {}},
    MetricRow{"tokens_per_step", 0, {}},
    MetricRow{"gpus", 0, {}},
    MetricRow{"nodes", 0, {}},
    MetricRow{"peak_memory_gib", -1, {}},
    MetricRow{"needed_memory_gib", -1, {}},
    MetricRow{"peak_memory_stage", 0, {}},
    MetricRow{"usable_memory_gib", 0, {}},
    MetricRow{"memory_capacity_gib", 0, {}},
    MetricRow{"training_tokens", 0, {}},
    MetricRow{"time_to_train_s", -1, {}},
    MetricRow{"gpu_hours", -1, {}},
    MetricRow{"usd_per_gpu_hour", -1, {}},
    MetricRow{"price_usd", -1, {}},
    MetricRow{"facility_mean_w", -1, "/power/facility/mean_w"},
    MetricRow{"facility_peak_w", -1, "/power/facility/peak_w"},
    MetricRow{"energy_per_step_j", -1, "/power/energy_per_step_j"},
    MetricRow{"joules_per_token", -1, "/power/joules_per_token"},
    MetricRow{"site_excess_w", -1, {}},
    MetricRow{"capital_usd", -1, "/power/bill/capital_usd"},
    MetricRow{"owned_usd", -1, "/power/bill/total_usd"},
    MetricRow{"tonnes_co2", -1, "/power/bill/tonnes_co2"},
};

constexpr std::array kRunMetrics{
    MetricRow{"goodput", 1, {}},
    MetricRow{"goodput_half_width_95", 0, {}},
    MetricRow{"wall_s", -1, {}},
    MetricRow{"interruptions", -1, {}},
    MetricRow{"mttf_s", 1, {}},
    MetricRow{"mttf_at_least_s", 1, {}},
    MetricRow{"mfu", 1, {}},
    MetricRow{"useful_flops_share", 1, {}},
    MetricRow{"step_s", -1, {}},
    MetricRow{"step_s_low", -1, {}},
    MetricRow{"step_s_high", -1, {}},
    MetricRow{"gpus", 0, {}},
    MetricRow{"nodes", 0, {}},
    MetricRow{"gpu_hours", -1, {}},
    MetricRow{"held_gpu_hours", -1, {}},
    MetricRow{"trajectories", 0, {}},
    MetricRow{"finished_share", 1, {}},
    MetricRow{"checkpoints", 0, {}},
    MetricRow{"checkpoint_bytes", -1, {}},
    MetricRow{"unreadable_checkpoints", -1, {}},
    MetricRow{"data_read_bytes_per_s", 0, {}},
    MetricRow{"data_speed", 1, {}},
    MetricRow{"price_usd", -1, {}},
    MetricRow{"energy_j", -1, {}},
    MetricRow{"facility_mean_w", -1, {}},
    MetricRow{"joules_per_token", -1, {}},
    MetricRow{"tonnes_co2", -1, {}},
    MetricRow{"site_excess_w", -1, {}},
    MetricRow{"gpu_nameplate_w", 0, {}},
    MetricRow{"capital_usd", -1, {}},
    MetricRow{"write_off_usd", -1, {}},
    MetricRow{"running_usd", -1, {}},
    MetricRow{"owned_usd", -1, {}},
    MetricRow{"owned_usd_per_trillion_tokens", -1, {}},
    MetricRow{"owned_usd_per_eflop", -1, {}},
};

std::vector<SweepMetric> listed_metrics(std::span<const MetricRow> rows) {
  std::vector<SweepMetric> metrics;
  for (const MetricRow& row : rows) {
    const std::string place =
        row.place.empty() ? "/" + std::string(row.name) : std::string(row.place);
    metrics.push_back({std::string(row.name), Json::json_pointer(place), row.better});
  }
  return metrics;
}

/// Shares of `list` in the answer's JSON, one for each bucket, in order.
void add_share(std::vector<SweepMetric>& metrics, const std::string& list, std::size_t index,
               std::string_view bucket, bool useful) {
  metrics.push_back({std::string(bucket) + "_share",
                     Json::json_pointer("/" + list + "/" + std::to_string(index) + "/share"),
                     useful ? 1 : -1});
}

std::vector<SweepMetric> step_metrics() {
  std::vector<SweepMetric> metrics = listed_metrics(kStepMetrics);
  for (std::size_t b = 0; b < buckets().size(); ++b) {
    const BucketInfo& info = buckets()[b];
    add_share(metrics, "waterfall", b, info.name, info.bucket == Bucket::model_flops);
  }
  return metrics;
}

std::vector<SweepMetric> run_metrics() {
  std::vector<SweepMetric> metrics = listed_metrics(kRunMetrics);
  for (std::size_t b = 0; b < kRunBuckets; ++b) {
    add_share(metrics, "wall_time", b, run_bucket_names()[b].key, b == 0);
  }
  return metrics;
}

}  // namespace

const std::vector<SweepMetric>& sweep_metrics(bool of_run) {
  static const std::vector<SweepMetric> of_steps = step_metrics(), of_runs = run_metrics();
  return of_run ? of_runs : of_steps;
}

std::vector<SqlValue> metric_values(const std::vector<SweepMetric>& metrics, const Json& answer) {
  std::vector<SqlValue> values;
  values.reserve(metrics.size());
  for (const SweepMetric& metric : metrics) {
    values.push_back(answer.contains(metric.place) ? sql_value(answer.at(metric.place))
                                                   : SqlValue{});
  }
  return values;
}

}  // namespace lockstep
