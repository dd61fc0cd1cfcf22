#include "tools/views/plan/serving_plan_output.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kServingLabelColumns = 16;

std::string labelled_service(std::string_view label, const std::string& text) {
  return labelled_line(label, kServingLabelColumns, text);
}

/// What the objectives are, each once.
std::string objectives_asked(const ServingSpec& spec) {
  std::string out;
  const auto add = [&](std::string_view name, const std::optional<Seconds>& limit) {
    if (!limit) return;
    out +=
        fmt::format("{}{} {}", out.empty() ? "" : ", ", name, duration_text(limit->base_units()));
  };
  const ServingObjectives& o = spec.objectives;
  for (std::size_t q = 0; q < kServedLimits; ++q) {
    add(fmt::format("{}_p{}", kServedTimeNames[q / kLimitedPercents.size()],
                    kLimitedPercents[q % kLimitedPercents.size()]),
        o.quantiles[q]);
  }
  add("ttft", o.ttft);
  add("tpot", o.tpot);
  add("e2e", o.e2e);
  if (o.per_request()) out += fmt::format(" of {} of the requests", percent_text(o.attained));
  return out;
}

double busy_share(const ServingTrial& trial, std::size_t pool) {
  const ServingPoolReport& p = trial.report.pools[pool];
  const double span = trial.report.figures.span_s;
  return span > 0 ? p.busy_s / (span * p.replicas) : 0;
}

std::string busy_text(const ServingTrial& trial) {
  std::string out;
  for (std::size_t p = 0; p < trial.pools.size(); ++p) {
    out += (p == 0 ? "" : " / ") + percent_text(busy_share(trial, p));
  }
  return out;
}

std::string map_table(const ServingPlanAnswer& a, const TextStyle& style) {
  if (a.report.map.empty()) return {};
  TextTable table({{"requests/s"},
                   {"input"},
                   {"output"},
                   {"one pool"},
                   {"two pools"},
                   {"better", TextTable::Align::left}});
  const auto count = [](int gpus) { return gpus > 0 ? grouped(gpus) : std::string("-"); };
  for (const ServingMapCell& cell : a.report.map) {
    const bool one = cell.one_pool > 0, two = cell.two_pools > 0;
    const char* better = !one && !two                      ? "neither"
                         : !two                            ? "one"
                         : !one                            ? "two"
                         : cell.one_pool == cell.two_pools ? "equal"
                         : cell.one_pool < cell.two_pools  ? "one"
                                                           : "two";
    table.add({significant(cell.rate), grouped(cell.input), grouped(cell.output),
               count(cell.one_pool), count(cell.two_pools), better});
  }
  return "\n" + style.bold("One pool or two: least GPUs") + "\n" + table.text(style);
}

constexpr std::ptrdiff_t kBeforeWay = 2;  // columns

/// The way that a machine serves is a column, or where that is too wide a line below its numbers.
std::string options_table(const ServingPlanAnswer& a, const TextStyle& style) {
  std::vector<TextTable::Column> columns{{"", TextTable::Align::left},
                                         {"machine", TextTable::Align::left},
                                         {"GPUs"},
                                         {"spares"},
                                         {"TTFT 99 %"},
                                         {"TPOT 99 %"},
                                         {"busy"},
                                         {"USD/M"},
                                         {"of it", TextTable::Align::left},
                                         {"sure", TextTable::Align::left}};
  TextTable numbers(columns);
  columns.insert(columns.begin() + kBeforeWay, {"way", TextTable::Align::left});
  TextTable whole(std::move(columns));
  std::vector<std::string> ways;
  const auto add = [&](std::vector<std::string> cells, const std::string& way) {
    numbers.add(cells);
    ways.push_back(way);
    cells.insert(cells.begin() + kBeforeWay, way);
    whole.add(std::move(cells));
  };
  for (std::size_t i = 0; i < a.report.options.size(); ++i) {
    const ServingOption& o = a.report.options[i];
    const std::string& name = a.candidate_of(o).name;
    if (!o.sized.possible) {
      add({"", name, "-", "-", "-", "-", "-", "-", "", "-"},
          o.two_pools ? "two pools: none" : "one pool: none");
      continue;
    }
    const ServingTrial& best = o.sized.best;
    const ServingFigures& f = best.report.figures;
    add({a.report.choice == i ? ">" : "", name, grouped(best.gpus()), grouped(o.spare_gpus),
         duration_text(f.ttft_s.p99), duration_text(f.tpot_s.p99), busy_text(best),
         o.usd_per_million ? significant(*o.usd_per_million) : "-", serving_billed_words(a, o),
         best.surely ? "yes" : "no"},
        serving_way_words(best.pools));
  }
  return whole.width() <= table_columns(style) ? whole.text(style)
                                               : text_with_words(numbers, ways, style);
}

