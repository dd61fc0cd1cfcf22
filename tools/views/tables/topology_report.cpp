#include "tools/views/tables/topology_report.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "models/base/quantity.hpp"
#include "topologies/fabrics/nic_rates.hpp"
#include "topologies/formats/fabric_json.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kListedPoints = 12;

std::string layer_name(int level) {
  return level == 0 ? "NICs" : level < 0 ? "no layer" : fmt::format("layer {}", level);
}

std::string rate(BytesPerSecond value) {
  const double gigabits = value / gigabits_per_second(1);
  constexpr double kTera = 1000;
  return gigabits >= kTera ? significant(gigabits / kTera, 4) + " Tb/s"
                           : significant(gigabits, 4) + " Gb/s";
}

std::string ratio(double value) { return value > 0 ? significant(value) + " : 1" : "nothing up"; }

/// A whole number, with a letter for its size where it is large.
std::string count_text(double value) {
  constexpr double kLarge = 1e6;
  return value < kLarge ? grouped(value) : compact(value);
}

std::string spread(const Spread& s) {
  if (s.least == s.most) return count_text(s.least);
  return fmt::format("{} at least, {} in the median, {} at most", count_text(s.least),
                     count_text(s.median), count_text(s.most));
}

std::string names_of(const SinglePoint& point) {
  std::string out = fmt::format("{}", fmt::join(point.examples, ", "));
  if (point.hosts > static_cast<int>(point.examples.size())) out += ", ...";
  return out;
}

class Table {
 public:
  Table(const DrawnFabric& fabric, const TopologyAnalysis& a, const TextStyle& style)
      : fabric_(fabric), a_(a), style_(style) {}

  std::string text() {
    out_ = style_.bold(fabric_.about.empty() ? fabric_.source : fabric_.about) + "\n";
    line("size",
         fmt::format("{}, {} of {}, {} {}, {}", counted(a_.hosts, "host"), counted(a_.nics, "NIC"),
                     words_of(nic_rates(fabric_.graph)), grouped(a_.switches),
                     a_.switches == 1 ? "switch" : "switches", counted(a_.cables, "cable")));
    const std::string carriage = words_of(fabric_.carriage);
    if (!carriage.empty()) line("carries", carriage);
    if (a_.down_cables > 0) line("down", fmt::format("{} cables more", grouped(a_.down_cables)));
    line("parts", parts());
    line("distance", distance());
    line("bisection", bisection());
    if (a_.shortest_paths.most > 0) {
      line("shortest paths", spread(a_.shortest_paths) + ", between NICs on different switches");
    }
    if (a_.disjoint_pairs > 0) line("disjoint paths", disjoint());
    line("without a switch", worst());
    layers();
    points();
    for (const std::string& text : fabric_.assumptions) line("assumed", text);
    return std::move(out_);
  }

 private:
  void line(std::string_view name, const std::string& text) {
    constexpr int kName = 19;
    out_ += fmt::format("  {:<{}}{}\n", name, kName - 2, wrap(text, kTextColumns, kName, kName));
  }

  std::string parts() const {
    std::string out = a_.parts == 1 ? "all NICs reach each other"
                                    : fmt::format("{} that do not reach each other", a_.parts);
    if (a_.unplugged_nics > 0)
      out += fmt::format("; {} without a cable", counted(a_.unplugged_nics, "NIC"));
    return out;
  }
  std::string distance() const {
    const bool sampled = a_.sources < a_.sources_of;
    std::string out =
        fmt::format("{} cables {}, {} on average", a_.diameter, sampled ? "or more" : "at most",
                    significant(a_.average_distance));
    if (sampled) out += fmt::format(" (from {} of {} places)", a_.sources, a_.sources_of);
    return out;
  }
  std::string bisection() const {
    const Bisection& cut = a_.bisection;
    if (cut.injection <= BytesPerSecond{}) return "there are no two halves";
    const std::string share = significant(100 * double{cut.rate / cut.injection});
    if (cut.exact) {
      return fmt::format(
          "{} between the two halves of the narrowest cut, {} % of what the NICs of "
          "one can send",
          rate(cut.rate), share);
    }
    return fmt::format(
        "at most {}, {} % of what the NICs of one half can send: the narrowest of {} "
        "cuts into two halves that were tried",
        rate(cut.rate), share, cut.cuts);
  }
  std::string disjoint() const {
    std::string out = spread(a_.disjoint_paths) + " without a common cable, between switches";
    if (a_.disjoint_pairs < a_.pairs_of_switches) {
      out += fmt::format(" ({} of {} pairs)", grouped(a_.disjoint_pairs),
                         count_text(a_.pairs_of_switches));
    }
    return out;
  }
  std::string worst() const {
    if (a_.worst_switch.nics == 0) return "no NIC is lost";
    return fmt::format("at most {} {} lost ({})", counted(a_.worst_switch.nics, "NIC"),
                       a_.worst_switch.nics == 1 ? "is" : "are", a_.worst_switch.name);
  }

