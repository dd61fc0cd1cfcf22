#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "tools/views/tables/validation_output.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

Json number_or_null(const std::optional<double>& value) {
  return value ? Json(twelve_digits(*value)) : Json(nullptr);
}

/// One end of the interval around the step time, in seconds.
std::optional<double> interval_end(const RowPrediction& p, double PredictionInterval::* factor) {
  if (!p.interval || !p.predicted_step_s) return std::nullopt;
  return *p.predicted_step_s * ((*p.interval).*factor);
}

Json row_json(const RowPrediction& p) {
  const ReferenceRow& row = *p.row;
  return {{"id", row.id},
          {"source", row.source},
          {"gpu", row.gpu},
          {"status", name_of(p.status)},
          {"reason", p.reason.empty() ? Json(nullptr) : Json(p.reason)},
          {"measured_step_s", number_or_null(row.measured_step_s)},
          {"predicted_step_s", number_or_null(p.predicted_step_s)},
          {"step_s_low", number_or_null(interval_end(p, &PredictionInterval::low))},
          {"step_s_high", number_or_null(interval_end(p, &PredictionInterval::high))},
          {"software", p.interval ? Json(name_of(p.interval->known)) : Json(nullptr)},
          {"interval_gaps", p.interval ? Json(p.interval->gaps) : Json(nullptr)},
          {"error", number_or_null(p.error)},
          {"measured_memory_gib", number_or_null(row.measured_memory_gib)},
          {"predicted_memory_gib", number_or_null(p.predicted_memory_gib)},
          {"needed_memory_gib", number_or_null(p.needed_memory_gib)},
          {"predicted_fits", p.predicted_fits ? Json(*p.predicted_fits) : Json(nullptr)},
          {"memory_decides", p.memory_decides.empty() ? Json(nullptr) : Json(p.memory_decides)},
          {"measured_gpu_power_w", number_or_null(row.measured_gpu_power_w)},
          {"predicted_gpu_power_w", number_or_null(p.predicted_gpu_power_w)},
          {"stack", row.stack},
          {"dense", row.dense},
          {"assumptions", p.assumptions}};
}

Json errors_json(const GroupErrors& group) {
  const ErrorSummary& e = group.errors;
  return {{"n", e.n},
          {"median_abs_error", twelve_digits(e.median_abs)},
          {"p90_abs_error", twelve_digits(e.p90_abs)},
          {"bias", twelve_digits(e.bias)},
          {"worst_error", twelve_digits(e.worst)},
          {"worst_id", group.worst_id}};
}

Json groups_json(const std::vector<GroupErrors>& groups) {
  Json out = Json::object();
  for (const GroupErrors& group : groups) out[group.group] = errors_json(group);
  return out;
}

Json rankings_json(const RowSummary& summary) {
  Json groups = Json::array();
  for (const Ranking& r : summary.rankings) {
    groups.push_back({{"source", r.source},
                      {"model", r.model},
                      {"gpus", r.gpus},
                      {"sequences", r.sequences},
                      {"tokens", r.tokens},
                      {"n", r.n},
                      {"spearman", twelve_digits(r.spearman)}});
  }
  Json sources = Json::object();
  for (const auto& [source, value] : summary.spearman_by_source) {
    sources[source] = twelve_digits(value);
  }
  return {{"median_spearman", twelve_digits(summary.median_spearman)},
          {"groups", std::move(groups)},
          {"spearman_by_source", std::move(sources)}};
}

Json out_of_memory_json(const OutOfMemory& oom) {
  return {{"precision", twelve_digits(oom.precision())},
          {"recall", twelve_digits(oom.recall())},
          {"predicted_and_measured", oom.hits},
          {"predicted_only", oom.false_alarms},
          {"measured_only", oom.misses},
          {"neither", oom.correct_fits}};
}

Json said_not_to_fit_json(const std::vector<SaidNotToFit>& sources) {
  Json out = Json::object();
  for (const SaidNotToFit& s : sources) {
    out[s.source] = {{"rows", s.rows}, {"said_not_to_fit", s.not_fitting}, {"close", s.close}};
  }
  return out;
}