Json pool_json(const ServingOption& option, std::size_t p) {
  const ServingPool& pool = option.sized.best.pools[p];
  return {{"name", pool.name},
          {"replicas", pool.replicas},
          {"spares", option.spares[p]},
          {"tensor", pool.tensor},
          {"pipeline", pool.pipeline},
          {"attention_data", pool.attention_data},
          {"expert", pool.expert},
          {"busy_share", twelve_digits(busy_share(option.sized.best, p))}};
}

Json option_json(const ServingPlanAnswer& a, const ServingOption& o) {
  Json out{{"name", a.candidate_of(o).name},
           {"way", o.two_pools ? "two_pools" : "one_pool"},
           {"node", a.candidate_of(o).base.cluster.node.name},
           {"gpu", a.candidate_of(o).base.cluster.node.gpu.name},
           {"possible", o.sized.possible},
           {"layouts", o.sized.layouts},
           {"simulations", o.sized.trials}};
  if (!o.sized.possible) return out;
  const ServingTrial& best = o.sized.best;
  const ServingFigures& f = best.report.figures;
  out["gpus"] = best.gpus();
  out["spare_gpus"] = o.spare_gpus;
  Json pools = Json::array();
  for (std::size_t p = 0; p < best.pools.size(); ++p) pools.push_back(pool_json(o, p));
  out["pools"] = std::move(pools);
  Json objectives = Json::array();
  for (const ObjectiveCheck& check : best.report.objectives) {
    objectives.push_back({{"name", check.name},
                          {"limit", twelve_digits(check.limit)},
                          {"value", twelve_digits(check.value)}});
  }
  out["objectives"] = std::move(objectives);
  out["surely"] = best.surely;
  out["requests"] = best.requests;
  out["steady"] = best.report.course.steady();
  out["ttft_p99_s"] = twelve_digits(f.ttft_s.p99);
  out["tpot_p99_s"] = twelve_digits(f.tpot_s.p99);
  out["output_tokens_per_s_per_gpu"] =
      twelve_digits(f.output_per_s / best.coming_share / best.gpus());
  out["usd_per_million_output_tokens"] =
      o.usd_per_million ? Json(twelve_digits(*o.usd_per_million)) : Json(nullptr);
  out["billed"] = o.billed ? Json(kMoneyOf[static_cast<std::size_t>(*o.billed)]) : Json(nullptr);
  out["joules_per_output_token"] =
      best.report.power ? Json(twelve_digits(best.report.power->joules_per_output_token))
                        : Json(nullptr);
  return out;
}

}  // namespace

std::string option_name(const ServingPlanAnswer& answer, const ServingOption& option) {
  return fmt::format("{}, {}", answer.candidate_of(option).name,
                     option.two_pools ? "two pools" : "one pool");
}

std::string serving_billed_words(const ServingPlanAnswer& a, const ServingOption& o) {
  if (!o.billed) return {};
  const std::optional<PowerSpec>& power = a.candidate_of(o).base.power;
  return words_of(*o.billed, power ? &power->cost : nullptr);
}

std::vector<std::string> serving_plan_assumptions(const ServingPlanAnswer& a) {
  std::set<std::string> out(a.spec.assumptions.begin(), a.spec.assumptions.end());
  for (const ServingCandidate& candidate : a.spec.candidates) {
    for (const std::string& assumed : candidate.base.assumptions) out.insert(assumed);
  }
  const auto going_on = [](const ServingOption& o) { return o.sized.best.coming_share < 1; };
  if (std::ranges::any_of(a.report.options, going_on)) {
    out.insert(
        "tokens a second and USD per million tokens are of a service that goes on: the end of a "
        "simulated load, when only its last answers are left, is not counted");
  }
  return {out.begin(), out.end()};
}

