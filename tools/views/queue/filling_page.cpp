#include "tools/views/queue/filling_page.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "sim/answer/filling_answer.hpp"
#include "tools/views/report/assets.hpp"
#include "tools/views/report/chart_kit.hpp"
#include "tools/views/report/chart_options.hpp"
#include "tools/views/report/input_tables.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"

namespace lockstep {
namespace {

using nlohmann::json;

constexpr double kGib = 1024;  // MiB

std::string filled_percent(double share) { return page_percent(share, 2); }

std::string policy_name(const PolicyFilling& of) {
  return std::string(kFillingPolicyNames[static_cast<std::size_t>(of.policy)]);
}

std::string_view policy_words(FillingPolicy policy) {
  constexpr std::array<std::string_view, kFillingPolicyNames.size()> kWords{
      "any node with room",
      "where requests and what is left point apart",
      "beside pods of as many GPUs",
      "on GPUs in use, else on nodes in use",
      "where least is left, CPUs and GPUs weighed alike",
      "where fragments grow least"};
  return kWords[static_cast<std::size_t>(policy)];
}

std::string nodes_of(std::size_t count) { return counted(static_cast<double>(count), "node"); }
std::string gpus_of(std::size_t count) { return counted(static_cast<double>(count), "GPU"); }

/// The policies, the one that allocates most first; of equals the first in the document.
std::vector<const PolicyFilling*> ranked(const FillingResult& result) {
  std::vector<const PolicyFilling*> out;
  out.reserve(result.policies.size());
  for (const PolicyFilling& of : result.policies) out.push_back(&of);
  std::ranges::stable_sort(out, std::greater{},
                           [](const PolicyFilling* of) { return of->mean.allocated; });
  return out;
}

void add_filling_headline(Page& page, const FillingSpec& spec, const FillingResult& result,
                          const std::vector<const PolicyFilling*>& policies) {
  if (policies.empty()) {
    page.headline(escaped("It was interrupted before any policy was done."));
    return;
  }
  const PolicyFilling& best = *policies.front();
  const PolicyFilling& last = *policies.back();
  const auto gpus = static_cast<double>(result.gpus);
  Html words =
      escaped(fmt::format("When {} of the GPUs have been asked for, ", page_percent(spec.at))) +
      strong(policy_name(best)) + escaped(" has allocated ") +
      strong(filled_percent(best.mean.allocated)) + escaped(" of them");
  if (policies.size() > 1) {
    words += escaped(fmt::format(
        ", {} {}: {} more GPUs of {}.", policy_name(last), filled_percent(last.mean.allocated),
        significant(gpus * (best.mean.allocated - last.mean.allocated)), grouped(gpus)));
    const PolicyFilling& next = *policies[1];
    if (spec.seeds > 1 && next.most >= best.least) {
      words += escaped(fmt::format(" By the order of arrival {} has {} to {}, and {} {} to {}.",
                                   policy_name(best), filled_percent(best.least),
                                   filled_percent(best.most), policy_name(next),
                                   filled_percent(next.least), filled_percent(next.most)));
    }
  } else {
    words += escaped(".");
  }
  if (result.stopped) words += escaped(" It was interrupted: only these policies are done.");
  page.headline(words);
  page.figures(std::vector<PageFigure>{
      {.value = filled_percent(best.mean.allocated), .label = "allocated by " + policy_name(best)},
      {.value = filled_percent(best.mean.fragmented),
       .label = "free then, and in fragments: of no use to most pods"},
      {.value = filled_percent(1 - best.mean.allocated - best.mean.fragmented),
       .label = "free then, and of use"},
      {.value = filled_percent(result.workload),
       .label = fmt::format("of the GPUs is what the workload's {} ask for",
                            counted(static_cast<double>(result.pods), "pod"))}});
}

void add_allocated_bars(Page& page, const FillingSpec& spec,
                        const std::vector<const PolicyFilling*>& policies) {
  std::vector<IntervalBar> bars;
  for (const PolicyFilling* of : policies) {
    bars.push_back({.name = policy_name(*of),
                    .value = 100 * of->mean.allocated,
                    .low = 100 * of->least,
                    .high = 100 * of->most,
                    .words = {policy_name(*of), std::string(policy_words(of->policy)),
                              filled_percent(of->mean.allocated) + " allocated",
                              fmt::format("{} to {} by the order of arrival",
                                          filled_percent(of->least), filled_percent(of->most)),
                              filled_percent(of->mean.fragmented) + " in fragments"},
                    .marked = of == policies.front()});
  }
  page.chart({.title = "Allocated GPUs",
              .about = fmt::format("Of all GPUs, when {} of them have been asked for; the lines "
                                   "are from the least to the most of {}.",
                                   page_percent(spec.at), counted(spec.seeds, "drawn order")),
              .summary = "A bar for each policy: the share of the GPUs that it allocates.",
              .height_px = bars_height(bars.size())},
             interval_bars(bars, "%"));
}

void add_allocated_lines(Page& page, const FillingSpec& spec,
                         const std::vector<const PolicyFilling*>& policies) {
  json series = json::array();
  const auto line = [&](const std::string& name, const std::string& colour, json points,
                        const char* dash) {
    series.push_back({{"type", "line"},
                      {"name", name},
                      {"showSymbol", false},
                      {"lineStyle", {{"width", 2}, {"color", colour}, {"type", dash}}},
                      {"itemStyle", {{"color", colour}}},
                      {"data", std::move(points)}});
  };
  for (std::size_t i = 0; i < policies.size(); ++i) {
    const std::vector<double>& allocated = policies[i]->mean.series;
    json points = json::array({{0, 0}});
    for (std::size_t step = 0; step < allocated.size(); ++step) {
      points.push_back({rounded_percent(static_cast<double>(step + 1) * kFillingStep),
                        fine_percent(allocated[step])});
    }
    line(policy_name(*policies[i]), chart_colour(i), std::move(points), "solid");
  }
  // Where all policies still place every pod, lines tell nothing: the plot begins behind that.
  double from = 0;
  constexpr double kLittle = 0.01;  // of the GPUs
  for (std::size_t step = 0; step < policies.front()->mean.series.size(); ++step) {
    const double asked = static_cast<double>(step + 1) * kFillingStep;
    const auto placed = [&](const PolicyFilling* of) {
      return asked - of->mean.series[step] <= kLittle;
    };
    if (!std::ranges::all_of(policies, placed)) break;
    from = std::floor(rounded_percent(asked) / 10) * 10;
  }
  // What could be allocated at most: all that was asked for, as long as there are GPUs.
  const double end = rounded_percent(spec.until);
  json most = json::array({{0, 0}, {std::min(end, 100.0), std::min(end, 100.0)}});
  if (end > 100) most.push_back({end, 100});
  line("all that was asked for", "@soft", std::move(most), "dashed");
  const auto axis = [from](double last) {
    return json{{"type", "value"},
                {"min", from},
                {"max", last},
                {"interval", 10},
                {"axisLabel", {{"formatter", "{value} %"}, {"hideOverlap", true}}}};
  };
  page.chart({.title = "Allocated GPUs over those asked for",
              .about = fmt::format(
                  "Both of all GPUs. Pods come one by one and none leaves; where a line "
                  "leaves the dashed one, pods are refused.{}",
                  from > 0 ? fmt::format(" The axes begin at {} %, below which nearly all "
                                         "pods are placed.",
                                         from)
                           : std::string()),
              .summary = "A line for each policy: GPUs allocated over GPUs asked for, in per cent.",
              .height_px = 380},
             {{"grid", plot_grid(40, 4)},
              {"legend", {{"top", 0}, {"left", 0}}},
              {"tooltip", {{"trigger", "axis"}, {"valueFormatter", "@percent"}, {"confine", true}}},
              {"xAxis", axis(end)},
              {"yAxis", axis(100)},
              {"series", std::move(series)}});
}

void add_policies(Page& page, const FillingSpec& spec, const FillingResult& result,
                  const std::vector<const PolicyFilling*>& policies) {
  PageTable table{
      .columns = {{.title = "Policy"},
                  {.title = "Allocated", .numeric = true},
                  {.title = "Least", .numeric = true, .about = "of the orders of arrival"},
                  {.title = "Most", .numeric = true, .about = "of the orders of arrival"},
                  {.title = "GPUs", .numeric = true, .about = "allocated"},
                  {.title = "Fragmented", .numeric = true},
                  {.title = "Pods placed", .numeric = true, .about = "in the end, on average"},
                  {.title = "Pods refused", .numeric = true, .about = "in the end, on average"}},
      .sorted_by = 1};
  for (const PolicyFilling* of : policies) {
    const double gpus = static_cast<double>(result.gpus) * of->mean.allocated;
    const auto share = [](double value) { return PageCell::number(filled_percent(value), value); };
    table.rows.push_back(
        {{.content = with_detail(key_words(policy_name(*of)), policy_words(of->policy))},
         share(of->mean.allocated),
         share(of->least),
         share(of->most),
         PageCell::number(grouped(gpus), gpus),
         share(of->mean.fragmented),
         PageCell::number(grouped(of->placed_pods), of->placed_pods),
         PageCell::number(grouped(of->refused_pods), of->refused_pods)});
  }
  page.section("Policies",
               fmt::format("Means of {}, which all policies meet alike. Fragments are GPUs and "
                           "parts of GPUs that are free and of no use to the {} that most pods "
                           "make. Pods placed and refused are counted when {} of the GPUs have "
                           "been asked for.",
                           counted(spec.seeds, "drawn order"),
                           counted(static_cast<double>(result.typical), "request"),
                           page_percent(spec.until)));
  page.table(table);
}

std::string amount_text(double count) { return grouped(count); }

std::string memory_text(std::int64_t mib) {
  return page_with_text(fmt::format("{:.6g}", static_cast<double>(mib) / kGib), "GiB");
}

void add_filled_nodes(Page& page, const FillingSpec& spec) {
  PageTable table{.columns = {{.title = "Nodes", .numeric = true},
                              {.title = "GPU"},
                              {.title = "GPUs each", .numeric = true},
                              {.title = "GPUs", .numeric = true},
                              {.title = "CPUs each", .numeric = true},
                              {.title = "Memory each", .numeric = true}},
                  .first_rows = 12};
  for (const NodeShape& node : spec.nodes) {
    const double gpus = static_cast<double>(node.count) * node.gpus;
    table.rows.push_back(
        {PageCell::number(amount_text(node.count), node.count),
         node.gpu_model.empty() ? PageCell::unknown() : PageCell::text(node.gpu_model),
         PageCell::number(amount_text(node.gpus), node.gpus),
         PageCell::number(amount_text(gpus), gpus),
         PageCell::number(fmt::format("{:.6g}", static_cast<double>(node.cpu_milli) / 1000),
                          static_cast<double>(node.cpu_milli)),
         PageCell::number(memory_text(node.memory_mib), static_cast<double>(node.memory_mib))});
  }
  page.section("The cluster");
  page.table(table);
}

std::string request_words(const PodShape& pod) {
  if (pod.gpus == 0) return "none";
  std::string out =
      pod.shares() ? page_percent(pod.gpu_milli / static_cast<double>(kGpuMilli), 1) + " of one"
                   : amount_text(pod.gpus);
  std::string models;
  for (const std::string& model : pod.gpu_models) models += (models.empty() ? "" : " or ") + model;
  return models.empty() ? out : out + ", " + models;
}

void add_requests(Page& page, const FillingSpec& spec, const FillingResult& result) {
  PageTable table{.columns = {{.title = "Pods", .numeric = true},
                              {.title = "GPUs of each"},
                              {.title = "CPUs each", .numeric = true},
                              {.title = "Memory each", .numeric = true},
                              {.title = "Of the cluster's GPUs", .numeric = true}},
                  .first_rows = 20,
                  .sorted_by = 4};
  std::vector<const PodShape*> pods;
  for (const PodShape& pod : spec.pods) pods.push_back(&pod);
  const auto asked = [](const PodShape* pod) {
    return static_cast<double>(pod->count) * pod->total_milli();
  };
  std::ranges::stable_sort(pods, std::greater{}, asked);
  for (const PodShape* pod : pods) {
    const double share = asked(pod) / kGpuMilli / static_cast<double>(result.gpus);
    table.rows.push_back(
        {PageCell::number(amount_text(pod->count), pod->count), PageCell::text(request_words(*pod)),
         PageCell::number(fmt::format("{:.6g}", static_cast<double>(pod->cpu_milli) / 1000),
                          static_cast<double>(pod->cpu_milli)),
         PageCell::number(memory_text(pod->memory_mib), static_cast<double>(pod->memory_mib)),
         PageCell::number(page_percent(share, 1), share)});
  }
  page.section("The workload",
               "All of these pods come in a drawn order, then more that are drawn from them.");
  page.table(table);
}

}  // namespace

std::string filling_page(const FillingSpec& spec, const FillingResult& result,
                         const WrittenScenario& written) {
  Page page("Filled cluster",
            fmt::format("{} on {} of {}", counted(static_cast<double>(result.pods), "pod"),
                        gpus_of(result.gpus), nodes_of(result.nodes)));
  if (!spec.about.empty()) page.about(spec.about);
  const std::vector<const PolicyFilling*> policies = ranked(result);
  add_filling_headline(page, spec, result, policies);
  if (!policies.empty()) {
    add_policies(page, spec, result, policies);
    add_allocated_bars(page, spec, policies);
    add_allocated_lines(page, spec, policies);
  }
  add_filled_nodes(page, spec);
  add_requests(page, spec, result);
  add_basis(page, {.written = written, .assumptions = spec.assumptions});
  page.foot(fmt::format("Document: {}.", spec.file));
  return page.html(chart_library());
}

}  // namespace lockstep
