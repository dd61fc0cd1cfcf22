#include "tools/views/comm/comm_traffic.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <string_view>

#include "models/base/number_text.hpp"
#include "models/base/quantity.hpp"
#include "sim/scenario/names.hpp"
#include "topologies/fabrics/nic_rates.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {
namespace {

using Align = TextTable::Align;

constexpr int kTrafficLabels = 14;  // columns

std::string gigabyte_text(double bytes) { return significant(bytes / 1e9) + " GB"; }
std::string gigabytes(double bytes_per_s) { return significant(bytes_per_s / 1e9); }

std::string fabric_text(const Cluster& cluster) {
  const NicPorts ports = nic_ports(cluster.node);
  return fmt::format("{}, {}; {} of {}", cluster.fabric.name, name_of(cluster.fabric.routing),
                     counted(1.0 * cluster.nodes * ports.count, "NIC"),
                     words_of(nic_rates(cluster.fabric, cluster.nodes, ports.bandwidth)));
}

/// A name, cut so that the other columns have room.
std::string short_name(const std::string& name) {
  constexpr std::size_t kMost = 18;
  return name.size() <= kMost ? name : name.substr(0, kMost - 3) + "...";
}

/// A comparison of entries with their times alone takes the place of the 99th percentile.
std::string entries_table(const TrafficReport& report, const TextStyle& style) {
  const bool alone = report.entries.size() > 1;
  TextTable table({{"traffic", Align::left},
                   {"messages"},
                   {"payload"},
                   {"time"},
                   {"median"},
                   {alone ? "slowdown" : "p99"},
                   {"max"},
                   {"GB/s a NIC"},
                   {"of line"}});
  for (const EntryReport& entry : report.entries) {
    const bool fabric = entry.nic_bytes_per_s > 0;
    table.add({short_name(entry.name), grouped(static_cast<double>(entry.messages)),
               gigabyte_text(entry.bytes), duration_text(entry.time_s()),
               duration_text(entry.median_s),
               alone ? fmt::format("{:.2f}", entry.slowdown()) : duration_text(entry.p99_s),
               duration_text(entry.max_s), fabric ? gigabytes(entry.nic_bytes_per_s) : "-",
               fabric ? percent_text(entry.line_rate_share) : "-"});
  }
  return table.text(style);
}

/// Links that are printed alike share a row, where the first of them stands.
std::string links_table(const TrafficReport& report, const TextStyle& style) {
  TextTable table({{"fullest links", Align::left}, {"GB/s"}, {"bytes"}, {"mean use"}});
  struct Row {
    std::string name;
    std::vector<std::string> figures;
    int links = 1;
  };
  std::vector<Row> rows;
  // Most links are as full as the one before, and are not written out for it.
  const TrafficReport::Link* before = nullptr;
  std::size_t row_before = 0;
  for (const TrafficReport::Link& link : report.links) {
    const bool same = before != nullptr && before->bytes == link.bytes &&
                      before->capacity_bytes_per_s == link.capacity_bytes_per_s &&
                      before->utilisation == link.utilisation;
    before = &link;
    if (same) {
      ++rows[row_before].links;
      continue;
    }
    std::vector<std::string> figures{gigabytes(link.capacity_bytes_per_s),
                                     gigabyte_text(link.bytes), percent_text(link.utilisation)};
    const auto row = std::ranges::find(rows, figures, &Row::figures);
    row_before = static_cast<std::size_t>(row - rows.begin());
    if (row != rows.end()) {
      ++row->links;
    } else {
      rows.push_back({link.name, std::move(figures)});
    }
  }
  // Links beyond the list are no fuller than its last one, and may be as full.
  const bool is_cut = report.links.size() < report.links_used;
  const auto alike = [&](const Row& row) {
    if (row.links == 1) return row.name;
    const bool may_be_more =
        is_cut && row.figures.back() == percent_text(report.links.back().utilisation);
    return fmt::format("{} ({}{} alike)", row.name, may_be_more ? "at least " : "", row.links);
  };
  constexpr std::size_t kRows = 10;
  if (rows.size() > kRows) rows.resize(kRows);
  for (Row& row : rows) {
    std::vector<std::string> cells = row.figures;
    cells.insert(cells.begin(), alike(row));
    table.add(std::move(cells));
  }
  return table.text(style);
}

std::string expectation_text(const TrafficScenario& scenario, const TrafficReport& report) {
  const TrafficExpectation& expect = *scenario.expect;
  const double error = traffic_error(scenario, report);
  const std::string text =
      fmt::format("{} to the last end: {} ({} {})", duration_text(expect.time->base_units()),
                  error_text(error), std::abs(error) <= expect.within ? "within" : "NOT within",
                  plain_number(100 * expect.within, 4) + " %");
  return expect.source.empty() ? text : text + "; " + expect.source;
}

/// Picoseconds as seconds, with all of their digits.
std::string exact_seconds(StepTime time) {
  constexpr std::uint64_t kPerSecond = 1'000'000'000'000;
  return fmt::format("{}.{:012}", time.ps / kPerSecond, time.ps % kPerSecond);
}

std::string end_name(const TrafficGroup& group, int place) {
  return place < 0 ? "" : name_of(group.members[static_cast<std::size_t>(place)]);
}

/// The bands of the entries' times, or which draw they are of.
std::string hash_line(const HashAnswer& hash) {
  if (hash.draws == 1) return labelled_line("Hash", kTrafficLabels, one_draw_text(hash));
  return labelled_line(fmt::format("{} draws", hash.draws), kTrafficLabels,
                       hash_text(hash.bands[0]) + ", of the paths' hashes");
}

std::string bands_table(const TrafficReport& report, const HashAnswer& hash,
                        const TextStyle& style) {
  TextTable table({{"over all draws", Align::left},
                   {"least"},
                   {"draw"},
                   {"median"},
                   {"draw"},
                   {"most"},
                   {"draw"}});
  for (std::size_t e = 0; e < report.entries.size(); ++e) {
    std::vector<std::string> cells{short_name(report.entries[e].name)};
    const HashBand& band = hash.bands[e + 1];
    for (const HashDraw& of : {band.least, band.median, band.most}) {
      cells.push_back(duration_text(of.value));
      cells.push_back(fmt::format("{}", of.draw));
    }
    table.add(std::move(cells));
  }
  return table.text(style);
}

bool is_drawn_often(const std::optional<HashAnswer>& hash) { return hash && hash->draws > 1; }

}  // namespace

