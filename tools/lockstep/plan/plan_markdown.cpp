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
  std::string out =
      "| candidate | GPUs | MFU | goodput | time | money | energy | power | keeps limits | "
      "front |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|---|\n";
  for (std::size_t i = 0; i < answer.spec.candidates.size(); ++i) {
    const PlanResult& r = answer.result(i);
    const std::string name = plain(answer.candidate(i).name);
    const std::string gpus = grouped(answer.candidate(i).scenario.gpus());
    if (!r.model.impossible.empty()) {
      out += fmt::format("| {} | {} | | | | | | | impossible | |\n", name, gpus);
      continue;
    }
    out += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", name, gpus,
                       percent_text(r.model.mfu), percent_text(r.expected.goodput),
                       plan_time_range(r.time_s), plan_money_range(r.usd),
                       plan_energy_range(r.energy_j), plan_power_range(r.peak_w),
                       percent_text(r.chances.all), r.on_front ? "yes" : "");
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
  out += swing_lines(answer) + "\n## Assumptions\n\n";
  for (const std::string& assumed : plan_assumptions(answer)) out += "- " + plain(assumed) + "\n";
  return out;
}

}  // namespace lockstep