Json summary_json(const RowSummary& s) {
  Json out{{"rows", s.rows}, {"predicted", s.predicted}, {"skipped", s.skipped}, {"oom", s.oom}};
  out["skipped_for"] = Json::object();
  for (const auto& [reason, count] : s.skipped_for) out["skipped_for"][reason] = count;
  out["overall"] = errors_json(s.overall);
  out["dense"] = errors_json(s.dense);
  out["complete"] = errors_json(s.complete);
  out["by_kind"] = groups_json(s.by_kind);
  out["dense_median_over_sources"] = twelve_digits(s.median_over_sources_dense);
  out["by_source"] = groups_json(s.by_source);
  out["by_source_dense"] = groups_json(s.by_source_dense);
  out["by_gpu"] = groups_json(s.by_gpu);
  out["by_gpu_dense"] = groups_json(s.by_gpu_dense);
  out["by_stack"] = groups_json(s.by_stack);
  out["by_stack_dense"] = groups_json(s.by_stack_dense);
  out["ranking"] = rankings_json(s);
  out["memory"] = errors_json(s.memory);
  out["said_not_to_fit"] = said_not_to_fit_json(s.said_not_to_fit);
  if (s.power.errors.n > 0) out["power"] = errors_json(s.power);
  if (s.oom > 0) out["out_of_memory"] = out_of_memory_json(s.out_of_memory);
  return out;
}

std::string fixed(const std::optional<double>& value, int digits = 4) {
  return value ? significant(*value, digits) : std::string("-");
}

std::string cut(const std::string& text, std::size_t width) {
  return text.size() <= width ? text : text.substr(0, width - 2) + "..";
}

std::string row_lines(const std::vector<RowPrediction>& predictions, const TextStyle& style) {
  constexpr std::size_t kIdColumns = 44;
  using enum TextTable::Align;
  TextTable table({{"row", left},
                   {"measured s"},
                   {"predicted s"},
                   {"error"},
                   {"GiB"},
                   {"predicted"},
                   {"fits"}});
  for (const RowPrediction& p : predictions) {
    if (p.status == RowPrediction::Status::skipped) continue;
    const ReferenceRow& row = *p.row;
    const bool oom = p.status == RowPrediction::Status::oom;
    table.add({cut(row.id, kIdColumns), oom ? "oom" : fixed(row.measured_step_s),
               fixed(p.predicted_step_s), p.error ? error_text(*p.error) : "-",
               fixed(row.measured_memory_gib, 3), fixed(p.predicted_memory_gib, 3),
               *p.predicted_fits ? "yes" : "no"});
  }
  return table.rows() == 0 ? std::string() : table.text(style, 0);
}

TextTable errors_table(const std::string& title) {
  using enum TextTable::Align;
  return TextTable(
      {{title, left}, {"rows"}, {"median"}, {"p90"}, {"bias"}, {"worst"}, {"worst row", left}});
}

void add_errors(TextTable& table, const GroupErrors& group) {
  const ErrorSummary& e = group.errors;
  if (e.n == 0) return;
  table.add({group.group, fmt::format("{}", e.n), fmt::format("{:.1f} %", 100 * e.median_abs),
             fmt::format("{:.1f} %", 100 * e.p90_abs), error_text(e.bias), error_text(e.worst),
             cut(group.worst_id, 36)});
}

std::string groups_table(const std::string& title, const std::vector<GroupErrors>& groups,
                         const TextStyle& style) {
  if (groups.empty()) return {};
  TextTable table = errors_table(title);
  for (const GroupErrors& group : groups) add_errors(table, group);
  return "\n" + table.text(style, 0);
}

std::string rankings_table(const RowSummary& summary, const TextStyle& style) {
  if (summary.rankings.empty()) return {};
  using enum TextTable::Align;
  TextTable table(
      {{"ranking of layouts", left}, {"GPUs"}, {"sequences"}, {"tokens"}, {"rows"}, {"Spearman"}});
  for (const Ranking& r : summary.rankings) {
    table.add({r.source + " " + r.model, grouped(r.gpus), grouped(r.sequences), grouped(r.tokens),
               fmt::format("{}", r.n), fmt::format("{:.3f}", r.spearman)});
  }
  std::string all =
      fmt::format("median: {:.3f}; all rows of a source together:", summary.median_spearman);
  for (const auto& [source, value] : summary.spearman_by_source) {
    all += fmt::format(" {} {:.3f}", source, value);
  }
  return "\n" + table.text(style, 0) + wrap(all, kTextColumns, 2) + "\n";
}

std::string skipped_lines(const RowSummary& summary) {
  std::string out;
  for (const auto& [reason, count] : summary.skipped_for) {
    out += fmt::format("{:>6}  {}\n", count, wrap(reason, kTextColumns, 8, 8));
  }
  return out.empty() ? out : "\nnot simulated:\n" + out;
}