double traffic_error(const TrafficScenario& scenario, const TrafficReport& report) {
  return report.end_s / scenario.expect->time->base_units() - 1;
}

std::vector<double> times_of(const TrafficReport& report) {
  std::vector<double> times{report.end_s};
  for (const EntryReport& entry : report.entries) times.push_back(entry.time_s());
  return times;
}

std::string traffic_table(const TrafficScenario& scenario, const TrafficReport& report,
                          const TextStyle& style, const std::optional<HashAnswer>& hash) {
  const Cluster& cluster = scenario.cluster;
  std::string out = style.bold(fmt::format("Traffic on {}", counted(cluster.nodes, "node"))) +
                    fmt::format(" ({}, {})\n", cluster.node.name, counted(cluster.gpus(), "GPU"));
  if (!scenario.about.empty()) out += wrap(scenario.about, kTextColumns, 0) + "\n";
  out += "\n" + labelled_line("Fabric", kTrafficLabels, fabric_text(cluster));
  out += labelled_line("Last end", kTrafficLabels, duration_text(report.end_s));
  if (hash) out += hash_line(*hash);
  if (scenario.expect && scenario.expect->time)
    out += labelled_line("Expected", kTrafficLabels, expectation_text(scenario, report));
  out += labelled_line("Simulated", kTrafficLabels,
                       fmt::format("{} over {}", counted(static_cast<double>(report.flows), "flow"),
                                   counted(static_cast<double>(report.links_used), "link")));
  out += "\n" + entries_table(report, style);
  if (is_drawn_often(hash) && report.entries.size() > 1) {
    out += "\n" + bands_table(report, *hash, style);
  }
  if (!report.links.empty()) out += "\n" + links_table(report, style);
  const auto list = [&](std::string_view title, const std::vector<std::string>& lines) {
    if (lines.empty()) return;
    out += "\n" + std::string(title) + "\n";
    for (const std::string& text : lines) out += "  - " + wrap(text, kTextColumns, 4, 4) + "\n";
  };
  list("Assumed", scenario.assumptions);
  list("Notes", report.notes);
  return out;
}

