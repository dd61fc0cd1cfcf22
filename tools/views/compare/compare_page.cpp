#include "tools/views/compare/compare_page.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <vector>

#include "models/base/number_text.hpp"
#include "models/base/write_json.hpp"
#include "sim/answer/fields.hpp"
#include "sim/step/step_report.hpp"
#include "tools/views/report/assets.hpp"
#include "tools/views/report/chart_kit.hpp"
#include "tools/views/report/chart_options.hpp"
#include "tools/views/report/input_tables.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"

namespace lockstep {
namespace {

using nlohmann::json;

constexpr std::size_t kLongestValue = 60;

/// The unit of a metric by the end of its name, and its text.
struct MetricWords {
  AxisUnit unit;
  std::string (*text)(double);
};

std::string plain_number(double value) { return significant(value, 4); }
std::string percent_number(double value) { return page_percent(value, 1); }

MetricWords metric_words(const std::string& metric, double largest) {
  if (metric.ends_with("_s")) {
    return {largest < 120 ? time_unit(largest) : long_time_unit(largest), page_duration};
  }
  for (const char* share : {"mfu", "hfu", "goodput", "_share", "mfu_causal"}) {
    if (metric.ends_with(share)) return {{0.01, "%"}, percent_number};
  }
  if (metric.ends_with("_usd")) {
    AxisUnit unit = count_unit(largest);
    unit.name += " USD";
    return {unit, page_usd};
  }
  return {count_unit(largest), plain_number};
}

/// "Step", "MFU", "Energy per step": the metric in words, as a sentence begins.
std::string metric_title(const std::string& metric) {
  std::string out = FieldInfo{.name = metric, .kind = FieldKind::number}.title();
  if (!out.empty() && out.front() >= 'a' && out.front() <= 'z') {
    out.front() = static_cast<char>(out.front() - 'a' + 'A');
  }
  return out;
}

/// The title of a part of the step; the name itself of other metrics.
std::string bucket_title(const std::string& name) {
  const auto found = std::ranges::find(buckets(), name, &BucketInfo::name);
  return found == buckets().end() ? name : std::string(found->title);
}

std::string said_value(const nlohmann::ordered_json& value) {
  if (value.is_discarded()) return "not given";
  if (value.is_object() && !value.empty()) {
    std::string members;
    for (const auto& [key, each] : value.items()) {
      members += fmt::format("{}{}: {}", members.empty() ? "" : "; ", key, said_value(each));
    }
    return members;
  }
  const auto is_one = [](const nlohmann::ordered_json& each) { return each.is_primitive(); };
  if (value.is_array() && !value.empty() && std::ranges::all_of(value, is_one)) {
    std::string list;
    for (const nlohmann::ordered_json& each : value) {
      list += (list.empty() ? "" : ", ") + said_value(each);
    }
    return list;
  }
  const std::string text = value.is_string() ? value.get<std::string>() : write_json(value);
  return text.size() <= kLongestValue ? text : text.substr(0, kLongestValue) + "…";
}

std::string path_of(const Difference& difference) {
  std::string path = difference.pointer.substr(1);
  std::ranges::replace(path, '/', '.');
  return path;
}

std::string change_name(const ComparedChange& change) {
  std::string out = path_of(change.differences.front());
  if (change.differences.size() > 1)
    out += fmt::format(" + {} more", change.differences.size() - 1);
  return out;
}

/// The bars of a waterfall: an invisible one up to the nearer end, then the change.
json waterfall_options(const Comparison& c, const MetricWords& how) {
  json names = json::array(), base = json::array(), seen = json::array(), words = json::array();
  const auto add = [&](const std::string& name, double from, double to, const char* colour,
                       std::vector<std::string> lines) {
    names.push_back(name);
    base.push_back(four_digits(std::min(from, to) / how.unit.size));
    seen.push_back({{"value", four_digits(std::abs(to - from) / how.unit.size)},
                    {"itemStyle", {{"color", colour}}}});
    lines.insert(lines.begin(), name);
    words.push_back(std::move(lines));
  };
  add("first", 0, c.from, "@colour-0", {c.a, how.text(c.from)});
  double before = c.from;
  for (const ComparedChange& change : c.changes) {
    if (change.change == 0) continue;
    std::vector<std::string> lines;
    for (const Difference& d : change.differences) {
      lines.push_back(fmt::format("{}: {} → {}", path_of(d), said_value(d.from), said_value(d.to)));
    }
    lines.push_back(fmt::format("to {}", how.text(change.value)));
    add(change_name(change), before, change.value,
        change.value >= before ? "@colour-1" : "@colour-2", std::move(lines));
    before = change.value;
  }
  add("second", 0, c.to, "@colour-0", {c.b, how.text(c.to)});
  const auto bars = [](const char* name, json data, bool unseen) {
    json out{{"type", "bar"},
             {"name", name},
             {"stack", "all"},
             {"barMaxWidth", 20},
             {"data", std::move(data)}};
    if (unseen) {
      out["silent"] = true;
      out["itemStyle"] = {{"opacity", 0}};
    }
    return out;
  };
  return {
      {"lockstep", {{"words", words}}},
      {"grid", plot_grid(8, 4)},
      {"tooltip", {{"trigger", "item"}, {"formatter", "@words"}, {"confine", true}}},
      {"xAxis",
       {{"type", "value"},
        {"axisLabel", {{"formatter", "{value} " + how.unit.name}, {"hideOverlap", true}}}}},
      {"yAxis",
       {{"type", "category"},
        {"inverse", true},
        {"data", names},
        {"axisLabel", {{"width", 240}, {"overflow", "break"}, {"interval", 0}}}}},
      {"series", {bars("base", std::move(base), true), bars("change", std::move(seen), false)}}};
}

PageTable change_rows(const Comparison& c, const MetricWords& how) {
  PageTable table{
      .columns = {
          {.title = "Difference"},
          {.title = "From"},
          {.title = "To"},
          {.title = "Change", .numeric = true},
          {.title = metric_title(c.metric), .numeric = true},
          {.title = "Alone", .numeric = true, .about = "made in the first scenario by itself"},
          {.title = "Largest part in"}}};
  const auto share = [&](double change) {
    return c.from == 0 ? std::string("–") : error_text(change / std::abs(c.from));
  };
  for (const ComparedChange& row : c.changes) {
    for (std::size_t i = 0; i < row.differences.size(); ++i) {
      const Difference& d = row.differences[i];
      std::vector<PageCell> cells{PageCell::key((i > 0 ? "+\u00a0" : "") + path_of(d)),
                                  PageCell::key(said_value(d.from)),
                                  PageCell::key(said_value(d.to))};
      if (i > 0) {
        cells.resize(table.columns.size(), PageCell::text(""));
      } else {
        cells.push_back(PageCell::number(share(row.change), row.change));
        cells.push_back(PageCell::number(how.text(row.value), row.value));
        cells.push_back(row.alone ? PageCell::number(share(*row.alone), *row.alone)
                                  : PageCell::unknown());
        cells.push_back(row.bucket.empty()
                            ? PageCell::unknown()
                            : PageCell::text(fmt::format("{} {}", bucket_title(row.bucket),
                                                         error_text(row.bucket_change))));
      }
      table.rows.push_back(std::move(cells));
    }
  }
  return table;
}

/// "llama3_70b"; empty where the scenario says none, or only its numbers.
std::string model_of(const WrittenScenario& written) {
  if (!written || !written->contains("model")) return {};
  const nlohmann::ordered_json& model = written->at("model");
  return model.is_string() ? model.get<std::string>() : std::string();
}

/// What is compared: the models, or the one model of both; else the names of the files.
std::string title_of_comparison(const Comparison& c, const std::string& files) {
  const std::string first = model_of(c.a_written), second = model_of(c.b_written);
  if (first.empty() || second.empty()) return files;
  return first == second ? first + " in two scenarios" : second + " against " + first;
}

/// The inputs are those of the first scenario; the table of differences has the second's.
AnswerBasis comparison_basis(const Comparison& c, const PresetStore* presets) {
  AnswerBasis basis{.title = "What was compared",
                    .simulated = {{"First, whose inputs are below", c.a},
                                  {"Second, with the differences above", c.b}},
                    .written = c.a_written,
                    .assumptions = c.assumptions,
                    .presets = presets};
  if (presets != nullptr && c.a_written && c.b_written) {
    basis.named = presets_named(*c.a_written, *presets);
    const std::vector<NamedPreset> second = presets_named(*c.b_written, *presets);
    basis.named.insert(basis.named.end(), second.begin(), second.end());
  }
  return basis;
}

}  // namespace

std::string compare_page(const Comparison& c, const PresetStore* presets) {
  const auto name_of_file = [](const std::string& file) {
    return std::filesystem::path(file).filename().string();
  };
  const std::string files = fmt::format("{} against {}", name_of_file(c.b), name_of_file(c.a));
  Page page("Comparison", title_of_comparison(c, files));
  page.about(files + ".");
  double largest = std::max(std::abs(c.from), std::abs(c.to));
  for (const ComparedChange& change : c.changes)
    largest = std::max(largest, std::abs(change.value));
  const MetricWords how = metric_words(c.metric, largest);
  page.headline(
      escaped(metric_title(c.metric) + " goes from ") + strong(how.text(c.from)) + escaped(" to ") +
      strong(how.text(c.to)) +
      escaped(c.from == 0 ? std::string(".")
                          : fmt::format(": {}.", error_text((c.to - c.from) / std::abs(c.from)))));
  std::vector<PageFigure> figures;
  for (const auto& [name, step] : {std::pair{"first", &c.from_step}, {"second", &c.to_step}}) {
    if (!*step) continue;
    figures.push_back({.value = page_duration((*step)->step_s),
                       .label = fmt::format("step of the {}; 90 % interval {} to {} ({})", name,
                                            page_duration((*step)->low_s),
                                            page_duration((*step)->high_s), (*step)->why)});
  }
  if (!figures.empty()) page.figures(figures);
  if (c.changes.empty()) {
    page.paragraph(escaped("They say the same."));
  } else {
    const auto moving = std::ranges::count_if(
        c.changes, [](const ComparedChange& change) { return change.change != 0; });
    page.section("From the first to the second",
                 "Each difference is made on top of those above it, and simulated. Alone: made in "
                 "the first scenario by itself.");
    page.chart(
        {.title = metric_title(c.metric) + ", difference by difference",
         .about = "Each bar goes from the answer before a difference to the one after it. What "
                  "moves nothing is in the table.",
         .summary = "A waterfall; the table below has the same figures.",
         .height_px = bars_height(static_cast<std::size_t>(moving) + 2)},
        waterfall_options(c, how));
    page.table(change_rows(c, how));
  }
  if (!c.notes.empty()) {
    page.section("Notes");
    page.list(c.notes);
  }
  add_basis(page, comparison_basis(c, presets));
  page.foot(fmt::format("First: {}. Second: {}. Per cent are of the first's value.", c.a, c.b));
  return page.html(chart_library());
}

}  // namespace lockstep
