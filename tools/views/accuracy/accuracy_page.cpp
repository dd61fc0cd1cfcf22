#include "tools/views/accuracy/accuracy_page.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <set>
#include <utility>

#include "models/base/input_error.hpp"
#include "models/base/json_cursor.hpp"
#include "models/base/number_text.hpp"
#include "sim/measured/statistics.hpp"
#include "tools/views/accuracy/interval_check.hpp"

namespace lockstep {
namespace {

constexpr double kTwinDifference = 1.2;  ///< of measured times, longest over shortest
constexpr std::size_t kWorstRows = 10;
constexpr std::string_view kExplanations = "explanations.json";

constexpr std::string_view kHead =
    "# How well predictions match published runs\n\n"
    "Made by `lockstep validate --accuracy -o tests/reference/accuracy.md` from the files beside "
    "it and\nthe residuals in `models/presets/accuracy/published.json` (`lockstep fit --leave-out "
    "--residuals`); a test\nfails when it is not current. Errors are of the step time, predicted "
    "/ measured - 1: median and 90th\npercentile of their size, and the median with its sign.\n";

using PredictedRows = std::vector<RowPrediction>;

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

/// Key of a row that its twin shares.
std::string twin_key(const ReferenceRow& r) {
  const TransformerShape& m = r.model;
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", r.source,
                     r.stack, m.name, m.layers, m.hidden, r.gpu, r.gpus, r.gpus_per_node, r.tensor,
                     r.pipeline, r.virtual_stages.value_or(0), r.data, r.context, r.expert,
                     static_cast<int>(r.sharding), r.batch.sequences, r.batch.micro_sequences,
                     r.batch.tokens, static_cast<int>(r.precision),
                     r.recompute ? static_cast<int>(*r.recompute) : -1, r.modules.layer_norm,
                     r.modules.activation);
}

template <class Keep>
PredictedRows kept(const PredictedRows& rows, Keep keep) {
  PredictedRows out;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(out), keep);
  return out;
}

std::string errors_line(const std::string& name, const ErrorSummary& e) {
  return fmt::format("| {} | {} | {} | {} | {} |", name, e.n, percent(e.median_abs),
                     percent(e.p90_abs), error_text(e.bias));
}

std::string groups(const std::string& title, const std::vector<GroupErrors>& of) {
  std::string out =
      fmt::format("\n| {} | rows | median | p90 | bias |\n|---|---|---|---|---|\n", title);
  for (const GroupErrors& g : of) out += errors_line(g.group, g.errors) + "\n";
  return out;
}

/// What to expect of software without a fit of its own.
std::string nobody_fitted(const ResidualTable& residuals) {
  std::map<std::string, std::vector<double>> sources;
  std::vector<double> all, medians;
  for (const Residual& r : residuals) {
    if (!r.composed) continue;
    sources[r.source].push_back(std::expm1(*r.composed));
    all.push_back(sources[r.source].back());
  }
  std::string table = "| source | rows | median | p90 | bias |\n|---|---|---|---|---|\n";
  for (const auto& [source, errors] : sources) {
    const ErrorSummary e = summarise_errors(errors);
    medians.push_back(e.median_abs);
    table += errors_line(source, e) + "\n";
  }
  return fmt::format(
      "\n## Software and vendor left out\n\nThe figure for software without a fit of its own: each "
      "row's software is composed from what it does, with constants of GPUs\nand a common level "
      "that no row of its vendor had a part in. Median over sources **{}**, 90th percentile of all "
      "rows **{}**.\n\n{}",
      percent(median(medians)), percent(summarise_errors(all).p90_abs), table);
}

std::string by_kind(const RowSummary& all, const RowSummary& kept_rows,
                    const RowSummary& single_node) {
  std::vector<GroupErrors> of{all.complete, kept_rows.complete};
  of[0].group = "all that do not contradict themselves";
  of[1].group = "of those: not contradicted by twins";
  of.insert(of.end(), all.by_kind.begin(), all.by_kind.end());
  of.push_back(single_node.complete);
  of.back().group = "small models on one node (`single_node.json`)";
  return "\n## By kind\n" + groups("kind", of);
}

