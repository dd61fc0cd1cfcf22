#include "tools/views/report/fabric_picture.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"

namespace lockstep {
namespace {

using nlohmann::json;

constexpr int kTenths = 10;
constexpr std::size_t kLabelledLines = 24;
constexpr std::size_t kShownLines = 12;  ///< rows of the table at first
constexpr double kNearestDot = 0.2;      ///< of the way from a box, which takes room itself
constexpr int kArcPoints = 12;

struct Point {
  double x, y;
};

double fullest(const FabricUse::Line& line) { return std::max(line.up.fullest, line.down.fullest); }

/// "2 dead, 1 with 50 % of its rate"; empty: all is well.
std::string health_text(const FabricUse::Line& line) {
  std::string out;
  const auto add = [&](const std::string& text) { out += (out.empty() ? "" : ", ") + text; };
  const auto of = [&](std::uint32_t count) {
    return line.cables == 1 ? std::string() : fmt::format("{} of {} ", count, line.cables);
  };
  if (line.dead > 0) add(of(line.dead) + "dead");
  if (line.degraded > 0) {
    add(line.dead > 0
            ? of(line.degraded) + "degraded"
            : fmt::format("{}degraded to {}", of(line.degraded), page_percent(line.least_left)));
  }
  if (line.passing > 0) add(of(line.passing) + "failed for a time");
  return out;
}

std::string ends_text(const FabricUse& use, const FabricUse::Line& line) {
  const std::string& lower = use.boxes[line.lower].name;
  if (line.lower == line.upper) return "within " + lower;
  return fmt::format("{} – {}", lower, use.boxes[line.upper].name);
}

/// What the pointer reads on a line.
json line_words(const FabricUse& use, const FabricUse::Line& line) {
  json words = json::array();
  const std::string cables =
      line.cables == 1 ? "1 cable" : grouped(static_cast<double>(line.cables)) + " cables";
  words.push_back(fmt::format("{}: {}", ends_text(use, line), cables));
  const std::string health = health_text(line);
  if (!health.empty()) words.push_back(health);
  const auto add = [&](const char* way, const FabricUse::Way& of) {
    words.push_back(fmt::format("{}: {} used, {} at {}", way, page_percent(line.share(of)),
                                page_bytes(of.bytes.base_units()),
                                page_with(of.capacity.base_units() / 1e9, "GB/s")));
    if (of.fullest_link.empty()) return;
    words.push_back(fmt::format("fullest: {}, {}", of.fullest_link, page_percent(of.fullest)));
  };
  add("up", line.up);
  add("down", line.down);
  return words;
}

/// Where boxes stand, and what is drawn between them.
class FabricUseDrawing {
 public:
  explicit FabricUseDrawing(const FabricUse& use) : use_(use) {
    const auto levels = static_cast<std::size_t>(use.levels());
    levels_.resize(levels);
    for (std::size_t b = 0; b < use.boxes.size(); ++b) {
      levels_[static_cast<std::size_t>(use.boxes[b].level)].push_back(b);
    }
    std::erase_if(levels_, [](const auto& boxes) { return boxes.empty(); });
    double share = 0;
    for (const FabricUse::Line& line : use.lines) share = std::max(share, fullest(line));
    for (const double end : {50.0, 20.0, 10.0}) {
      if (100 * share <= end) most_ = end;
    }
    places_.resize(use.boxes.size());
    for (std::size_t l = 0; l < levels_.size(); ++l) {
      for (std::size_t i = 0; i < levels_[l].size(); ++i) {
        places_[levels_[l][i]] = {
            (static_cast<double>(i) + 0.5) / static_cast<double>(levels_[l].size()),
            static_cast<double>(l)};
      }
    }
  }

  [[nodiscard]] std::size_t levels() const { return levels_.size(); }

  json options() {
    json series = json::array();
    add_lines(series);
    add_dots(series);
    add_boxes(series);
    const auto axis = [](double first, double last) {
      return json{{"type", "value"}, {"min", first}, {"max", last}, {"show", false}};
    };
    return {{"lockstep", {{"words", words_}}},
            {"grid", {{"left", 16}, {"right", 16}, {"top", 56}, {"bottom", 8}}},
            {"tooltip", {{"trigger", "item"}, {"formatter", "@words"}, {"confine", true}}},
            {"xAxis", axis(0, 1)},
            {"yAxis", axis(-0.2, static_cast<double>(levels_.size()) - 0.65)},
            {"visualMap",
             {{"min", 0},
              {"max", most_},
              {"dimension", 2},
              {"seriesIndex", dots_},
              {"calculable", false},
              {"orient", "horizontal"},
              {"top", 0},
              {"left", 0},
              {"itemWidth", 12},
              {"itemHeight", 160},
              {"text", {fmt::format("{:g} % used", most_), "0 %"}},
              {"inRange", {{"color", "@uses"}}}}},
            {"series", series}};
  }

