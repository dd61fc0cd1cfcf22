#include "tools/views/tune/serving_tune_output.hpp"

#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "tools/views/report/assets.hpp"
#include "tools/views/report/chart_kit.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

const ServingEngine& passes_of(const TunedService& service) {
  return *service.trial.pools.back().engine.serving;
}

std::string_view score_unit(const ServingTuneStudy& study) {
  return study.goal == ServingGoal::goodput ? "requests/s" : "tokens/s";
}

std::string own_service_words(const ServingTuneStudy& study) {
  if (study.result.by_own.empty()) return "The scenario's own pools cannot serve.";
  const TunedService& own = study.result.by_own.front();
  const std::string way = serving_way_words(own.trial.pools, study.base);
  if (own.score <= 0)
    return fmt::format("The scenario's own, {}, keeps the objectives at no rate.", way);
  std::string out = fmt::format("The scenario's own, {}, makes {} {}", way, significant(own.score),
                                score_unit(study));
  if (study.result.best.empty()) return out + ".";
  return out + fmt::format("; the best {:+.1f} %.",
                           100 * (study.result.best.front().score / own.score - 1));
}

std::string search_words(const ServingTuneStudy& study) {
  const ServingTune& r = study.result;
  std::string out = fmt::format(
      "{} layouts of a replica, {} hold the model and its longest request; {} ways of serving in "
      "{} "
      "simulations.",
      r.layouts.looked_at, r.layouts.pools.size(), grouped(static_cast<double>(r.ways)),
      grouped(r.trials));
  if (r.interrupted) out += " Interrupted: the best of what was looked at.";
  return out;
}

/// Whether rates are looked for, which a load has to be long enough for.
bool judges_rates(const ServingTuneStudy& study) {
  return study.goal == ServingGoal::goodput && study.base.clients == 0;
}

/// By how long a load the best was judged; empty: there is nothing to say.
std::string load_length_words(const ServingTuneStudy& study) {
  if (!judges_rates(study) || study.result.best.empty()) return {};
  return load_length_words(study.result.best.front().trial, study.base.requests.size(),
                           "best rate");
}

Json service_json(const ServingTuneStudy& study, const TunedService& service) {
  const ServingFigures& f = service.trial.report.figures;
  Json pools = Json::array();
  for (const ServingPool& pool : service.trial.pools) {
    const ServingEngine& e = *pool.engine.serving;
    pools.push_back({{"name", pool.name},
                     {"replicas", pool.replicas},
                     {"tensor", pool.tensor},
                     {"pipeline", pool.pipeline},
                     {"attention_data", pool.attention_data},
                     {"expert", pool.expert},
                     {"pass_tokens", e.pass_tokens},
                     {"most_sequences", e.most_sequences}});
    if (!study.base.cluster.pools.empty()) {
      pools.back()["node"] = study.base.node_of(pool).name;
    }
  }
  return {{study.goal == ServingGoal::goodput ? "goodput_requests_per_s" : "output_tokens_per_s",
           twelve_digits(service.score)},
          {"gpus", service.trial.gpus()},
          {"way", serving_way_words(service.trial.pools)},
          {"pools", std::move(pools)},
          {"speed", twelve_digits(service.trial.speed)},
          {"ttft_p99_s", twelve_digits(f.ttft_s.p99)},
          {"tpot_p99_s", twelve_digits(f.tpot_s.p99)},
          {"output_tokens_per_s_per_gpu",
           twelve_digits(f.output_per_s / std::max(1, service.trial.gpus()))},
          {"attained_share", twelve_digits(service.trial.report.attained)},
          {"requests", service.trial.requests},
          {"steady", judges_rates(study) ? Json(service.trial.report.course.steady()) : Json()}};
}

}  // namespace

std::string serving_tune_table(const ServingTuneStudy& study, const TextStyle& style) {
  const ServingTune& r = study.result;
  std::string out =
      style.bold(fmt::format("{} served by {}", study.base.model.name, counted(r.gpus, "GPU"))) +
      "\n";
  if (!study.base.about.empty()) out += wrap(study.base.about, kTextColumns, 0) + "\n";
  out += "\n" + wrap(study.base.load, kTextColumns, 0) + "\n\n";
  TextTable table({{""},
                   {"way", TextTable::Align::left},
                   {"pass"},
                   {"seqs"},
                   {std::string(score_unit(study))},
                   {"TTFT 99 %"},
                   {"TPOT 99 %"},
                   {"tok/s/GPU"}});
  for (std::size_t i = 0; i < r.best.size(); ++i) {
    const TunedService& s = r.best[i];
    const ServingFigures& f = s.trial.report.figures;
    table.add({std::to_string(i + 1), serving_way_words(s.trial.pools, study.base),
               std::to_string(passes_of(s).pass_tokens),
               std::to_string(passes_of(s).most_sequences), significant(s.score),
               duration_text(f.ttft_s.p99), duration_text(f.tpot_s.p99),
               significant(f.output_per_s / s.trial.gpus())});
  }
  out += table.text(style) + "\n";
  out += wrap(own_service_words(study), kTextColumns, 0) + "\n";
  if (const std::string words = load_length_words(study); !words.empty()) {
    out += wrap(words, kTextColumns, 0) + "\n";
  }
  out += wrap(search_words(study), kTextColumns, 0) + "\n";
  return out + assumed_lines(study.base.assumptions, style);
}