std::map<std::string, std::vector<double>> left_out_errors(const ResidualTable& residuals) {
  std::map<std::string, std::vector<double>> out;
  for (const Residual& r : residuals) out[r.source].push_back(std::expm1(r.left_out));
  return out;
}

std::string by_source(const RowSummary& summary, const ResidualTable& residuals) {
  const auto left_out = left_out_errors(residuals);
  std::string out =
      "\n## By source\n\n*Left out*: the source's rows predicted with constants fitted to all "
      "other "
      "sources.\n\n| source | rows | median | p90 | bias | left out: median | p90 | bias "
      "|\n|---|---|---|---|---|---|---|---|\n";
  std::vector<double> medians;
  for (const GroupErrors& g : summary.by_source) {
    const auto found = left_out.find(g.group);
    const ErrorSummary e =
        summarise_errors(found == left_out.end() ? std::vector<double>{} : found->second);
    medians.push_back(e.median_abs);
    out += errors_line(g.group, g.errors) + fmt::format(" {} | {} | {} |\n", percent(e.median_abs),
                                                        percent(e.p90_abs), error_text(e.bias));
  }
  return out +
         fmt::format("\nLeft out in turn: median over sources {}.\n", percent(median(medians)));
}

std::string intervals(const ResidualTable& residuals) {
  const IntervalCheck check = check_intervals(residuals);
  std::string out = fmt::format(
      "\n## Intervals\n\nEvery prediction carries an interval that is to cover {:.0f} % of runs "
      "(`models/accuracy`). Here each run is\nheld against the interval that rows of others give "
      "it, with constants fitted without its source, or without all\nsources of its vendor; *not "
      "named*: predicted with the default stack, as if the run did not say what it "
      "ran;\n*composed*: "
      "with the software composed from what it does, the vendor left out; *learnt*: the same after "
      "measured steps\nof the source (`lockstep learn`), over every choice of rows equally far "
      "apart "
      "in the table, of sources with five rows and more of a kind.\n*By source*: each source "
      "weighs one. Left "
      "out "
      "is the fit alone: presets and priors were made in sight of all rows.\n\n"
      "| left out: software, kind, GPUs, vendor | rows | median error | covered | by source | "
      "median half-width |\n|---|---|---|---|---|---|\n",
      100 * kCoverage);
  const auto add = [&](const std::string& title, const std::vector<IntervalGroup>& some) {
    for (const IntervalGroup& g : some) {
      out += fmt::format("| {}: {} | {} | {} | {} | {} | {} |\n", title, g.name, g.rows,
                         percent(g.error), percent(g.covered), percent(g.by_source),
                         percent(g.half_width));
    }
  };
  add("source", check.left_out);
  add("vendor", check.vendor_left_out);
  add("not named", check.default_stack);
  add("composed", check.composed);
  add("learnt", check.learnt);
  add("source", check.by_kind);
  add("source", check.by_architecture);
  add("vendor", check.by_vendor);
  return out;
}

std::string names_of(const std::vector<const ReferenceRow*>& rows) {
  std::string out;
  for (const ReferenceRow* row : rows) out += fmt::format("- `{}`\n", row->id);
  return out;
}

std::string set_aside(const PredictedRows& runs, const std::vector<const ReferenceRow*>& twins) {
  std::vector<const ReferenceRow*> suspect;
  for (const RowPrediction& p : runs) {
    if (!p.row->complete) suspect.push_back(p.row);
  }
  return fmt::format(
      "\n## Set aside\n\n{} rows contradict themselves (`suspect` in "
      "`training.json`), and are in no figure above:\n\n{}\n{} rows have a twin of "
      "another release that took over {:.0f} % longer or shorter:\n\n{}",
      suspect.size(), names_of(suspect), twins.size(), 100 * (kTwinDifference - 1),
      names_of(twins));
}

[[noreturn]] void fail(const std::string& found, const std::string& allowed) {
  throw InputError({.file = std::string(kExplanations),
                    .pointer = "/rows",
                    .found = found,
                    .allowed = allowed,
                    .nearest = {}});
}

