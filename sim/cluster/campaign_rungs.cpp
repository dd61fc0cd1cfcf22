#include "sim/cluster/campaign_rungs.hpp"

#include <algorithm>
#include <iterator>
#include <map>

#include "sim/core/random.hpp"

namespace lockstep {
namespace {

/// A purpose that draws of jobs (sim/scenario/draw_jobs.cpp) and of failures do not use.
constexpr std::uint32_t kTrialDraw = 32;
constexpr std::uint32_t kLastRung = 0xffffffff;

}  // namespace

double trial_draw(std::uint64_t seed, std::uint32_t campaign, std::uint32_t trial) {
  RandomStream stream(
      {.seed = seed, .trajectory = campaign, .component = trial, .purpose = kTrialDraw});
  return stream.uniform();
}

CampaignRungs::CampaignRungs(const QueueSpec& spec) : spec_(&spec) {
  if (spec.campaigns.empty()) return;
  submitted_.assign(spec.jobs.size(), -1);
  turns_.resize(spec.jobs.size());
  later_.assign(spec.jobs.size(), kLastRung);
  went_on_.resize(spec.jobs.size());
  trials_.resize(spec.campaigns.size());
  for (std::size_t c = 0; c < spec.campaigns.size(); ++c) {
    trials_[c].resize(static_cast<std::size_t>(spec.campaigns[c].trials));
  }
  for (const TrialBracket& of : spec.brackets) {
    Bracket& bracket = brackets_.emplace_back();
    bracket.rungs.resize(of.ends.size());
    bracket.rungs.front().entered = bracket.running = of.trials;
  }
  // Jobs of first rungs come before all others, and the others in the order of their rungs.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> before;
  for (std::uint32_t j = 0; j < spec.places.size(); ++j) {
    const TrialPlace* const place = spec.place_of(j);
    if (place == nullptr) continue;
    const std::uint32_t campaign = bracket_of(j).campaign;
    if (place->rung == 0) trials_[campaign][place->trial] = j;
    const auto [at, is_new] = before.try_emplace({campaign, place->trial}, j);
    if (is_new) continue;
    later_[at->second] = j;
    at->second = j;
  }
}

const TrialBracket& CampaignRungs::bracket_of(std::uint32_t j) const {
  return spec_->brackets[static_cast<std::size_t>(spec_->places[j].bracket)];
}

CampaignRungs::Score CampaignRungs::score_of(std::uint32_t j) const {
  return {trial_draw(spec_->seed, bracket_of(j).campaign, spec_->places[j].trial), j};
}

void CampaignRungs::submitted(std::uint32_t j, RunTime now) {
  submitted_[j] = now;
  turns_[j] = next_turn_++;
}

/// The best 1 / eta of a rung whose jobs have all ended, but at least one job.
std::vector<std::uint32_t> CampaignRungs::best_of_all(Rung& rung, std::uint32_t eta) {
  std::vector<std::uint32_t> out;
  if (rung.ended < rung.entered) return out;
  const std::uint32_t most = std::max(1U, rung.entered / eta);
  for (const auto& [draw, j] : rung.rest) {
    if (out.size() == most) break;
    out.push_back(later_[j]);
  }
  return out;
}

/// Jobs that are newly among the best 1 / eta of those that have ended so far.
std::vector<std::uint32_t> CampaignRungs::best_so_far(Rung& rung, std::uint32_t eta) {
  std::vector<std::uint32_t> out;
  const auto enter = [&] {
    const auto entering = rung.rest.extract(rung.rest.begin());
    const std::uint32_t j = entering.value().second;
    rung.best.insert(entering.value());
    if (went_on_[j]) return;
    went_on_[j] = true;
    out.push_back(later_[j]);
  };
  const std::uint32_t most = rung.ended / eta;
  while (rung.best.size() < most && !rung.rest.empty()) enter();
  while (!rung.best.empty() && !rung.rest.empty() && *rung.rest.begin() < *rung.best.rbegin()) {
    rung.rest.insert(rung.best.extract(std::prev(rung.best.end())));
    enter();
  }
  return out;
}

void CampaignRungs::leave_out(const TrialBracket& bracket) {
  for (std::uint32_t t = bracket.first; t < bracket.first + bracket.trials; ++t) {
    for (std::uint32_t j = trials_[bracket.campaign][t]; j != kLastRung; j = later_[j]) {
      if (submitted_[j] < 0) left_out_.push_back(j);
    }
  }
}

std::vector<std::uint32_t> CampaignRungs::ended(std::uint32_t j, bool well) {
  const TrialPlace* const place = spec_->place_of(j);
  if (place == nullptr) return {};
  const TrialBracket& of = bracket_of(j);
  const TrialCampaign& campaign = spec_->campaigns[of.campaign];
  Bracket& bracket = brackets_[static_cast<std::size_t>(place->bracket)];
  Rung& rung = bracket.rungs[place->rung];
  ++rung.ended;
  --bracket.running;
  std::vector<std::uint32_t> out;
  if (later_[j] != kLastRung) {
    if (well) rung.rest.insert(score_of(j));
    const auto eta = static_cast<std::uint32_t>(campaign.eta);
    out = campaign.stopping == StoppingKind::asha ? best_so_far(rung, eta) : best_of_all(rung, eta);
    bracket.rungs[place->rung + std::size_t{1}].entered += static_cast<std::uint32_t>(out.size());
    bracket.running += static_cast<std::uint32_t>(out.size());
  }
  std::ranges::sort(out);
  if (bracket.running == 0) leave_out(of);
  return out;
}

}  // namespace lockstep
