#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "sim/answer/fields.hpp"
#include "tools/views/tables/command_fields.hpp"
#include "tools/views/tables/validation_output.hpp"

namespace lockstep {
namespace {

/// As NamedNumbers, of whole numbers.
struct NamedCounts {
  const std::vector<std::pair<std::string, std::size_t>>& counts;

  explicit operator Value() const { return {Value::Object(counts.begin(), counts.end())}; }
};

}  // namespace

template <>
struct GotType<NamedCounts> {
  static constexpr bool kOptional = false, kNullable = false;
  static constexpr FieldKind kKind = FieldKind::named_numbers;
};

namespace {

/// One end of the interval around the step time, in seconds.
std::optional<double> interval_end(const RowPrediction& p, double PredictionInterval::* factor) {
  if (!p.interval || !p.predicted_step_s) return std::nullopt;
  return *p.predicted_step_s * ((*p.interval).*factor);
}

/// A number that only some rows have; null in the others.
template <class Of, class Member>
auto if_known(std::optional<Member> Of::* member) {
  return [member](const RowPrediction& p) -> OrNull<Member> {
    if constexpr (std::same_as<Of, RowPrediction>) {
      return {p.*member};
    } else {
      return {(*p.row).*member};
    }
  };
}
/// A text that only some rows have; null in the others.
OrNull<std::string> text_or_null(const std::string& text) {
  if (text.empty()) return {};
  return {text};
}

void add_row_memory(FieldTable<RowPrediction>& fields) {
  using Of = RowPrediction;
  fields
      .add("measured_memory_gib", "Memory of the fullest GPU, as measured; null: it was not.",
           if_known(&ReferenceRow::measured_memory_gib))
      .add("predicted_memory_gib", "The same as predicted, to be held against it.",
           if_known(&Of::predicted_memory_gib))
      .add("needed_memory_gib", "What the job needs there.", if_known(&Of::needed_memory_gib))
      .add("predicted_fits", "Whether it is said to fit.", if_known(&Of::predicted_fits))
      .add("memory_decides",
           "The assumption that decides whether it fits; null where none comes near.",
           [](const Of& p) { return text_or_null(p.memory_decides); })
      .add("measured_gpu_power_w", "Mean power of a GPU, as measured; null: it was not.",
           if_known(&ReferenceRow::measured_gpu_power_w))
      .add("predicted_gpu_power_w", "The same as predicted.", if_known(&Of::predicted_gpu_power_w));
}

const FieldTable<RowPrediction>& predicted_row_fields() {
  using Of = RowPrediction;
  static const FieldTable<Of> fields = [] {
    FieldTable<Of> out;
    out.add("id", "Its name.", [](const Of& p) { return p.row->id; })
        .add("source", "Whose measurement it is.", [](const Of& p) { return p.row->source; })
        .add("gpu", "Kind of GPU.", [](const Of& p) { return p.row->gpu; })
        .add("status", R"("predicted", "skipped", or "oom": it ran out of memory.)",
             [](const Of& p) { return name_of(p.status); })
        .add("reason", "Why it was skipped; else null.",
             [](const Of& p) { return text_or_null(p.reason); })
        .add("measured_step_s", "Time of one training step, as measured.",
             if_known(&ReferenceRow::measured_step_s))
        .add("predicted_step_s", "The same as predicted.", if_known(&Of::predicted_step_s))
        .add("step_s_low", "Lower end of the 90 % interval.",
             [](const Of& p) { return OrNull<double>{interval_end(p, &PredictionInterval::low)}; })
        .add("step_s_high", "Upper end of the same.",
             [](const Of& p) { return OrNull<double>{interval_end(p, &PredictionInterval::high)}; })
        .add("software", "How well its software is known, which the interval is of.",
             [](const Of& p) -> OrNull<std::string_view> {
               if (!p.interval) return {};
               return {name_of(p.interval->known)};
             })
        .add("interval_gaps", "What published runs alike say nothing of.",
             [](const Of& p) -> OrNull<std::vector<std::string>> {
               if (!p.interval) return {};
               return {p.interval->gaps};
             })
        .add("error", "predicted_step_s over measured_step_s, less 1.", if_known(&Of::error));
    add_row_memory(out);
    out.add(
           "stack",
           "Training software, as its preset is called; as the source does where none is about it.",
           [](const Of& p) { return p.stack; })
        .add("printed_stack", "The same as the source calls it; null: it does not say.",
             [](const Of& p) { return text_or_null(p.row->stack); })
        .add("dense", "Whether it is an ordinary dense run.",
             [](const Of& p) { return p.row->dense; })
        .add("assumptions", "What was filled in.", [](const Of& p) { return p.assumptions; });
    return out;
  }();
  return fields;
}

const FieldTable<GroupErrors>& group_error_fields() {
  using Of = GroupErrors;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("n", "Rows.", [](const Of& g) { return g.errors.n; })
          .add("median_abs_error", Better::less, "Median of the errors, without their signs.",
               [](const Of& g) { return g.errors.median_abs; })
          .add("p90_abs_error", Better::less, "9 of 10 errors are no larger.",
               [](const Of& g) { return g.errors.p90_abs; })
          .add("bias", "Median of the errors with their signs.",
               [](const Of& g) { return g.errors.bias; })
          .add("worst_error", "The largest error, with its sign.",
               [](const Of& g) { return g.errors.worst; })
          .add("worst_id", "The row that has it.", [](const Of& g) { return g.worst_id; });
  return fields;
}

/// Groups by their names.
auto by_name(std::vector<GroupErrors> RowSummary::* groups) {
  return [groups](const RowSummary& s) {
    std::vector<std::pair<std::string, GroupErrors>> out;
    for (const GroupErrors& group : s.*groups) out.emplace_back(group.group, group);
    return out;
  };
}

const FieldTable<Ranking>& ranking_fields() {
  using Of = Ranking;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("source", "Whose measurements.", [](const Of& r) { return r.source; })
          .add("model", "The model.", [](const Of& r) { return r.model; })
          .add("gpus", "GPUs of the job.", [](const Of& r) { return r.gpus; })
          .add("sequences", "Sequences of a step.", [](const Of& r) { return r.sequences; })
          .add("tokens", "Tokens of a sequence.", [](const Of& r) { return r.tokens; })
          .add("n", "Layouts of it.", [](const Of& r) { return r.n; })
          .add("spearman", Better::more,
               "Rank correlation of predicted with measured throughput over them.",
               [](const Of& r) { return r.spearman; });
  return fields;
}

const FieldTable<RowSummary>& rankings_fields() {
  using Of = RowSummary;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("median_spearman", Better::more, "Median over the groups.",
               [](const Of& s) { return s.median_spearman; })
          .list("groups", "Jobs of which at least 10 layouts were measured.", ranking_fields(),
                [](const Of& s) -> const auto& { return s.rankings; })
          .add("spearman_by_source",
               "Rank correlation of tokens per second and GPU over all rows of a source.",
               [](const Of& s) -> const NamedNumbers& { return s.spearman_by_source; });
  return fields;
}

const FieldTable<OutOfMemory>& out_of_memory_fields() {
  using Of = OutOfMemory;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("precision", Better::more,
               "Of rows that are said not to fit, the share that did not.",
               [](const Of& o) { return o.precision(); })
          .add("recall", Better::more, "Of rows that did not fit, the share that is said not to.",
               [](const Of& o) { return o.recall(); })
          .add("predicted_and_measured", "Rows that did not fit and are said not to.",
               [](const Of& o) { return o.hits; })
          .add("predicted_only", "Rows that fit and are said not to.",
               [](const Of& o) { return o.false_alarms; })
          .add("measured_only", "Rows that did not fit and are said to.",
               [](const Of& o) { return o.misses; })
          .add("neither", "Rows that fit and are said to.",
               [](const Of& o) { return o.correct_fits; });
  return fields;
}

const FieldTable<SaidNotToFit>& said_not_to_fit_fields() {
  using Of = SaidNotToFit;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("rows", "Rows of the source that ran.", [](const Of& s) { return s.rows; })
          .add("said_not_to_fit", Better::less, "Those that are said not to fit.",
               [](const Of& s) { return s.not_fitting; })
          .add("close", "Of those, where an assumption decides.",
               [](const Of& s) { return s.close; });
  return fields;
}

void add_row_groups(FieldTable<RowSummary>& fields) {
  const FieldTable<GroupErrors>& errors = group_error_fields();
  const auto of = [](GroupErrors RowSummary::* group) {
    return [group](const RowSummary& s) -> const GroupErrors& { return s.*group; };
  };
  fields.object("overall", "All rows.", errors, of(&RowSummary::overall))
      .object("dense", "Ordinary dense rows.", errors, of(&RowSummary::dense))
      .object("complete", "Rows that do not contradict themselves.", errors,
              of(&RowSummary::complete))
      .named("by_kind", "By kind of job.", errors, by_name(&RowSummary::by_kind))
      .add("dense_median_over_sources", Better::less,
           "Median over the sources of their medians, of dense rows.",
           [](const RowSummary& s) { return s.median_over_sources_dense; })
      .named("by_source", "By source.", errors, by_name(&RowSummary::by_source))
      .named("by_source_dense", "By source, dense rows alone.", errors,
             by_name(&RowSummary::by_source_dense))
      .named("by_gpu", "By kind of GPU.", errors, by_name(&RowSummary::by_gpu))
      .named("by_gpu_dense", "By kind of GPU, dense rows alone.", errors,
             by_name(&RowSummary::by_gpu_dense))
      .named("by_stack", "By software.", errors, by_name(&RowSummary::by_stack))
      .named("by_stack_dense", "By software, dense rows alone.", errors,
             by_name(&RowSummary::by_stack_dense));
}

const FieldTable<RowSummary>& row_summary_fields() {
  using Of = RowSummary;
  static const FieldTable<Of> fields = [] {
    FieldTable<Of> out;
    out.add("rows", "All rows.", [](const Of& s) { return s.rows; })
        .add("predicted", "Those that were predicted.", [](const Of& s) { return s.predicted; })
        .add("skipped", "Those that cannot be simulated.", [](const Of& s) { return s.skipped; })
        .add("oom", "Those that ran out of memory when measured.",
             [](const Of& s) { return s.oom; })
        .add("skipped_for", "How many for which reason; most first.",
             [](const Of& s) { return NamedCounts{s.skipped_for}; });
    add_row_groups(out);
    out.object("ranking", "How well layouts are ranked.", rankings_fields(),
               // NOLINTNEXTLINE(bugprone-return-const-ref-from-parameter): it outlives the table
               [](const Of& s) -> const Of& { return s; })
        .object("memory", "Of the memory of the fullest GPU, where it was measured.",
                group_error_fields(), [](const Of& s) -> const GroupErrors& { return s.memory; })
        .named("said_not_to_fit", "Rows that ran, by source, and those that are said not to fit.",
               said_not_to_fit_fields(),
               [](const Of& s) {
                 std::vector<std::pair<std::string, SaidNotToFit>> sources;
                 for (const SaidNotToFit& of : s.said_not_to_fit)
                   sources.emplace_back(of.source, of);
                 return sources;
               })
        .object("power", "Of a GPU's mean power, where it was measured.", group_error_fields(),
                [](const Of& s) { return s.power.errors.n > 0 ? &s.power : nullptr; })
        .object("out_of_memory", "How well it is told what runs out of memory, where rows did.",
                out_of_memory_fields(),
                [](const Of& s) { return s.oom > 0 ? &s.out_of_memory : nullptr; });
    return out;
  }();
  return fields;
}

struct ValidatedRows {
  const std::vector<RowPrediction>& rows;
  RowSummary summary;
};
const FieldTable<ValidatedRows>& validated_row_fields() {
  using Of = ValidatedRows;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .list("rows", "Each row.", predicted_row_fields(),
                [](const Of& v) -> const auto& { return v.rows; })
          .object("summary", "Errors of all rows, and of groups of them.", row_summary_fields(),
                  [](const Of& v) -> const RowSummary& { return v.summary; });
  return fields;
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
  const ValidatedRows all{predictions, summarise_rows(predictions)};
  return JsonText(Value(validated_row_fields().values(all)).json(), 1);
}

std::vector<FieldInfo> row_fields() { return validated_row_fields().infos(); }

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
                                        "dense",
                                        "printed_stack"};
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
                                         p.stack,
                                         row.dense ? "true" : "false",
                                         row.stack};
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
