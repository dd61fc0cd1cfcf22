#include "tools/views/report/topology_page.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <vector>

#include "models/base/number_text.hpp"
#include "tools/views/report/assets.hpp"
#include "tools/views/report/chart_kit.hpp"
#include "tools/views/report/input_tables.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"
#include "topologies/fabrics/nic_rates.hpp"
#include "topologies/formats/picture.hpp"

namespace lockstep {
namespace {

/// The unit in which a rate reads best, in Gb/s.
AxisUnit rate_unit(BytesPerSecond rate) {
  const double gigabits = rate / gigabits_per_second(1);
  if (gigabits >= 1e6) return {1e6, "Pb/s"};
  return gigabits >= 1e3 ? AxisUnit{1e3, "Tb/s"} : AxisUnit{1, "Gb/s"};
}

std::string rate_words(BytesPerSecond rate) {
  const AxisUnit unit = rate_unit(rate);
  return page_with(rate / gigabits_per_second(unit.size), unit.name);
}

std::string layer_words(int level) {
  return level == 0 ? "NICs" : level < 0 ? "no layer" : fmt::format("layer {}", level);
}

std::string spread_words(const Spread& s) {
  const auto text = [](double count) { return plain_number(count, 4); };
  if (s.least == s.most) return text(s.least);
  return fmt::format("{} to {}, {} in the median", text(s.least), text(s.most), text(s.median));
}

std::string count_words(int count) { return grouped(count); }

void add_layers(Page& page, const TopologyAnalysis& a) {
  if (a.layers.empty()) return;
  std::vector<std::string> names;
  BarPart down{.name = "from below", .colour = chart_colour(0), .values = {}};
  BarPart across{.name = "across", .colour = chart_colour(2), .values = {}};
  BarPart up{.name = "upwards", .colour = chart_colour(1), .values = {}};
  PageTable table{.columns = {{.title = "Layer"},
                              {.title = "Switches", .numeric = true},
                              {.title = "From below", .numeric = true},
                              {.title = "Across", .numeric = true},
                              {.title = "Upwards", .numeric = true},
                              {.title = "Oversubscription", .numeric = true},
                              {.title = "Worst switch", .numeric = true}}};
  const auto rate = [](BytesPerSecond value) {
    return value > BytesPerSecond{} ? PageCell::number(rate_words(value), value.base_units())
                                    : PageCell::unknown();
  };
  BytesPerSecond most;
  for (const LayerLoad& load : a.loads) most = std::max(most, load.down + load.across + load.up);
  const AxisUnit unit = rate_unit(most);
  const auto at_unit = [&](BytesPerSecond value) { return value / gigabits_per_second(unit.size); };
  for (std::size_t i = 0; i < a.layers.size(); ++i) {
    const LayerLoad& load = a.loads[i];
    names.push_back(layer_words(load.level));
    down.values.push_back(at_unit(load.down));
    across.values.push_back(at_unit(load.across));
    up.values.push_back(at_unit(load.up));
    const double over = load.oversubscription();
    table.rows.push_back(
        {PageCell::text(names.back()),
         PageCell::number(count_words(a.layers[i].switches), a.layers[i].switches), rate(load.down),
         rate(load.across), rate(load.up),
         over > 0 ? PageCell::number(significant(over) + " : 1", over) : PageCell::unknown(),
         load.worst > over * (1 + 1e-9)
             ? PageCell::number(
                   fmt::format("{} : 1 at {}", significant(load.worst), load.worst_switch),
                   load.worst)
             : PageCell::unknown()});
  }
  std::vector<BarPart> parts{down, across, up};
  std::erase_if(parts, [](const BarPart& part) {
    return std::ranges::none_of(part.values, [](double value) { return value > 0; });
  });
  page.section("Layers", "What all switches of a layer together take from below and give above.");
  page.chart({.title = "Rates of the layers",
              .about = {},
              .summary = "Bars of the rates of each layer; the table has the same.",
              .height_px = paired_height(names.size(), parts.size())},
             paired_bars(names, parts, unit.name));
  page.table(table);
  PageTable cables{.columns = {{.title = "Cables between"},
                               {.title = "Rate", .numeric = true},
                               {.title = "Number", .numeric = true}}};
  for (const CableCount& count : a.cable_counts) {
    cables.rows.push_back({PageCell::text(layer_words(count.low) + ", " + layer_words(count.high)),
                           rate(count.rate),
                           PageCell::number(count_words(count.cables), count.cables)});
  }
  page.table(cables);
}

void add_single_points(Page& page, const TopologyAnalysis& a) {
  page.section("What must not break",
               a.hosts_on_one_cable > 0
                   ? fmt::format("{} hosts hang on one cable.", count_words(a.hosts_on_one_cable))
                   : std::string());
  if (a.worst_switch.nics > 0) {
    page.paragraph(escaped(fmt::format("Without {}, {} {} lost: no other switch takes more.",
                                       a.worst_switch.name, counted(a.worst_switch.nics, "NIC"),
                                       a.worst_switch.nics == 1 ? "is" : "are")));
  }
  if (a.single_points.empty()) {
    page.paragraph(escaped("No switch and no cable between switches cuts off a host."));
    return;
  }
  PageTable table{.columns = {{.title = "Single point of failure"},
                              {.title = "What"},
                              {.title = "Hosts cut off", .numeric = true},
                              {.title = "NICs cut off", .numeric = true},
                              {.title = "Among them"}},
                  .first_rows = 12};
  constexpr std::size_t kMost = 40;
  for (std::size_t i = 0; i < std::min(kMost, a.single_points.size()); ++i) {
    const SinglePoint& point = a.single_points[i];
    table.rows.push_back({PageCell::text(point.name),
                          PageCell::text(point.is_switch ? "switch" : "cable"),
                          PageCell::number(count_words(point.hosts), point.hosts),
                          PageCell::number(count_words(point.nics), point.nics),
                          PageCell::text(fmt::format("{}", fmt::join(point.examples, ", ")))});
  }
  page.table(table);
  if (a.single_points.size() > kMost || !a.single_points_complete) {
    const auto found = static_cast<double>(a.single_points.size());
    page.paragraph(escaped(
        fmt::format("These are {} of {}{}.", grouped(static_cast<double>(table.rows.size())),
                    a.single_points_complete ? "" : "more than ", grouped(found))));
  }
}

/// " from 512 of 1,024 places": where ways were looked at from some alone.
std::string from_places(const TopologyAnalysis& a) {
  if (a.sources >= a.sources_of) return {};
  return fmt::format(", from {} of {} places", count_words(a.sources), count_words(a.sources_of));
}

std::vector<PageFigure> fabric_figures(const TopologyAnalysis& a) {
  std::vector<PageFigure> out{{.value = count_words(a.hosts), .label = "hosts"},
                              {.value = count_words(a.nics), .label = "NICs"},
                              {.value = count_words(a.switches), .label = "switches"},
                              {.value = count_words(a.cables), .label = "cables"}};
  if (a.bisection.injection > BytesPerSecond{}) {
    out.push_back({.value = page_percent(double{a.bisection.rate / a.bisection.injection}),
                   .label = fmt::format("of what half of the NICs can send passes the narrowest "
                                        "cut{}",
                                        a.bisection.exact ? "" : " that was tried")});
  }
  out.push_back({.value = count_words(a.diameter),
                 .label = fmt::format("cables{} between the farthest NICs",
                                      a.sources < a.sources_of ? " or more" : "")});
  return out;
}

/// Where the fabric is from, the machine that it is built for, and what cables do not tell.
AnswerBasis drawn_basis(const DrawnFabric& fabric, const std::optional<Cluster>& cluster,
                        const WrittenScenario& written) {
  AnswerBasis out{.title = "What was drawn",
                  .simulated = {{"Source", fabric.source}},
                  .written = written,
                  .assumptions = fabric.assumptions};
  if (cluster) {
    const std::vector<NamedWords> machine = cluster_words(*cluster);
    out.simulated.insert(out.simulated.end(), machine.begin(), machine.end());
  }
  const std::string carriage = words_of(fabric.carriage);
  if (!carriage.empty()) out.simulated.push_back({"Messages", carriage});
  return out;
}

}  // namespace

std::string topology_page(const DrawnFabric& fabric, const TopologyAnalysis& a,
                          const std::optional<Cluster>& cluster, const WrittenScenario& written) {
  Page page("Fabric", fabric.about.empty() ? fabric.source : fabric.about);
  const std::string carriage = words_of(fabric.carriage);
  page.about(fmt::format("NICs of {}{}{}.", words_of(nic_rates(fabric.graph)),
                         carriage.empty() ? "" : "; ", carriage));
  page.headline(a.parts == 1 && a.unplugged_nics == 0
                    ? escaped("All NICs reach each other, over ") +
                          strong(significant(a.average_distance)) +
                          escaped(fmt::format(" cables on average{}.", from_places(a)))
                    : strong(fmt::format("{} parts do not reach each other", a.parts)) +
                          escaped(fmt::format(", and {} NICs have no cable.", a.unplugged_nics)));
  page.figures(fabric_figures(a));
  page.section("The fabric");
  constexpr int kLeast = 640;  // px
  page.picture({.title = "Drawn",
                .about = "Boxes that play the same part are one where there are many.",
                .summary = fmt::format("The fabric: {} and {} {} in layers, with the "
                                       "cables between them coloured by rate; tables below have "
                                       "the figures.",
                                       counted(a.hosts, "host"), grouped(a.switches),
                                       a.switches == 1 ? "switch" : "switches"),
                .hint = "The pointer on a box or line tells its names."},
               Html::markup(write_svg(picture_of(fabric))), kLeast);
  add_layers(page, a);
  PageTable ways{.columns = {{.title = "What"}, {.title = "Here"}}};
  const auto add = [&](const char* what, const std::string& text) {
    ways.rows.push_back({PageCell::text(what), PageCell::text(text)});
  };
  if (a.shortest_paths.most > 0) {
    add("shortest paths between NICs on different switches", spread_words(a.shortest_paths));
  }
  if (a.disjoint_pairs > 0) {
    add("paths without a common cable, between switches", spread_words(a.disjoint_paths));
  }
  if (a.bisection.injection > BytesPerSecond{}) {
    add(a.bisection.exact ? "narrowest cut into halves" : "narrowest cut that was tried",
        rate_words(a.bisection.rate));
  }
  if (a.down_cables > 0) add("cables that are down", count_words(a.down_cables));
  if (!ways.rows.empty()) {
    page.section("Ways through it");
    page.table(ways);
  }
  add_single_points(page, a);
  add_basis(page, drawn_basis(fabric, cluster, written));
  page.foot("Fabric: " + fabric.source + ".");
  return page.html(chart_library());
}

}  // namespace lockstep
