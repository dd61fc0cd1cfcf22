#include "tools/views/plan/plan_page.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/base/number_text.hpp"
#include "sim/answer/scaling.hpp"
#include "tools/views/plan/plan_charts.hpp"
#include "tools/views/plan/plan_phases.hpp"
#include "tools/views/plan/plan_region_words.hpp"
#include "tools/views/plan/plan_words.hpp"
#include "tools/views/report/assets.hpp"
#include "tools/views/report/behind.hpp"
#include "tools/views/report/empty_columns.hpp"
#include "tools/views/report/input_tables.hpp"
#include "tools/views/report/money_section.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"
#include "tools/views/run/data_table.hpp"

namespace lockstep {
namespace {

/// What the time is of, the waits for machines and data apart.
std::string time_label(const PlanResult& r) {
  double later = 0;
  for (const PhaseResult& phase : r.later) later += phase.expected.before_s;
  if (r.expected.before_s <= 0 && later <= 0) return "of training: ";
  std::string out = "until it is done";
  if (r.expected.before_s > 0) {
    out += fmt::format(", {} of it before the first step", measure_text(0, r.expected.before_s));
  }
  if (later > 0) {
    out += fmt::format(", {} of it until later phases have their machines", measure_text(0, later));
  }
  return out + ": ";
}

std::vector<PageFigure> plan_figures(const PlanAnswer& answer) {
  const PlanResult& r = answer.result(*answer.shown());
  const std::string path = fmt::format("candidates.{}.", *answer.shown());
  std::vector<PageFigure> figures{{.value = measure_text(0, r.expected.time_s),
                                   .label = time_label(r) + plan_time_range(r),
                                   .field = path + "expected.time_s"}};
  if (is_priced(answer.candidate(*answer.shown()))) {
    figures.push_back({.value = page_usd(r.expected.usd),
                       .label = "of money: " + plan_money_range(r),
                       .field = path + "expected.usd"});
  }
  if (const double capital = r.expected.capital.total_usd(); capital > 0) {
    figures.push_back({.value = page_usd(capital),
                       .label = r.model.fleet
                                    ? "of capital to be spent: machines, with network and building "
                                      "in a lot's price"
                                    : "of capital to be spent: machines, network, building",
                       .field = path + "expected.capital_usd"});
  }
  figures.insert(
      figures.end(),
      {{.value = plan_energy(r.expected.energy_j),
        .label = "of energy: " + plan_energy_range(r),
        .field = path + "expected.energy_j"},
       {.value = plan_power(r.expected.peak_w),
        .label = fmt::format("highest power, within a step: {}; nameplate of the GPUs {}",
                             plan_power_range(r.peak_w),
                             plan_power(r.model.power.gpu_nameplate.base_units())),
        .field = path + "peak_w.point"},
       {.value = page_percent(r.chances.all, 1),
        .label = "chance to keep all limits",
        .field = path + "chances.all"}});
  return figures;
}

PageCell with_range(const std::string& median, const std::string& range, double value) {
  return {.content = with_detail(escaped(median), range), .sort = value};
}

std::string layout_words(const Scenario& scenario) {
  const Parallelism& cut = scenario.job.parallelism;
  std::string out = fmt::format("TP {}, PP {}", cut.tensor, cut.pipeline);
  if (cut.virtual_stages > 1) out += fmt::format(" x {}", cut.virtual_stages);
  if (cut.context > 1) out += fmt::format(", CP {}", cut.context);
  if (cut.expert > 1) out += fmt::format(", EP {}", cut.expert);
  return out + fmt::format(", DP {}, micro batch {}", cut.data, scenario.job.batch.micro_sequences);
}

/// With how many H100 they are by their dense 16-bit peak, where that is another number.
PageCell gpus_cell(const PlanCandidate& candidate) {
  constexpr double kAlike = 0.005;
  const double gpus = candidate.scenario.gpus();
  const double equivalents = h100_equivalents(candidate.scenario, gpus);
  if (std::abs(equivalents - gpus) <= kAlike * gpus) return PageCell::number(grouped(gpus), gpus);
  return {.content = with_detail(escaped(grouped(gpus)),
                                 grouped(std::round(equivalents)) + " H100 equivalents"),
          .sort = gpus};
}

PageTable candidate_table(const PlanAnswer& answer) {
  const bool money = answer.spec.any_priced();
  PageTable table{
      .columns = {
          {.title = "Candidate"},
          {.title = "GPUs", .numeric = true},
          {.title = "Time", .numeric = true},
          {.title = "Energy", .numeric = true},
          {.title = "Per trillion tokens", .numeric = true, .about = "energy"},
          {.title = "Power", .numeric = true, .about = "highest reading of the site's meter"},
          {.title = "MFU", .numeric = true, .about = "of a healthy step"},
          {.title = "Goodput",
           .numeric = true,
           .about = "productive over the time since its first step"},
          {.title = "Keeps limits",
           .numeric = true,
           .about = "of " + counted(answer.spec.samples, "sample")}}};
  constexpr std::ptrdiff_t kMoneyColumn = 3;
  if (money) {
    table.columns.insert(table.columns.begin() + kMoneyColumn, {.title = "Money", .numeric = true});
  }
  for (std::size_t i = 0; i < answer.report.results.size(); ++i) {
    const PlanCandidate& candidate = answer.candidate(i);
    const PlanResult& r = answer.result(i);
    std::vector<PageCell> row{
        {.content = with_detail(coloured_name(candidate.name, i), layout_words(r.model.scenario))},
        gpus_cell(candidate)};
    if (!r.model.impossible.empty()) {
      row.resize(table.columns.size(), PageCell::unknown());
    } else {
      row.insert(
          row.end(),
          {with_range(measure_text(0, r.expected.time_s), plan_time_range(r), r.expected.time_s),
           with_range(plan_energy(r.expected.energy_j), plan_energy_range(r), r.expected.energy_j),
           PageCell::number(plan_energy(plan_energy_per_trillion_tokens(candidate, r)),
                            plan_energy_per_trillion_tokens(candidate, r)),
           with_range(plan_power(r.expected.peak_w), plan_power_range(r.peak_w), r.expected.peak_w),
           PageCell::number(page_percent(r.model.mfu, 1), r.model.mfu),
           PageCell::number(page_percent(r.expected.goodput, 1), r.expected.goodput),
           {.content = with_bar(page_percent(r.chances.all, 1), r.chances.all),
            .sort = r.chances.all}});
      if (money) {
        row.insert(row.begin() + kMoneyColumn,
                   is_priced(candidate)
                       ? with_range(plan_money(r.expected.usd), plan_money_range(r), r.expected.usd)
                       : PageCell::unknown());
      }
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// Expected money by purpose.
PageTable money_table(const PlanAnswer& answer) {
  PageTable table{
      .columns = {
          {.title = "Candidate"},
          {.title = "Capital to be spent",
           .numeric = true,
           .about = "machines, network and building, before it begins"},
          {.title = "Written off",
           .numeric = true,
           .about = "what of that capital is lost in value meanwhile"},
          {.title = "Energy", .numeric = true},
          {.title = "Other running", .numeric = true, .about = "people, hosting, upkeep, interest"},
          {.title = "Rent", .numeric = true},
          {.title = "Together",
           .numeric = true,
           .about = "written off, energy, other running, rent, egress and storage"},
          {.title = "CO₂", .numeric = true},
          {.title = "Interruptions", .numeric = true}}};
  std::ptrdiff_t together = 6;
  const bool charged = std::ranges::any_of(
      answer.report.results, [](const PlanResult& r) { return r.expected.demand_usd > 0; });
  constexpr std::ptrdiff_t kCharge = 4;
  if (charged) {
    table.columns.insert(table.columns.begin() + kCharge,
                         {.title = "Of it, highest hours",
                          .numeric = true,
                          .about = "in the money for energy: by the price of a kW and month"});
    ++together;
  }
  const std::vector<PlanMoneyColumn> more = plan_money_columns(answer);
  for (std::size_t c = 0; c < more.size(); ++c) {
    table.columns.insert(table.columns.begin() + together + static_cast<std::ptrdiff_t>(c),
                         {.title = std::string(more[c].heading), .numeric = true});
  }
  for (std::size_t i = 0; i < answer.report.results.size(); ++i) {
    const PlanResult& r = answer.result(i);
    if (!r.model.impossible.empty()) continue;
    const PlanOutcome& o = r.expected;
    const auto money = [](double usd) {
      return usd > 0 ? PageCell::number(page_usd(usd), usd) : PageCell::unknown();
    };
    table.rows.push_back({{.content = coloured_name(answer.candidate(i).name, i)},
                          money(o.capital.total_usd()),
                          money(o.write_off_usd),
                          money(o.energy_usd),
                          money(o.running_usd - o.energy_usd),
                          money(o.rent_usd),
                          money(o.usd),
                          o.tonnes_co2
                              ? PageCell::number(page_with(*o.tonnes_co2, "t"), *o.tonnes_co2)
                              : PageCell::unknown(),
                          PageCell::number(significant(o.interruptions), o.interruptions)});
    std::vector<PageCell>& row = table.rows.back();
    if (charged) row.insert(row.begin() + kCharge, money(o.demand_usd));
    for (std::size_t c = 0; c < more.size(); ++c) {
      row.insert(row.begin() + together + static_cast<std::ptrdiff_t>(c), money(o.*more[c].usd));
    }
  }
  return table;
}

/// The regions side by side.
PageTable region_table(const PlanAnswer& answer) {
  PageTable table;
  for (std::size_t c = 0; c < kRegionColumns.size(); ++c) {
    std::string title(kRegionColumns[c]);
    title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(title[0])));
    if (title == "CO2") title = "CO₂";
    table.columns.push_back({.title = std::move(title), .numeric = c > 1});
  }
  for (const RegionRow& row : region_rows(answer)) {
    const PlanOutcome& o = answer.result(row.candidate).expected;
    const std::array<double, kRegionColumns.size()> sort{0,
                                                         0,
                                                         o.before_s + o.after_s,
                                                         o.time_s,
                                                         o.usd,
                                                         o.egress_usd,
                                                         o.energy_j,
                                                         o.tonnes_co2.value_or(0)};
    std::vector<PageCell> cells{{.content = coloured_name(row.cells[0], row.candidate)}};
    for (std::size_t c = 1; c < row.cells.size(); ++c) {
      cells.push_back(row.cells[c] == "-" ? PageCell::unknown()
                                          : PageCell::number(row.cells[c], sort[c]));
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

/// Whether any phase's machines do.
bool comes_in_lots(const PlanResult& result) {
  return result.model.fleet || std::ranges::any_of(result.later, [](const PhaseResult& phase) {
           return phase.fleet != nullptr;
         });
}

/// Money by month of a candidate that has a region or a dataset.
PageTable region_months(const PlanResult& result) {
  PageTable table{.columns = {{.title = "Month", .numeric = true},
                              comes_in_lots(result)
                                  ? PageColumn{.title = "Machines",
                                               .numeric = true,
                                               .about = "payments for lots, and in the last "
                                                        "month what they are worth then"}
                                  : PageColumn{.title = "Written off", .numeric = true},
                              {.title = "Running", .numeric = true},
                              {.title = "Rent", .numeric = true},
                              {.title = "Egress", .numeric = true},
                              {.title = "Storage", .numeric = true},
                              {.title = "Together", .numeric = true}}};
  std::array<double, 6> all{};
  const auto add = [&](const std::string& name, const std::array<double, 6>& usd) {
    std::vector<PageCell> cells{PageCell::number(name, static_cast<double>(table.rows.size()))};
    for (const double each : usd) {
      cells.push_back(each == 0 ? PageCell::unknown() : PageCell::number(plan_money(each), each));
    }
    table.rows.push_back(std::move(cells));
  };
  for (const PlanMonth& month : result.months) {
    const std::array<double, 6> usd{month.write_off_usd, month.running_usd, month.rent_usd,
                                    month.egress_usd,    month.storage_usd, month.usd()};
    for (std::size_t i = 0; i < all.size(); ++i) all[i] += usd[i];
    add(std::to_string(table.rows.size() + 1), usd);
  }
  add("all", all);
  drop_empty_columns(table);
  return table;
}

void add_region_section(Page& page, const PlanAnswer& answer) {
  if (!answer.spec.regions.empty()) {
    page.section("Regions",
                 "The same training in each of them: when it is done with its data moved, for how "
                 "much money, energy and carbon.");
    page.table(region_table(answer));
    page.list(region_words(answer));
  }
  if (!answer.shown()) return;
  const PlanResult& shown = answer.result(*answer.shown());
  if (shown.months.empty()) return;
  page.section("Money by month: " + answer.candidate(*answer.shown()).name,
               "From the start of the plan, with every input at its median.");
  if (shown.model.plan.data) page.paragraph(escaped(data_words(*shown.model.plan.data) + "."));
  page.table(region_months(shown));
}

/// What a node, a GPU-hour and a kWh cost, with the factors in them that the plan has.
PageTable price_table(const PlanAnswer& answer) {
  PageTable table{.columns = {{.title = "Candidate"},
                              {.title = "A node",
                               .numeric = true,
                               .about = "machines, network, building; lots have their own"},
                              {.title = "A GPU-hour", .numeric = true, .about = "rented"},
                              {.title = "A kWh",
                               .numeric = true,
                               .about = "mean of what is paid, with what the highest hours cost"}}};
  const auto cell = [](double usd) {
    return usd > 0 ? PageCell::number(plan_price_text(usd), usd) : PageCell::unknown();
  };
  std::vector<std::size_t> by_lot;
  for (const PlanPrice& price : plan_prices(answer)) {
    table.rows.push_back({PageCell::text(price.name), cell(price.of->usd_per_node),
                          cell(price.of->usd_per_gpu_hour), cell(price.of->usd_per_kwh)});
    if (!price.of->lots.empty()) by_lot.push_back(table.rows.size() - 1);
  }
  drop_empty_columns(table);
  // What is left of columns is of others' machines: those of lots are in the tables of lots.
  for (const std::size_t row : by_lot) {
    for (PageCell& cell_of : table.rows[row]) {
      if (cell_of.content.str() == PageCell::unknown().content.str()) {
        cell_of = PageCell::text("by lot");
      }
    }
  }
  return table;
}

PageTable input_table(const PlanAnswer& answer) {
  constexpr const char* kAgainst = "at either end, against what is expected";
  PageTable table{.columns = {{.title = "Input"},
                              {.title = "Factor, 5th to 95th percentile", .numeric = true},
                              {.title = "Time", .numeric = true, .about = kAgainst},
                              {.title = "Money", .numeric = true, .about = kAgainst},
                              {.title = "Energy", .numeric = true, .about = kAgainst}}};
  const PlanResult& r = answer.result(*answer.shown());
  for (const PlanSwing& swing : r.swings) {
    const PlanInputInfo& info = plan_inputs()[static_cast<std::size_t>(swing.input)];
    std::vector<PageCell> row{
        {.content = with_detail(escaped(info.title), info.about)},
        PageCell::number(fmt::format("{} to {}", significant(swing.low), significant(swing.high)),
                         swing.high / swing.low)};
    for (std::size_t m = 0; m < plan_measures().size(); ++m) {
      const auto number = plan_measures()[m].number;
      const double low = swing.at_low.*number, high = swing.at_high.*number;
      const double expected = r.expected.*number;
      row.push_back(low == high || expected <= 0
                        ? PageCell::unknown()
                        : PageCell::number(fmt::format("{} to {}", error_text(low / expected - 1),
                                                       error_text(high / expected - 1)),
                                           std::abs(high - low) / expected));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// The headline: the recommendation, set off from its figures.
Html plan_headline(const PlanAnswer& answer) {
  const std::string words = plan_recommendation(answer);
  const std::size_t colon = words.find(": ");
  if (colon == std::string::npos) return strong(words);
  return strong(words.substr(0, colon)) + escaped(words.substr(colon));
}

std::vector<std::string> named_verdicts(const PlanAnswer& answer) {
  std::vector<std::string> verdicts = plan_verdicts(answer);
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    verdicts[i] = fmt::format("{} {}.", answer.candidate(i).name, verdicts[i]);
  }
  return verdicts;
}

/// What is simulated, and of which candidates.
struct OwnedWords {
  std::string name, words;
  std::vector<std::string> whose;
};

/// Adds what is simulated of a candidate or of a phase of it, whose name stands in front.
void add_owned(std::vector<OwnedWords>& lines, const std::string& whose, const std::string& phase,
               const PlanCandidate& of) {
  const auto add = [&](const std::string& name, const std::string& words) {
    const auto same = std::ranges::find_if(
        lines, [&](const OwnedWords& line) { return line.name == name && line.words == words; });
    OwnedWords& line =
        same == lines.end() ? lines.emplace_back(OwnedWords{name, words, {}}) : *same;
    line.whose.push_back(whose);
  };
  for (const NamedWords& line : job_words(of.scenario)) add(phase + line.name, line.words);
  if (!phase.empty()) {
    add(phase + "Tokens", page_count(of.scenario.training_tokens.value_or(0)));
  }
}

/// The machine of each candidate, by its name.
AnswerBasis plan_basis(const PlanAnswer& answer, const WrittenScenario& written,
                       const PresetStore* presets) {
  AnswerBasis basis{
      .written = written, .assumptions = plan_assumptions(answer), .presets = presets};
  std::vector<OwnedWords> lines;
  for (const PlanCandidate& candidate : answer.spec.candidates) {
    add_owned(lines, candidate.name, "", candidate);
    for (const std::shared_ptr<const PlanPhase>& phase : candidate.then) {
      add_owned(lines, candidate.name, phase->of.name + ": ", phase->of);
    }
    if (presets == nullptr) continue;
    const auto add_named = [&](const Scenario& scenario) {
      const std::vector<NamedPreset> named = presets_of(scenario, *presets);
      basis.named.insert(basis.named.end(), named.begin(), named.end());
    };
    add_named(candidate.scenario);
    for (const auto& phase : candidate.then) add_named(phase->of.scenario);
  }
  // What is the same in every candidate is said once.
  std::ranges::stable_sort(lines, {}, [&](const OwnedWords& line) {
    return line.whose.size() != answer.spec.candidates.size();
  });
  for (const OwnedWords& line : lines) {
    const bool everybody = line.whose.size() == answer.spec.candidates.size();
    basis.simulated.push_back(
        {everybody ? line.name : fmt::format("{}: {}", fmt::join(line.whose, "; "), line.name),
         line.words});
  }
  return basis;
}

void add_plan_foot(Page& page, const PlanAnswer& answer) {
  page.foot(fmt::format("Plan: {}. {}, seed {}.", answer.spec.file,
                        counted(answer.spec.samples, "sample"), answer.spec.seed));
  page.foot(
      "Each sample draws every uncertain input and a run with its failures; it is the same world "
      "for "
      "all candidates. A site's power is the highest reading of its meter.");
}

/// Of the shown candidate first.
void add_all_lots(Page& page, const PlanAnswer& answer, std::size_t shown) {
  const auto add = [&](std::size_t candidate) {
    for (const LotPhase& phase : lots_of_candidate(answer, candidate)) {
      add_money_by_month(
          page, *phase.fleet, phase.lots, *phase.months, phase.title,
          ", on average over the runs that are simulated with every input at its median",
          phase.kept);
    }
  };
  add(shown);
  for (std::size_t i = 0; i < answer.spec.candidates.size(); ++i) {
    if (i != shown) add(i);
  }
}

}  // namespace

void add_plan(Page& page, const PlanAnswer& answer) {
  if (!answer.spec.about.empty()) page.about(answer.spec.about);
  page.headline(plan_headline(answer));
  for (const std::string& note : plan_notes(answer)) page.paragraph(prose(note));
  if (answer.shown()) page.figures(plan_figures(answer));
  page.section("Candidates",
               "Limits: " + plan_limits(answer) + ". Small print: nine of ten samples.");
  page.table(candidate_table(answer));
  page.list(named_verdicts(answer));
  add_phases(page, answer);
  add_region_section(page, answer);
  if (answer.shown()) {
    const bool money = answer.spec.all_priced();
    page.section(money ? "Time, money and energy" : "Time and energy",
                 "On the front are candidates that no other one beats in all of them.");
    add_front_chart(page, answer);
    add_chance_charts(page, answer);
    page.section("What it depends on: " + answer.candidate(*answer.shown()).name,
                 plan_sensitivity(answer));
    page.begin_row();
    add_tornado_chart(page, answer, money ? 1 : 2);
    add_tornado_chart(page, answer, 0);
    page.end_row();
    page.table(input_table(answer));
    add_all_lots(page, answer, *answer.shown());
    if (answer.spec.any_priced()) {
      page.section("Where the money goes",
                   "With every input at its median. Capital comes first and is not in the sum: of "
                   "it, what is written off is.");
      page.table(money_table(answer));
      if (PageTable prices = price_table(answer); !prices.rows.empty()) page.table(prices);
    }
  }
}

std::string plan_page(const PlanAnswer& answer, const WrittenScenario& written,
                      const Behind* behind) {
  Page page("Plan", plan_subject(answer));
  if (behind != nullptr) behind->open_figures(page);
  add_plan(page, answer);
  add_basis(page, plan_basis(answer, written, behind != nullptr ? &behind->presets() : nullptr));
  if (behind != nullptr) behind->add_to(page);
  add_plan_foot(page, answer);
  return page.html(chart_library());
}

}  // namespace lockstep
