#include "tools/views/plan/serving_plan_output.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <set>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "sim/answer/fields.hpp"
#include "tools/views/tables/command_fields.hpp"

namespace lockstep {
namespace {

constexpr int kServingLabelColumns = 16;

std::string labelled_service(std::string_view label, const std::string& text) {
  return labelled_line(label, kServingLabelColumns, text);
}

/// By ServedTime, as the tables call them.
constexpr std::array<std::string_view, kServedTimeNames.size()> kAsked{"TTFT", "TPOT", "ITL",
                                                                       "end to end"};

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
    add(fmt::format("{} {} %", kAsked[q / kLimitedPercents.size()],
                    kLimitedPercents[q % kLimitedPercents.size()]),
        o.quantiles[q]);
  }
  for (const auto& [name, limit] :
       {std::pair{kAsked[0], o.ttft}, {kAsked[1], o.tpot}, {kAsked[3], o.e2e}}) {
    add(name, limit);
  }
  if (o.per_request()) out += fmt::format(" of {} of the requests", percent_text(o.attained));
  return out;
}

/// "TTFT 99 %" of "ttft_p99"; "requests within the limits" of "attained".
std::string objective_words(const std::string& name) {
  for (std::size_t q = 0; q < kServedLimits; ++q) {
    const std::size_t time = q / kLimitedPercents.size();
    const int percent = kLimitedPercents[q % kLimitedPercents.size()];
    if (name == fmt::format("{}_p{}", kServedTimeNames[time], percent)) {
      return fmt::format("{} {} %", kAsked[time], percent);
    }
  }
  constexpr std::string_view kShare = ".attained";
  return name.ends_with(kShare)
             ? "requests of " + name.substr(0, name.size() - kShare.size()) + " within the limits"
             : "requests within the limits";
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
  return "\n" + style.bold("One pool or two: least GPUs") + " (" + a.mapped_candidate().name +
         ")\n" + table.text(style);
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
                                         {"slow end", TextTable::Align::left}};
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
         slow_end_words(best)},
        serving_way_words(best.pools));
  }
  return whole.width() <= table_columns(style) ? whole.text(style)
                                               : text_with_words(numbers, ways, style);
}

/// A machine and a way of serving, and the plan that it is of.
struct OptionOfPlan {
  const ServingPlanAnswer& answer;
  const ServingOption& option;

  [[nodiscard]] const ServingTrial& best() const { return option.sized.best; }
  [[nodiscard]] const NodeSpec& node() const {
    return answer.candidate_of(option).base.cluster.node;
  }
};
struct PoolOfOption {
  const ServingOption& option;
  std::size_t place = 0;

  [[nodiscard]] const ServingPool& pool() const { return option.sized.best.pools[place]; }
};

/// What an option has that keeps the objectives.
template <class Get>
auto where_it_serves(Get get) {
  using Got = std::remove_cvref_t<std::invoke_result_t<Get, const OptionOfPlan&>>;
  return [get](const OptionOfPlan& o) -> std::optional<Got> {
    if (!o.option.sized.possible) return std::nullopt;
    return get(o);
  };
}

std::vector<PoolOfOption> pools_of_option(const OptionOfPlan& o) {
  std::vector<PoolOfOption> out;
  if (!o.option.sized.possible) return out;
  for (std::size_t p = 0; p < o.best().pools.size(); ++p) out.push_back({o.option, p});
  return out;
}
std::vector<ObjectiveCheck> objectives_of_option(const OptionOfPlan& o) {
  if (!o.option.sized.possible) return {};
  return o.best().report.objectives;
}

const FieldTable<PoolOfOption>& option_pool_fields() {
  using Of = PoolOfOption;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("name", "Its name.", [](const Of& p) { return p.pool().name; })
          .add("replicas", "Replicas in it.", [](const Of& p) { return p.pool().replicas; })
          .add("spares", "Replicas beside them, for when one fails.",
               [](const Of& p) { return p.option.spares[p.place]; })
          .add("tensor", "GPUs that a layer of a replica is cut over.",
               [](const Of& p) { return p.pool().tensor; })
          .add("pipeline", "Stages of a replica.", [](const Of& p) { return p.pool().pipeline; })
          .add("attention_data", "Parts of a replica that attend for requests of their own.",
               [](const Of& p) { return p.pool().attention_data; })
          .add("expert", "GPUs that the experts of a layer are spread over.",
               [](const Of& p) { return p.pool().expert; })
          .add("busy_share", "Share of the time in which its replicas run a pass.",
               [](const Of& p) { return busy_share(p.option.sized.best, p.place); });
  return fields;
}