Json serving_tune_json(const ServingTuneStudy& study) {
  const ServingTune& r = study.result;
  Json best = Json::array();
  for (const TunedService& service : r.best) best.push_back(service_json(study, service));
  Json own = nullptr;
  if (!r.by_own.empty()) own = service_json(study, r.by_own.front());
  return {{"file", study.base.file},
          {"model", study.base.model.name},
          {"objective", kServingGoalNames[static_cast<std::size_t>(study.goal)]},
          {"gpus", r.gpus},
          {"load", study.base.load},
          {"layouts", r.layouts.looked_at},
          {"over_memory", r.layouts.over_memory},
          {"ways", r.ways},
          {"simulations", r.trials},
          {"interrupted", r.interrupted},
          {"best", std::move(best)},
          {"own", std::move(own)},
          {"assumptions", study.base.assumptions}};
}

CsvText serving_tune_csv(const ServingTuneStudy& study) {
  CsvText out = csv_line(std::vector<std::string>{
      "rank", "score", "gpus", "pool", "replicas", "tensor", "pipeline", "attention_data", "expert",
      "pass_tokens", "most_sequences", "ttft_p99_s", "tpot_p99_s", "node"});
  for (std::size_t i = 0; i < study.result.best.size(); ++i) {
    const TunedService& s = study.result.best[i];
    const ServingFigures& f = s.trial.report.figures;
    for (const ServingPool& pool : s.trial.pools) {
      std::vector<std::string> cells{std::to_string(i + 1), number_text(s.score),
                                     std::to_string(s.trial.gpus()), pool.name};
      for (const int number :
           {pool.replicas, pool.tensor, pool.pipeline, pool.attention_data, pool.expert,
            pool.engine.serving->pass_tokens, pool.engine.serving->most_sequences}) {
        cells.push_back(std::to_string(number));
      }
      cells.push_back(number_text(f.ttft_s.p99));
      cells.push_back(number_text(f.tpot_s.p99));
      cells.push_back(study.base.node_of(pool).name);
      out += csv_line(cells);
    }
  }
  return out;
}

std::string serving_tune_page(const ServingTuneStudy& study, const AnswerBasis& basis) {
  const ServingTune& r = study.result;
  Page page("Layouts",
            fmt::format("{} served by {}", study.base.model.name, counted(r.gpus, "GPU")));
  if (!study.base.about.empty()) page.about(study.base.about);
  std::vector<IntervalBar> bars;
  PageTable table{.columns = {{.title = "Way of serving"},
                              {.title = std::string(score_unit(study)), .numeric = true},
                              {.title = "Tokens of a pass", .numeric = true},
                              {.title = "Sequences at once", .numeric = true},
                              {.title = "TTFT, 99 %", .numeric = true},
                              {.title = "TPOT, 99 %", .numeric = true}}};
  const auto add = [&](const TunedService& s, const std::string& name, bool own) {
    const ServingFigures& f = s.trial.report.figures;
    bars.push_back({.name = name, .value = s.score, .words = {name}, .marked = own});
    table.rows.push_back(
        {PageCell::text(name), PageCell::number(significant(s.score), s.score),
         PageCell::number(grouped(passes_of(s).pass_tokens), passes_of(s).pass_tokens),
         PageCell::number(grouped(passes_of(s).most_sequences), passes_of(s).most_sequences),
         PageCell::number(page_duration(f.ttft_s.p99), f.ttft_s.p99),
         PageCell::number(page_duration(f.tpot_s.p99), f.tpot_s.p99)});
  };
  for (std::size_t i = 0; i < r.best.size(); ++i) {
    add(r.best[i],
        fmt::format("{}. {}", i + 1, serving_way_words(r.best[i].trial.pools, study.base)), false);
  }
  if (!r.by_own.empty()) {
    add(r.by_own.front(), "own: " + serving_way_words(r.by_own.front().trial.pools, study.base),
        true);
  }
  if (r.best.empty()) {
    page.headline(escaped("Nothing was found before it was interrupted."));
  } else {
    page.headline(strong(serving_way_words(r.best.front().trial.pools, study.base)) +
                  escaped(fmt::format(" makes {} {}. {}", significant(r.best.front().score),
                                      score_unit(study), own_service_words(study))));
  }
  page.section("The best ways of serving", study.base.load + ".");
  if (!bars.empty()) {
    page.chart(
        {.title = study.goal == ServingGoal::goodput ? "Requests a second within the objectives"
                                                     : "Output tokens a second",
         .about = {},
         .summary = "A bar for each way; the table has the same.",
         .height_px = bars_height(bars.size()) + 24},
        interval_bars(bars, std::string(score_unit(study))));
    page.table(table);
  }
  page.section("What was searched", load_length_words(study) + " " + search_words(study));
  add_basis(page, basis);
  page.foot(fmt::format("Scenario: {}.", study.base.file));
  return page.html(chart_library());
}

}  // namespace lockstep