 private:
  /// From a box to another: straight between levels, an arc within one.
  [[nodiscard]] Point on_line(const FabricUse::Line& line, double part) const {
    const Point a = places_[line.lower], b = places_[line.upper];
    if (a.y != b.y) return {a.x + part * (b.x - a.x), a.y + part * (b.y - a.y)};
    constexpr double kHigh = 0.32, kHalfLoop = 0.03;
    const bool loop = line.lower == line.upper;
    const double from = loop ? a.x - kHalfLoop : a.x, to = loop ? a.x + kHalfLoop : b.x;
    return {from + part * (to - from), a.y + kHigh * 4 * part * (1 - part)};
  }
  [[nodiscard]] bool straight(const FabricUse::Line& line) const {
    return places_[line.lower].y != places_[line.upper].y;
  }
  /// Where on a line its dot stands: nearer to the level of more boxes, where lines are apart. So
  /// near to n boxes that the dots of lines from each of them to n others stand evenly.
  [[nodiscard]] double dot_place(const FabricUse::Line& line) const {
    if (!straight(line)) return 0.5;
    const auto boxes_beside = [&](std::size_t box) {
      return levels_[static_cast<std::size_t>(places_[box].y)].size();
    };
    const std::size_t lower = boxes_beside(line.lower), upper = boxes_beside(line.upper);
    const double near =
        std::max(kNearestDot, 1 / (1 + static_cast<double>(std::max(lower, upper))));
    return lower >= upper ? near : 1 - near;
  }
  static json pair(Point at) { return {four_digits(at.x), four_digits(at.y)}; }

  /// Lines of one look are one series, with gaps between them.
  void add_lines(json& series) const {
    for (int look = 0; look <= kTenths + 1; ++look) {
      json data = json::array();
      for (const FabricUse::Line& line : use_.lines) {
        if (look_of(line) != look) continue;
        const int points = straight(line) ? 1 : kArcPoints;
        for (int i = 0; i <= points; ++i) {
          data.push_back(pair(on_line(line, static_cast<double>(i) / points)));
        }
        data.push_back({"-", "-"});
      }
      if (data.empty()) continue;
      const bool dead = look > kTenths;
      series.push_back({{"type", "line"},
                        {"name", "cables"},
                        {"silent", true},
                        {"symbol", "none"},
                        {"data", data},
                        {"lineStyle",
                         {{"color", dead ? std::string("@accent") : fmt::format("@use-{}", look)},
                          {"type", dead ? "dashed" : "solid"},
                          {"width", look == 0 ? 1 : 2.5}}}});
    }
  }
  /// Tenths of the scale that the fullest link uses; above that: all cables are dead.
  [[nodiscard]] int look_of(const FabricUse::Line& line) const {
    if (line.dead == line.cables) return kTenths + 1;
    const double part = std::min(1.0, 100 * fullest(line) / most_);
    return static_cast<int>(std::ceil(part * kTenths - 1e-9));
  }

  /// A dot on each line for the pointer, in its colour; a mark where cables are not well.
  void add_dots(json& series) {
    json dots = json::array(), marks = json::array();
    for (const FabricUse::Line& line : use_.lines) {
      json place = pair(on_line(line, dot_place(line)));
      const double percent = rounded_percent(fullest(line));
      place.push_back(percent);
      place.push_back(words_.size());
      words_.push_back(line_words(use_, line));
      if (line.dead + line.degraded + line.passing == 0) {
        dots.push_back({{"value", place}, {"name", page_percent(fullest(line))}});
        continue;
      }
      const char* sign = line.dead > 0 ? "×" : line.degraded > 0 ? "½" : "!";
      marks.push_back({{"value", place}, {"name", sign}});
    }
    dots_ = series.size();
    series.push_back({{"type", "scatter"},
                      {"name", "use"},
                      {"symbolSize", 9},
                      {"data", dots},
                      {"z", 3},
                      {"itemStyle", {{"opacity", 1}}},
                      {"label",
                       {{"show", use_.lines.size() <= kLabelledLines},
                        {"position", "inside"},
                        {"formatter", "{b}"},
                        {"color", "@ink"},
                        {"backgroundColor", "@card"},
                        {"padding", {1, 3}},
                        {"fontSize", 10}}}});
    if (marks.empty()) return;
    series.push_back({{"type", "scatter"},
                      {"name", "faults"},
                      {"symbolSize", 20},
                      {"data", marks},
                      {"z", 4},
                      {"itemStyle", {{"color", "@accent"}, {"opacity", 1}}},
                      {"label",
                       {{"show", true},
                        {"formatter", "{b}"},
                        {"color", "@card"},
                        {"fontSize", 14},
                        {"fontWeight", "bold"}}}});
  }

  void add_boxes(json& series) {
    for (const std::vector<std::size_t>& boxes : levels_) {
      json data = json::array();
      for (const std::size_t b : boxes) {
        json place = pair(places_[b]);
        place.push_back(words_.size());
        words_.push_back({use_.boxes[b].name});
        data.push_back({{"value", place}, {"name", use_.boxes[b].name}});
      }
      series.push_back({{"type", "scatter"},
                        {"name", "boxes"},
                        {"symbol", "rect"},
                        {"data", data},
                        {"z", 5},
                        {"itemStyle", {{"color", "@track"}, {"opacity", 1}}},
                        {"label", {{"formatter", "{b}"}, {"color", "@ink"}, {"fontSize", 11}}}});
    }
  }

