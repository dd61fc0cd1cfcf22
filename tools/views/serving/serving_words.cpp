#include "tools/views/serving/serving_words.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <string_view>

#include "models/base/number_text.hpp"
#include "sim/scenario/serving_load.hpp"
#include "sim/search/tune_serving.hpp"

namespace lockstep {

std::string pool_label(const ServingPool& pool) {
  return pool.name == "both" ? "Replicas" : "Pool " + pool.name;
}

std::string serving_nodes_words(const Cluster& cluster) {
  const auto words = [](int nodes, const NodeSpec& node) {
    return fmt::format("{} x {}, {}", grouped(nodes), node.name, node.gpu.name);
  };
  if (cluster.pools.empty()) return words(cluster.nodes, cluster.node);
  std::string out;
  for (const NodePool& pool : cluster.pools) {
    out += (out.empty() ? "" : "; ") + words(pool.nodes, pool.node);
  }
  return out;
}

std::string serving_rent_words(const ServingSpec& spec) {
  if (!spec.regions.all.empty()) {
    double low = 0, high = 0;
    for (const ServingRegion& region : spec.regions.all) {
      const double price =
          region.usd_per_gpu_hour ? *region.usd_per_gpu_hour : *spec.gpu_hour_usd(spec.pools[0]);
      low = high == 0 ? price : std::min(low, price);
      high = std::max(high, price);
    }
    return low == high ? fmt::format("rented at {} an hour", significant(low))
                       : fmt::format("rented at {} to {} an hour, by region", significant(low),
                                     significant(high));
  }
  const auto price = [&](const ServingPool& pool) { return significant(*spec.gpu_hour_usd(pool)); };
  std::string out = "rented at " + price(spec.pools[0]);
  if (price(spec.pools.back()) != price(spec.pools[0])) {
    out += fmt::format(" ({}) and {} ({})", spec.pools[0].name, price(spec.pools[1]),
                       spec.pools[1].name);
  }
  return out + " an hour";
}

std::string replicas_words(const ServingPool& pool, const ServingSpec& spec) {
  std::string out = fmt::format("{} x TP {}", pool.replicas, pool.tensor);
  if (pool.pipeline > 1) out += fmt::format(", PP {}", pool.pipeline);
  if (pool.attention_data > 1) out += fmt::format(", attention DP {}", pool.attention_data);
  if (pool.expert > 1) out += fmt::format(", EP {}", pool.expert);
  out += ", " + pool.engine.name;
  return spec.cluster.pools.empty() ? out : out + " on " + spec.node_of(pool).name;
}

std::string restart_words(const ServingAnswer& a) {
  const double left = a.report.restarts_left;
  std::string did =
      a.report.restarts == 1 ? "replica restarted as planned" : "replicas restarted as planned";
  if (left == 0) return did;
  return fmt::format("{}; the load was over before {} turn", did,
                     left == 1 ? "one more had its" : grouped(left) + " more had their");
}

std::string adapter_words(const ServingAnswer& a) {
  const ServingAdapterReport& r = *a.report.adapters;
  double passes_s = 0;
  for (const ServingPoolReport& pool : a.report.pools) passes_s += pool.busy_s;
  constexpr double kMega = 1e6, kGiga = 1e9;
  const std::string room = r.room_bytes < kGiga ? significant(r.room_bytes / kMega) + " MB"
                                                : significant(r.room_bytes / kGiga) + " GB";
  std::string out = fmt::format(
      "{} with one of {} adapters; {} have room on a GPU, {} together; {} times one was brought to "
      "a GPU",
      counted(r.requests, "request"), grouped(a.spec.adapters->count), a.spec.adapters->on_gpu,
      room, grouped(r.loads));
  if (r.from_storage > 0) out += fmt::format(", {} of them from storage", grouped(r.from_storage));
  if (passes_s <= 0) return out;
  return out + fmt::format(
                   "; passes spend {} of their time in kernels of adapters, and {} waiting "
                   "for adapters",
                   percent_text(r.kernel_s / passes_s), percent_text(r.load_s / passes_s));
}

std::string formats_words(const ServingSpec& spec) {
  const auto format = [](WeightFormat f) {
    return kWeightFormatNames[static_cast<std::size_t>(f)];
  };
  std::string out = fmt::format("weights {}", format(spec.weights));
  if (spec.model.experts.count > 0) out += fmt::format(", experts {}", format(spec.experts));
  return out + fmt::format(", cache {}", spec.cache_bytes < 2 ? "fp8" : "bf16");
}

std::string request_limits_words(const ServingObjectives& objectives) {
  std::string out;
  const auto add = [&](std::string_view name, const std::optional<Seconds>& limit) {
    if (!limit) return;
    out +=
        fmt::format("{}{} {}", out.empty() ? "" : ", ", name, duration_text(limit->base_units()));
  };
  add("TTFT", objectives.ttft);
  add("TPOT", objectives.tpot);
  add("E2E", objectives.e2e);
  return out;
}

std::string region_shares_words(const ServingPopulationReport& of) {
  constexpr double kTold = 0.0005;
  std::string out;
  for (const auto& [name, share] : of.regions) {
    if (share < kTold) continue;
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", name, percent_text(share));
  }
  return out.empty() ? "-" : out;
}

std::string load_course_words(const ServingAnswer& a) {
  const LoadCourse& course = a.report.course;
  const ServingFigures& f = a.report.figures;
  if (!comes_at_a_rate(a.spec) || a.report.stopped || course.steady() || f.span_s <= 0) return {};
  if (course.grows) {
    return fmt::format(
        "Requests come at {} a second and are served at {}: more and more wait, and all times "
        "grow with the length of the load.",
        significant(arrival_rate(a.spec)), significant(static_cast<double>(f.served) / f.span_s));
  }
  return fmt::format(
      "The load is short: its start and its end weigh in these times. With {} it would last 40 "
      "times as long as one stays.",
      counted(static_cast<double>(course.enough), "request"));
}

std::string_view tier_words(std::string_view tier) {
  return tier == "host" ? "host memory" : tier == "disk" ? "drives" : "remote pool";
}

std::string cache_tiers_words(const ServingTierReport& t) {
  std::string out = percent_text(t.gpu_found_share) + " on GPUs";
  for (const ServingTier& tier : t.tiers) {
    out += fmt::format(", {} {} {}", percent_text(tier.found_share),
                       tier.name == "host"   ? "in"
                       : tier.name == "disk" ? "on"
                                             : "in the",
                       tier_words(tier.name));
  }
  if (t.recomputed_share > 0) {
    out += fmt::format(", {} held and yet computed again", percent_text(t.recomputed_share));
  }
  out += t.loads == 0 ? "; nothing was loaded"
                      : fmt::format("; {} of {} on average", counted(t.loads, "load"),
                                    duration_text(t.load_s));
  if (t.swaps > 0) out += ", " + counted(t.swaps, "swap");
  if (t.stall_s > 0) out += fmt::format(", passes waited for {}", duration_text(t.stall_s));
  return out;
}

std::string transfer_words(const ServingAnswer& a) {
  const ServingReport& r = a.report;
  std::string out = fmt::format("{} a request, {} with its way to itself; {} GB in all",
                                duration_text(r.transfer_s), duration_text(r.transfer_alone_s),
                                significant(r.transferred_bytes / 1e9));
  if (r.links.empty()) return out;
  return out + fmt::format("; {} is {} full", r.links[0].name, percent_text(r.links[0].share));
}

}  // namespace lockstep