const FieldTable<ObjectiveCheck>& option_objective_fields() {
  using Of = ObjectiveCheck;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("name", "What is asked: a time in seconds by its quantile, or a share of requests.",
               [](const Of& c) { return c.name; })
          .add("limit", "What it is to keep.", [](const Of& c) { return c.limit; })
          .add("value", "What it has.", [](const Of& c) { return c.value; });
  return fields;
}

void add_option_figures(FieldTable<OptionOfPlan>& fields) {
  using Of = OptionOfPlan;
  fields
      .add("surely", "Whether the objectives are kept at the slow end of the 90 % interval, too.",
           where_it_serves([](const Of& o) { return o.best().surely; }))
      .add("requests", "Requests of the load that it was judged by.",
           where_it_serves([](const Of& o) { return o.best().requests; }))
      .add("steady", "Whether that load was long enough that its queues no longer grew.",
           where_it_serves([](const Of& o) { return o.best().report.course.steady(); }))
      .add("ttft_p99_s", Better::less, "99 of 100 first tokens come no later.",
           where_it_serves([](const Of& o) { return o.best().report.figures.ttft_s.p99; }))
      .add("tpot_p99_s", Better::less, "99 of 100 requests see no longer between tokens.",
           where_it_serves([](const Of& o) { return o.best().report.figures.tpot_s.p99; }))
      .add("output_tokens_per_s_per_gpu", Better::more,
           "Tokens of answers per GPU, of a service that goes on.",
           where_it_serves([](const Of& o) {
             const ServingTrial& best = o.best();
             return best.report.figures.output_per_s / best.coming_share / best.gpus();
           }))
      .add("usd_per_million_output_tokens", Better::less,
           "Money of a million tokens of answers, spares included; null: nothing has a price.",
           where_it_serves([](const Of& o) { return OrNull<double>{o.option.usd_per_million}; }))
      .add("billed", "What that money is of; null: nothing has a price.",
           where_it_serves([](const Of& o) -> OrNull<std::string_view> {
             if (!o.option.billed) return {};
             return {kMoneyOf[static_cast<std::size_t>(*o.option.billed)]};
           }))
      .add("joules_per_output_token", Better::less,
           "Energy of a token of answers; null where the scenario says no power.",
           where_it_serves([](const Of& o) -> OrNull<double> {
             if (!o.best().report.power) return {};
             return {o.best().report.power->joules_per_output_token};
           }));
}