std::string serving_objectives_words(const ServingPlanAnswer& a) {
  return objectives_asked(a.spec.candidates.front().base);
}

std::string serving_recommendation(const ServingPlanAnswer& a) {
  if (!a.report.choice) {
    return "No machine keeps the objectives with the GPUs that it has, whatever the layout.";
  }
  const ServingOption& o = a.report.options[*a.report.choice];
  const ServingTrial& best = o.sized.best;
  std::string out = fmt::format("Take {}: {}, {}", a.candidate_of(o).name,
                                serving_way_words(best.pools), counted(best.gpus(), "GPU"));
  if (o.spare_gpus > 0) out += fmt::format(" and {} for spares", grouped(o.spare_gpus));
  if (o.usd_per_million) {
    out += fmt::format(", {} USD per million tokens of answers, {}",
                       significant(*o.usd_per_million), serving_billed_words(a, o));
  }
  out += best.surely ? "; at the slow end of the 90 % interval too the objectives are kept."
                     : "; at the slow end of the 90 % interval the objectives are not kept.";
  return out;
}

std::string serving_judged_words(const ServingPlanAnswer& a) {
  if (!a.report.choice) return {};
  const ServingOption& o = a.report.options[*a.report.choice];
  return load_length_words(o.sized.best, a.candidate_of(o).base.requests.size(), "recommendation");
}

std::string serving_plan_table(const ServingPlanAnswer& a, const TextStyle& style) {
  const ServingSpec& first = a.spec.candidates.front().base;
  std::string out = style.bold(first.model.name + " to be served") + "\n";
  if (!a.spec.about.empty()) out += "  " + wrap(a.spec.about, kTextColumns, 2, 2) + "\n";
  out += "\n" + labelled_service("Recommendation", serving_recommendation(a));
  out += labelled_service("Load", first.load);
  out += labelled_service("Objectives", serving_objectives_words(a)) + "\n";
  out += options_table(a, style);
  out +=
      "  > recommended; spares: GPUs of whole replicas; busy: of each pool; USD of a million "
      "tokens of\n  answers, spares included, and of what it is; sure: the objectives are kept at "
      "the slow end of\n  the 90 % interval too\n";
  out += map_table(a, style);
  const std::string judged = serving_judged_words(a);
  out += "\n" + labelled_service("Searched", fmt::format("{} simulations of the load{}{}",
                                                         grouped(a.report.trials),
                                                         judged.empty() ? "" : ". ", judged));
  return out + assumed_lines(serving_plan_assumptions(a), style);
}

namespace {

/// What is chosen, as numbers of the answer's first level; null where nothing is.
Json choice_json(const ServingPlanAnswer& a) {
  if (!a.report.choice) {
    return {{"choice_words", nullptr},      {"choice_gpus", nullptr},
            {"choice_spare_gpus", nullptr}, {"choice_ttft_p99_s", nullptr},
            {"choice_tpot_p99_s", nullptr}, {"choice_usd_per_million_output_tokens", nullptr}};
  }
  const ServingOption& option = a.report.options[*a.report.choice];
  const ServingTrial& best = option.sized.best;
  const ServingFigures& f = best.report.figures;
  const std::optional<double>& usd = option.usd_per_million;
  return {{"choice_words",
           fmt::format("{}: {}", a.candidate_of(option).name, serving_way_words(best.pools))},
          {"choice_gpus", best.gpus()},
          {"choice_spare_gpus", option.spare_gpus},
          {"choice_ttft_p99_s", twelve_digits(f.ttft_s.p99)},
          {"choice_tpot_p99_s", twelve_digits(f.tpot_s.p99)},
          {"choice_usd_per_million_output_tokens", usd ? Json(twelve_digits(*usd)) : Json()}};
}

}  // namespace

