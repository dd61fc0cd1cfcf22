#include "sim/search/sweep/metrics.hpp"

#include <string_view>

#include "sim/answer/answer.hpp"
#include "sim/answer/campaign_answer.hpp"
#include "sim/step/step_report.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// The numbers of the first level.
std::vector<SweepMetric> first_level(AnswerKind kind) {
  std::vector<SweepMetric> metrics;
  for (const FieldInfo& field : answer_fields(kind)) {
    if (!field.is_number() || !field.successor.empty()) continue;
    const int better = field.better == Better::more ? 1 : field.better == Better::less ? -1 : 0;
    metrics.push_back({field.name, Json::json_pointer("/" + field.name), better});
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
  std::vector<SweepMetric> metrics = first_level(AnswerKind::step);
  metrics.push_back({std::string(kMemoryFits), Json::json_pointer("/memory_fits"), 1});
  for (std::size_t b = 0; b < buckets().size(); ++b) {
    const BucketInfo& info = buckets()[b];
    add_share(metrics, "waterfall", b, info.name, info.bucket == Bucket::model_flops);
  }
  return metrics;
}

std::vector<SweepMetric> run_metrics() {
  std::vector<SweepMetric> metrics = first_level(AnswerKind::run);
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

MemberNames members_of(const std::vector<SweepMetric>& metrics) {
  MemberNames names;
  for (SweepMetric metric : metrics) {
    while (!metric.place.parent_pointer().empty()) metric.place.pop_back();
    names.insert(metric.place.back());
  }
  return names;
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