/// "said not to fit, of rows that ran: 16 of 809 (2.0 %); dgxc 5 of 215 (2 close), ..."
std::string said_not_to_fit_lines(const std::vector<SaidNotToFit>& sources) {
  std::size_t rows = 0, not_fitting = 0;
  std::vector<std::string> parts;
  for (const SaidNotToFit& s : sources) {
    rows += s.rows;
    not_fitting += s.not_fitting;
    if (s.not_fitting == 0) continue;
    const std::string close = s.close > 0 ? fmt::format(" ({} close)", s.close) : std::string();
    parts.push_back(fmt::format("{} {} of {}{}", s.source, s.not_fitting, s.rows, close));
  }
  if (rows == 0) return {};
  const double share = 100.0 * static_cast<double>(not_fitting) / static_cast<double>(rows);
  std::string out = fmt::format("said not to fit, of rows that ran: {} of {} ({:.1f} %)",
                                not_fitting, rows, share);
  for (std::size_t i = 0; i < parts.size(); ++i) out += (i == 0 ? "; " : ", ") + parts[i];
  return "\n" + wrap(out, kTextColumns, 2) + "\n";
}

std::string peak_lines(const RowSummary& s) {
  std::string out;
  for (const auto& [what, group] : {std::pair{"peak memory", &s.memory}, {"GPU power", &s.power}}) {
    const ErrorSummary& e = group->errors;
    if (e.n == 0) continue;
    out += fmt::format("\n{}: {} rows, median error {:.1f} %, p90 {:.1f} %, bias {}\n", what, e.n,
                       100 * e.median_abs, 100 * e.p90_abs, error_text(e.bias));
  }
  out += said_not_to_fit_lines(s.said_not_to_fit);
  if (s.oom > 0) {
    const OutOfMemory& oom = s.out_of_memory;
    out += fmt::format(
        "out of memory: precision {:.1f} %, recall {:.1f} % ({} of {} that ran out, "
        "{} false alarms)\n",
        100 * oom.precision(), 100 * oom.recall(), oom.hits, oom.hits + oom.misses,
        oom.false_alarms);
  }
  return out;
}

}  // namespace

JsonText rows_json(const std::vector<RowPrediction>& predictions) {
  Json rows = Json::array();
  for (const RowPrediction& p : predictions) rows.push_back(row_json(p));
  const Json out{{"rows", std::move(rows)}, {"summary", summary_json(summarise_rows(predictions))}};
  return JsonText(out, 1);
}

CsvText rows_csv(const std::vector<RowPrediction>& predictions) {
  const auto text = [](const std::optional<double>& value) {
    return value ? number_text(*value) : std::string();
  };
  const std::vector<std::string> header{"id",
                                        "source",
                                        "gpu",
                                        "status",
                                        "reason",
                                        "measured_step_s",
                                        "predicted_step_s",
                                        "step_s_low",
                                        "step_s_high",
                                        "software",
                                        "error",
                                        "measured_memory_gib",
                                        "predicted_memory_gib",
                                        "predicted_fits",
                                        "measured_gpu_power_w",
                                        "predicted_gpu_power_w",
                                        "stack",
                                        "dense"};
  CsvText out = csv_line(header);
  for (const RowPrediction& p : predictions) {
    const ReferenceRow& row = *p.row;
    const std::string fits = !p.predicted_fits ? "" : *p.predicted_fits ? "true" : "false";
    const std::vector<std::string> cells{row.id,
                                         row.source,
                                         row.gpu,
                                         std::string(name_of(p.status)),
                                         p.reason,
                                         text(row.measured_step_s),
                                         text(p.predicted_step_s),
                                         text(interval_end(p, &PredictionInterval::low)),
                                         text(interval_end(p, &PredictionInterval::high)),
                                         p.interval ? std::string(name_of(p.interval->known)) : "",
                                         text(p.error),
                                         text(row.measured_memory_gib),
                                         text(p.predicted_memory_gib),
                                         fits,
                                         text(row.measured_gpu_power_w),
                                         text(p.predicted_gpu_power_w),
                                         row.stack,
                                         row.dense ? "true" : "false"};
    out += csv_line(cells);
  }
  return out;
}

std::string rows_table(const std::vector<RowPrediction>& predictions, const TextStyle& style) {
  const RowSummary s = summarise_rows(predictions);
  TextTable overall = errors_table("step time");
  add_errors(overall, s.overall);
  if (s.complete.errors.n < s.overall.errors.n) add_errors(overall, s.complete);
  for (const GroupErrors& kind : s.by_kind) add_errors(overall, kind);
  std::string out = row_lines(predictions, style);
  out += skipped_lines(s) + groups_table("all rows by source", s.by_source, style) +
         groups_table("dense rows by source", s.by_source_dense, style) +
         groups_table("dense rows by GPU", s.by_gpu_dense, style) +
         groups_table("dense rows by software", s.by_stack_dense, style) +
         rankings_table(s, style) + peak_lines(s);
  if (overall.rows() > 0) out += "\n" + overall.text(style, 0);
  return out + fmt::format("\n{} rows: {} predicted, {} skipped, {} that ran out of memory\n",
                           s.rows, s.predicted, s.skipped, s.oom);
}

}  // namespace lockstep
