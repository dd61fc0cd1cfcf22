#include "tests/support/sample_reports.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <numeric>
#include <string>

namespace lockstep::test {
namespace {

/// 0 to 1, the same for the same arguments.
double noise(std::size_t a, std::size_t b) {
  std::uint64_t x = a * 0x9E3779B97F4A7C15U + b * 0xC2B2AE3D27D4EB4FU + 1;
  for (int i = 0; i < 3; ++i) {
    x ^= x >> 29;
    x *= 0xBF58476D1CE4E5B9U;
  }
  return static_cast<double>(x >> 40) / static_cast<double>(std::uint64_t{1} << 24);
}

LinkCongestion link_of(const std::string& name, std::vector<float> utilisation,
                       std::vector<double> bytes_by_job) {
  LinkCongestion link;
  link.name = name;
  link.capacity_bytes_per_s = 50e9;
  link.utilisation = std::move(utilisation);
  link.bytes_by_job = std::move(bytes_by_job);
  const auto bins = static_cast<double>(link.utilisation.size());
  link.mean_utilisation =
      std::accumulate(link.utilisation.begin(), link.utilisation.end(), 0.0) / bins;
  link.peak_utilisation = *std::ranges::max_element(link.utilisation);
  return link;
}

/// Bursts at the end of each of three steps, and a checkpoint in the middle of all.
float busy_use(std::size_t link, std::size_t bin, std::size_t bins) {
  const double at = static_cast<double>(bin) / static_cast<double>(bins);
  const double within = at * 3 - std::floor(at * 3);
  const double fall = 1 - 0.018 * static_cast<double>(link);
  double use = 0.03 * noise(link, bin);
  if (within > 0.55 + 0.004 * static_cast<double>(link)) use += 0.62 * fall;
  if (at > 0.38 && at < 0.71 && link < 18) use += 0.42 * fall;
  return static_cast<float>(std::min(1.0, use));
}

/// Eight leaves under four spines: one cable is dead, one slow, one fails for a time.
FabricUse busy_fabric() {
  FabricSpec spec;
  spec.kind = FabricKind::fat_tree;
  spec.routing = Routing::ecmp;
  spec.leaf_ports_down = 16;
  spec.leaf_oversubscription = 4;
  const Fabric fabric(spec, 16, 8, BytesPerSecond{50e9});
  std::vector<CarriedLink> carried;
  LinkHealth health{.left = std::vector<double>(fabric.link_count(), 1.0),
                    .lowest = std::vector<double>(fabric.link_count(), 1.0)};
  for (FabricLink link = 0; link < fabric.link_count(); ++link) {
    carried.push_back({fabric.link_name(link), fabric.capacity(link),
                       Bytes{noise(link, 3) * 4 * fabric.capacity(link).base_units()}});
  }
  health.left[fabric.leaf_up(0, 0)] = health.left[fabric.leaf_down(0, 0)] = 0;
  health.left[fabric.leaf_up(1, 2)] = health.left[fabric.leaf_down(1, 2)] = 0.5;
  health.lowest[fabric.nic_up(4, 1)] = health.lowest[fabric.nic_down(4, 1)] = 0;
  carried[fabric.leaf_up(0, 0)].bytes = carried[fabric.leaf_down(0, 0)].bytes = Bytes{};
  return use_of_fabric(fabric, carried, Seconds{4.26}, health);
}

void fullest_first(CongestionReport& report) {
  report.links_used = report.links.size();
  std::ranges::stable_sort(report.links, [](const LinkCongestion& a, const LinkCongestion& b) {
    return a.mean_utilisation > b.mean_utilisation;
  });
}

}  // namespace

CongestionReport busy_report() {
  CongestionReport report;
  report.title = "Two trainings and a checkpoint on one spine";
  report.about = "llama3_70b twice on 64 nodes, while a third job writes its checkpoint.";
  report.fabric = "rail_optimised, ecmp, 64 nodes x 8 NICs of 50 GB/s, 2:1 above the leaves";
  report.end_s = 4.26;
  report.bin_s = 4.26 / 300;
  report.use = busy_fabric();
  report.jobs = {{"training-a", "llama3_70b, 256 GPUs, TP 8 PP 1 DP 32", 1.18, 1.06, 4.6e12},
                 {"training-b", "llama3_70b, 256 GPUs, TP 8 PP 4 DP 8", 1.42, 1.0, 3.1e12},
                 {"checkpoint", "incast to nodes 60 to 63", 1.51, 1.22, 1.9e12}};
  for (std::size_t link = 0; link < 32; ++link) {
    std::vector<float> use;
    for (std::size_t bin = 0; bin < 300; ++bin) use.push_back(busy_use(link, bin, 300));
    const double bytes = 8e10 * (1 - 0.02 * static_cast<double>(link));
    report.links.push_back(link_of(fmt::format("leaf {} to spine {}", link % 8, link / 8),
                                   std::move(use),
                                   {bytes, bytes * noise(link, 7), link < 18 ? bytes * 0.6 : 0}));
  }
  fullest_first(report);
  for (std::uint32_t i = 0; i < 48; ++i) {
    const std::uint32_t job = i % 3;
    const double alone = 0.004 * (1 + noise(i, 1));
    TransferCongestion transfer;
    transfer.job = report.jobs[job].name;
    transfer.name = job == 2 ? fmt::format("flow {}: node {} to node 60", i, i + 8)
                             : fmt::format("gradients of stage {}, rail {}", i % 4, i % 8);
    transfer.runs = job == 2 ? 1 : 3;
    transfer.bytes = job == 2 ? 1.2e9 : 2.6e8;
    transfer.start_s = 0.1 * i;
    transfer.alone_s = alone;
    transfer.mean_s = alone * (1 + 1.4 * noise(i, 2));
    if (i % 7 != 6) {
      transfer.worst_link = static_cast<std::int32_t>(i % 18);
      transfer.worst_link_share = 0.3 + 0.6 * noise(i, 3);
      transfer.cause = job == 2 ? "training-a: gradients of stage 0, rail 3"
                                : "checkpoint: flow 17: node 25 to node 60";
      transfer.cause_share = 0.2 + 0.5 * noise(i, 4);
    }
    report.transfers.push_back(transfer);
  }
  std::ranges::stable_sort(report.transfers,
                           [](const TransferCongestion& a, const TransferCongestion& b) {
                             return a.slowdown() > b.slowdown();
                           });
  report.notes = {
      "Flows share links max-min fairly at every instant: no packets, no queues, no PFC pauses.",
      "Three steps of each training were simulated; the first starts with all jobs at once."};
  return report;
}

CongestionReport calm_report() {
  CongestionReport report;
  report.title = "Two jobs, two halves of the fabric";
  report.fabric = "fat_tree, ecmp, 4 nodes x 1 NIC of 50 GB/s";
  report.end_s = report.bin_s = 250e-6;
  report.jobs = {{"left", "ring over nodes 0 and 1", 250e-6, 250e-6, 12.5e6},
                 {"right", "ring over nodes 2 and 3", 200e-6, 200e-6, 10e6}};
  report.links = {link_of("node 0 to leaf 0", {1.0F}, {12.5e6, 0}),
                  link_of("node 2 to leaf 1", {0.8F}, {0, 10e6})};
  report.links_used = report.links.size();
  return report;
}

CongestionReport large_report(std::size_t jobs, std::size_t links, std::size_t bins,
                              std::size_t transfers) {
  const std::string nasty = R"(</script><b>&"')";
  CongestionReport report;
  report.title = "A large one " + nasty;
  report.fabric = "dragonfly " + nasty;
  report.end_s = 0.05;
  report.bin_s = 0.05 / static_cast<double>(bins);
  for (std::size_t i = 0; i < jobs; ++i) {
    report.jobs.push_back({fmt::format("job {}{}", i, i == 3 ? nasty : ""), nasty,
                           1 + 0.1 * static_cast<double>(i), 1, 1e12 * (1 + noise(i, 5))});
  }
  for (std::size_t i = 0; i < links; ++i) {
    const double level = 0.95 * (1 - static_cast<double>(i) / static_cast<double>(links));
    std::vector<float> use;
    for (std::size_t bin = 0; bin < bins; ++bin) {
      use.push_back(static_cast<float>(level * noise(i, bin)));
    }
    std::vector<double> bytes;
    for (std::size_t job = 0; job < jobs; ++job) bytes.push_back(1e9 * level * noise(i, job));
    report.links.push_back(link_of(fmt::format("group {} router {} port {} to group {}{}", i % 33,
                                               i / 33, i % 7, i % 11, i == 0 ? nasty : ""),
                                   std::move(use), std::move(bytes)));
  }
  fullest_first(report);
  report.transfers_run = transfers;
  for (std::uint32_t i = 0; i < transfers; ++i) {
    TransferCongestion transfer;
    transfer.job = report.jobs[i % jobs].name;
    transfer.name = fmt::format("flow {} {}", i, nasty);
    transfer.bytes = 1e6;
    transfer.alone_s = 1e-3;
    transfer.mean_s = 1e-3 * (1 + 3 * (1 - i / static_cast<double>(transfers)));
    transfer.worst_link = static_cast<std::int32_t>(i % links);
    transfer.worst_link_share = 0.5;
    transfer.cause = report.jobs[(i + 1) % jobs].name + ": flow " + std::to_string(i + 1);
    transfer.cause_share = 0.25;
    report.transfers.push_back(transfer);
  }
  report.notes = {"Note " + nasty};
  return report;
}

}  // namespace lockstep::test
