#include "tools/views/queue/forecast_table.hpp"

#include <fmt/format.h>
#include <string>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "sim/cluster/queue_forecast.hpp"
#include "tools/console/progress.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/console/table.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
using Align = TextTable::Align;

constexpr std::size_t kShownStarts = 40;

double as_seconds(RunTime time) { return to_seconds(time).base_units(); }

std::string after_text(double seconds) { return seconds == 0 ? "now" : duration_text(seconds); }

std::string forecast_head(const QueueSpec& spec, const QueueForecast& f, const TextStyle& style) {
  const auto jobs = [](std::size_t count) { return counted(static_cast<double>(count), "job"); };
  std::string out = style.bold(fmt::format("{} waiting at {}", jobs(f.waiting.size()),
                                           duration_text(as_seconds(f.now)))) +
                    fmt::format(" on {} ({} x {})\n", counted(spec.cluster.gpus(), "GPU"),
                                grouped(spec.cluster.nodes), spec.cluster.node.name);
  out +=
      wrap(fmt::format("{} running, {} ended, which ran for {} of their time limits on average. {}",
                       jobs(f.running), jobs(f.ended), percent_text(f.mean_share),
                       f.draws > 1 ? fmt::format("{} draws of how long the others will run.",
                                                 grouped(static_cast<double>(f.draws)))
                                   : "The others are taken to run as long as they may."),
           kTextColumns, 0);
  return out + "\n";
}

}  // namespace

std::string forecast_table(const QueueSpec& spec, const QueueForecast& f, const TextStyle& style) {
  std::string out = forecast_head(spec, f, style);
  if (f.waiting.empty()) return out;
  TextTable table({{"job", Align::left},
                   {"user", Align::left},
                   {"GPUs"},
                   {"limit"},
                   {"has waited"},
                   {"starts in"},
                   {"10 %"},
                   {"90 %"}});
  for (const ForecastStart& of : f.waiting) {
    if (table.rows() == kShownStarts) break;
    const QueueJob& job = spec.jobs[of.job];
    const bool starts = of.started > 0;
    table.add({spec.job_name(of.job), spec.users[job.user], grouped(job.gpus),
               duration_text(as_seconds(job.limit)), after_text(as_seconds(of.waited)),
               starts ? after_text(of.p50_s) : "never", starts ? after_text(of.p10_s) : "-",
               starts ? after_text(of.p90_s) : "-"});
  }
  out += "\n" + table.text(style);
  if (f.waiting.size() > kShownStarts) {
    out += fmt::format("  {} more: --format json has them\n", f.waiting.size() - kShownStarts);
  }
  out += "\n" +
         style.dim("  assumed: no other job is submitted; a job that exceeds its time limit ends") +
         "\n";
  return out + assumed_lines(spec.assumptions, style);
}

Json forecast_json(const QueueSpec& spec, const QueueForecast& f) {
  Json waiting = Json::array();
  for (const ForecastStart& of : f.waiting) {
    const QueueJob& job = spec.jobs[of.job];
    const auto time = [&](double seconds) { return of.started > 0 ? Json(seconds) : Json(); };
    waiting.push_back({{"job", spec.job_name(of.job)},
                       {"user", spec.users[job.user]},
                       {"account", spec.accounts[job.account]},
                       {"gpus", job.gpus},
                       {"limit_s", as_seconds(job.limit)},
                       {"waited_s", as_seconds(of.waited)},
                       {"draws_started", of.started},
                       {"start_p10_s", time(of.p10_s)},
                       {"start_p50_s", time(of.p50_s)},
                       {"start_p90_s", time(of.p90_s)}});
  }
  return {{"now_s", as_seconds(f.now)},
          {"draws", f.draws},
          {"running", f.running},
          {"ended", f.ended},
          {"mean_share_of_limit", f.mean_share},
          {"waiting", std::move(waiting)},
          {"assumptions", spec.assumptions}};
}

}  // namespace lockstep
