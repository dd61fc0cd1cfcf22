#include "tools/views/serving/serving_files.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <functional>
#include <string>
#include <vector>

#include "models/base/number_text.hpp"

namespace lockstep {
namespace {

constexpr double kRequestMicro = 1e6;

double request_s(RunTime time) { return to_seconds(time).base_units(); }

/// Upper ends of classes, as vLLM has them for times of requests.
constexpr std::array kMetricClasses{0.001, 0.005, 0.01, 0.02, 0.04, 0.06,  0.08,
                                    0.1,   0.25,  0.5,  0.75, 1.0,  2.5,   5.0,
                                    7.5,   10.0,  20.0, 40.0, 80.0, 160.0, 640.0};

/// A histogram of a value of each served request; a value below 0 is missing.
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

/// One value of a metric, and its further labels: "" or ",source=\"local_compute\"".
struct MetricValue {
  std::string labels;
  double value = 0;
};

enum class MetricType : std::uint8_t { counter, gauge };

std::string metric(std::string_view name, MetricType type, std::string_view help,
                   const ServingAnswer& a, const std::vector<MetricValue>& values) {
  const bool counts = type == MetricType::counter;
  std::string out =
      fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, counts ? "counter" : "gauge");
  for (const MetricValue& each : values) {
    out += fmt::format("{}{}{{model_name=\"{}\"{}}} {}\n", name, counts ? "_total" : "",
                       a.spec.model.name, each.labels, number_text(each.value));
  }
  return out;
}

std::string metric_counter(std::string_view name, std::string_view help, const ServingAnswer& a,
                           double value) {
  return metric(fmt::format("vllm:{}", name), MetricType::counter, help, a, {{"", value}});
}

/// The begin ("b") or end ("e") of a part of a request.
std::string request_edge(char phase, std::string_view name, std::size_t id, int replica,
                         RunTime at) {
  return fmt::format(
      ",\n{{\"ph\":\"{}\",\"cat\":\"request\",\"id\":{},\"name\":\"{}\",\"pid\":{},\"tid\":0,"
      "\"ts\":{:.3f}}}",
      phase, id, name, replica, kRequestMicro * request_s(at));
}

/// Tokens of prompts that were worked on, and of them those that a replica held, on its GPUs and
/// behind them.
struct HeldTokens {
  double asked = 0, found = 0, loaded = 0;

  [[nodiscard]] double on_gpus() const { return found - loaded; }
};

HeldTokens held_tokens(const ServingAnswer& a) {
  HeldTokens out;
  for (const ServedRequest& r : a.spec.requests) {
    if (r.scheduled < 0) continue;
    out.asked += r.input;
    out.found += r.found;
    out.loaded += r.loaded;
  }
  return out;
}

/// What vLLM counts of its own cache and of what is behind it.
std::string prefix_metrics(const ServingAnswer& a, const HeldTokens& tokens) {
  std::string out = metric_counter("prefix_cache_queries",
                                   "Tokens of prompts that were looked for.", a, tokens.asked);
  out +=
      metric_counter("prefix_cache_hits", "Tokens of prompts that were held.", a, tokens.on_gpus());
  out += metric_counter("prompt_tokens_cached", "Tokens of prompts that were held anywhere.", a,
                        tokens.found);
  return out + metric("vllm:prompt_tokens_by_source", MetricType::counter,
                      "Tokens of prompts by where they came from.", a,
                      {{",source=\"local_compute\"", tokens.asked - tokens.found},
                       {",source=\"local_cache_hit\"", tokens.on_gpus()},
                       {",source=\"external_kv_transfer\"", tokens.loaded}});
}

/// Metrics of each tier for which vLLM and LMCache have no name.
std::string metrics_by_tier(const ServingAnswer& a, double asked) {
  std::vector<MetricValue> hits, loaded, stored;
  for (const ServingTier& tier : a.report.tiers->tiers) {
    const std::string label = fmt::format(",tier=\"{}\"", tier.name);
    hits.push_back({label, std::round(tier.found_share * asked)});
    loaded.push_back({label, tier.loaded_bytes});
    stored.push_back({label, tier.written_bytes});
  }
  return metric("lockstep:cache_tier_hit_tokens", MetricType::counter,
                "Tokens of prompts that were held there.", a, hits) +
         metric("lockstep:cache_tier_load_bytes", MetricType::counter,
                "Keys and values that came back from it.", a, loaded) +
         metric("lockstep:cache_tier_store_bytes", MetricType::counter,
                "Keys and values that went into it.", a, stored);
}

/// What vLLM's OffloadingConnector and LMCache count of the memory behind the caches.
std::string tier_metrics(const ServingAnswer& a, const HeldTokens& tokens) {
  const ServingTierReport& tiers = *a.report.tiers;
  const double asked = tokens.asked - tokens.on_gpus();
  std::string out = metric_counter("external_prefix_cache_queries",
                                   "Those that were looked for behind the GPUs.", a, asked);
  out +=
      metric_counter("external_prefix_cache_hits", "Those that were held there.", a, tokens.loaded);
  const auto lmcache = [&](std::string_view name, MetricType type, std::string_view help,
                           double value) {
    out += metric(fmt::format("lmcache:{}", name), type, help, a, {{"", value}});
  };
  using enum MetricType;
  lmcache("num_retrieve_requests", counter, "Loads.", tiers.loads);
  lmcache("num_requested_tokens", counter, "Tokens that were looked for behind the GPUs.", asked);
  lmcache("num_hit_tokens", counter, "Those that were loaded.", tokens.loaded);
  for (const ServingTier& tier : tiers.tiers) {
    if (tier.name == "host") {
      out += metric_counter("kv_offload_load_bytes", "From host memory to the GPUs.", a,
                            tier.loaded_bytes);
      out += metric_counter("kv_offload_store_bytes", "From the GPUs to host memory.", a,
                            tier.written_bytes);
      lmcache("local_cache_usage", gauge, "Bytes in host memory.", tier.held_bytes);
    } else if (tier.name == "disk") {
      lmcache("local_storage_usage", gauge, "Bytes on drives.", tier.held_bytes);
    } else {
      lmcache("remote_cache_usage", gauge, "Bytes in the remote pool.", tier.held_bytes);
      lmcache("num_remote_read_bytes", counter, "Bytes from it.", tier.loaded_bytes);
      lmcache("num_remote_write_bytes", counter, "Bytes to it.", tier.written_bytes);
    }
  }
  return out + metrics_by_tier(a, tokens.asked);
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
    part(a.spec.pools.size() > 1 ? "prompt and transfer" : "prompt", r.scheduled, r.first);
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
  const HeldTokens tokens = held_tokens(a);
  out += prefix_metrics(a, tokens);
  if (report.tiers) out += tier_metrics(a, tokens);
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