Json serving_plan_json(const ServingPlanAnswer& a) {
  Json options = Json::array();
  for (const ServingOption& option : a.report.options) options.push_back(option_json(a, option));
  Json map = Json::array();
  for (const ServingMapCell& cell : a.report.map) {
    map.push_back({{"input_tokens", cell.input},
                   {"output_tokens", cell.output},
                   {"requests_per_s", cell.rate},
                   {"one_pool_gpus", cell.one_pool},
                   {"two_pools_gpus", cell.two_pools}});
  }
  Json curve = Json::array();
  for (const ServingTrial& trial : a.report.curve) {
    curve.push_back({{"gpus", trial.gpus()},
                     {"kept", trial.kept},
                     {"ttft_p99_s", twelve_digits(trial.report.figures.ttft_s.p99)},
                     {"tpot_p99_s", twelve_digits(trial.report.figures.tpot_s.p99)}});
  }
  const ServingSpec& first = a.spec.candidates.front().base;
  Json out{{"plan", a.spec.file},
           {"model", first.model.name},
           {"load", first.load},
           {"prefer", kServingPlanGoals[static_cast<std::size_t>(a.spec.goal)]},
           {"choice", nullptr},
           {"recommendation", serving_recommendation(a)},
           {"simulations", a.report.trials},
           {"options", std::move(options)},
           {"curve", std::move(curve)},
           {"map", std::move(map)},
           {"assumptions", serving_plan_assumptions(a)}};
  if (a.report.choice) out["choice"] = *a.report.choice;
  out.update(choice_json(a));
  return out;
}

CsvText serving_plan_csv(const ServingPlanAnswer& a) {
  CsvText out = csv_line(std::vector<std::string>{
      "name", "way", "possible", "gpus", "spare_gpus", "pools", "ttft_p99_s", "tpot_p99_s",
      "usd_per_million_output_tokens", "billed", "surely"});
  for (const ServingOption& o : a.report.options) {
    std::vector<std::string> cells{a.candidate_of(o).name, o.two_pools ? "two_pools" : "one_pool",
                                   o.sized.possible ? "true" : "false"};
    if (o.sized.possible) {
      const ServingTrial& best = o.sized.best;
      const ServingFigures& f = best.report.figures;
      cells.insert(
          cells.end(),
          {std::to_string(best.gpus()), std::to_string(o.spare_gpus), serving_way_words(best.pools),
           number_text(f.ttft_s.p99), number_text(f.tpot_s.p99),
           o.usd_per_million ? number_text(*o.usd_per_million) : std::string(),
           o.billed ? std::string(kMoneyOf[static_cast<std::size_t>(*o.billed)]) : std::string(),
           best.surely ? "true" : "false"});
    } else {
      cells.resize(11);
    }
    out += csv_line(cells);
  }
  return out;
}

Markdown serving_plan_markdown(const ServingPlanAnswer& a) {
  Markdown out =
      Markdown::write("# {} to be served\n\n", a.spec.candidates.front().base.model.name);
  if (!a.spec.about.empty()) out += Markdown::write("{}\n\n", a.spec.about);
  out += Markdown::write("{}\n\n", serving_recommendation(a));
  if (const std::string judged = serving_judged_words(a); !judged.empty()) {
    out += Markdown::write("{}\n\n", judged);
  }
  out += Markdown::write(
      "| machine | way | GPUs | spare GPUs | TTFT 99 % | TPOT 99 % | USD per million | of it |\n"
      "|---|---|--:|--:|--:|--:|--:|---|\n");
  for (const ServingOption& o : a.report.options) {
    if (!o.sized.possible) {
      out += Markdown::write("| {} | none | | | | | | |\n", option_name(a, o));
      continue;
    }
    const ServingTrial& best = o.sized.best;
    const ServingFigures& f = best.report.figures;
    out += Markdown::write("| {} | {} | {} | {} | {} | {} | {} | {} |\n", a.candidate_of(o).name,
                           serving_way_words(best.pools), best.gpus(), grouped(o.spare_gpus),
                           duration_text(f.ttft_s.p99), duration_text(f.tpot_s.p99),
                           o.usd_per_million ? significant(*o.usd_per_million) : std::string(),
                           serving_billed_words(a, o));
  }
  return out;
}

}  // namespace lockstep
