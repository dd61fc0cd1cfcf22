#include "tools/views/comm/comm_collective_output.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <ranges>

#include "models/base/number_text.hpp"
#include "models/base/quantity.hpp"
#include "sim/answer/comm_collective.hpp"

namespace lockstep {
namespace {

using Align = TextTable::Align;

std::string_view name_of_op(CollectiveOp op) {
  return collective_kinds()[static_cast<std::size_t>(op)].name;
}

double microseconds_of(const CollectiveRow& row) { return row.time.base_units() * 1e6; }

std::string size_text(Bytes size) { return format_quantity(size.base_units(), Dimension::data); }

/// "at 1 MiB ": names the size of a number in a line about several sizes.
std::string at_size(const CollectiveRow& row) { return fmt::format("at {} ", size_text(row.size)); }

/// What switches or slow NICs make of the last of `rows` that they hold back; empty where none is.
std::string limit_text(std::span<const CollectiveRow> rows) {
  for (const CollectiveRow& row : rows | std::views::reverse) {
    if (row.slowest_link.empty()) continue;
    const bool of_switches = row.held_by_switches();
    const Seconds full = of_switches ? row.full_time : row.choice.time;
    return fmt::format(
        "; {}held back by {}: {}, {:.2f} times the {} of {}", rows.size() > 1 ? at_size(row) : "",
        row.slowest_link, duration_text(row.time.base_units()), double{row.time / full},
        duration_text(full.base_units()), of_switches ? "a full fabric" : "NICs at full rate");
  }
  return {};
}

/// The rows' times over all draws of the hashes, or which draw they are of.
std::string hash_lines(const CollectiveStudy& study, const TextStyle& style) {
  if (!study.hash) return {};
  if (study.hash->draws == 1) return "\nhash: " + one_draw_text(*study.hash) + "\n";
  TextTable table({{"op", Align::left},
                   {"size B"},
                   {"least us"},
                   {"draw"},
                   {"median us"},
                   {"draw"},
                   {"most us"},
                   {"draw"}});
  for (std::size_t i = 0; i < study.rows.size(); ++i) {
    const HashBand& band = study.hash->bands[i];
    std::vector<std::string> cells{std::string(name_of_op(study.rows[i].op)),
                                   fmt::format("{:.0f}", study.rows[i].size.base_units())};
    for (const HashDraw& of : {band.least, band.median, band.most}) {
      cells.push_back(significant(of.value * 1e6, 4));
      cells.push_back(fmt::format("{}", of.draw));
    }
    table.add(std::move(cells));
  }
  return fmt::format("\n{} draws of the paths' hashes; all else is of draw {}\n", study.hash->draws,
                     study.hash->draw) +
         table.text(style, 0);
}

/// How members spread over domains: "8 in each of 2".
std::string way_text(const DomainSpread& way) {
  const std::string members = way.per_domain == way.per_domain_max
                                  ? fmt::format("{}", way.per_domain)
                                  : fmt::format("{} to {}", way.per_domain, way.per_domain_max);
  return fmt::format("{} in each of {}", members, grouped(way.domains));
}

}  // namespace

bool switches_limit(const CollectiveStudy& study) {
  return std::ranges::any_of(study.rows, &CollectiveRow::held_by_switches);
}

std::string collective_group_text(const CollectiveStudy& study) {
  const CollectiveGroup& group = study.group;
  const bool several = group.ways.size() > 1;
  std::string lie;
  for (std::size_t i = 0; i < group.ways.size(); ++i) {
    const bool first = i == 0;
    lie += first ? "" : ", ";
    lie += way_text(group.ways[i]);
    if (first) lie += group.nodes == 1 ? " NVLink domain" : " NVLink domains";
    if (several) lie += " (" + counted(group.groups_of_way[i], "group") + ")";
  }
  return fmt::format("{}: {}, {} of NIC each, {}",
                     counted(static_cast<double>(group.gpus.size()), "GPU"), lie,
                     format_quantity(group.nic_bandwidth.base_units(), Dimension::data_rate),
                     study.cluster.transport.name);
}

std::vector<std::string> choice_reasons(const CollectiveStudy& study) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < study.rows.size();) {
    const CollectiveRow& first = study.rows[i];
    std::size_t end = i + 1;
    const auto same = [&first](const CollectiveRow& row) {
      return row.op == first.op && row.choice.cost->algorithm == first.choice.cost->algorithm &&
             row.choice.cost->protocol == first.choice.cost->protocol;
    };
    while (end < study.rows.size() && same(study.rows[end])) ++end;
    const std::string from = size_text(first.size), to = size_text(study.rows[end - 1].size);
    const bool several = from != to;
    std::string line = fmt::format("{}, {}: {}{}", name_of_op(first.op),
                                   several ? fmt::format("{} to {}", from, to) : from,
                                   several ? at_size(first) : "", first.choice.reason);
    line += limit_text({&study.rows[i], end - i});
    out.push_back(std::move(line));
    i = end;
  }
  return out;
}