  void layers() {
    TextTable table({{"layer", TextTable::Align::left},
                     {"switches"},
                     {"from below"},
                     {"across"},
                     {"upwards"},
                     {"oversubscription"},
                     {"worst switch", TextTable::Align::left}});
    for (std::size_t i = 0; i < a_.layers.size(); ++i) {
      const LayerLoad& load = a_.loads[i];
      const bool uneven = load.worst > load.oversubscription() * (1 + 1e-9);
      table.add({layer_name(load.level), grouped(a_.layers[i].switches), rate(load.down),
                 load.across > BytesPerSecond{} ? rate(load.across) : "", rate(load.up),
                 load.up > BytesPerSecond{} ? ratio(load.oversubscription()) : "",
                 uneven ? fmt::format("{} at {}", ratio(load.worst), load.worst_switch) : ""});
    }
    out_ += "\n" + table.text(style_);
    TextTable cables({{"cables between", TextTable::Align::left}, {"rate"}, {"number"}});
    for (const CableCount& count : a_.cable_counts) {
      cables.add({layer_name(count.low) + ", " + layer_name(count.high), rate(count.rate),
                  grouped(count.cables)});
    }
    out_ += "\n" + cables.text(style_) + "\n";
  }

  void points() {
    if (a_.hosts_on_one_cable > 0) {
      line("single points",
           fmt::format("{} hosts hang on one cable", grouped(a_.hosts_on_one_cable)));
    }
    if (a_.single_points.empty()) {
      line("single points", "no switch and no cable between switches cuts off a host");
      return;
    }
    TextTable table({{"single point of failure", TextTable::Align::left},
                     {"what", TextTable::Align::left},
                     {"hosts cut off"},
                     {"NICs cut off"},
                     {"hosts", TextTable::Align::left}});
    const std::size_t listed = std::min(kListedPoints, a_.single_points.size());
    for (std::size_t i = 0; i < listed; ++i) {
      const SinglePoint& point = a_.single_points[i];
      table.add({point.name, point.is_switch ? "switch" : "cable", grouped(point.hosts),
                 grouped(point.nics), names_of(point)});
    }
    out_ += table.text(style_);
    if (a_.single_points.size() > listed) {
      out_ += fmt::format("  and {} more\n",
                          grouped(static_cast<double>(a_.single_points.size() - listed)));
    }
    if (!a_.single_points_complete) out_ += "  (there were too many candidates to try them all)\n";
  }

  const DrawnFabric& fabric_;
  const TopologyAnalysis& a_;
  const TextStyle& style_;
  std::string out_;
};

Json json_of(const Spread& s) { return {{"min", s.least}, {"median", s.median}, {"max", s.most}}; }
double json_of(BytesPerSecond value) { return twelve_digits(value.base_units()); }
Json json_of(const SinglePoint& point) {
  return {{"name", point.name},
          {"kind", point.is_switch ? "switch" : "cable"},
          {"hosts_cut_off", point.hosts},
          {"nics_cut_off", point.nics},
          {"examples", point.examples}};
}

}  // namespace

std::string topology_table(const DrawnFabric& fabric, const TopologyAnalysis& analysis,
                           const TextStyle& style) {
  return Table(fabric, analysis, style).text();
}

JsonText topology_json(const DrawnFabric& fabric, const TopologyAnalysis& a) {
  Json out{{"about", fabric.about},
           {"source", fabric.source},
           {"assumptions", fabric.assumptions},
           {"carriage", words_of(fabric.carriage)},
           {"hosts", a.hosts},
           {"nics", a.nics},
           {"switches", a.switches},
           {"cables", a.cables},
           {"down_cables", a.down_cables},
           {"parts", a.parts},
           {"unplugged_nics", a.unplugged_nics},
           {"diameter_cables", a.diameter},
           {"average_distance_cables", twelve_digits(a.average_distance)},
           {"distance_sources", a.sources},
           {"distance_sources_of", a.sources_of},
           {"bisection_bytes_per_s", json_of(a.bisection.rate)},
           {"bisection_is_exact", a.bisection.exact},
           {"bisection_cuts_tried", a.bisection.cuts},
           {"half_injection_bytes_per_s", json_of(a.bisection.injection)},
           {"shortest_paths", json_of(a.shortest_paths)},
           {"disjoint_paths", json_of(a.disjoint_paths)},
           {"disjoint_paths_pairs", a.disjoint_pairs},
           {"switch_pairs", a.pairs_of_switches}};
  for (std::size_t i = 0; i < a.layers.size(); ++i) {
    const LayerLoad& load = a.loads[i];
    out["layers"].push_back({{"level", load.level},
                             {"switches", a.layers[i].switches},
                             {"down_bytes_per_s", json_of(load.down)},
                             {"across_bytes_per_s", json_of(load.across)},
                             {"up_bytes_per_s", json_of(load.up)},
                             {"oversubscription", twelve_digits(load.oversubscription())},
                             {"worst_oversubscription", twelve_digits(load.worst)},
                             {"worst_switch", load.worst_switch}});
  }
  for (const CableCount& count : a.cable_counts) {
    out["cable_counts"].push_back({{"low_level", count.low},
                                   {"high_level", count.high},
                                   {"rate_bytes_per_s", json_of(count.rate)},
                                   {"cables", count.cables}});
  }
  out["hosts_on_one_cable"] = a.hosts_on_one_cable;
  out["single_points"] = Json::array();
  for (const SinglePoint& point : a.single_points) out["single_points"].push_back(json_of(point));
  out["single_points_complete"] = a.single_points_complete;
  out["worst_switch"] = json_of(a.worst_switch);
  return JsonText(out);
}

}  // namespace lockstep