void check_names(const Explanations& explanations, const PredictedRows& runs) {
  std::set<std::string_view> known;
  for (const RowPrediction& p : runs) known.insert(p.row->id);
  for (const auto& [id, explanation] : explanations) {
    if (!known.contains(id)) fail(in_quotes(id), "ids of rows of training.json");
  }
}

std::string worst(PredictedRows rows, const Explanations& explanations) {
  std::ranges::stable_sort(rows, [](const RowPrediction& a, const RowPrediction& b) {
    return std::abs(std::log1p(*a.error)) > std::abs(std::log1p(*b.error));
  });
  rows.resize(std::min(rows.size(), kWorstRows));
  std::string out =
      "\n## The worst ten\n\nBy the logarithm of predicted over measured, of the rows that are not "
      "set aside.\n\n| row | measured | predicted | error | what explains it | how that is known "
      "|\n|---|---|---|---|---|---|\n";
  for (const RowPrediction& p : rows) {
    const auto found = explanations.find(p.row->id);
    if (found == explanations.end()) {
      fail("nothing about " + p.row->id, "an explanation of each of the ten worst rows");
    }
    out += fmt::format("| `{}` | {} s | {} s | {} | {} | {} |\n", p.row->id,
                       significant(*p.row->measured_step_s), significant(*p.predicted_step_s),
                       error_text(*p.error), found->second.words, found->second.evidence);
  }
  return out;
}

Explanations explanations_of(const JsonCursor& root) {
  (void)root.find("about");
  Explanations out;
  const JsonCursor rows = root.at("rows");
  for (const std::string& id : rows.keys()) {
    const JsonCursor at = rows.at(id);
    out[id] = {at.at("words").string(), at.at("evidence").string()};
    at.finish();
  }
  root.finish();
  return out;
}

}  // namespace

Explanations read_explanations(const std::string& file, std::string_view text) {
  const JsonCursor root = JsonCursor::parse(file, text);
  return root.read_whole([&] { return explanations_of(root); });
}

std::vector<const ReferenceRow*> contradicted_by_twins(const PredictedRows& rows) {
  std::map<std::string, std::vector<const ReferenceRow*>> families;
  for (const RowPrediction& p : rows) {
    if (p.error && p.row->complete) families[twin_key(*p.row)].push_back(p.row);
  }
  const auto faster = [](const ReferenceRow* a, const ReferenceRow* b) {
    return *a->measured_step_s < *b->measured_step_s;
  };
  std::vector<const ReferenceRow*> out;
  for (const auto& [key, family] : families) {
    const bool releases = std::ranges::any_of(
        family, [&](const ReferenceRow* r) { return r->release != family.front()->release; });
    const auto [low, high] = std::ranges::minmax_element(family, faster);
    if (releases && *(*high)->measured_step_s > kTwinDifference * *(*low)->measured_step_s) {
      out.insert(out.end(), family.begin(), family.end());
    }
  }
  return out;
}

std::string accuracy_page(const AccuracyFigures& figures) {
  check_names(figures.explanations, figures.runs);
  const std::vector<const ReferenceRow*> twins = contradicted_by_twins(figures.runs);
  const PredictedRows complete =
      kept(figures.runs, [](const RowPrediction& p) { return p.error && p.row->complete; });
  const PredictedRows plain = kept(complete, [&](const RowPrediction& p) {
    return std::ranges::find(twins, p.row) == twins.end();
  });
  const RowSummary summary = summarise_rows(complete), without = summarise_rows(plain);
  return std::string(kHead) + nobody_fitted(figures.residuals) +
         by_kind(summary, without, summarise_rows(figures.single_node)) +
         by_source(summary, figures.residuals) + "\n## By GPU\n" + groups("GPU", summary.by_gpu) +
         "\n## By software\n" + groups("stack", summary.by_stack) + intervals(figures.residuals) +
         worst(plain, figures.explanations) + set_aside(figures.runs, twins);
}

}  // namespace lockstep