  const FabricUse& use_;
  std::vector<std::vector<std::size_t>> levels_;  ///< boxes of each that has some
  std::vector<Point> places_;                     ///< by box
  json words_ = json::array();
  std::size_t dots_ = 0;  ///< the series of dots
  double most_ = 100;     ///< per cent, at the end of the scale of colours
};

PageCell share_cell(double share) { return PageCell::number(page_percent(share, 1), share); }

/// What the table says of a line beside its ends.
std::vector<PageCell> figures_of(const FabricUse::Line& line) {
  const std::string health = health_text(line);
  const auto bytes = [](const FabricUse::Way& way) {
    return PageCell::number(page_bytes(way.bytes.base_units()), way.bytes.base_units());
  };
  return {PageCell::number(grouped(static_cast<double>(line.cables)), line.cables),
          {.content = with_bar(page_percent(fullest(line), 1), std::min(1.0, fullest(line))),
           .sort = fullest(line)},
          share_cell(line.share(line.up)),
          share_cell(line.share(line.down)),
          bytes(line.up),
          bytes(line.down),
          PageCell::number(page_with(line.up.capacity.base_units() / 1e9, "GB/s"),
                           line.up.capacity.base_units()),
          PageCell::text(health.empty() ? "whole" : health)};
}

PageTable table_of(const FabricUse& use) {
  std::vector<const FabricUse::Line*> lines;
  lines.reserve(use.lines.size());
  for (const FabricUse::Line& line : use.lines) lines.push_back(&line);
  std::ranges::stable_sort(lines, std::ranges::greater{},
                           [](const FabricUse::Line* line) { return fullest(*line); });
  struct Row {
    const FabricUse::Line* line;
    std::vector<PageCell> figures;
    std::size_t lines = 1;
  };
  std::vector<Row> rows;
  std::map<std::string, std::size_t> row_of;  // by what is printed of it
  for (const FabricUse::Line* line : lines) {
    std::vector<PageCell> figures = figures_of(*line);
    std::string printed;
    for (const PageCell& cell : figures) printed += cell.content.str() + "\n";
    const auto [known, is_new] = row_of.emplace(std::move(printed), rows.size());
    if (is_new) {
      rows.push_back({line, std::move(figures)});
    } else {
      ++rows[known->second].lines;
    }
  }
  PageTable table{
      .columns = {{.title = "Between"},
                  {.title = "Cables", .numeric = true},
                  {.title = "Fullest", .numeric = true, .about = "of one link, either way"},
                  {.title = "Up", .numeric = true, .about = "mean use of all links up"},
                  {.title = "Down", .numeric = true, .about = "mean use of all links down"},
                  {.title = "Bytes up", .numeric = true},
                  {.title = "Bytes down", .numeric = true},
                  {.title = "Capacity", .numeric = true, .about = "of all links one way"},
                  {.title = "State"}},
      .first_rows = kShownLines,
      .sorted_by = 2};
  for (Row& row : rows) {
    const FabricUse::Line& line = *row.line;
    const std::string& link =
        line.up.fullest >= line.down.fullest ? line.up.fullest_link : line.down.fullest_link;
    const std::string alike = row.lines > 1 ? fmt::format(" ({} alike)", row.lines) : "";
    std::vector<PageCell> cells{
        {.content = with_detail(escaped(ends_text(use, line) + alike), link)}};
    std::ranges::move(row.figures, std::back_inserter(cells));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

bool any_fault(const FabricUse& use) {
  return std::ranges::any_of(use.lines, [](const FabricUse::Line& line) {
    return line.dead + line.degraded + line.passing > 0;
  });
}

}  // namespace

void add_fabric_picture(Page& page, const FabricUse& use) {
  if (use.bytes() <= Bytes{} && !any_fault(use)) {
    page.section("The fabric");
    page.paragraph(escaped("No message crosses it: all stay within nodes."));
    return;
  }
  FabricUseDrawing picture(use);
  const bool folded = std::ranges::any_of(use.boxes, [](const auto& box) { return box.count > 1; });
  page.section("The fabric",
               fmt::format("Share of their capacity for payload that links moved over {}.{}",
                           page_duration(use.window_s),
                           folded ? " Switches or nodes that are alike share a box." : ""));
  page.chart(
      {.title = "Use of the fabric's links",
       .about = std::string("The colour of a line is that of its fullest link, in its fuller "
                            "direction.") +
                (any_fault(use) ? " × is dead, ½ degraded, ! failed for a time." : ""),
       .summary = "Nodes and switches, layer by layer, with lines between them coloured by "
                  "use; the table below has the same figures.",
       .height_px = 80 + 130 * static_cast<int>(picture.levels()),
       .hint = "The pointer on a dot or its label tells the figures."},
      picture.options());
  page.table(table_of(use));
}

}  // namespace lockstep
