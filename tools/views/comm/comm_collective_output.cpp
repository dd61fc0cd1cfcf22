#include "tools/views/comm/comm_collective_output.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <ranges>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "models/base/quantity.hpp"
#include "sim/answer/comm_collective.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
using Align = TextTable::Align;

constexpr double kElementBytes = 4;  // float, as nccl-tests' default

std::string_view name_of_op(CollectiveOp op) {
  return collective_kinds()[static_cast<std::size_t>(op)].name;
}

/// Elements as nccl-tests counts them: of one rank's part where the buffer has one for each.
double count_of(const CollectiveRow& row, std::size_t ranks) {
  using enum CollectiveOp;
  const bool parts = row.op == all_gather || row.op == reduce_scatter || row.op == all_to_all;
  return std::floor(row.size.base_units() / kElementBytes /
                    (parts ? static_cast<double>(ranks) : 1));
}

std::string_view reduction_of(CollectiveOp op) {
  using enum CollectiveOp;
  return op == all_reduce || op == reduce_scatter || op == reduce ? "sum" : "none";
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

const CollectiveRow& largest(const CollectiveStudy& study) {
  return *std::ranges::max_element(study.rows, {}, &CollectiveRow::size);
}

/// Each operation at its largest size: numbers of one row, which may stand side by side.
Json operations_json(const CollectiveStudy& study) {
  std::vector<const CollectiveRow*> rows;
  for (const CollectiveRow& row : study.rows) {
    if (rows.empty() || rows.back()->op != row.op) {
      rows.push_back(&row);
    } else if (rows.back()->size < row.size) {
      rows.back() = &row;
    }
  }
  Json out = Json::array();
  for (const CollectiveRow* row : rows) {
    out.push_back({{"op", name_of_op(row->op)},
                   {"size_bytes", row->size.base_units()},
                   {"time_s", twelve_digits(row->time.base_units())},
                   {"busbw_bytes_per_s", twelve_digits(row->busbw_bytes_per_s)}});
  }
  return out;
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

const CollectiveRow& best_row(const CollectiveStudy& study) {
  return *std::ranges::max_element(study.rows, {}, &CollectiveRow::busbw_bytes_per_s);
}

Json candidates_json(const CollectiveChoice& choice) {
  Json out = Json::array();
  for (const JudgedCandidate& candidate : choice.candidates) {
    Json one{{"algorithm", candidate.algorithm}};
    if (!candidate.protocol.empty()) {
      one["protocol"] = candidate.protocol;
      one["latency_s"] = twelve_digits(candidate.latency.base_units());
      one["time_s"] = twelve_digits(candidate.time.base_units());
    }
    if (!candidate.eligible) one["why_not"] = candidate.why_not;
    out.push_back(std::move(one));
  }
  return out;
}

/// The ways in which groups lie, where there are several; a row's "shape" counts them from 0.
Json shapes_json(const CollectiveGroup& group) {
  Json out = Json::array();
  for (std::size_t i = 0; i < group.ways.size(); ++i) {
    const DomainSpread& way = group.ways[i];
    out.push_back({{"groups", group.groups_of_way[i]},
                   {"nodes", way.domains},
                   {"ranks_per_node_min", way.per_domain},
                   {"ranks_per_node_max", way.per_domain_max}});
  }
  return out;
}

/// How members spread over domains: "8 in each of 2".
std::string way_text(const DomainSpread& way) {
  const std::string members = way.per_domain == way.per_domain_max
                                  ? fmt::format("{}", way.per_domain)
                                  : fmt::format("{} to {}", way.per_domain, way.per_domain_max);
  return fmt::format("{} in each of {}", members, grouped(way.domains));
}

Json row_json(const CollectiveRow& row, std::size_t ranks) {
  const CollectiveCost& cost = *row.choice.cost;
  return {{"op", name_of_op(row.op)},
          {"size_bytes", row.size.base_units()},
          {"count", count_of(row, ranks)},
          {"type", "float"},
          {"redop", reduction_of(row.op)},
          {"time_s", twelve_digits(row.time.base_units())},
          {"full_fabric_time_s", twelve_digits(row.full_time.base_units())},
          {"slowest_link", row.slowest_link},
          {"algbw_bytes_per_s", twelve_digits(row.algbw_bytes_per_s)},
          {"busbw_bytes_per_s", twelve_digits(row.busbw_bytes_per_s)},
          {"algorithm", cost.algorithm},
          {"protocol", cost.protocol},
          {"channels", row.choice.channels},
          {"nvlink_bytes_per_byte", twelve_digits(cost.nvlink_coefficient)},
          {"network_bytes_per_byte", twelve_digits(cost.network_coefficient)},
          {"reason", row.choice.reason},
          {"candidates", candidates_json(row.choice)}};
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
                                      fmt::format("{:.0f}", count_of(row, study.group.gpus.size())),
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

Json collective_json(const CollectiveStudy& study) {
  Json rows = Json::array();
  const bool drawn = study.hash && study.hash->draws > 1;
  const bool several = study.group.ways.size() > 1;
  for (std::size_t i = 0; i < study.rows.size(); ++i) {
    rows.push_back(row_json(study.rows[i], study.group.gpus.size()));
    if (several) rows.back()["shape"] = study.rows[i].way;
    if (drawn) add_band(study.hash->bands[i], rows.back()["hashing"]);
  }
  Json out{{"about", study.about},
           {"ranks", study.group.gpus.size()},
           {"nodes", study.group.nodes},
           {"ranks_per_node_min", study.group.least},
           {"ranks_per_node_max", study.group.most},
           {"nic_bytes_per_s", twelve_digits(study.group.nic_bandwidth.base_units())},
           {"transport", study.cluster.transport.name},
           {"largest_time_s", twelve_digits(largest(study).time.base_units())},
           {"best_busbw_bytes_per_s", twelve_digits(best_row(study).busbw_bytes_per_s)},
           {"best_size_bytes", best_row(study).size.base_units()},
           {"best_time_s", twelve_digits(best_row(study).time.base_units())}};
  if (drawn) {
    add_band_headline(
        study.hash->bands[static_cast<std::size_t>(&largest(study) - study.rows.data())], out);
  }
  if (study.hash) out["hashing"] = hash_json(*study.hash);
  if (several) out["shapes"] = shapes_json(study.group);
  out["operations"] = operations_json(study);
  out["assumptions"] = study.cluster.assumptions;
  out["notes"] = study.notes;
  out["rows"] = std::move(rows);
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
    std::vector<std::string> cells{std::string(name_of_op(row.op)),
                                   number_text(row.size.base_units()),
                                   number_text(count_of(row, study.group.gpus.size())),
                                   "float",
                                   std::string(reduction_of(row.op)),
                                   number_text(microseconds_of(row)),
                                   number_text(row.algbw_bytes_per_s / 1e9),
                                   number_text(row.busbw_bytes_per_s / 1e9),
                                   std::string(row.choice.cost->algorithm),
                                   std::string(row.choice.cost->protocol),
                                   std::to_string(row.choice.channels),
                                   row.choice.reason};
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
