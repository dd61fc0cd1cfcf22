#include "tools/views/report/run_words.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <utility>
#include <vector>

#include "models/accuracy/prediction_interval.hpp"
#include "models/base/number_text.hpp"
#include "sim/answer/scaling.hpp"
#include "sim/answer/site_limit.hpp"
#include "tools/views/report/page_numbers.hpp"
#include "tools/views/report/run_waterfall.hpp"
#include "tools/views/run/campaign_result.hpp"
#include "tools/views/run/rent_words.hpp"

namespace lockstep {
namespace {

Html goodput_sentence(const RunSummary& summary) {
  const std::string runs =
      summary.trajectories == 1
          ? "one simulated run"
          : grouped(static_cast<double>(summary.trajectories)) + " simulated runs";
  Html out = strong(telling_percent(summary.goodput.mean)) +
             escaped(" of the wall time advances training");
  if (summary.goodput.half_width <= 0) return out + escaped(fmt::format(" (in {}).", runs));
  return out + escaped(fmt::format(" (± {} with 95 % confidence, from {}).",
                                   page_percent(summary.goodput.half_width, 2), runs));
}

/// A loss as the table below has it; with more decimals where the table's one would be 0.
std::string as_in_table(double share) {
  constexpr double kShown = 0.0005;
  return share < kShown ? telling_percent(share) : page_part(share);
}

/// " (3 in all 200 runs)" of a cause that came up so rarely that chance put it first.
std::string few_words(const ModeSummary& mode, std::size_t runs) {
  constexpr double kFew = 10;
  const double all = mode.failures * static_cast<double>(runs);
  return all < kFew && runs > 1 ? fmt::format(" ({:.0f} in all {} runs)", all, runs) : "";
}

/// What takes most of the wall time, and the cause that does.
Html losses_sentences(const CampaignResult& result) {
  const RunSummary& summary = result.summary;
  const std::vector<WaterfallPart> losses = run_losses(result);
  const auto most = std::ranges::max_element(losses, {}, &WaterfallPart::share);
  if (most->share <= 0) return escaped(" Nothing is lost.");
  Html out = escaped(" Of the rest, ") + strong(in_sentence(most->name)) +
             escaped(fmt::format(" takes most, {}.", as_in_table(most->share)));
  if (summary.modes.empty()) return out;
  const ModeSummary& mode = *std::ranges::max_element(summary.modes, {}, &ModeSummary::cost_s);
  if (mode.cost_s <= 0) return out;
  return out + escaped(" Of all causes ") + strong(mode.name) +
         escaped(
             fmt::format(" cost most in these runs: {} failures a run{} took {} of the wall time.",
                         significant(mode.failures), few_words(mode, summary.trajectories),
                         page_percent(mode.cost_s / summary.wall_s.mean, 2)));
}

/// "It would write 122 GB/s ...": what an advised interval means for the storage.
std::string writes_sentence(const CampaignResult& result, Seconds interval) {
  constexpr double kDay = 86'400;
  if (result.plan.writes.empty()) return {};
  const CheckpointWrites& writes = result.plan.writes.front();
  const double rate = writes.rate(interval).base_units();
  // Of several tiers the first is none that keeps all of them: peers, drives.
  const bool keeps = result.plan.campaign.tiers.size() == 1;
  std::string out = fmt::format(" It writes {} while steps run, {} a day", page_bytes(rate) + "/s",
                                page_bytes(rate * kDay));
  if (writes.sustained > BytesPerSecond{}) {
    out += fmt::format(", {} of what {} sustains", page_percent(writes.share(interval), 1),
                       keeps ? "the storage" : "that tier");
  }
  if (keeps) {
    out += fmt::format("; all of them together are at most {}",
                       page_bytes(rate * result.summary.wall_s.mean));
  }
  if (result.optimum->limited) {
    out += fmt::format("; a shorter one would take more than {} of {}",
                       page_percent(writes.most_share, 0), keeps ? "the storage" : "that");
  }
  return out + ".";
}

Html interval_sentence(const CampaignResult& result) {
  const IntervalOptimum& optimum = *result.optimum;
  const std::string given = page_setting(optimum.given.interval.base_units());
  const double gain = optimum.best.goodput - optimum.given.goodput;
  // Of several tiers it is the first one's.
  const std::vector<CheckpointTier>& tiers = result.plan.campaign.tiers;
  const std::string where = tiers.size() > 1 ? " to " + tiers.front().name : "";
  if (gain < kNoticeableGain) {
    return escaped(fmt::format(
        " No {} is noticeably better than the {} given.",
        where.empty() ? "checkpoint interval" : "interval of checkpoints" + where, given));
  }
  return escaped(fmt::format(" A checkpoint{} every ", where)) +
         strong(page_setting(optimum.best.interval.base_units())) +
         escaped(fmt::format(" instead of every {} would bring goodput to ", given)) +
         strong(telling_percent(optimum.best.goodput)) +
         escaped(fmt::format(", {} points more.", significant(100 * gain, 2))) +
         escaped(writes_sentence(result, optimum.best.interval));
}

/// Of what slower steps are where machines come in lots.
Html lots_sentence(const CampaignResult& result) {
  if (!result.fleet) return {};
  const int nodes = result.scenario.nodes;
  const double there = result.fleet->mean_nodes(Seconds{result.summary.wall_s.mean});
  if (there >= nodes) return {};
  return escaped(" Steps are slower while machines are still to come: on average ") +
         strong(fmt::format("{:.3g} nodes", there)) +
         escaped(fmt::format(" are there, and the job is laid out for {}: by the nodes that are "
                             "there, {} of the time advances training.",
                             nodes, telling_percent(result.summary.goodput.mean * nodes / there)));
}

/// What the site around the racks takes, where it takes anything.
Html site_sentence(const CampaignResult& result) {
  const double slowed = result.summary.site_slowed_s, stopped = result.summary.site_stopped_s;
  if (!result.site || slowed + stopped <= 0) return {};
  // Slow steps whose work was lost are booked as that work.
  const double slower = result.summary.wall_s.mean *
                        result.summary.shares[static_cast<std::size_t>(RunBucket::degraded)];
  const std::string some = slowed > 1.001 * slower ? ", in part in work that was done again" : "";
  if (stopped <= 0) {
    return escaped(" Limits of the site take ") + strong(page_duration(slowed)) +
           escaped(" of full speed" + some + ".");
  }
  const Html stops = escaped(" Stops without power take ") + strong(page_duration(stopped));
  if (slowed <= 0) return stops + escaped(".");
  return stops + escaped(", limits of the site ") + strong(page_duration(slowed)) +
         escaped(" of full speed" + some + ".");
}

/// What is paid for time that advances nothing, and for GPUs that stand by.
Html money_sentence(const CampaignResult& result) {
  const std::optional<double> rent = result.rent_usd();
  // Lots are paid for as they are bought.
  if (!rent || result.fleet) return {};
  const double used = *result.scenario.usd_per_gpu_hour * result.gpu_hours();
  const double spares = *rent - used;
  return escaped(fmt::format(" Of {} for the GPU-hours, ", page_usd(*rent))) +
         strong(page_usd(*rent - used * result.summary.shares[0])) +
         escaped(result.held_gpu_hours() > result.gpu_hours()
                     ? fmt::format(" buys no training, {} of it hot spares.", page_usd(spares))
                     : " buys no training.");
}

/// With more digits where both ends would read the same.
std::pair<std::string, std::string> interval_texts(double low_s, double high_s) {
  std::pair<std::string, std::string> out{page_duration(low_s), page_duration(high_s)};
  if (out.first == out.second) {
    constexpr double kDay = 86'400;
    const auto days = [](double s) { return fmt::format("{:.6g} days", s / kDay); };
    out = {days(low_s), days(high_s)};
  }
  return out;
}

PageFigure wall_figure(const SampleMean& wall) {
  std::string label = "wall time";
  if (wall.high - wall.low > 0.001 * wall.mean) {
    const auto [low, high] = interval_texts(wall.low, wall.high);
    label += fmt::format(", 90 % interval {} to {}", low, high);
  }
  return {.value = page_duration(wall.mean), .label = label, .field = "wall_s"};
}

/// The wall time; with what comes before the first step where anything does.
PageFigure done_figure(const CampaignResult& result) {
  PageFigure wall = wall_figure(result.summary.wall_s);
  if (result.before() <= Seconds{}) return wall;
  return {.value = page_duration(result.done().base_units()),
          .label = fmt::format("until it is done: {} before the first step ({}), then {} of {}",
                               page_duration(result.before().base_units()), waits_for_text(result),
                               wall.value, wall.label),
          .field = "done_s"};
}

void add_money_figures(std::vector<PageFigure>& figures, const CampaignResult& result) {
  if (const std::optional<double> rent = result.rent_usd()) {
    figures.push_back(
        {.value = page_usd(*rent),
         .label = fmt::format("to rent {} GPU-hours at {:.2f} USD{}",
                              page_count(result.held_gpu_hours()),
                              *result.scenario.usd_per_gpu_hour, instead_of_owning(result)),
         .field = "price_usd"});
  }
  if (const double storage = result.storage_usd(); storage > 0) {
    figures.push_back({.value = page_usd(storage),
                       .label = "of storage for the dataset, beside what the machines cost"});
  }
  if (result.fleet) {
    // What is bought and when decides; a bill of machines that are all there from the start is
    // none.
    const MonthMoney money = sum_of(months_of(result));
    figures.push_back(
        {.value = page_usd(money.usd()),
         .label =
             fmt::format("machines as they come, with {}energy, people and interest: {} spent{}",
                         besides_words(money), page_usd(money.spent() + money.interest),
                         money.residual != 0
                             ? fmt::format(", {} of it comes back as what {} are worth at the end",
                                           page_usd(-money.residual), sold_words(money))
                             : "")});
    return;
  }
  if (result.bill && result.bill->cost.total_usd() > 0) {
    const CostReport& cost = result.bill->cost;
    const CostSpec& prices = result.scenario.power->cost;
    if (!prices_machines(prices)) {
      figures.push_back(
          {.value = page_usd(cost.total_usd()), .label = "for " + partial_money_words(result)});
      return;
    }
    figures.push_back(
        {.value = page_usd(cost.total_usd()),
         .label = fmt::format("to own and run: {} written off, {} to run, {} of it for energy",
                              page_usd(cost.write_off_usd()), page_usd(cost.running_usd()),
                              page_usd(cost.energy_usd)),
         .field = "owned_usd"});
  }
  if (result.bill && result.bill->cost.capital.total_usd() > 0) {
    const CapitalReport& capital = result.bill->cost.capital;
    figures.push_back(
        {.value = page_usd(capital.total_usd()),
         .label = fmt::format("capital to be spent: machines {}, network {}, building {}",
                              page_usd(capital.machines_usd), page_usd(capital.network_usd),
                              page_usd(capital.building_usd)),
         .field = "capital_usd"});
  }
}

}  // namespace

std::string telling_percent(double share) {
  constexpr int kMostDecimals = 4;
  const double from_end = 100 * std::min(share, 1 - share);
  for (int decimals = 1; decimals <= kMostDecimals; ++decimals) {
    if (from_end >= 0.5 * std::pow(10.0, -decimals)) return page_percent(share, decimals);
  }
  return page_percent(share, 1);
}

std::string in_sentence(std::string_view title) {
  std::string out(title);
  const auto is_upper = [&](std::size_t at) {
    return at < out.size() && out[at] >= 'A' && out[at] <= 'Z';
  };
  if (is_upper(0) && !is_upper(1)) out[0] = static_cast<char>(out[0] - 'A' + 'a');
  return out;
}

std::string run_title(const CampaignResult& result) {
  return fmt::format("{} on {} for {}{}", result.scenario.job.model.name,
                     counted(result.work().gpus(), "GPU"), page_setting(result.done().base_units()),
                     before_text(result));
}

Html run_headline(const CampaignResult& result) {
  Html out;
  if (const std::string cut = unfinished_text(result); !cut.empty()) {
    out += strong("Not finished: ") + escaped(cut + ". ");
  }
  if (const std::string unsaved = unsaved_text(result); !unsaved.empty()) {
    out += strong("Checkpoints: ") + escaped(unsaved + ". ");
  }
  out += goodput_sentence(result.summary) + losses_sentences(result) + lots_sentence(result) +
         site_sentence(result);
  if (result.power) {
    const std::string warning = limit_warning(*result.power, *result.scenario.power);
    if (!warning.empty()) out += escaped(" Power limit ") + strong(warning) + escaped(".");
  }
  if (result.optimum) out += interval_sentence(result);
  return out + money_sentence(result);
}

std::vector<PageFigure> run_figures(const CampaignResult& result) {
  const RunSummary& s = result.summary;
  std::vector<PageFigure> figures{
      {.value = telling_percent(s.goodput.mean),
       .label = "goodput: wall time that advances training",
       .field = "goodput"},
      {.value = page_percent(result.mfu * s.goodput.mean, 1),
       .label = fmt::format("of peak FLOPs train the model: MFU {} × goodput",
                            page_percent(result.mfu, 1)),
       .field = "useful_flops_share"},
      done_figure(result),
      {.value = significant(s.interruptions.mean),
       .label = s.mttf.mean_s
                    ? fmt::format("interruptions, one every {}{}", page_duration(*s.mttf.mean_s),
                                  s.site_stops > 0 ? fmt::format("; {} are stops without power",
                                                                 significant(s.site_stops))
                                                   : "")
                    : fmt::format("interruptions seen; at least {} apart (95 % confidence)",
                                  page_duration(s.mttf.at_least_s)),
       .field = "interruptions"}};
  const double tokens = result.steps() * result.tokens_per_step();
  figures.push_back(
      {.value = page_count(tokens),
       .label = fmt::format("tokens trained in {} {} of {}", page_count(result.steps()),
                            result.plan.iteration ? "iterations" : "steps",
                            page_duration(result.plan.step_s)),
       .field = "tokens_done"});
  if (result.interval) {
    const PredictionInterval& i = *result.interval;
    figures.push_back(
        {.value = page_duration(result.plan.step_s),
         .label = fmt::format("a healthy {}; {} interval {} to {} ({})",
                              result.plan.iteration ? "iteration" : "step",
                              page_percent(kCoverage, 0), page_duration(result.plan.step_s * i.low),
                              page_duration(result.plan.step_s * i.high), words_of(i)),
         .field = "step_s"});
  }
  const double gpus = result.work().gpus();
  const double equivalents = h100_equivalents(result.scenario, gpus);
  constexpr double kAlike = 0.005;
  if (equivalents > 0 && std::abs(equivalents - gpus) > kAlike * gpus) {
    figures.push_back(
        {.value = page_count(equivalents),
         .label = fmt::format("H100 equivalents, by dense 16-bit peak, in {} GPUs", grouped(gpus)),
         .field = "h100_equivalents"});
  }
  if (result.bill) {
    const Usage& usage = result.bill->usage;
    figures.push_back({.value = page_energy(usage.energy.base_units()),
                       .label = fmt::format("of energy, {} on average",
                                            page_watts((usage.energy / usage.time).base_units())),
                       .field = "energy_j"});
  }
  if (const double rate = result.plan.data_read_bytes_per_s; rate > 0) {
    figures.push_back({.value = page_bytes(rate) + "/s",
                       .label = result.plan.data_speed < 1
                                    ? fmt::format("of training data read; training is {} slower "
                                                  "for it",
                                                  page_percent(1 - result.plan.data_speed, 1))
                                    : "of training data read while steps run"});
  }
  add_money_figures(figures, result);
  return figures;
}

std::string percent_with_interval(const SampleMean& of) {
  if (of.half_width <= 0) return page_percent(of.mean, 2);
  constexpr double kShown = 1e-4;  // of the last decimal
  return fmt::format("{} ± {}", page_percent(of.mean, 2),
                     page_percent(std::max(of.half_width, kShown), 2));
}

}  // namespace lockstep
