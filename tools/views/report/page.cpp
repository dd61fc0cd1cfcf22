#include "tools/views/report/page.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <fmt/format.h>
#include <iterator>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "models/base/write_json.hpp"
#include "tools/console/table.hpp"

namespace lockstep {
namespace {

/// Nothing can be fetched, whatever a name in the page contains.
constexpr std::string_view kScripts = "script-src 'unsafe-inline'";

/// The content security policy of a page.
std::string policy(std::string_view scripts) {
  return fmt::format("default-src 'none'; style-src 'unsafe-inline'; {}; img-src data:", scripts);
}

/// The printed head of a sheet. The reader fills it in, because a date written by the program would
/// change the bytes of the page every day.
constexpr std::string_view kSheet =
    "<form class=\"sheet\" aria-label=\"For the printed page\"><label>For <input "
    "name=\"for\"></label><label>By <input name=\"by\"></label><label>Date <input "
    "name=\"date\"></label><button type=\"button\" data-today>today</button><button "
    "type=\"button\" data-print>print</button></form>\n";

template <class... Args>
void append(std::string& out, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
}

void append_head_cell(std::string& out, const PageColumn& column, bool sorted) {
  append(out, "<th scope=\"col\"{}{}{}><button type=\"button\">{}</button></th>\n",
         column.numeric ? " class=\"number\"" : "", sorted ? " aria-sort=\"descending\"" : "",
         column.about.empty() ? "" : fmt::format(" title=\"{}\"", escaped(column.about).str()),
         key_words(column.title).str());
}

void append_cell(std::string& out, const PageColumn& column, const PageCell& cell) {
  append(out, "<td{}{}>{}</td>", column.numeric ? " class=\"number\"" : "",
         std::isfinite(cell.sort) ? fmt::format(" data-sort=\"{}\"", number_text(cell.sort)) : "",
         cell.content.str());
}

/// A column in which no row has a number, as a price where nobody says one, says nothing.
PageTable without_empty_columns(PageTable table) {
  const std::string nothing = PageCell::unknown().content.str();
  for (std::size_t c = table.columns.size(); c-- > 0;) {
    const bool empty = table.columns[c].numeric && !table.rows.empty() &&
                       std::ranges::all_of(table.rows, [&](const std::vector<PageCell>& row) {
                         return row[c].content.empty() || row[c].content.str() == nothing;
                       });
    if (!empty) continue;
    const auto at = static_cast<std::ptrdiff_t>(c);
    table.columns.erase(table.columns.begin() + at);
    for (std::vector<PageCell>& row : table.rows) row.erase(row.begin() + at);
    if (table.sorted_by == std::string::npos || table.sorted_by < c) continue;
    table.sorted_by = table.sorted_by == c ? std::string::npos : table.sorted_by - 1;
  }
  return table;
}

std::string caption_of(const PageChart& chart) {
  std::string out = fmt::format("<figcaption><h3>{}</h3>", escaped(chart.title).str());
  if (!chart.about.empty() || !chart.hint.empty()) {
    append(out, "<p>{}", prose(chart.about).str());
    if (!chart.hint.empty()) {
      append(out, "<span class=\"hint\">{}{}</span>", chart.about.empty() ? "" : " ", chart.hint);
    }
    out += "</p>";
  }
  return out + "</figcaption>";
}

/// Whether a narrow screen would break a word of it anywhere:
/// "cluster.fabric.leaf_oversubscription".
bool has_long_word(std::string_view text) {
  constexpr std::size_t kLong = 24;
  std::size_t length = 0;
  return std::ranges::any_of(text, [&](char c) {
    length = c == ' ' ? 0 : length + 1;
    return length > kLong;
  });
}

}  // namespace

Page::Page(std::string_view kind, std::string_view title)
    : kind_(kind), title_(title), place_(title) {
  append(body_, "<header>\n<p class=\"kind\">{}</p>\n<h1>{}</h1>\n", escaped(kind_).str(),
         (has_long_word(title_) ? key_words(title_) : escaped(title_)).str());
}

void Page::about(std::string_view text) {
  append(body_, "<p class=\"about\">{}</p>\n", prose(text).str());
}

void Page::headline(const Html& sentences) {
  append(body_, "<p class=\"headline\">{}</p>\n", sentences.str());
}

std::string place_behind(std::string_view field) { return fmt::format("behind-{}", field); }

void Page::figures(std::span<const PageFigure> figures) {
  body_ += "<dl class=\"figures\">\n";
  for (const PageFigure& figure : figures) {
    std::string label = escaped(figure.label).str();
    if (!figure.field.empty() && opens_ && opens_(figure.field)) {
      const std::string place = escaped(place_behind(figure.field)).str();
      label = fmt::format("<a href=\"#{}\">{}</a>", place, label);
      if (std::ranges::find(opened_, figure.field, &OpenedFigure::field) == opened_.end())
        opened_.push_back({figure.field, figure.label, figure.value});
    }
    append(body_, "<div><dt>{}</dt><dd>{}</dd></div>\n", label, escaped(figure.value).str());
  }
  body_ += "</dl>\n";
}

void Page::section(std::string_view title, std::string_view lead) {
  append(body_, "</{}>\n<section>\n<h2>{}</h2>\n", open_, escaped(title).str());
  open_ = "section";
  place_ = title;
  if (!lead.empty()) append(body_, "<p class=\"lead\">{}</p>\n", prose(lead).str());
}

void Page::table(const PageTable& table) {
  const PageTable shown = without_empty_columns(table);
  const std::string name = escaped(place_).str();
  if (shown.searched) {
    append(body_,
           "<div class=\"search\"><label>Search <input type=\"search\" "
           "placeholder=\"words that a row has\"></label><output aria-live=\"polite\">{} "
           "rows</output></div>\n",
           shown.rows.size());
  }
  append(body_,
         "<div class=\"table{}\" role=\"region\" aria-label=\"{}\" "
         "tabindex=\"0\"><table{}>\n<thead><tr>\n",
         shown.on_paper ? "" : " screen", name,
         shown.first_rows == 0 ? "" : fmt::format(" data-first=\"{}\"", shown.first_rows));
  for (std::size_t i = 0; i < shown.columns.size(); ++i) {
    append_head_cell(body_, shown.columns[i], i == shown.sorted_by);
  }
  body_ += "</tr></thead>\n<tbody>\n";
  for (const std::vector<PageCell>& row : shown.rows) {
    assert(row.size() == shown.columns.size());
    body_ += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) append_cell(body_, shown.columns[i], row[i]);
    body_ += "</tr>\n";
  }
  body_ += "</tbody></table></div>\n";
}

