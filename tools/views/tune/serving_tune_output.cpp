#include "tools/views/tune/serving_tune_output.hpp"

#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "sim/answer/fields.hpp"
#include "tools/views/report/assets.hpp"
#include "tools/views/report/chart_kit.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"
#include "tools/views/serving/serving_words.hpp"
#include "tools/views/tables/command_fields.hpp"

namespace lockstep {
namespace {

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
  const double more = 100 * (study.result.best.front().score / own.score - 1);
  if (more < 0) return out + fmt::format("; the best of those tried makes {:.1f} % less.", -more);
  return out + fmt::format("; the best makes {:.1f} % more.", more);
}

std::string search_words(const ServingTuneStudy& study) {
  const ServingTune& r = study.result;
  const auto of = [](auto n, std::string_view what) {
    return counted(static_cast<double>(n), what);
  };
  std::string out = fmt::format(
      "{} of a replica, of which {} can hold the model and its longest request; {} in {}.",
      of(r.layouts.looked_at, "layout"), r.layouts.pools.size(), of(r.ways, "way") + " of serving",
      of(r.trials, "simulation"));
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

/// A way of serving, and the study that it is of.
struct WayOfServing {
  const ServingTuneStudy& study;
  const TunedService& service;

  [[nodiscard]] const ServingTrial& trial() const { return service.trial; }
};
struct PoolOfWay {
  const ServingTuneStudy& study;
  const ServingPool& pool;
};
std::vector<PoolOfWay> pools_of_way(const WayOfServing& way) {
  std::vector<PoolOfWay> out;
  for (const ServingPool& pool : way.trial().pools) out.push_back({way.study, pool});
  return out;
}

const FieldTable<PoolOfWay>& way_pool_fields() {
  using Of = PoolOfWay;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("name", "Its name.", [](const Of& p) { return p.pool.name; })
          .add("replicas", "Replicas in it.", [](const Of& p) { return p.pool.replicas; })
          .add("tensor", "GPUs that a layer of a replica is cut over.",
               [](const Of& p) { return p.pool.tensor; })
          .add("pipeline", "Stages of a replica.", [](const Of& p) { return p.pool.pipeline; })
          .add("attention_data", "Parts of a replica that attend for requests of their own.",
               [](const Of& p) { return p.pool.attention_data; })
          .add("expert", "GPUs that the experts of a layer are spread over.",
               [](const Of& p) { return p.pool.expert; })
          .add("pass_tokens", "The most tokens of a pass.",
               [](const Of& p) { return p.pool.engine.serving->pass_tokens; })
          .add("most_sequences", "The most sequences of a replica at once.",
               [](const Of& p) { return p.pool.engine.serving->most_sequences; })
          .add("node", "Kind of node that it is on, where the cluster has several.",
               [](const Of& p) -> std::optional<std::string> {
                 if (p.study.base.cluster.pools.empty()) return std::nullopt;
                 return p.study.base.node_of(p.pool).name;
               });
  return fields;
}

/// The score under the name that it has for one goal.
auto score_for(ServingGoal goal) {
  return [goal](const WayOfServing& w) -> std::optional<double> {
    if (w.study.goal != goal) return std::nullopt;
    return w.service.score;
  };
}

const FieldTable<WayOfServing>& way_fields() {
  using Of = WayOfServing;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("goodput_requests_per_s", Better::more,
               "Requests that it takes while it keeps all objectives; with --objective goodput.",
               score_for(ServingGoal::goodput))
          .add("output_tokens_per_s", Better::more,
               "Tokens of answers that it makes; with --objective throughput.",
               score_for(ServingGoal::throughput))
          .add("gpus", "GPUs of all its pools.", [](const Of& w) { return w.trial().gpus(); })
          .add("way", "The way in a few words.",
               [](const Of& w) { return serving_way_words(w.trial().pools); })
          .list("pools", "Its pools.", way_pool_fields(), pools_of_way)
          .add("speed", "How many times as fast as the scenario says requests came.",
               [](const Of& w) { return w.trial().speed; })
          .add("ttft_p99_s", Better::less, "99 of 100 first tokens come no later.",
               [](const Of& w) { return w.trial().report.figures.ttft_s.p99; })
          .add("tpot_p99_s", Better::less, "99 of 100 requests see no longer between tokens.",
               [](const Of& w) { return w.trial().report.figures.tpot_s.p99; })
          .add("output_tokens_per_s_per_gpu", Better::more, "Tokens of answers per GPU.",
               [](const Of& w) {
                 return w.trial().report.figures.output_per_s / std::max(1, w.trial().gpus());
               })
          .add("attained_share", Better::more, "Share of requests within all objectives.",
               [](const Of& w) { return w.trial().report.attained; })
          .add("requests", "Requests of the load that it was judged by.",
               [](const Of& w) { return w.trial().requests; })
          .add("steady",
               "Whether that load was long enough that its queues no longer grew; null where no "
               "rate is looked for.",
               [](const Of& w) -> OrNull<bool> {
                 if (!judges_rates(w.study)) return {};
                 return {w.trial().report.course.steady()};
               });
  return fields;
}

std::vector<WayOfServing> best_ways(const ServingTuneStudy& study) {
  std::vector<WayOfServing> out;
  for (const TunedService& service : study.result.best) out.push_back({study, service});
  return out;
}

const FieldTable<ServingTuneStudy>& serving_study_fields() {
  using Of = ServingTuneStudy;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("file", "The scenario's file.", [](const Of& s) { return s.base.file; })
          .add("model", "Its model.", [](const Of& s) { return s.base.model.name; })
          .add("objective", "What makes a way better.",
               [](const Of& s) { return kServingGoalNames[static_cast<std::size_t>(s.goal)]; })
          .add("gpus", "GPUs that there are.", [](const Of& s) { return s.result.gpus; })
          .add("load", "The load, in words.", [](const Of& s) { return s.base.load; })
          .add("layouts", "Layouts of a replica that were looked at.",
               [](const Of& s) { return s.result.layouts.looked_at; })
          .add("over_memory", "Those that do not fit in memory.",
               [](const Of& s) { return s.result.layouts.over_memory; })
          .add("ways", "Ways of serving that were tried.",
               [](const Of& s) { return s.result.ways; })
          .add("simulations", "How often the load was played.",
               [](const Of& s) { return s.result.trials; })
          .add("interrupted", "Whether the search was stopped before its end.",
               [](const Of& s) { return s.result.interrupted; })
          .list("best", "The best ways of serving, the best first.", way_fields(), best_ways)
          .object_or_null("own", "The scenario's own way; null where its layouts cannot serve.",
                          way_fields(),
                          [](const Of& s) -> std::optional<WayOfServing> {
                            if (s.result.by_own.empty()) return std::nullopt;
                            return WayOfServing{s, s.result.by_own.front()};
                          })
          .add("assumptions", "What was filled in.",
               [](const Of& s) { return s.base.assumptions; });
  return fields;
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

nlohmann::ordered_json serving_tune_json(const ServingTuneStudy& study) {
  return Value(serving_study_fields().values(study)).json();
}

std::vector<FieldInfo> serving_tune_fields() { return serving_study_fields().infos(); }

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
  PageTable table{
      .columns = {
          {.title = "Way of serving"},
          {.title = std::string(score_unit(study)), .numeric = true},
          {.title = "Tokens of a pass", .numeric = true},
          {.title = "Sequences at once", .numeric = true},
          {.title = "TTFT, 99 %", .numeric = true, .about = "of 99 in 100 requests no longer"},
          {.title = "TPOT, 99 %", .numeric = true, .about = "of 99 in 100 requests no longer"},
          {.title = "Output tokens/s/GPU", .numeric = true}}};
  const auto add = [&](const TunedService& s, const std::string& name, bool own) {
    const ServingFigures& f = s.trial.report.figures;
    const double per_gpu = f.output_per_s / std::max(1, s.trial.gpus());
    bars.push_back({.name = name,
                    .value = s.score,
                    .words = {name, fmt::format("{} {}", significant(s.score), score_unit(study))},
                    .marked = own});
    table.rows.push_back(
        {PageCell::text(name), PageCell::number(significant(s.score), s.score),
         PageCell::number(grouped(passes_of(s).pass_tokens), passes_of(s).pass_tokens),
         PageCell::number(grouped(passes_of(s).most_sequences), passes_of(s).most_sequences),
         PageCell::number(page_duration(f.ttft_s.p99), f.ttft_s.p99),
         PageCell::number(page_duration(f.tpot_s.p99), f.tpot_s.p99),
         PageCell::number(significant(per_gpu), per_gpu)});
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
  const ServingObjectives& objectives = study.base.objectives;
  std::string about = study.base.load + ".";
  if (study.goal == ServingGoal::goodput && objectives.per_request()) {
    about += fmt::format(" Objectives of a request: {}, for {} of them.",
                         request_limits_words(objectives), percent_text(objectives.attained));
  }
  about += " TTFT is the time to the first token, TPOT that per output token behind it.";
  page.section("The best ways of serving", about);
  if (!bars.empty()) {
    page.chart(
        {.title = study.goal == ServingGoal::goodput ? "Requests a second within the objectives"
                                                     : "Output tokens a second",
         .about = {},
         .summary = "A bar for each way; the table has the same.",
         .height_px = bars_height(bars.size()) + 24},
        interval_bars(bars,
                      ""));  // the title has the unit, which labels had no room for on a phone
    page.table(table);
  }
  page.section("What was searched", load_length_words(study) + " " + search_words(study));
  add_basis(page, basis);
  page.foot(fmt::format("Scenario: {}.", study.base.file));
  return page.html(chart_library());
}

}  // namespace lockstep