const FieldTable<OptionOfPlan>& serving_option_fields() {
  using Of = OptionOfPlan;
  static const FieldTable<Of> fields = [] {
    FieldTable<Of> out;
    out.add("name", "Its machine.",
            [](const Of& o) { return o.answer.candidate_of(o.option).name; })
        .add("way", R"("one_pool", or "two_pools": one for prompts, one for answers.)",
             [](const Of& o) { return o.option.two_pools ? "two_pools" : "one_pool"; })
        .add("node", "Kind of node.", [](const Of& o) { return o.node().name; })
        .add("gpu", "Kind of GPU.", [](const Of& o) { return o.node().gpu.name; })
        .add("possible", "Whether it can keep the objectives: else what follows is absent.",
             [](const Of& o) { return o.option.sized.possible; })
        .add("layouts", "Layouts of a replica that were looked at.",
             [](const Of& o) { return o.option.sized.layouts; })
        .add("simulations", "How often the load was played on it.",
             [](const Of& o) { return o.option.sized.trials; })
        .add("gpus", Better::less, "The least GPUs that keep the objectives.",
             where_it_serves([](const Of& o) { return o.best().gpus(); }))
        .add("spare_gpus", Better::less, "GPUs of spare replicas.",
             where_it_serves([](const Of& o) { return o.option.spare_gpus; }))
        .list_if_any("pools", "Its pools.", option_pool_fields(), pools_of_option)
        .list_if_any("objectives", "What the load asks, and what it gets.",
                     option_objective_fields(), objectives_of_option)
        .list_if_any("objectives_at_slow_end",
                     "The same at the slow end of the 90 % interval, where there is one.",
                     option_objective_fields(), [](const Of& o) -> std::vector<ObjectiveCheck> {
                       if (!o.option.sized.possible) return {};
                       return o.best().slow_end;
                     });
    add_option_figures(out);
    return out;
  }();
  return fields;
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

std::string serving_plan_title(const ServingPlanAnswer& a) {
  return "Machines to serve " + a.spec.candidates.front().base.model.name;
}

std::string slow_end_words(const ServingTrial& trial) {
  if (!trial.report.interval) return "no interval";
  return trial.surely ? "kept" : "missed";
}

std::string slow_end_misses(const ServingTrial& trial) {
  std::string out;
  for (const ObjectiveCheck& check : trial.slow_end) {
    if (check.kept) continue;
    out += (out.empty() ? "" : ", ") + objective_words(check.name);
    const bool time = check.name.find("attained") == std::string::npos;
    out +=
        time
            ? fmt::format(" {}, against {}", duration_text(check.value), duration_text(check.limit))
            : fmt::format(" {}, against {}", percent_text(check.value), percent_text(check.limit));
  }
  return out;
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
  if (!best.report.interval) {
    return out + "; no published service is like it, so that no interval says how sure that is.";
  }
  if (best.surely)
    return out + "; at the slow end of the 90 % interval too the objectives are kept.";
  out += "; at the slow end of the 90 % interval the objectives are not kept: " +
         slow_end_misses(best);
  const bool any_surely = std::ranges::any_of(a.report.options, [](const ServingOption& option) {
    return option.sized.possible && option.sized.best.surely;
  });
  return out + (any_surely ? "."
                           : ". No option keeps them there: it is recommended by expected times "
                             "alone.");
}

std::string serving_judged_words(const ServingPlanAnswer& a) {
  if (!a.report.choice) return {};
  const ServingOption& o = a.report.options[*a.report.choice];
  return load_length_words(o.sized.best, a.candidate_of(o).base.requests.size(), "recommendation");
}

std::string serving_plan_table(const ServingPlanAnswer& a, const TextStyle& style) {
  const ServingSpec& first = a.spec.candidates.front().base;
  std::string out = style.bold(serving_plan_title(a)) + "\n";
  if (!a.spec.about.empty()) out += "  " + wrap(a.spec.about, kTextColumns, 2, 2) + "\n";
  out += "\n" + labelled_service("Recommendation", serving_recommendation(a));
  out += labelled_service("Load", first.load);
  out += labelled_service("Objectives", serving_objectives_words(a)) + "\n";
  out += options_table(a, style);
  out +=
      "  > recommended; spares: GPUs of whole replicas; busy: of each pool; USD of a million "
      "tokens of\n  answers, spares included, and of what it is; slow end: the objectives at that "
      "end of the 90 %\n  interval of a step's time\n";
  out += map_table(a, style);
  const std::string judged = serving_judged_words(a);
  out += "\n" + labelled_service("Searched", fmt::format("{} simulations of the load{}{}",
                                                         grouped(a.report.trials),
                                                         judged.empty() ? "" : ". ", judged));
  return out + assumed_lines(serving_plan_assumptions(a), style);
}

namespace {

std::vector<OptionOfPlan> options_of_plan(const ServingPlanAnswer& answer) {
  std::vector<OptionOfPlan> out;
  for (const ServingOption& option : answer.report.options) out.push_back({answer, option});
  return out;
}

const FieldTable<ServingTrial>& serving_curve_fields() {
  using Of = ServingTrial;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("gpus", "GPUs of its replicas.", [](const Of& t) { return t.gpus(); })
          .add("kept", "Whether it keeps the objectives.", [](const Of& t) { return t.kept; })
          .add("ttft_p99_s", Better::less, "99 of 100 first tokens come no later.",
               [](const Of& t) { return t.report.figures.ttft_s.p99; })
          .add("tpot_p99_s", Better::less, "99 of 100 requests see no longer between tokens.",
               [](const Of& t) { return t.report.figures.tpot_s.p99; });
  return fields;
}

const FieldTable<ServingMapCell>& serving_map_fields() {
  using Of = ServingMapCell;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("input_tokens", "Tokens of a prompt.",
               [](const Of& c) { return AllDigits{c.input}; })
          .add("output_tokens", "Tokens of an answer.",
               [](const Of& c) { return AllDigits{c.output}; })
          .add("requests_per_s", "Requests of the load.",
               [](const Of& c) { return AllDigits{c.rate}; })
          .add("one_pool_gpus", Better::less, "The least GPUs of one pool; 0: it cannot.",
               [](const Of& c) { return c.one_pool; })
          .add("two_pools_gpus", Better::less, "The least GPUs of two pools; 0: they cannot.",
               [](const Of& c) { return c.two_pools; });
  return fields;
}

/// Of what is chosen; null where nothing is.
template <class Get>
auto of_the_option(Get get) {
  using Got = std::remove_cvref_t<std::invoke_result_t<Get, const OptionOfPlan&>>;
  return [get](const ServingPlanAnswer& a) -> OrNull<Got> {
    if (!a.report.choice) return {};
    return {get(OptionOfPlan{a, a.report.options[*a.report.choice]})};
  };
}

/// What is chosen, as numbers of the answer's first level.
void add_chosen_option(FieldTable<ServingPlanAnswer>& fields) {
  using Of = OptionOfPlan;
  fields
      .add("choice_words", "The machine and the way of serving that is taken.",
           of_the_option([](const Of& o) {
             return fmt::format("{}: {}", o.answer.candidate_of(o.option).name,
                                serving_way_words(o.best().pools));
           }))
      .add("choice_gpus", Better::less, "GPUs of the choice, without spares.",
           of_the_option([](const Of& o) { return o.best().gpus(); }))
      .add("choice_spare_gpus", Better::less, "GPUs of the choice's spare replicas.",
           of_the_option([](const Of& o) { return o.option.spare_gpus; }))
      .add("choice_ttft_p99_s", Better::less,
           "Of the choice: 99 of 100 first tokens come no later.",
           of_the_option([](const Of& o) { return o.best().report.figures.ttft_s.p99; }))
      .add("choice_tpot_p99_s", Better::less, "Of the choice: 99 of 100 requests see no longer.",
           of_the_option([](const Of& o) { return o.best().report.figures.tpot_s.p99; }))
      .add("choice_usd_per_million_output_tokens", Better::less,
           "Money of a million tokens of the choice's answers, spares included; null, too, where "
           "nothing has a price.",
           [](const ServingPlanAnswer& a) -> OrNull<double> {
             if (!a.report.choice) return {};
             return {a.report.options[*a.report.choice].usd_per_million};
           });
}

const FieldTable<ServingPlanAnswer>& serving_plan_answer_fields() {
  using Of = ServingPlanAnswer;
  static const FieldTable<Of> fields = [] {
    FieldTable<Of> out;
    const auto base = [](const Of& a) -> const ServingSpec& {
      return a.spec.candidates.front().base;
    };
    out.add("plan", "Its file.", [](const Of& a) { return a.spec.file; })
        .add("model", "The model that is served.",
             [base](const Of& a) { return base(a).model.name; })
        .add("load", "The load, in words.", [base](const Of& a) { return base(a).load; })
        .add("prefer", "What is least in the best.",
             [](const Of& a) { return kServingPlanGoals[static_cast<std::size_t>(a.spec.goal)]; })
        .add("choice",
             "Which of \"options\" is taken, from 0; null where none keeps the objectives.",
             [](const Of& a) { return OrNull<std::size_t>{a.report.choice}; })
        .add("recommendation", "What to take and why, in words.", serving_recommendation)
        .add("simulations", "How often the load was played.",
             [](const Of& a) { return a.report.trials; })
        .list("options", "Each machine with one pool, then with two.", serving_option_fields(),
              options_of_plan)
        .list("curve", "The choice with fewer replicas and with more, few first.",
              serving_curve_fields(), [](const Of& a) -> const auto& { return a.report.curve; })
        .list("map", "One pool or two, for other loads; where the plan asks for a map.",
              serving_map_fields(), [](const Of& a) -> const auto& { return a.report.map; })
        .add("assumptions", "What was filled in.", serving_plan_assumptions);
    add_chosen_option(out);
    return out;
  }();
  return fields;
}

}  // namespace

nlohmann::ordered_json serving_plan_json(const ServingPlanAnswer& answer) {
  return Value(serving_plan_answer_fields().values(answer)).json();
}

std::vector<FieldInfo> serving_plan_fields() { return serving_plan_answer_fields().infos(); }

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
  Markdown out = Markdown::write("# {}\n\n", serving_plan_title(a));
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
