#include "tools/views/report/step_page.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <optional>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "sim/answer/step_answer.hpp"
#include "tools/views/report/behind.hpp"
#include "tools/views/report/claim_section.hpp"
#include "tools/views/report/fabric_picture.hpp"
#include "tools/views/report/input_tables.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"
#include "tools/views/report/run_words.hpp"
#include "tools/views/report/step_stages.hpp"
#include "tools/views/run/claim_text.hpp"
#include "tools/views/run/run_facts.hpp"
#include "tools/views/run/run_pools.hpp"

namespace lockstep {
namespace {

void add_step_buckets(Page& page, const StepReport& report) {
  const std::vector<double> shares = bucket_shares(report.seconds);
  const double longest = *std::ranges::max_element(shares);
  PageTable table{.columns = {{.title = "What"},
                              {.title = "of the step", .numeric = true},
                              {.title = "Time", .numeric = true},
                              {.title = "What attacks it in general"}}};
  constexpr double kRounding = 1e-12;  // what sums leave where nothing is
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (shares[i] < kRounding) continue;
    const BucketInfo& info = buckets()[i];
    const double seconds = report.seconds[static_cast<std::size_t>(info.bucket)];
    table.rows.push_back(
        {PageCell::text(info.title),
         {.content = with_bar(page_part(shares[i]), shares[i] / longest), .sort = shares[i]},
         PageCell::number(page_duration(seconds), seconds),
         info.remedy.empty() ? PageCell::unknown() : PageCell::text(info.remedy)});
  }
  page.section("Where the GPU time goes",
               fmt::format("Mean over all GPUs; together {}.", page_duration(report.step_s)));
  page.table(table);
}

void add_critical_path(Page& page, const StepReport& report) {
  if (report.critical_path.empty()) return;
  PageTable table{.columns = {{.title = "Critical path"},
                              {.title = "of the step", .numeric = true},
                              {.title = "Time", .numeric = true}},
                  .first_rows = 8};
  const double longest =
      std::ranges::max_element(report.critical_path, {}, &CriticalPathPart::share)->share;
  for (const CriticalPathPart& part : report.critical_path) {
    table.rows.push_back({PageCell::text(part.what),
                          {.content = with_bar(page_percent(part.share, 1), part.share / longest),
                           .sort = part.share},
                          PageCell::number(page_duration(part.seconds), part.seconds)});
  }
  page.section("What the end of the step waited for");
  page.table(table);
}

void add_holds(Page& page, const StepReport& report) {
  PageTable table{.columns = {{.title = "Traffic"},
                              {.title = "Held back by"},
                              {.title = "of its time", .numeric = true}}};
  for (const TrafficHold& hold : report.holds) {
    for (const TrafficHold::Part& part : hold.by) {
      table.rows.push_back(
          {PageCell::text(hold.traffic),
           PageCell::text(part.links),
           {.content = with_bar(page_percent(part.share, 1), part.share), .sort = part.share}});
    }
  }
  page.section("What holds transfers back",
               "Of the time in which transfers of a kind moved, the link that set their rate.");
  page.table(table);
}

void add_relief(Page& page, const RunResult& result) {
  const double here = result.report.step_s;
  PageTable table{.columns = {{.title = "Simulated change"},
                              {.title = "Step", .numeric = true},
                              {.title = "Saves", .numeric = true}}};
  const auto add = [&](const std::string& change, double step_s) {
    const double saves = 1 - step_s / here;
    table.rows.push_back({PageCell::key(change), PageCell::number(page_duration(step_s), step_s),
                          PageCell::number(page_percent(saves, 1), saves)});
  };
  add("switches that never limit", result.full_fabric->step_s);
  for (const FabricWhatIf& what_if : result.relief) add(what_if.change, what_if.step_s);
  page.section("What another fabric would bring", "Each line is a simulation of its own.");
  page.table(table);
}

void add_facts(Page& page, const char* title, const std::vector<Fact>& facts) {
  PageTable table{.columns = {{.title = "What"}, {.title = "Here"}}};
  for (const Fact& fact : facts) {
    table.rows.push_back({PageCell::text(fact.label), PageCell::text(fact.strong + fact.text)});
  }
  page.section(title);
  page.table(table);
}

void add_kinds_of_node(Page& page, const RunResult& result) {
  const KindsOfNode kinds = kinds_of_node(result);
  if (kinds.rows.empty()) return;
  PageTable table;
  for (const std::string& title : kinds.titles) {
    table.columns.push_back({.title = title, .numeric = table.columns.size() > 0});
  }
  for (const std::vector<std::string>& row : kinds.rows) {
    std::vector<PageCell>& cells = table.rows.emplace_back();
    for (const std::string& text : row) cells.push_back(PageCell::text(text));
  }
  page.section(
      "Kinds of node",
      "Layers of a stage, micro batches of a replica, shares of the step. MFU of the job is "
      "over the peaks of all GPUs together; shares of the GPU time are means over the "
      "GPUs, each with its own peak. " +
          kinds.pace);
  page.table(table);
}

void add_sentences(Page& page, const char* title, const std::vector<std::string>& sentences) {
  if (sentences.empty()) return;
  page.section(title);
  page.list(sentences);
}

void add_advice_hint(Page& page) {
  page.section("What would help");
  page.markup(
      Html::markup("<p class=\"screen\">") +
      escaped("The same command with --advise simulates standard changes, each alone, and shows "
              "here what each of them gains.") +
      Html::markup("</p>\n"));
}

/// What is often asked beside the figures of the page.
constexpr std::array<std::string_view, 2> kMoreOfStep{"peak_memory_gib", "hfu"};

}  // namespace

