#include <algorithm>
#include <fmt/format.h>

#include "models/base/number_text.hpp"
#include "tools/console/percent.hpp"
#include "tools/views/run/claim_text.hpp"
#include "tools/views/run/run_facts.hpp"
#include "tools/views/run/run_pools.hpp"
#include "tools/views/run/run_result.hpp"

namespace lockstep {
namespace {

constexpr int kWaterfallColumns = 34;
constexpr int kRunLabels = 18;            // columns
constexpr std::size_t kStagesShown = 20;  ///< more are folded in the middle; JSON has all
constexpr std::size_t kPathParts = 8;

std::string facts(const std::vector<Fact>& list, const TextStyle& style) {
  std::string out;
  for (const Fact& fact : list) {
    out += labelled_line(fact.label, kRunLabels,
                         (fact.strong.empty() ? "" : style.bold(fact.strong)) + fact.text);
  }
  return out;
}

std::string title(const RunResult& result, const TextStyle& style) {
  const Scenario& s = result.scenario;
  std::string out =
      style.bold(fmt::format("{} on {}", s.job.model.name, counted(s.gpus(), "GPU"))) +
      fmt::format(" {}\n", nodes_text(s)) + facts(step_warnings(result), style);
  if (!s.about.empty()) out += wrap(s.about, kTextColumns, 0) + "\n";
  return out + "\n" + facts(job_facts(result), style);
}

std::string power(const RunResult& result, const TextStyle& style) {
  return "\n" + style.bold("Power") + " (mean of a step, and its extremes)\n" +
         facts(power_facts(result), style);
}

std::string waterfall(const StepReport& report, const TextStyle& style) {
  const std::vector<double> shares = bucket_shares(report.seconds);
  const double longest = *std::ranges::max_element(shares);
  std::size_t width = 0;
  for (const BucketInfo& info : buckets()) width = std::max(width, info.title.size());
  constexpr double kRounding = 1e-12;  // what sums leave where nothing is
  std::string out = "\n" + style.bold("Where the GPU time goes") + "\n";
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (shares[i] < kRounding) continue;
    const BucketInfo& info = buckets()[i];
    const double seconds = report.seconds[static_cast<std::size_t>(info.bucket)];
    out += fmt::format("  {:<{}}{:>9} {:>9}  {}", info.title, width, part_percent(shares[i]),
                       duration_text(seconds), bar(shares[i] / longest, kWaterfallColumns, style));
    out.erase(out.find_last_not_of(' ') + 1);
    out += "\n";
  }
  return out + fmt::format("  {:<{}}{:>7.1f} % {:>9}\n", "Together", width, 100.0,
                           duration_text(report.step_s));
}

std::vector<std::string> stage_cells(const StageReport& stage, double step_s) {
  const auto share = [&](std::initializer_list<Bucket> of) {
    double sum = 0;
    for (const Bucket bucket : of) sum += stage.seconds[static_cast<std::size_t>(bucket)];
    return percent_text(sum / step_s);
  };
  return {fmt::format("{}", stage.stage),
          fmt::format("{}", stage.layers),
          duration_text(stage.forward_s),
          duration_text(stage.backward_s),
          share({Bucket::model_flops, Bucket::kernel_inefficiency, Bucket::memory_bound,
                 Bucket::recompute, Bucket::launch, Bucket::optimiser}),
          share({Bucket::pipeline_bubble, Bucket::pipeline_exposed}),
          share({Bucket::tensor_exposed, Bucket::context_exposed, Bucket::expert_exposed,
                 Bucket::data_exposed, Bucket::host_exposed}),
          share({Bucket::variation, Bucket::straggler, Bucket::expert_imbalance}),
          gib_text(stage.memory.total())};
}

/// The stages' rows; neighbours that look the same share one, "1-7".
std::vector<std::vector<std::string>> stage_rows(const StepReport& report) {
  std::vector<std::vector<std::string>> rows;
  int first = 0;
  for (const StageReport& stage : report.stages) {
    std::vector<std::string> cells = stage_cells(stage, report.step_s);
    if (!rows.empty() && std::equal(cells.begin() + 1, cells.end(), rows.back().begin() + 1)) {
      rows.back()[0] = fmt::format("{}-{}", first, stage.stage);
      continue;
    }
    first = stage.stage;
    rows.push_back(std::move(cells));
  }
  return rows;
}

std::string stages(const StepReport& report, const TextStyle& style) {
  if (report.stages.size() < 2) return {};
  const std::vector<std::string> titles{"stage",    "layers",    "forward", "backward", "working",
                                        "pipeline", "exchanges", "waiting", "memory"};
  std::vector<TextTable::Column> columns;
  columns.reserve(titles.size());
  for (const std::string& title : titles) columns.push_back({title});
  TextTable table(std::move(columns));
  const auto rows = stage_rows(report);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows.size() > kStagesShown && i == kStagesShown / 2) {
      i = rows.size() - kStagesShown / 2;
      table.add(std::vector<std::string>(titles.size(), "..."));
    }
    table.add(rows[i]);
  }
  return "\n" + style.bold("Pipeline stages") +
         " (a micro batch with exchanges inside the stage; shares of the step)\n" +
         table.text(style);
}