CsvText traffic_csv(const TrafficReport& report, const std::optional<HashAnswer>& hash) {
  std::vector<std::string> names{
      "name",    "messages", "pairs",           "bytes",           "nic_bytes",
      "start_s", "end_s",    "time_s",          "mean_s",          "median_s",
      "p99_s",   "max_s",    "nic_bytes_per_s", "line_rate_share", "alone_s"};
  if (is_drawn_often(hash)) {
    names.insert(names.end(), {"hash_least_s", "hash_median_s", "hash_most_s"});
  }
  CsvText out = csv_line(names);
  for (std::size_t i = 0; i < report.entries.size(); ++i) {
    const EntryReport& e = report.entries[i];
    std::vector<std::string> cells{e.name, std::to_string(e.messages)};
    for (const double value :
         {e.pairs, e.bytes, e.nic_bytes, e.start_s, e.end_s, e.time_s(), e.mean_s, e.median_s,
          e.p99_s, e.max_s, e.nic_bytes_per_s, e.line_rate_share, e.alone_s}) {
      cells.push_back(number_text(value));
    }
    if (is_drawn_often(hash)) {
      const HashBand& band = hash->bands[i + 1];
      for (const HashDraw& of : {band.least, band.median, band.most}) {
        cells.push_back(number_text(of.value));
      }
    }
    out += csv_line(cells);
  }
  return out;
}

CsvText flows_csv(const TrafficSimulation& simulation) {
  const TrafficPlan& plan = simulation.plan();
  CsvText out = CsvText::write("entry,group,round,from,to,bytes,start_s,end_s\n");
  for (const Completion& c : simulation.completions()) {
    const Demand& demand = plan.demands()[c.demand];
    const TrafficGroup& group = plan.groups()[demand.group];
    const std::string& entry = plan.scenario().entries[group.entry].name;
    const bool ring = demand.next != Demand::kNone;  // stands for the whole group
    out +=
        CsvText::write("{},{},{},{},{},{},{},{}\n", entry, group.number, c.round,
                       ring ? "" : end_name(group, demand.from), ring ? "" : end_name(group, c.to),
                       number_text(c.bytes), exact_seconds(c.start), exact_seconds(c.end));
  }
  return out;
}

std::string paths_text(const TrafficSimulation& simulation) {
  const FlowNetwork& flows = simulation.network().flows();
  fmt::memory_buffer out;
  const auto add = std::back_inserter(out);
  fmt::format_to(add, "lockstep-paths 1\nlinks {}\n", flows.links());
  for (LinkIndex link = 0; link < flows.links(); ++link) {
    fmt::format_to(add, "{:.17g}\n", flows.capacity(link).base_units());
  }
  // Sorted by demand and round, so that a transfer stands after those that it waits for.
  std::vector<const Completion*> ordered;
  for (const Completion& c : simulation.completions()) ordered.push_back(&c);
  std::ranges::sort(ordered, {},
                    [](const Completion* c) { return std::pair(c->demand, c->round); });
  fmt::format_to(add, "messages {}\n", ordered.size());
  for (const Completion* c : ordered) {
    fmt::format_to(add, "{} {} {:.17g} {} {}", c->demand, c->round, c->bytes,
                   exact_seconds(c->start), exact_seconds(c->end));
    for (const MaxMin::Edge& edge : flows.edges(c->flow)) fmt::format_to(add, " {}", edge.link);
    out.push_back('\n');
  }
  return fmt::to_string(out);
}

}  // namespace lockstep