void Page::chart(const PageChart& chart, const nlohmann::json& options) {
  const std::size_t number = ++charts_;
  append(body_, "<figure>\n{}", caption_of(chart));
  append(body_,
         "\n<div class=\"chart\" data-chart=\"chart-{}\" style=\"height:{}px\" "
         "role=\"img\" aria-label=\"{}\"></div>\n",
         number, chart.height_px, escaped(chart.summary).str());
  append(body_, "<script type=\"application/json\" id=\"chart-{}\">{}</script>\n</figure>\n",
         number, script_json(write_json(options)).str());
}

void Page::picture(const PageChart& chart, const Html& svg, int least_px) {
  const std::string title = escaped(chart.title).str();
  append(body_, "<figure class=\"picture\">\n{}\n<div class=\"zoom\">", caption_of(chart));
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kZooms{
      {{"in", "+"}, {"out", "−"}, {"whole", "whole"}}};
  for (const auto& [how, sign] : kZooms) {
    append(body_,
           R"(<button type="button" data-zoom="{0}" aria-label="zoom {0}: {1}">{2}</button>)", how,
           title, sign);
  }
  append(body_,
         "</div>\n<div class=\"canvas\" role=\"img\" aria-label=\"{}\" tabindex=\"0\" "
         "style=\"--least:{}px\">{}</div>\n</figure>\n",
         escaped(chart.summary).str(), least_px, svg.str());
}

void Page::begin_row() { body_ += "<div class=\"row\">\n"; }
void Page::end_row() { body_ += "</div>\n"; }

void Page::paragraph(const Html& sentences) { append(body_, "<p>{}</p>\n", sentences.str()); }

void Page::list(std::span<const std::string> sentences) {
  body_ += "<ul>\n";
  for (const std::string& each : sentences) append(body_, "<li>{}</li>\n", prose(each).str());
  body_ += "</ul>\n";
}

void Page::markup(const Html& html) { body_ += html.str(); }

void Page::foot(std::string_view text) { append(foot_, "<p>{}</p>\n", prose(text).str()); }

std::string Page::html(const ChartLibrary& library, const LivePart* live) const {
  std::string out;
  out.reserve(body_.size() + library.script.size() + (std::size_t{1} << 16));
  append(
      out,
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n"
      "<title>{} · {}</title>\n<style>\n{}{}</style>\n</head>\n<body>\n<main>\n",
      policy(live != nullptr ? live->policy : kScripts), escaped(title_).str(),
      escaped(kind_).str(), page_style(), live != nullptr ? live->style : std::string_view());
  append(out, "{}</{}>\n</main>\n<footer>\n{}{}", body_, open_, kSheet, foot_);
  append(out,
         "<p>Made by lockstep " LOCKSTEP_VERSION
         ". {} Charts: Apache "
         "ECharts.</p>\n<details><summary>Licences of the chart library</summary>\n"
         "<pre>{}</pre></details>\n</footer>\n",
         live != nullptr ? live->from
                         : "One file that needs no network; the same input gives the same bytes.",
         escaped(library.licences).str());
  append(out, "<script>{}</script>\n<script>\n{}{}{}</script>\n</body>\n</html>\n", library.script,
         page_script(), page_parts_script(), live != nullptr ? live->script : std::string_view());
  return out;
}

Html limit_sentence(std::string_view warning) {
  return warning.empty() ? Html{} : escaped(" ") + strong(warning) + escaped(".");
}

Html coloured_name(std::string_view name, std::size_t colour) {
  return Html::markup(fmt::format("<span class=\"key\" style=\"--key:var(--colour-{})\"></span>",
                                  std::min(colour, kPageColours))) +
         escaped(name);
}

Html with_bar(std::string_view text, double share) {
  return escaped(text) +
         Html::markup(fmt::format(R"(<span class="bar"><i style="width:{:.1f}%"></i></span>)",
                                  100 * std::clamp(share, 0.0, 1.0)));
}

Html with_detail(const Html& text, std::string_view detail) {
  return text + Html::markup("<small>") + prose(detail) + Html::markup("</small>");
}

}  // namespace lockstep
