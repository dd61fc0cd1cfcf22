#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "sim/answer/answer_fields.hpp"

namespace lockstep {
namespace {

using Serving = ServingAnswer;

const FieldTable<ServingSpread>& serving_spread_fields() {
  using Of = ServingSpread;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("mean", Better::less, "Mean.", [](const Of& s) { return s.mean; })
          .add("p50", Better::less, "Median.", [](const Of& s) { return s.p50; })
          .add("p90", Better::less, "Nine of ten are not above.", [](const Of& s) { return s.p90; })
          .add("p99", Better::less, "99 of 100 are not above.", [](const Of& s) { return s.p99; })
          .add("most", Better::less, "The largest; of times between tokens 999 of 1000.",
               [](const Of& s) { return s.most; });
  return fields;
}

Value serving_bucket_values(const Serving& a) {
  Value::Object out;
  for (std::size_t b = 0; b < kServingBuckets; ++b) {
    double seconds = 0;
    for (const ServingPoolReport& pool : a.report.pools) seconds += pool.gpu_seconds[b];
    out.emplace_back(std::string(kServingBucketNames[b]),
                     Value::Object{{"gpu_seconds", seconds}, {"share", a.report.shares[b]}});
  }
  return out;
}

const FieldTable<ServingPoolReport>& serving_pool_fields() {
  using Of = ServingPoolReport;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("name", "Which it is: both, prefill or decode.", [](const Of& p) { return p.name; })
          .add("replicas", "Replicas.", [](const Of& p) { return p.replicas; })
          .add("gpus", "GPUs of all of them.", [](const Of& p) { return p.gpus; })
          .add("weights_bytes", Better::less, "Weights on a GPU.",
               [](const Of& p) { return p.weights_bytes; })
          .add("cache_tokens", Better::more, "Tokens that a replica's cache holds.",
               [](const Of& p) { return p.cache_tokens; })
          .add("cache_most_share", Better::less, "Share of it that was taken at most.",
               [](const Of& p) { return p.fullest; })
          .add("passes", "Passes of all replicas.", [](const Of& p) { return p.passes; })
          .add("preemptions", Better::less,
               "How often a request had to leave a full cache and was computed again.",
               [](const Of& p) { return p.preempted; })
          .add("busy_s", "Time in passes, of all replicas together.",
               [](const Of& p) { return p.busy_s; });
  return fields;
}

const FieldTable<ServingInterval>& serving_interval_fields() {
  using Of = ServingInterval;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("tpot_low_s", "Of the mean time per token: 1 of 20 measurements is below.",
               [](const Of& i) { return i.tpot_low_s; })
          .add("tpot_high_s", "1 of 20 is above.", [](const Of& i) { return i.tpot_high_s; })
          .add("ttft_low_s", "Of the mean time to the first token: 1 of 20 is below.",
               [](const Of& i) { return i.ttft_low_s; })
          .add("ttft_high_s", "1 of 20 is above.", [](const Of& i) { return i.ttft_high_s; })
          .add("basis", "What they are read off.", [](const Of& i) { return i.basis; });
  return fields;
}

void add_serving_times(FieldTable<Serving>& out) {
  out.add("ttft_mean_s", Better::less, "Mean time to the first token.",
          [](const Serving& a) { return a.report.figures.ttft_s.mean; })
      .add("ttft_p99_s", Better::less, "99 of 100 first tokens come no later.",
           [](const Serving& a) { return a.report.figures.ttft_s.p99; })
      .add("tpot_mean_s", Better::less, "Mean time per token behind the first.",
           [](const Serving& a) { return a.report.figures.tpot_s.mean; })
      .add("tpot_p99_s", Better::less, "99 of 100 requests see no longer.",
           [](const Serving& a) { return a.report.figures.tpot_s.p99; });
  out.object("ttft_s", "Time from a request's arrival to its first token.", serving_spread_fields(),
             [](const Serving& a) { return a.report.figures.ttft_s; })
      .object("tpot_s", "Time per token behind the first one, of each request.",
              serving_spread_fields(), [](const Serving& a) { return a.report.figures.tpot_s; })
      .object("itl_s", "Time between two tokens of a request, of all tokens.",
              serving_spread_fields(), [](const Serving& a) { return a.report.figures.itl_s; })
      .object("e2e_s", "Time from a request's arrival to its last token.", serving_spread_fields(),
              [](const Serving& a) { return a.report.figures.e2e_s; });
}

void add_serving_rates(FieldTable<Serving>& out) {
  out.add("output_tokens_per_s", Better::more, "Tokens of answers a second, all GPUs.",
          [](const Serving& a) { return a.report.figures.output_per_s; })
      .add("output_tokens_per_s_per_gpu", Better::more, "The same, a GPU.",
           [](const Serving& a) { return a.report.figures.output_per_s / a.spec.gpus(); })
      .add("tokens_per_s_per_user", Better::more, "Tokens a second that a user sees: 1 / TPOT.",
           [](const Serving& a) { return a.report.figures.per_user; })
      .add("requests_per_s", Better::more, "Requests served a second.",
           [](const Serving& a) {
             const ServingFigures& f = a.report.figures;
             return f.span_s > 0 ? static_cast<double>(f.served) / f.span_s : 0;
           })
      .add("in_system", "Requests that wait or are worked on, on average.",
           [](const Serving& a) { return a.report.figures.in_system; })
      .add("attained_share", Better::more,
           "Share of the requests that keep every objective; with objectives only.",
           [](const Serving& a) -> std::optional<double> {
             if (!a.spec.objectives.any()) return std::nullopt;
             return a.report.attained;
           })
      .add("good_requests_per_s", Better::more, "Such requests a second; with objectives only.",
           [](const Serving& a) -> std::optional<double> {
             if (!a.spec.objectives.any()) return std::nullopt;
             return a.report.goodput;
           });
}

}  // namespace

const FieldTable<ServingAnswer>& serving_fields() {
  static const FieldTable<Serving> fields = [] {
    FieldTable<Serving> out;
    add_head(out, "serving");
    out.add("file", "The scenario's file.", [](const Serving& a) { return a.spec.file; })
        .add("model", "What is served.", [](const Serving& a) { return a.spec.model.name; })
        .add("gpus", "GPUs of all replicas.", [](const Serving& a) { return a.spec.gpus(); })
        .add("load", "What was asked, in words.", [](const Serving& a) { return a.spec.load; })
        .add("requests", "Requests.",
             [](const Serving& a) { return static_cast<double>(a.spec.requests.size()); })
        .add("served", Better::more, "Those that got their last token.",
             [](const Serving& a) { return static_cast<double>(a.report.figures.served); })
        .add("refused", Better::less, "Those that do not fit in an empty cache.",
             [](const Serving& a) { return a.report.refused; })
        .add("span_s", "From the first arrival to the last token.",
             [](const Serving& a) { return a.report.figures.span_s; })
        .add("input_tokens", "Of prompts that were served.",
             [](const Serving& a) { return a.report.figures.input_tokens; })
        .add("output_tokens", "Of their answers.",
             [](const Serving& a) { return a.report.figures.output_tokens; });
    add_serving_times(out);
    out.object("interval", "By how far predictions of such engines and models were off.",
               serving_interval_fields(),
               [](const Serving& a) -> const auto& { return a.report.interval; });
    add_serving_rates(out);
    out.add("transfer_s", Better::less,
            "That a request waited for its keys and values between the pools, on average.",
            [](const Serving& a) -> std::optional<double> {
              if (a.spec.pools.size() < 2) return std::nullopt;
              return a.report.transfer_s;
            })
        .add("transferred_bytes", "Keys and values that went from pool to pool.",
             [](const Serving& a) -> std::optional<double> {
               if (a.spec.pools.size() < 2) return std::nullopt;
               return a.report.transferred_bytes;
             })
        .add("waterfall", "Where GPU time goes; the shares add up to 1.", serving_bucket_values)
        .list("pools", "Replicas of one layout.", serving_pool_fields(),
              [](const Serving& a) -> const auto& { return a.report.pools; })
        .add("assumptions", "What was assumed where the scenario says nothing.",
             [](const Serving& a) { return a.spec.assumptions; });
    add_written(out, [](const Serving& a) -> const WrittenScenario& { return a.written; });
    return out;
  }();
  return fields;
}

nlohmann::ordered_json serving_json(const ServingAnswer& answer) {
  return Value(serving_fields().values(answer)).json();
}

}  // namespace lockstep