std::string critical_path(const StepReport& report, const TextStyle& style) {
  if (report.critical_path.empty()) return {};
  std::string out = "\n" + style.bold("Critical path") + " (what the end of the step waited for)\n";
  double rest = 0;
  for (std::size_t i = 0; i < report.critical_path.size(); ++i) {
    const CriticalPathPart& part = report.critical_path[i];
    if (i >= kPathParts) {
      rest += part.seconds;
      continue;
    }
    out += fmt::format("  {:<44}{:>8} {:>9}\n", part.what, few_percent(part.share, 1),
                       duration_text(part.seconds));
  }
  if (rest > 0) {
    out += fmt::format("  {:<44}{:>8} {:>9}\n",
                       fmt::format("{} more", report.critical_path.size() - kPathParts),
                       few_percent(rest / report.step_s, 1), duration_text(rest));
  }
  return out;
}

std::string largest_loss_line(const StepReport& report, const TextStyle& style) {
  const LargestLoss loss = largest_loss(report);
  if (loss.bucket == nullptr) return {};
  const std::string text = fmt::format(
      "{}, {} of the step. What attacks it in general (--advise simulates changes): {}.",
      loss.bucket->title, part_percent(bucket_share(report, *loss.bucket)), loss.bucket->remedy);
  return "\n" + style.bold("Largest loss: ") + wrap(text, kTextColumns, 2, 14) + "\n";
}

std::string expectation(const RunResult& result, const TextStyle& style) {
  std::string out;
  for (const std::string& text : expectation_sentences(result)) {
    out += "  " + wrap(text, kTextColumns, 4, 2) + "\n";
  }
  if (out.empty()) return {};
  const std::string& source = result.scenario.expect->source;
  return "\n" + style.bold("Expected") + (source.empty() ? "" : " (" + source + ")") + "\n" + out;
}

std::string remarks(std::string_view heading, const std::vector<std::string>& texts,
                    const TextStyle& style) {
  if (texts.empty()) return {};
  std::string out = "\n" + style.bold(heading) + "\n";
  for (const std::string& text : texts) out += "  - " + wrap(text, kTextColumns, 4, 4) + "\n";
  return out;
}

}  // namespace

std::string result_table(const RunResult& result, const TextStyle& style) {
  const StepReport& report = result.report;
  return title(result, style) + "\n" + facts(answer_facts(result), style) +
         waterfall(report, style) + largest_loss_line(report, style) +
         (result.full_fabric ? fabric_table(result, style) : std::string()) +
         (result.power ? power(result, style) : std::string()) + pools_table(result, style) +
         stages(report, style) + critical_path(report, style) + expectation(result, style) +
         remarks("Assumed", result.scenario.assumptions, style) +
         remarks("Notes", report.notes, style);
}

}  // namespace lockstep
