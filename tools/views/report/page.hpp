/// A self-contained HTML page: sections of text, tables and charts in one file that opens without
/// a network, in light and dark, on paper and on a phone.
///
/// The pieces are added from top to bottom; what depends on a subject stays with its subject
/// (congestion_page.cpp). README.md here shows how to add a section.
#pragma once

#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tools/views/report/assets.hpp"
#include "tools/views/report/html.hpp"

namespace lockstep {

/// Colours for things that are told apart, the same thing in the same colour everywhere: 0 to
/// kPageColours - 1, and one more for "all others". page.css and page.js hold them by number.
inline constexpr std::size_t kPageColours = 8;

/// A number in large type with a line that says what it is.
struct PageFigure {
  std::string value;  ///< "1.42×"
  std::string label;  ///< "slowdown of training-a"
  /// The number of the answer that it shows: a press leads to the part about it, where the page
  /// opens figures. Empty: none.
  std::string field{};
};

/// The id of the part of a page that is about a number: "behind-mfu".
std::string place_behind(std::string_view field);

/// A cell; with `sort` the column sorts by that number, else by the text.
struct PageCell {
  Html content;
  double sort = std::numeric_limits<double>::quiet_NaN();

  static PageCell text(std::string_view plain) { return {.content = escaped(plain)}; }
  /// A path or a name, whose lines end between its parts.
  static PageCell key(std::string_view name) { return {.content = key_words(name)}; }
  static PageCell number(std::string_view plain, double value) {
    return {.content = escaped(plain), .sort = value};
  }
  /// A number that is not known, or says nothing.
  static PageCell unknown() { return text("–"); }
};

struct PageColumn {
  std::string title;
  bool numeric = false;    ///< aligned right; sorted from large to small first
  std::string about = {};  ///< shown where the pointer rests; empty: none
};

/// Requires rows of as many cells as there are columns.
struct PageTable {
  std::vector<PageColumn> columns = {};
  std::vector<std::vector<PageCell>> rows = {};
  std::size_t first_rows = 0;                 ///< shown before "Show all"; 0: all
  std::size_t sorted_by = std::string::npos;  ///< column that the rows are sorted by, largest first
  bool searched = false;                      ///< with a field that leaves rows with certain words
  bool on_paper = true;                       ///< else something beside it says the same there
};

/// A chart. `options` are ECharts' own; where a string under "formatter", "valueFormatter",
/// "color" or "backgroundColor" begins with "@", page.js puts what has that name there.
struct PageChart {
  std::string title;
  std::string about;    ///< a sentence below the title; empty: none
  std::string summary;  ///< what a screen reader says in its place
  int height_px = 320;
  std::string_view hint{};  ///< how it is used, a sentence: left out on paper
};

/// How a chart with a bar for its stretch of time is used.
inline constexpr std::string_view kZoomHint = "Drag the ends of the bar to zoom.";

/// What a page has that asks while it is looked at, where others only show.
struct LivePart {
  std::string_view style, script;
  std::string_view policy;  ///< what its scripts may do: directives of CSP
  std::string_view from;    ///< who answers, a sentence
};

class Page {
 public:
  /// `kind` stands above the title: "Congestion report".
  Page(std::string_view kind, std::string_view title);

  void about(std::string_view text);     ///< what was simulated, below the title
  void headline(const Html& sentences);  ///< what the reader came for
  void figures(std::span<const PageFigure> figures);
  /// From here on figures whose field `has` takes lead to the part of the page with the id
  /// place_behind(field), which has to be added.
  void open_figures(std::function<bool(std::string_view)> has) { opens_ = std::move(has); }
  /// A figure that leads to such a part: its field, what the page calls it, and what it shows.
  struct OpenedFigure {
    std::string field, label, value;
  };
  /// In their order, each field once.
  [[nodiscard]] const std::vector<OpenedFigure>& opened_figures() const { return opened_; }
  void section(std::string_view title, std::string_view lead = {});
  void table(const PageTable& table);
  void chart(const PageChart& chart, const nlohmann::json& options);
  /// A picture that is SVG already, the same as a file of it: it scrolls where it is wider than the
  /// page, and buttons zoom it. `least_px`: it gets no narrower. chart.height_px is its own.
  void picture(const PageChart& chart, const Html& svg, int least_px);
  /// Charts until end_row() stand side by side where there is room.
  void begin_row();
  void end_row();
  void paragraph(const Html& sentences);
  void list(std::span<const std::string> sentences);
  /// Markup of a page's own: a form, a place that a script fills.
  void markup(const Html& html);
  /// A line of the foot, below all sections.
  void foot(std::string_view text);

  /// The whole page. Same calls, same bytes. With a live part it may ask who serves it.
  [[nodiscard]] std::string html(const ChartLibrary& library, const LivePart* live = nullptr) const;

 private:
  std::string kind_, title_;
  std::string body_, foot_;
  std::string_view open_ = "header";  ///< the element that what is added next goes into
  std::string place_;                 ///< the section's title, for who cannot see it
  std::function<bool(std::string_view)> opens_;
  std::vector<OpenedFigure> opened_;
  std::size_t charts_ = 0;
};

/// What follows a headline's sentences where a limit is exceeded: the warning of site_limit.hpp;
/// nothing for an empty one.
Html limit_sentence(std::string_view warning);
/// A name with its colour in front, as charts show it.
Html coloured_name(std::string_view name, std::size_t colour);
/// Text with a bar below that fills `share` of the cell's width (0 to 1).
Html with_bar(std::string_view text, double share);
/// Text with a smaller line below.
Html with_detail(const Html& text, std::string_view detail);

}  // namespace lockstep
