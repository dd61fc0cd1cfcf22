#include "tools/lockstep/serving/serving_files.hpp"

#include <array>
#include <cmath>
#include <fmt/format.h>
#include <functional>

#include "models/base/number_text.hpp"

namespace lockstep {
namespace {

constexpr double kRequestMicro = 1e6;

double request_s(RunTime time) { return to_seconds(time).base_units(); }

/// Upper ends of classes, as vLLM has them for times of requests.
constexpr std::array kMetricClasses{0.001, 0.005, 0.01, 0.02, 0.04, 0.06,  0.08,
                                    0.1,   0.25,  0.5,  0.75, 1.0,  2.5,   5.0,
                                    7.5,   10.0,  20.0, 40.0, 80.0, 160.0, 640.0};

/// A histogram of one value of each request that was served; below 0: it has none.
std::string metric_histogram(std::string_view name, std::string_view help, const ServingAnswer& a,
                             const std::function<double(const ServedRequest&)>& value) {
  std::array<std::int64_t, kMetricClasses.size()> counts{};
  std::int64_t all = 0;
  double sum = 0;
  for (const ServedRequest& r : a.spec.requests) {
    if (!r.served()) continue;
    const double x = value(r);
    if (x < 0) continue;
    ++all;
    sum += x;
    for (std::size_t c = 0; c < kMetricClasses.size(); ++c) counts[c] += x <= kMetricClasses[c];
  }
  std::string out = fmt::format("# HELP vllm:{0} {1}\n# TYPE vllm:{0} histogram\n", name, help);
  const std::string model = fmt::format("model_name=\"{}\"", a.spec.model.name);
  for (std::size_t c = 0; c < kMetricClasses.size(); ++c) {
    out += fmt::format("vllm:{}_bucket{{{},le=\"{:g}\"}} {}\n", name, model, kMetricClasses[c],
                       counts[c]);
  }
  out += fmt::format("vllm:{}_bucket{{{},le=\"+Inf\"}} {}\n", name, model, all);
  out += fmt::format("vllm:{0}_count{{{1}}} {2}\nvllm:{0}_sum{{{1}}} {3}\n", name, model, all,
                     number_text(sum));
  return out;
}

std::string metric_counter(std::string_view name, std::string_view help, const ServingAnswer& a,
                           double value) {
  return fmt::format(
      "# HELP vllm:{0} {1}\n# TYPE vllm:{0} counter\nvllm:{0}_total{{model_name=\"{2}\"}} {3}\n",
      name, help, a.spec.model.name, number_text(value));
}

/// The begin ("b") or end ("e") of a part of a request.
std::string request_edge(char phase, std::string_view name, std::size_t id, int replica,
                         RunTime at) {
  return fmt::format(
      ",\n{{\"ph\":\"{}\",\"cat\":\"request\",\"id\":{},\"name\":\"{}\",\"pid\":{},\"tid\":0,"
      "\"ts\":{:.3f}}}",
      phase, id, name, replica, kRequestMicro * request_s(at));
}

/// Tokens of prompts that were looked for and held: on the GPUs, and of the rest behind them.
std::string prefix_metrics(const ServingAnswer& a) {
  double found = 0, asked = 0;
  for (const ServedRequest& r : a.spec.requests) {
    if (r.scheduled < 0) continue;
    found += r.found;
    asked += r.input;
  }
  const bool tiers = a.report.tiers.has_value();
  const double on_gpus = tiers ? std::round(a.report.tiers->gpu_found_share * asked) : found;
  std::string out =
      metric_counter("prefix_cache_queries", "Tokens of prompts that were looked for.", a, asked);
  out += metric_counter("prefix_cache_hits", "Tokens of prompts that were held.", a, on_gpus);
  if (!tiers) return out;
  out += metric_counter("external_prefix_cache_queries",
                        "Those that were looked for behind the GPUs.", a, asked - on_gpus);
  return out + metric_counter("external_prefix_cache_hits", "Those that were held there.", a,
                              found - on_gpus);
}

}  // namespace

std::string serving_timeline(const ServingAnswer& a) {
  std::string out = R"({"displayTimeUnit":"ms","traceEvents":[)";
  int replica = 0;
  for (const ServingPool& pool : a.spec.pools) {
    for (int r = 0; r < pool.replicas; ++r, ++replica) {
      out += fmt::format(
          "{}\n{{\"ph\":\"M\",\"pid\":{},\"name\":\"process_name\",\"args\":{{\"name\":\"{} "
          "{}\"}}}}",
          replica == 0 ? "" : ",", replica, pool.name, r);
    }
  }
  for (std::size_t i = 0; i < a.spec.requests.size(); ++i) {
    const ServedRequest& r = a.spec.requests[i];
    if (!r.served()) continue;
    const std::string name = fmt::format("request {}: {} + {}", i, r.input, r.output);
    out += request_edge('b', name, i, r.replica, r.arrival);
    const auto part = [&](std::string_view what, RunTime from, RunTime to) {
      if (to <= from) return;
      out += request_edge('b', what, i, r.replica, from);
      out += request_edge('e', what, i, r.replica, to);
    };
    part("wait", r.arrival, r.scheduled);
    part("prompt", r.scheduled, r.first);
    part("decode", r.first, r.last);
    out += request_edge('e', name, i, r.replica, r.last);
  }
  return out + "\n]}\n";
}

std::string serving_metrics(const ServingAnswer& a) {
  const ServingReport& report = a.report;
  double preempted = 0;
  for (const ServingPoolReport& pool : report.pools) preempted += pool.preempted;
  std::string out;
  out += metric_counter("prompt_tokens", "Tokens of prompts.", a, report.figures.input_tokens);
  out += metric_counter("generation_tokens", "Tokens of answers.", a, report.figures.output_tokens);
  out += metric_counter("num_preemptions", "Requests that left a full cache.", a, preempted);
  out += prefix_metrics(a);
  out += metric_histogram("time_to_first_token_seconds", "From arrival to the first token.", a,
                          [](const ServedRequest& r) { return request_s(r.time_to_first()); });
  out +=
      metric_histogram("request_time_per_output_token_seconds", "Of each request behind its first.",
                       a, [](const ServedRequest& r) { return r.output > 1 ? tpot_s(r) : -1; });
  out += metric_histogram("e2e_request_latency_seconds", "From arrival to the last token.", a,
                          [](const ServedRequest& r) { return request_s(r.end_to_end()); });
  out +=
      metric_histogram("request_queue_time_seconds", "From arrival to the first pass.", a,
                       [](const ServedRequest& r) { return request_s(r.scheduled - r.arrival); });
  out +=
      metric_histogram("request_prefill_time_seconds", "From the first pass to the first token.", a,
                       [](const ServedRequest& r) { return request_s(r.first - r.scheduled); });
  out += metric_histogram("request_decode_time_seconds", "From the first token to the last.", a,
                          [](const ServedRequest& r) { return request_s(r.last - r.first); });
  return out + "# EOF\n";
}

}  // namespace lockstep
