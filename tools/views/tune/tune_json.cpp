#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "sim/scenario/names.hpp"
#include "sim/scenario/parallelism_json.hpp"
#include "tools/views/tune/tune_output.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

double as_gib(Bytes bytes) { return twelve_digits(bytes / gibibytes(1)); }

Json layout_json(const TunedLayout& layout, const PredictionInterval& interval) {
  const TrainingJob& job = layout.scenario.job;
  Json waterfall;
  for (const BucketInfo& info : buckets()) {
    const double seconds = layout.seconds[static_cast<std::size_t>(info.bucket)];
    waterfall[std::string(info.name)] = twelve_digits(seconds / layout.step_s);
  }
  const auto bound = [&](double StepBand::* of) {
    return layout.band ? Json(twelve_digits((*layout.band).*of)) : Json();
  };
  return {{"step_s", twelve_digits(layout.step_s)},
          {"step_s_low", twelve_digits(layout.step_s * interval.low)},
          {"step_s_high", twelve_digits(layout.step_s * interval.high)},
          {"software", name_of(interval.known)},
          {"ties", layout.ties},
          {"method", name_of(layout.method)},
          {"exact_low_s", bound(&StepBand::low_s)},
          {"exact_high_s", bound(&StepBand::high_s)},
          {"mfu", twelve_digits(layout.mfu)},
          {"lower_bound_s", twelve_digits(layout.bound_s)},
          {"needed_memory_gib", as_gib(layout.peak.needed())},
          {"usable_memory_gib", as_gib(layout.usable)},
          {"parallelism", written_parallelism(job.parallelism)},
          {"micro", job.batch.micro_sequences},
          {"recompute", name_of(job.recompute)},
          {"waterfall_shares", std::move(waterfall)}};
}

}  // namespace

nlohmann::ordered_json tune_json(const TuneStudy& study) {
  const TuneResult& r = study.result;
  Json best = Json::array(), refused = Json::array(), beyond_stack = Json::array();
  for (std::size_t i = 0; i < r.best.size(); ++i) {
    Json row{{"rank", i + 1}};
    row.update(layout_json(r.best[i], study.intervals[i]));
    best.push_back(std::move(row));
  }
  for (const TuneCount& count : r.refused) {
    refused.push_back({{"rule", count.reason}, {"layouts", count.layouts}});
  }
  for (const TuneCount& count : r.beyond_stack) {
    beyond_stack.push_back({{"capability", count.reason}, {"layouts", count.layouts}});
  }
  Json own = nullptr;
  if (r.own) {
    own = {{"rank_first", r.own_rank_first}, {"rank_last", r.own_rank_last}, {"fits", r.own_fits}};
    own.update(layout_json(*r.own, *study.own_interval));
  }
  Json out{
      {"step_s", nullptr}, {"step_s_low", nullptr}, {"step_s_high", nullptr}, {"mfu", nullptr}};
  if (!r.best.empty()) {
    const double step_s = r.best.front().step_s;
    out["step_s"] = twelve_digits(step_s);
    out["step_s_low"] = twelve_digits(step_s * study.intervals.front().low);
    out["step_s_high"] = twelve_digits(step_s * study.intervals.front().high);
    out["mfu"] = twelve_digits(r.best.front().mfu);
  }
  out.update({{"file", study.base.file},
              {"model", study.base.job.model.name},
              {"gpus", study.base.gpus()},
              {"fastest_step_s", twelve_digits(r.fastest_s)},
              {"ties", r.ties},
              {"considered", r.considered},
              {"refused", std::move(refused)},
              {"beyond_stack", std::move(beyond_stack)},
              {"same_as_zero1", r.same_as_zero1},
              {"over_memory", r.over_memory},
              {"pruned", r.pruned},
              {"replayed", r.replayed},
              {"interrupted", r.interrupted},
              {"best", std::move(best)},
              {"own", std::move(own)},
              {"notes", tune_notes(study)}});
  if (!r.own && !r.own_problem.empty()) out["own_problem"] = r.own_problem;
  return out;
}

CsvText tune_csv(const TuneStudy& study) {
  std::vector<std::string> titles{"rank",
                                  "step_s",
                                  "step_s_low",
                                  "step_s_high",
                                  "ties",
                                  "mfu",
                                  "tensor",
                                  "context",
                                  "pipeline",
                                  "expert",
                                  "expert_tensor",
                                  "data",
                                  "micro",
                                  "virtual_stages",
                                  "schedule",
                                  "sharding",
                                  "recompute",
                                  "needed_memory_gib",
                                  "usable_memory_gib",
                                  "exact_low_s",
                                  "exact_high_s"};
  for (const BucketInfo& info : buckets()) titles.push_back(fmt::format("{}_share", info.name));
  CsvText out = csv_line(titles);
  for (std::size_t i = 0; i < study.result.best.size(); ++i) {
    const TunedLayout& layout = study.result.best[i];
    const TrainingJob& job = layout.scenario.job;
    const Parallelism& p = job.parallelism;
    const PredictionInterval& interval = study.intervals[i];
    std::vector<std::string> cells{std::to_string(i + 1),
                                   number_text(layout.step_s),
                                   number_text(layout.step_s * interval.low),
                                   number_text(layout.step_s * interval.high),
                                   layout.ties ? "true" : "false",
                                   number_text(layout.mfu)};
    for (const int number : {p.tensor, p.context, p.pipeline, p.expert, p.expert_tensor, p.data,
                             job.batch.micro_sequences, p.virtual_stages}) {
      cells.push_back(std::to_string(number));
    }
    for (const std::string_view name :
         {name_of(p.schedule), name_of(p.sharding), name_of(job.recompute)}) {
      cells.emplace_back(name);
    }
    cells.push_back(number_text(as_gib(layout.peak.needed())));
    cells.push_back(number_text(as_gib(layout.usable)));
    cells.push_back(layout.band ? number_text(layout.band->low_s) : "");
    cells.push_back(layout.band ? number_text(layout.band->high_s) : "");
    for (const double seconds : layout.seconds)
      cells.push_back(number_text(seconds / layout.step_s));
    out += csv_line(cells);
  }
  return out;
}

}  // namespace lockstep