void add_step_headline(Page& page, const RunResult& result) {
  const StepReport& report = result.report;
  if (!result.scenario.about.empty()) page.about(result.scenario.about);
  const LargestLoss loss = largest_loss(report);
  Html words;
  for (const Fact& warning : step_warnings(result)) {
    words += escaped(warning.label + " ") + strong(warning.strong) + escaped(warning.text + ". ");
  }
  words += escaped("A step takes ") + strong(page_duration(report.step_s));
  if (loss.bucket != nullptr) {
    words +=
        escaped(". Most is lost to ") + strong(in_sentence(loss.bucket->title)) +
        escaped(fmt::format(": {} of the step", page_part(bucket_share(report, *loss.bucket))));
  }
  page.headline(words + escaped("."));
  std::vector<PageFigure> figures{
      {.value = page_duration(report.step_s), .label = "step time", .field = "step_s"},
      {.value = page_percent(report.mfu_full, 1),
       .label = "MFU, attention in full",
       .field = "mfu"},
      {.value = page_percent(report.mfu_causal, 1),
       .label = "MFU, attention causal",
       .field = "mfu_causal"},
      {.value = page_count(report.tokens_per_s),
       .label = "tokens per second",
       .field = "tokens_per_s"},
      {.value = significant(report.tflops_per_gpu_full),
       .label = "TFLOP/s per GPU",
       .field = "tflops_per_gpu"}};
  if (!has_causal_attention(report)) {
    std::erase_if(figures, [](const PageFigure& each) { return each.field == "mfu_causal"; });
    figures[1].label = "MFU";
  }
  if (result.full_fabric) {
    figures.push_back({.value = page_duration(result.full_fabric->step_s),
                       .label = "step if switches never limited"});
  }
  page.figures(figures);
}

void add_step_sections(Page& page, const RunResult& result) {
  add_facts(page, "The answer", answer_facts(result));
  add_step_buckets(page, result.report);
  add_kinds_of_node(page, result);
  add_stages(page, result);
  add_critical_path(page, result.report);
  if (result.report.use && !result.report.use->lines.empty()) {
    add_fabric_picture(page, *result.report.use);
    if (result.report.method != StepMethod::exact && result.report.use->bytes() > Bytes{}) {
      page.paragraph(
          escaped("Not every replica was simulated: links that only others use show too little."));
    }
  }
  add_traffic(page, result.report);
  if (!result.report.holds.empty()) add_holds(page, result.report);
  if (result.full_fabric) add_relief(page, result);
  if (result.power) add_facts(page, "Power", power_facts(result));
  add_facts(page, "What was simulated", job_facts(result));
  add_money(page, result);
  add_inputs(page, result.written);
  add_sentences(page, "Assumed", result.scenario.assumptions);
  add_sentences(page, "Notes", result.report.notes);
}

namespace {

/// What was measured of such a step, where the scenario says it.
void add_expected(Page& page, const RunResult& result) {
  const std::vector<std::string> sentences = expectation_sentences(result);
  if (sentences.empty()) return;
  const std::string& source = result.scenario.expect->source;
  page.section("Predicted and measured",
               source.empty() ? std::string() : fmt::format("Measured: {}.", source));
  page.list(sentences);
}

}  // namespace

std::string step_page(const RunResult& result, const StepPageExtras& extras) {
  const Scenario& scenario = result.scenario;
  Page page("Step report",
            fmt::format("{} on {}{}", scenario.job.model.name, counted(scenario.gpus(), "GPU"),
                        scenario.pools.empty() ? "" : " " + nodes_text(scenario)));
  std::optional<Behind> behind;
  if (extras.presets != nullptr) {
    behind.emplace(scenario.file, ScenarioAnswer(AnswerKind::step, result_json(result)),
                   *extras.presets);
    behind->open_figures(page);
  }
  add_step_headline(page, result);
  add_claim_section(page, extras.claim);
  add_expected(page, result);
  if (extras.add_advice) extras.add_advice(page);
  add_step_sections(page, result);
  if (!extras.add_advice) add_advice_hint(page);
  if (behind) {
    behind->add_to(page, kMoreOfStep);
    add_sources(page, presets_of(scenario, *extras.presets), *extras.presets);
  }
  page.foot(fmt::format("Scenario: {}.", scenario.file));
  return page.html(chart_library());
}

}  // namespace lockstep