std::string collective_table(const CollectiveStudy& study, const TextStyle& style) {
  std::string out = study.about.empty() ? "" : wrap(study.about, kTextColumns, 0) + "\n";
  out += collective_group_text(study) + "\n";
  for (const std::string& assumption : study.cluster.assumptions) {
    out += wrap("assumed: " + assumption, kTextColumns, 2) + "\n";
  }
  for (const std::string& note : study.notes) {
    out += wrap("note: " + note, kTextColumns, 2) + "\n";
  }
  out += "\n";
  std::vector<TextTable::Column> columns{{"op", Align::left},
                                         {"size B"},
                                         {"count"},
                                         {"redop", Align::left},
                                         {"time us"},
                                         {"algbw"},
                                         {"busbw"},
                                         {"algorithm", Align::left},
                                         {"protocol", Align::left},
                                         {"ch"}};
  if (switches_limit(study)) columns.push_back({"full us"});
  TextTable table(std::move(columns));
  const bool limited = switches_limit(study);
  for (const CollectiveRow& row : study.rows) {
    std::vector<std::string> cells = {std::string(name_of_op(row.op)),
                                      fmt::format("{:.0f}", row.size.base_units()),
                                      fmt::format("{:.0f}", collective_count(row, study)),
                                      std::string(reduction_of(row.op)),
                                      significant(microseconds_of(row), 4),
                                      fmt::format("{:.2f}", row.algbw_bytes_per_s / 1e9),
                                      fmt::format("{:.2f}", row.busbw_bytes_per_s / 1e9),
                                      std::string(row.choice.cost->algorithm),
                                      std::string(row.choice.cost->protocol),
                                      fmt::format("{}", row.choice.channels)};
    if (limited) cells.push_back(significant(row.full_time.base_units() * 1e6, 4));
    table.add(std::move(cells));
  }
  out += table.text(style, 0) + "count: of floats; algbw, busbw: GB/s" +
         (limited ? std::string("; full: time on a fabric whose switches never limit") : "") +
         "\n" + hash_lines(study, style) +
         "\nwhy (each algorithm's own time; above is the smooth minimum over all)\n";
  for (const std::string& reason : choice_reasons(study)) {
    out += fmt::format("  {}\n", wrap(reason, kTextColumns, 4, 2));
  }
  return out;
}

CsvText collective_csv(const CollectiveStudy& study) {
  std::vector<std::string> names{"op",        "size_bytes", "count",          "type",
                                 "redop",     "time_us",    "algbw_GB_per_s", "busbw_GB_per_s",
                                 "algorithm", "protocol",   "channels",       "reason"};
  const bool drawn = study.hash && study.hash->draws > 1;
  if (drawn) names.insert(names.end(), {"hash_least_us", "hash_median_us", "hash_most_us"});
  CsvText out = csv_line(names);
  for (std::size_t i = 0; i < study.rows.size(); ++i) {
    const CollectiveRow& row = study.rows[i];
    std::vector<std::string> cells{
        std::string(name_of_op(row.op)),           number_text(row.size.base_units()),
        number_text(collective_count(row, study)), "float",
        std::string(reduction_of(row.op)),         number_text(microseconds_of(row)),
        number_text(row.algbw_bytes_per_s / 1e9),  number_text(row.busbw_bytes_per_s / 1e9),
        std::string(row.choice.cost->algorithm),   std::string(row.choice.cost->protocol),
        std::to_string(row.choice.channels),       row.choice.reason};
    if (drawn) {
      const HashBand& band = study.hash->bands[i];
      for (const HashDraw& of : {band.least, band.median, band.most}) {
        cells.push_back(number_text(of.value * 1e6));
      }
    }
    out += csv_line(cells);
  }
  return out;
}

}  // namespace lockstep
