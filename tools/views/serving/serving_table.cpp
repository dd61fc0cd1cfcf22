#include "tools/views/serving/serving_table.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <optional>
#include <ostream>
#include <vector>

#include "models/base/number_text.hpp"
#include "sim/answer/site_limit.hpp"
#include "sim/serving/region_router.hpp"
#include "tools/console/percent.hpp"
#include "tools/console/progress.hpp"
#include "tools/console/table.hpp"
#include "tools/views/serving/serving_words.hpp"

namespace lockstep {
namespace {

using Align = TextTable::Align;

constexpr int kServingLabels = 18;
constexpr int kServingBar = 34;
constexpr double kServingShown = 0.0005;

std::string of_requests(std::size_t count) {
  return counted(static_cast<double>(count), "request");
}

std::string serving_title(const ServingAnswer& a, const TextStyle& style) {
  std::string out =
      style.bold(fmt::format("{} served by {}", a.spec.model.name, counted(a.spec.gpus(), "GPU"))) +
      fmt::format(" ({}{})\n", a.spec.gpus() < a.spec.cluster.gpus() ? "of " : "",
                  serving_nodes_words(a.spec.cluster));
  if (!a.spec.about.empty()) out += wrap(a.spec.about, kTextColumns, 0) + "\n";
  out += "\n";
  for (const ServingPool& pool : a.spec.pools) {
    out += labelled_line(pool_label(pool), kServingLabels, replicas_words(pool, a.spec));
  }
  out += labelled_line("Formats", kServingLabels, formats_words(a.spec));
  return out + labelled_line("Load", kServingLabels, a.spec.load);
}

std::string served_text(const ServingAnswer& a) {
  const ServingFigures& f = a.report.figures;
  std::string out =
      fmt::format("{} of {} in {}", of_requests(f.served),
                  grouped(static_cast<double>(a.spec.requests.size())), duration_text(f.span_s));
  if (a.report.refused > 0) {
    out += fmt::format("; {} would not fit in an empty cache", grouped(a.report.refused));
  }
  if (a.report.shed > 0) {
    out += fmt::format("; {} shed, as all replicas were busy", grouped(a.report.shed));
  }
  if (a.report.gave_up > 0) {
    out += fmt::format("; {} given up by users who waited", grouped(a.report.gave_up));
  }
  return out;
}

std::string served_times_text(const ServingSpread& s) {
  if (s.p50 <= 0) return "-";
  return fmt::format("{} on average; median {}, 90 % {}, 99 % {}", duration_text(s.mean),
                     duration_text(s.p50), duration_text(s.p90), duration_text(s.p99));
}

/// The objectives of requests, and the share that keeps them.
std::string attained_text(const ServingAnswer& a) {
  const ServingObjectives& o = a.spec.objectives;
  const std::string limits = request_limits_words(o);
  if (a.report.attained == 0) return limits + ": no request keeps them";
  return fmt::format("{}: {} of the requests keep them ({} asked), {} requests/s", limits,
                     percent_text(a.report.attained), percent_text(o.attained),
                     significant(a.report.goodput));
}

std::string objectives_text(const ServingAnswer& a) {
  std::string out = a.spec.objectives.per_request() ? attained_text(a) : std::string();
  for (const ObjectiveCheck& check : a.report.objectives) {
    if (check.name.ends_with("attained")) continue;  // above, and with the users
    out += fmt::format("{}{} {} of {}, {}", out.empty() ? "" : "; ", check.name,
                       duration_text(check.value), duration_text(check.limit),
                       check.kept ? "kept" : "broken");
  }
  return out;
}

std::string serving_power_text(const ServingAnswer& a) {
  const ServingPower& p = *a.report.power;
  return fmt::format("{} a GPU of {}, {} in all, at most {}; {} J per output token",
                     power_text(mean_power(p.gpus) / static_cast<double>(a.spec.gpus())),
                     power_text(gpu_limit(a.spec)), power_text(mean_power(p.facility)),
                     power_text(peak_power(p.facility)), significant(p.joules_per_output_token));
}

/// USD per million tokens, of what the answer counts first; empty: there is no price.
std::string serving_money_text(const ServingAnswer& a) {
  const std::optional<ServingMoney> money = money_of(a.spec, a.report);
  if (!money) return {};
  const auto text = [](const TokenPrice& price, std::string_view how) {
    return fmt::format("{} USD per million output tokens ({} of all tokens), {}",
                       significant(price.per_million_output), significant(price.per_million), how);
  };
  const CostSpec* const prices = a.spec.power ? &a.spec.power->cost : nullptr;
  const bool rented = money->of == MoneyOf::rent;
  const std::string rent =
      a.report.rent ? text(*a.report.rent, serving_rent_words(a.spec)) : std::string();
  std::string out = rented ? rent : text(money->price, words_of(money->of, prices));
  if (!rented && a.report.rent) out += "; for comparison " + rent;
  if (rented && prices != nullptr && has_prices(*prices)) {
    out += "; for comparison " + text(cost_price(a.report), words_of(MoneyOf::partial, prices));
  }
  return out;
}

/// Lines about failures, starts and stops of replicas.
std::string serving_lives_lines(const ServingAnswer& a) {
  std::string out;
  if (a.spec.failures) {
    out += labelled_line(
        "Failures", kServingLabels,
        fmt::format("{} failed; {} computed again elsewhere", counted(a.report.failures, "replica"),
                    counted(a.report.retried, "request")));
  }
  if (a.spec.restarts) {
    const std::string sent = a.spec.failures ? std::string()
                                             : fmt::format("; {} computed again elsewhere",
                                                           counted(a.report.retried, "request"));
    out +=
        labelled_line("Restarts", kServingLabels,
                      fmt::format("{} {}{}", grouped(a.report.restarts), restart_words(a), sent));
  }
  for (std::size_t p = 0; p < a.spec.pools.size(); ++p) {
    if (!a.spec.pools[p].autoscale) continue;
    out += labelled_line("Scaling", kServingLabels,
                         fmt::format("{} of the {} replicas of {} were on, on average",
                                     significant(a.report.pools[p].on), a.spec.pools[p].replicas,
                                     a.spec.pools[p].name));
  }
  return out;
}

/// Keys and values between pools.
std::string serving_headline(const ServingAnswer& a) {
  const ServingFigures& f = a.report.figures;
  const auto line = [](std::string_view label, const std::string& text) {
    return labelled_line(label, kServingLabels, text);
  };
  std::string out = "\n" + line("Served", served_text(a));
  if (const std::string words = load_course_words(a); !words.empty()) {
    out += line(a.report.course.grows ? "Overloaded" : "Short load", words);
  }
  out += line("First token", served_times_text(f.ttft_s));
  out += line("Per token", served_times_text(f.tpot_s));
  out += line("Between tokens", served_times_text(f.itl_s));
  if (a.report.interval) {
    const ServingInterval& i = *a.report.interval;
    // Answers of one token have no time per token.
    const std::string per_token =
        i.tpot_high_s > 0 ? fmt::format("per token {} to {}, ", duration_text(i.tpot_low_s),
                                        duration_text(i.tpot_high_s))
                          : std::string();
    out += line("90 % interval",
                fmt::format("{}first token {} to {} on average ({})", per_token,
                            duration_text(i.ttft_low_s), duration_text(i.ttft_high_s), i.basis));
  }
  if (!a.spec.prefixes.empty()) {
    out += line("Prefix cache", fmt::format("{} of the tokens of prompts were held already",
                                            percent_text(a.report.found_share)));
  }
  if (a.report.tiers) out += line("Cache tiers", cache_tiers_words(*a.report.tiers));
  if (a.report.adapters) out += line("Adapters", adapter_words(a));
  out += line("End to end", served_times_text(f.e2e_s));
  out +=
      line("Throughput",
           fmt::format("{} output tokens/s, {} per GPU; {} per user", significant(f.output_per_s),
                       significant(f.output_per_s / a.spec.gpus()), significant(f.per_user)));
  if (a.spec.objectives.any()) out += line("Objectives", objectives_text(a));
  if (a.spec.pools.size() > 1) out += line("Transfer", transfer_words(a));
  if (a.report.power) out += line("Power", serving_power_text(a));
  if (const std::string money = serving_money_text(a); !money.empty()) out += line("Money", money);
  out += serving_lives_lines(a);
  if (a.report.stopped) out += line("Interrupted", "all of this is of the time before");
  return out;
}

std::string serving_pools_table(const ServingAnswer& a, const TextStyle& style) {
  TextTable table({{"pool", Align::left},
                   {"GPUs"},
                   {"weights/GPU"},
                   {"cache tokens"},
                   {"filled"},
                   {"preempted"},
                   {"busy"}});
  const double span = a.report.figures.span_s;
  for (const ServingPoolReport& p : a.report.pools) {
    table.add({p.name, grouped(p.gpus), fmt::format("{:.1f} GiB", p.weights_bytes / (1 << 30)),
               grouped(std::floor(p.cache_tokens)), percent_text(p.fullest), grouped(p.preempted),
               span > 0 ? percent_text(p.busy_s / (span * p.replicas)) : "-"});
  }
  return "\n" + table.text(style);
}

/// What users of each place or kind saw.
std::string populations_table(const ServingAnswer& a, const TextStyle& style) {
  if (a.report.populations.empty()) return {};
  const bool away = !a.spec.regions.all.empty(), limited = a.spec.limits_requests();
  std::vector<TextTable::Column> columns{
      {"users", Align::left}, {"requests"}, {"first token"}, {"99 %"}, {"per token"}, {"99 %"}};
  if (limited) columns.push_back({"in limits"});
  if (away) columns.insert(columns.end(), {{"network"}, {"served in", Align::left}});
  TextTable table(columns);
  for (const ServingPopulationReport& p : a.report.populations) {
    std::vector<std::string> row{p.name, grouped(p.requests)};
    for (const ServingSpread& s : {p.figures.ttft_s, p.figures.tpot_s}) {
      row.push_back(s.any ? duration_text(s.mean) : "-");
      row.push_back(s.any ? duration_text(s.p99) : "-");
    }
    if (limited) row.push_back(percent_text(p.attained));
    if (away) {
      row.push_back(duration_text(p.away_s));
      row.push_back(region_shares_words(p));
    }
    table.add(row);
  }
  return "\n" + table.text(style);
}

/// What replicas in each place did, drew and cost.
std::string regions_table(const ServingAnswer& a, const TextStyle& style) {
  if (a.report.regions.empty()) return {};
  const bool power = a.spec.power.has_value();
  const auto any = [&](auto member) {
    return std::ranges::any_of(a.report.regions, [&](const auto& r) { return !!(r.*member); });
  };
  const bool rent = any(&ServingRegionReport::rent_usd);
  const bool carbon = any(&ServingRegionReport::tonnes_co2);
  std::vector<TextTable::Column> columns{
      {"region", Align::left}, {"GPUs"}, {"requests"}, {"output tokens"}, {"busy"}};
  if (rent) columns.push_back({"USD rent"});
  if (power) columns.insert(columns.end(), {{"MWh"}, {"USD energy"}});
  if (carbon) columns.push_back({"t CO2"});
  TextTable table(columns);
  const auto cell = [](const std::optional<double>& value, double unit = 1) {
    return value ? significant(*value / unit) : std::string("-");
  };
  for (const ServingRegionReport& r : a.report.regions) {
    std::vector<std::string> row{r.name, grouped(r.gpus), grouped(r.requests),
                                 grouped(r.output_tokens), percent_text(r.busy)};
    if (rent) row.push_back(cell(r.rent_usd));
    if (power) {
      row.push_back(cell(r.energy_j, kServedMegawattHour));
      row.push_back(cell(r.energy_usd));
    }
    if (carbon) row.push_back(cell(r.tonnes_co2));
    table.add(row);
  }
  return "\n" + table.text(style);
}

std::string serving_waterfall(const ServingAnswer& a, const TextStyle& style) {
  if (a.report.figures.span_s <= 0) return {};
  const std::array<double, kServingBuckets>& shares = a.report.shares;
  const double longest = *std::ranges::max_element(shares);
  constexpr std::array<std::string_view, kServingBuckets> kNames{"prompts",
                                                                 "decoding: products",
                                                                 "decoding: attention",
                                                                 "decoding: exchange",
                                                                 "host time",
                                                                 "idle",
                                                                 "down"};
  std::string out = "\n" + style.bold("Where the GPU time goes") + "\n";
  for (std::size_t b = 0; b < kServingBuckets; ++b) {
    if (shares[b] < kServingShown) continue;
    out += fmt::format("  {:<20}{:>9}  {}", kNames[b], part_percent(shares[b]),
                       bar(shares[b] / longest, kServingBar, style));
    out.erase(out.find_last_not_of(' ') + 1);
    out += "\n";
  }
  return out;
}

std::string times_slower(double beside, double alone) {
  return alone > 0 ? fmt::format("{:.2f} x", beside / alone) : "-";
}

/// The service and each training, together and alone on the fabric.
std::string beside_table(const ServingAnswer& a, const TextStyle& style) {
  const ServingBeside& b = *a.report.beside;
  TextTable table({{"who", Align::left}, {"what", Align::left}, {"alone"}, {"beside"}, {"slower"}});
  const auto add = [&](const std::string& who, const char* what, double alone, double beside) {
    table.add(
        {who, what, duration_text(alone), duration_text(beside), times_slower(beside, alone)});
  };
  const ServingFigures& f = a.report.figures;
  add("service", "first token, mean", b.alone.ttft_s.mean, f.ttft_s.mean);
  add("service", "per token, mean", b.alone.tpot_s.mean, f.tpot_s.mean);
  add("service", "per token, 99 %", b.alone.tpot_s.p99, f.tpot_s.p99);
  add("service", "wait for keys and values", b.transfer_alone_s, a.report.transfer_s);
  for (const BesideJob& job : b.jobs) {
    add(job.name, "step", job.alone_s, job.step_s);
  }
  return "\n" + style.bold("Who slows whom") + "\n" + table.text(style);
}

std::string beside_links_table(const ServingAnswer& a, const TextStyle& style) {
  const ServingBeside& b = *a.report.beside;
  if (b.links.empty()) return "\nNo link carries both.\n";
  TextTable table({{"where they meet", Align::left}, {"full"}, {"service"}, {"training"}});
  for (const BesideLink& l : b.links) {
    table.add({l.name, percent_text(l.share),
               fmt::format("{} GB", significant(l.service_bytes / 1e9)),
               fmt::format("{} GB", significant(l.training_bytes / 1e9))});
  }
  std::string out = "\n" + table.text(style);
  if (b.transfers.empty()) return out;
  TextTable held({{"held back by the other", Align::left}, {"slower"}, {"on", Align::left}});
  for (const BesideTransfer& t : b.transfers) {
    held.add({t.job + ": " + t.name, times_slower(t.mean_s, t.alone_s), t.link});
  }
  return out + "\n" + held.text(style);
}

}  // namespace

std::string serving_table(const ServingAnswer& a, const TextStyle& style) {
  std::string out = serving_title(a, style) + serving_headline(a) + serving_pools_table(a, style) +
                    populations_table(a, style) + regions_table(a, style);
  if (a.report.beside) out += beside_table(a, style) + beside_links_table(a, style);
  out += serving_waterfall(a, style);
  if (a.spec.assumptions.empty()) return out;
  out += "\n";
  return out + assumed_lines(a.spec.assumptions, style);
}

CsvText serving_csv(const ServingAnswer& a) {
  const auto cell = [](RunTime time) {
    return time < 0 ? std::string() : number_text(to_seconds(time).base_units());
  };
  const auto line = [](const std::vector<std::string>& cells) { return csv_line(cells); };
  const bool users = !a.spec.populations.empty(), away = !a.spec.regions.all.empty();
  std::vector<std::string> heading{
      "arrival_s",    "input_tokens", "output_tokens", "scheduled_s",  "first_token_s",
      "last_token_s", "replica",      "preempted",     "found_tokens", "external_computed_tokens"};
  if (a.spec.admission) heading.emplace_back("became");
  if (a.spec.adapters) heading.emplace_back("adapter");
  if (users) heading.emplace_back("users");
  if (away) heading.emplace_back("region");
  CsvText out = line(heading);
  const RegionPlan regions = region_plan(a.spec);
  for (const ServedRequest& r : a.spec.requests) {
    std::vector<std::string> cells{cell(r.arrival),
                                   std::to_string(r.input),
                                   std::to_string(r.output),
                                   cell(r.scheduled),
                                   cell(r.first),
                                   cell(r.last),
                                   r.replica < 0 ? std::string() : std::to_string(r.replica),
                                   std::to_string(r.preempted),
                                   std::to_string(r.found),
                                   std::to_string(r.loaded)};
    if (a.spec.admission) {
      cells.emplace_back(kServedEndNames[static_cast<std::size_t>(r.became)]);
    }
    if (a.spec.adapters) {
      cells.push_back(r.adapter < 0 ? std::string() : std::to_string(r.adapter));
    }
    if (users) cells.push_back(a.spec.populations[static_cast<std::size_t>(r.population)].name);
    if (away) {
      const auto replica = static_cast<std::uint32_t>(r.replica);
      cells.push_back(r.replica < 0 ? std::string()
                                    : a.spec.regions.all[regions.region_of(replica)].name);
    }
    out += line(cells);
  }
  return out;
}

}  // namespace lockstep
