#include "models/base/number_text.hpp"
#include "tools/views/plan/plan_output.hpp"
#include "tools/views/plan/plan_phases.hpp"
#include "tools/views/plan/plan_region_words.hpp"
#include "tools/views/plan/plan_words.hpp"

namespace lockstep {
namespace {

Markdown candidate_lines(const PlanAnswer& answer) {
  const bool money = answer.spec.any_priced();
  Markdown out = Markdown::write(
      "| candidate | GPUs | MFU | goodput | time | {}energy | power | GPU nameplate | keeps limits "
      "| "
      "front |\n|---|--:|--:|--:|--:|{}--:|--:|--:|--:|---|\n",
      money ? Markdown::write("money | ") : Markdown(),
      money ? Markdown::write("--:|") : Markdown());
  for (std::size_t i = 0; i < answer.spec.candidates.size(); ++i) {
    const PlanResult& r = answer.result(i);
    const std::string& name = answer.candidate(i).name;
    const std::string gpus = grouped(answer.candidate(i).scenario.gpus());
    if (!r.model.impossible.empty()) {
      out += Markdown::write("| {} | {} | | | | {}| | | impossible | |\n", name, gpus,
                             money ? Markdown::write("| ") : Markdown());
      continue;
    }
    const std::string priced = is_priced(answer.candidate(i)) ? plan_money_range(r) : "";
    out += Markdown::write(
        "| {} | {} | {} | {} | {} | {}{} | {} | {} | {} | {} |\n", name, gpus,
        percent_text(r.model.mfu), percent_text(r.expected.goodput), plan_time_range(r),
        money ? Markdown::write("{} | ", priced) : Markdown(), plan_energy_range(r),
        plan_power_range(r.peak_w), plan_power(r.model.power.gpu_nameplate.base_units()),
        percent_text(r.chances.all), r.on_front ? "yes" : "");
  }
  return out;
}

/// Capital to be spent first, its write-off by the training, and the cost of operation.
Markdown money_lines(const PlanAnswer& answer) {
  if (!answer.spec.any_priced()) return {};
  const std::vector<PlanMoneyColumn> more = plan_money_columns(answer);
  Markdown out = Markdown::write(
      "\n## Money, expected\n\n| candidate | capital to be spent | written off | running | rent |");
  for (const PlanMoneyColumn& column : more) out += Markdown::write(" {} |", column.title);
  out += Markdown::write("\n|---|--:|--:|--:|--:|");
  for (std::size_t c = 0; c < more.size(); ++c) out += Markdown::write("--:|");
  out += Markdown::write("\n");
  for (std::size_t i = 0; i < answer.spec.candidates.size(); ++i) {
    const PlanResult& r = answer.result(i);
    if (!r.model.impossible.empty() || !is_priced(answer.candidate(i))) continue;
    const PlanOutcome& o = r.expected;
    const auto money = [](double usd) { return usd > 0 ? plan_money(usd) : std::string(); };
    out += Markdown::write("| {} | {} | {} | {} | {} |", answer.candidate(i).name,
                           money(o.capital.total_usd()), money(o.write_off_usd),
                           money(o.running_usd), money(o.rent_usd));
    for (const PlanMoneyColumn& column : more) {
      out += Markdown::write(" {} |", money(o.*column.usd));
    }
    out += Markdown::write("\n");
  }
  return out;
}

/// The regions side by side, and what decides.
Markdown region_lines(const PlanAnswer& answer) {
  const std::vector<RegionRow> rows = region_rows(answer);
  if (rows.empty()) return {};
  Markdown out = Markdown::write("\n## Regions\n\n");
  for (const std::string_view title : kRegionColumns) out += Markdown::write("| {} ", title);
  out += Markdown::write("|\n|---|---|--:|--:|--:|--:|--:|--:|\n");
  for (const RegionRow& row : rows) {
    for (const std::string& cell : row.cells) out += Markdown::write("| {} ", cell);
    out += Markdown::write("|\n");
  }
  out += Markdown::write("\n");
  for (const std::string& words : region_words(answer)) out += Markdown::write("- {}\n", words);
  return out;
}

Markdown swing_lines(const PlanAnswer& answer) {
  if (!answer.shown()) return {};
  const std::size_t measure = goal_measure(answer.spec.goal);
  Markdown out = Markdown::write("\n## What the answer depends on: {}\n\n",
                                 answer.candidate(*answer.shown()).name);
  out += Markdown::write("Each input from its 5th to its 95th percentile.\n\n");
  out += Markdown::write("| input | factor | {} |\n|---|--:|--:|\n", measure == 0   ? "time"
                                                                     : measure == 1 ? "money"
                                                                                    : "energy");
  for (const SwingRow& row : widest_swings(answer.result(*answer.shown()), measure)) {
    out += Markdown::write("| {}: {} | {} to {} | {} to {} |\n", row.info->title, row.info->about,
                           significant(row.swing->low), significant(row.swing->high),
                           measure_text(measure, row.at_low), measure_text(measure, row.at_high));
  }
  return out;
}

}  // namespace

Markdown plan_markdown(const PlanAnswer& answer) {
  Markdown out = Markdown::write("# Plan: {}\n\n", plan_subject(answer));
  if (!answer.spec.about.empty()) out += Markdown::write("{}\n\n", answer.spec.about);
  out += Markdown::write("**{}** {}\n\n", plan_recommendation(answer), plan_sensitivity(answer));
  for (const std::string& note : plan_notes(answer)) out += Markdown::write("{}\n\n", note);
  out += Markdown::write("Limits: {}.\n\n## Candidates\n\n", plan_limits(answer));
  out += candidate_lines(answer);
  out += Markdown::write("\nRanges hold nine of ten of {}.\n\n",
                         counted(answer.spec.samples, "sample"));
  const std::vector<std::string> verdicts = plan_verdicts(answer);
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    out += Markdown::write("- {} {}.\n", answer.candidate(i).name, verdicts[i]);
  }
  out += money_lines(answer) + region_lines(answer) + phases_markdown(answer) +
         swing_lines(answer) + Markdown::write("\n## Assumptions\n\n");
  for (const std::string& assumed : plan_assumptions(answer)) {
    out += Markdown::write("- {}\n", assumed);
  }
  return out;
}

}  // namespace lockstep
