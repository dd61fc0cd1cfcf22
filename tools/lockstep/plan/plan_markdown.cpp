#include <fmt/format.h>

#include "tools/lockstep/plan/plan_output.hpp"
#include "tools/lockstep/plan/plan_words.hpp"

namespace lockstep {
namespace {

/// A name from a file, which must not become markup or end a table's cell.
std::string plain(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n' || c == '\r') {
      out += ' ';
      continue;
    }
    if (std::string_view("\\`*_{}[]<>()#|!").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string candidate_lines(const PlanAnswer& answer) {
  const bool money = answer.spec.any_priced();
  std::string out = fmt::format(
      "| candidate | GPUs | MFU | goodput | time | {}energy | power | nameplate | keeps limits | "
      "front |\n|---|--:|--:|--:|--:|{}--:|--:|--:|--:|---|\n",
      money ? "money | " : "", money ? "--:|" : "");
  for (std::size_t i = 0; i < answer.spec.candidates.size(); ++i) {
    const PlanResult& r = answer.result(i);
    const std::string name = plain(answer.candidate(i).name);
    const std::string gpus = grouped(answer.candidate(i).scenario.gpus());
    if (!r.model.impossible.empty()) {
      out +=
          fmt::format("| {} | {} | | | | {}| | | impossible | |\n", name, gpus, money ? "| " : "");
      continue;
    }
    const std::string priced = is_priced(answer.candidate(i)) ? plan_money_range(r.usd) : "";
    out += fmt::format("| {} | {} | {} | {} | {} | {}{} | {} | {} | {} | {} |\n", name, gpus,
                       percent_text(r.model.mfu), percent_text(r.expected.goodput),
                       plan_time_range(r.time_s), money ? priced + " | " : "",
                       plan_energy_range(r.energy_j), plan_power_range(r.peak_w),
                       plan_power(r.model.power.gpu_nameplate.base_units()),
                       percent_text(r.chances.all), r.on_front ? "yes" : "");
  }
  return out;
}

/// What has to be spent first, what of it a training writes off, and what it costs to run.
std::string money_lines(const PlanAnswer& answer) {
  if (!answer.spec.any_priced()) return {};
  std::string out =
      "\n## Money, expected\n\n| candidate | capital to be spent | written off | running | rent |\n"
      "|---|--:|--:|--:|--:|\n";
  for (std::size_t i = 0; i < answer.spec.candidates.size(); ++i) {
    const PlanResult& r = answer.result(i);
    if (!r.model.impossible.empty() || !is_priced(answer.candidate(i))) continue;
    const PlanOutcome& o = r.expected;
    const auto money = [](double usd) { return usd > 0 ? plan_money(usd) : ""; };
    out += fmt::format("| {} | {} | {} | {} | {} |\n", plain(answer.candidate(i).name),
                       money(o.capital.total_usd()), money(o.write_off_usd), money(o.running_usd),
                       money(o.rent_usd));
  }
  return out;
}

std::string swing_lines(const PlanAnswer& answer) {
  if (!answer.shown()) return {};
  const std::size_t measure = goal_measure(answer.spec.goal);
  std::string out = fmt::format("\n## What the answer depends on: {}\n\n",
                                plain(answer.candidate(*answer.shown()).name));
  out += fmt::format("| input | factor | {} |\n|---|--:|--:|\n", measure == 0   ? "time"
                                                                 : measure == 1 ? "money"
                                                                                : "energy");
  for (const SwingRow& row : widest_swings(answer.result(*answer.shown()), measure)) {
    out += fmt::format("| {}: {} | {} to {} | {} to {} |\n", row.info->title, row.info->about,
                       significant(row.swing->low), significant(row.swing->high),
                       measure_text(measure, row.at_low), measure_text(measure, row.at_high));
  }
  return out;
}

}  // namespace

std::string plan_markdown(const PlanAnswer& answer) {
  std::string out = fmt::format("# Plan: {}\n\n", plain(plan_subject(answer)));
  if (!answer.spec.about.empty()) out += plain(answer.spec.about) + "\n\n";
  out += "**" + plain(plan_recommendation(answer)) + "** " + plain(plan_sensitivity(answer)) +
         "\n\nLimits: " + plan_limits(answer) + ".\n\n## Candidates\n\n";
  out += candidate_lines(answer);
  out += fmt::format("\nRanges hold nine of ten of {} samples.\n\n", answer.spec.samples);
  const std::vector<std::string> verdicts = plan_verdicts(answer);
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    out += fmt::format("- {} {}.\n", plain(answer.candidate(i).name), plain(verdicts[i]));
  }
  out += money_lines(answer) + swing_lines(answer) + "\n## Assumptions\n\n";
  for (const std::string& assumed : plan_assumptions(answer)) out += "- " + plain(assumed) + "\n";
  return out;
}

}  // namespace lockstep
