#include "tools/views/report/run_page.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "tools/views/report/behind.hpp"
#include "tools/views/report/claim_section.hpp"
#include "tools/views/report/data_section.hpp"
#include "tools/views/report/input_tables.hpp"
#include "tools/views/report/money_section.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"
#include "tools/views/report/rl_page.hpp"
#include "tools/views/report/run_charts.hpp"
#include "tools/views/report/run_power_charts.hpp"
#include "tools/views/report/run_tables.hpp"
#include "tools/views/report/run_timeline.hpp"
#include "tools/views/report/run_waterfall.hpp"
#include "tools/views/report/run_words.hpp"
#include "tools/views/report/site_section.hpp"

namespace lockstep {
namespace {

/// Of the step, then of the run.
std::vector<std::string> all_assumptions(const CampaignResult& result) {
  std::vector<std::string> all = result.scenario.assumptions;
  all.insert(all.end(), result.plan.assumptions.begin(), result.plan.assumptions.end());
  return all;
}

AnswerBasis run_basis(const CampaignResult& result, const PresetStore* presets) {
  AnswerBasis basis{.simulated = job_words(result.scenario),
                    .written = result.written,
                    .assumptions = all_assumptions(result),
                    .presets = presets};
  if (result.rl != nullptr && result.rl->rl.generation.nodes > 0) {
    const auto nodes = std::ranges::find(basis.simulated, "Nodes", &NamedWords::name);
    nodes->words +=
        fmt::format(" to train, and {} more to generate", grouped(result.rl->rl.generation.nodes));
  }
  if (result.rl != nullptr && result.plan.iteration) {
    std::erase_if(basis.simulated, [](const NamedWords& each) { return each.name == "Batch"; });
    const std::vector<NamedWords> learning = rl_words(*result.rl, *result.plan.iteration);
    basis.simulated.insert(basis.simulated.end(), learning.begin(), learning.end());
  }
  if (presets != nullptr) basis.named = presets_of(result.scenario, *presets);
  return basis;
}

void add_run_foot(Page& page, const CampaignResult& result) {
  page.foot(fmt::format("Scenario: {}. Seed {}.", result.scenario.file, result.plan.campaign.seed));
  page.foot(
      "Goodput is the share of wall time that advances training at full speed (effective training "
      "time ratio). Intervals are 95 % confidence intervals of means (Student's t).");
}

}  // namespace

void add_run_headline(Page& page, const CampaignResult& result) {
  if (!result.scenario.about.empty()) page.about(result.scenario.about);
  if (result.interrupted) {
    page.about(fmt::format("Stopped early: only {} trajectories, or parts of this page, are there.",
                           result.summary.trajectories));
  }
  if (result.summary.trajectories == 0) {
    page.headline(strong("No trajectory was finished."));
    return;
  }
  page.headline(run_headline(result));
  page.figures(run_figures(result));
  if (result.hash) page.paragraph(escaped("Hashed paths: " + run_hash_text(*result.hash) + "."));
}

void add_run_sections(Page& page, const CampaignResult& result, const PresetStore* presets) {
  if (result.summary.trajectories == 0) return;
  if (result.typical && !result.typical->phases.empty()) add_run_timeline(page, result);
  add_waterfall(page, result);
  if (result.plan.iteration) add_iteration(page, *result.plan.iteration);
  if (!result.summary.modes.empty()) add_causes(page, result);
  add_checkpoints(page, result);
  if (result.optimum) add_interval_curve(page, result);
  if (result.fleet) {
    add_money_by_month(page, *result.fleet,
                       lot_prices(*result.fleet, Seconds{result.summary.wall_s.mean}),
                       months_of(result), "Machines and money by month");
  }
  if (result.plan.data) add_data(page, result);
  if (result.site) add_site(page, result);
  if (result.power) add_run_power(page, result);
  if (result.bill || result.rent_usd()) add_cost(page, result);
  if (!result.projections.empty()) add_projections(page, result);
  add_distributions(page, result);
  add_basis(page, run_basis(result, presets));
}

std::string run_page(const CampaignResult& result, const Behind* behind, const ClaimCheck* claim) {
  Page page("Run report", run_title(result));
  if (behind != nullptr) behind->open_figures(page);
  add_run_headline(page, result);
  add_claim_section(page, claim);
  add_run_sections(page, result, behind != nullptr ? &behind->presets() : nullptr);
  if (behind != nullptr) behind->add_to(page);
  add_run_foot(page, result);
  return page.html(chart_library());
}

}  // namespace lockstep
