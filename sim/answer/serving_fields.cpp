#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "sim/answer/answer_fields.hpp"
#include "sim/scenario/serving_load.hpp"

namespace lockstep {
namespace {

using Serving = ServingAnswer;

/// A mean or a quantile of no requests has no value.
OrNull<double> of_spread(const ServingSpread& s, double ServingSpread::* number) {
  return {s.any ? std::optional(s.*number) : std::nullopt};
}

const FieldTable<ServingSpread>& serving_spread_fields() {
  using Of = ServingSpread;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("mean", Better::less, "Mean.", [](const Of& s) { return of_spread(s, &Of::mean); })
          .add("p50", Better::less, "Median.", [](const Of& s) { return of_spread(s, &Of::p50); })
          .add("p90", Better::less, "Nine of ten are not above.",
               [](const Of& s) { return of_spread(s, &Of::p90); })
          .add("p99", Better::less, "99 of 100 are not above.",
               [](const Of& s) { return of_spread(s, &Of::p99); })
          .add("most", Better::less, "The largest; of times between tokens 999 of 1000.",
               [](const Of& s) { return of_spread(s, &Of::most); });
  return fields;
}

Value serving_bucket_values(const Serving& a) {
  Value::Object out;
  for (std::size_t b = 0; b < kServingBuckets; ++b) {
    double seconds = 0;
    for (const ServingPoolReport& pool : a.report.pools) seconds += pool.gpu_seconds[b];
    out.emplace_back(std::string(kServingBucketNames[b]),
                     Value::Object{{"gpu_seconds", seconds}, {"share", a.report.shares[b]}});
  }
  return out;
}

const FieldTable<ServingPoolReport>& serving_pool_fields() {
  using Of = ServingPoolReport;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("name", "Which it is: both, prefill or decode.", [](const Of& p) { return p.name; })
          .add("replicas", "Replicas.", [](const Of& p) { return p.replicas; })
          .add("gpus", "GPUs of all of them.", [](const Of& p) { return p.gpus; })
          .add("weights_bytes", Better::less, "Weights on a GPU.",
               [](const Of& p) { return p.weights_bytes; })
          .add("cache_tokens", Better::more, "Tokens that a replica's cache holds.",
               [](const Of& p) { return p.cache_tokens; })
          .add("cache_most_share", Better::less, "Share of it that was taken at most.",
               [](const Of& p) { return p.fullest; })
          .add("passes", "Passes of all replicas.", [](const Of& p) { return p.passes; })
          .add("preemptions", Better::less,
               "How often a request had to leave a full cache and was computed again, or swapped.",
               [](const Of& p) { return p.preempted; })
          .add("replicas_on", "Replicas that were switched on, on average.",
               [](const Of& p) { return p.on; })
          .add("busy_s", "Time in passes, of all replicas together.",
               [](const Of& p) { return p.busy_s; })
          .add("node", "Kind of its nodes; where the cluster has several.",
               [](const Of& p) -> std::optional<std::string> {
                 if (p.node.empty()) return std::nullopt;
                 return p.node;
               })
          .add(
              "rent_usd", Better::less,
              "What its GPUs cost by the hour, all of them; where the cluster has several kinds of "
              "node and this one has a price.",
              [](const Of& p) { return p.rent_usd; });
  return fields;
}

const FieldTable<ServingInterval>& serving_interval_fields() {
  using Of = ServingInterval;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("tpot_low_s", "Of the mean time per token: 1 of 20 measurements is below.",
               [](const Of& i) { return i.tpot_low_s; })
          .add("tpot_high_s", "1 of 20 is above.", [](const Of& i) { return i.tpot_high_s; })
          .add("ttft_low_s", "Of the mean time to the first token: 1 of 20 is below.",
               [](const Of& i) { return i.ttft_low_s; })
          .add("ttft_high_s", "1 of 20 is above.", [](const Of& i) { return i.ttft_high_s; })
          .add("basis", "What they are read off.", [](const Of& i) { return i.basis; });
  return fields;
}

const FieldTable<ObjectiveCheck>& objective_fields() {
  using Of = ObjectiveCheck;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("name",
               "ttft_p99 and the like, or attained: the share of requests within those of a "
               "single one.",
               [](const Of& o) { return o.name; })
          .add("limit", "In seconds, or a share.", [](const Of& o) { return o.limit; })
          .add("value", "What it came to.", [](const Of& o) { return o.value; })
          .add("kept", "Whether it is kept.", [](const Of& o) { return o.kept; });
  return fields;
}

Value region_shares(const ServingPopulationReport& p) {
  Value::Object out;
  for (const auto& [name, share] : p.regions) out.emplace_back(name, share);
  return out;
}

const FieldTable<ServingPopulationReport>& serving_population_fields() {
  using Of = ServingPopulationReport;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("name", "Who asks.", [](const Of& p) { return p.name; })
          .add("requests", "Their requests.", [](const Of& p) { return p.requests; })
          .add("served", Better::more, "Of them those that got their last token.",
               [](const Of& p) { return static_cast<double>(p.figures.served); })
          .object("ttft_s", "Time to the first token, with the network there and back.",
                  serving_spread_fields(), [](const Of& p) { return p.figures.ttft_s; })
          .object("tpot_s", "Time per token behind it.", serving_spread_fields(),
                  [](const Of& p) { return p.figures.tpot_s; })
          .object("e2e_s", "Time to the last token.", serving_spread_fields(),
                  [](const Of& p) { return p.figures.e2e_s; })
          .add("attained_share", Better::more,
               "Of their requests those within their limits, or the service's.",
               [](const Of& p) { return p.attained; })
          .add("away_s", Better::less,
               "On the network, there and back, on average; where the service has regions.",
               [](const Of& p) -> std::optional<double> {
                 if (p.regions.empty()) return std::nullopt;
                 return p.away_s;
               })
          .add("regions", "Share of them that each region served; where there are any.",
               [](const Of& p) -> std::optional<Value> {
                 if (p.regions.empty()) return std::nullopt;
                 return region_shares(p);
               });
  return fields;
}

const FieldTable<ServingRegionReport>& serving_region_fields() {
  using Of = ServingRegionReport;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("name", "Which it is.", [](const Of& r) { return r.name; })
          .add("replicas", "There.", [](const Of& r) { return r.replicas; })
          .add("gpus", "Of these.", [](const Of& r) { return r.gpus; })
          .add("requests", "Served there.", [](const Of& r) { return r.requests; })
          .add("output_tokens", "Of their answers.", [](const Of& r) { return r.output_tokens; })
          .add("busy_share", "Of the run that its replicas were in passes.",
               [](const Of& r) { return r.busy; })
          .add("rent_usd", Better::less, "What its GPUs cost by the hour; where they have a price.",
               [](const Of& r) { return r.rent_usd; })
          .add("energy_j", Better::less, "At its meter; with \"power\" only.",
               [](const Of& r) { return r.energy_j; })
          .add("energy_usd", Better::less, "What that costs; with \"power\" only.",
               [](const Of& r) { return r.energy_usd; })
          .add("tonnes_co2", Better::less,
               "Carbon dioxide that its grid emits for it; where its intensity is given.",
               [](const Of& r) { return r.tonnes_co2; });
  return fields;
}

const FieldTable<ServingLink>& serving_link_fields() {
  using Of = ServingLink;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("name", "The link.", [](const Of& l) { return l.name; })
          .add("capacity_bytes_per_s", "What it carries of payload.",
               [](const Of& l) { return l.capacity_bytes_per_s; })
          .add("mean_utilisation", Better::less, "Over the whole time, 0 to 1.",
               [](const Of& l) { return l.share; })
          .add("bytes", "Keys and values that crossed it.", [](const Of& l) { return l.bytes; });
  return fields;
}

const FieldTable<ServingTier>& serving_tier_fields() {
  using Of = ServingTier;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("name", "Which it is: host, disk or remote.", [](const Of& t) { return t.name; })
          .add("capacity_bytes", "Of all replicas together.",
               [](const Of& t) { return t.capacity_bytes; })
          .add("found_share", Better::more,
               "Of the tokens of prompts those whose keys and values it held, and no GPU.",
               [](const Of& t) { return t.found_share; })
          .add("loaded_bytes", "Keys and values that came back from it, each copied once.",
               [](const Of& t) { return t.loaded_bytes; })
          .add("written_bytes", "That went into it.", [](const Of& t) { return t.written_bytes; })
          .add("left_bytes", "Of these what made room for others, or was lost with its replica.",
               [](const Of& t) { return t.left_bytes; })
          .add("held_bytes", "And what is there in the end.",
               [](const Of& t) { return t.held_bytes; });
  return fields;
}

const FieldTable<ServingTierReport>& serving_tiers_fields() {
  using Of = ServingTierReport;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("gpu_found_share", Better::more,
               "Of the tokens of prompts those whose keys and values the GPUs held.",
               [](const Of& t) { return t.gpu_found_share; })
          .add(
              "recomputed_share", Better::less,
              "Of these tokens those that slower memory held and that were computed again, as that "
              "was sooner done.",
              [](const Of& t) { return t.recomputed_share; })
          .add("loads", "Requests for which anything was loaded, each time.",
               [](const Of& t) { return t.loads; })
          .add("load_s", Better::less,
               "From when a load is asked for until all is there, on average.",
               [](const Of& t) { return t.load_s; })
          .add("stall_s", Better::less,
               "That passes waited for loads and swaps, of all replicas together.",
               [](const Of& t) { return t.stall_s; })
          .add("swaps",
               "How often a sequence went to host memory, as the cache was full; of both pools.",
               [](const Of& t) { return t.swaps; })
          .add("swapped_bytes", "Keys and values of these, out and back.",
               [](const Of& t) { return t.swapped_bytes; })
          .list("tiers", "Host memory, drives and the remote pool, where there are such.",
                serving_tier_fields(), [](const Of& t) -> const auto& { return t.tiers; });
  return fields;
}

const FieldTable<ServingAdapterReport>& serving_adapter_fields() {
  using Of = ServingAdapterReport;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("requests", "Those that have an adapter.", [](const Of& a) { return a.requests; })
          .add("room_bytes", Better::less,
               "Kept for adapters on a GPU of the pool that works on prompts.",
               [](const Of& a) { return a.room_bytes; })
          .add("loads", Better::less, "Adapters that came to the GPUs of a replica.",
               [](const Of& a) { return a.loads; })
          .add("storage_loads", Better::less,
               "Of these, from storage, as no host memory held them.",
               [](const Of& a) { return a.from_storage; })
          .add("load_s", Better::less, "That replicas waited for loads, all together.",
               [](const Of& a) { return a.load_s; })
          .add("kernel_s", Better::less, "That passes took longer, of all replicas together.",
               [](const Of& a) { return a.kernel_s; });
  return fields;
}

const FieldTable<BesideJob>& beside_job_fields() {
  using Of = BesideJob;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("name", "Whose it is.", [](const Of& j) { return j.name; })
          .add("about", "What it is.", [](const Of& j) { return j.about; })
          .add("steps", "That ended beside the service.",
               [](const Of& j) { return static_cast<double>(j.steps); })
          .add("step_s", Better::less, "Their mean.", [](const Of& j) { return j.step_s; })
          .add("alone_s", Better::less, "A step with nothing else on the fabric.",
               [](const Of& j) { return j.alone_s; })
          .add("slowdown", Better::less, "step_s over alone_s.",
               [](const Of& j) { return j.slowdown(); });
  return fields;
}

const FieldTable<BesideLink>& beside_link_fields() {
  using Of = BesideLink;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("name", "The link.", [](const Of& l) { return l.name; })
          .add("capacity_bytes_per_s", "What it carries of payload.",
               [](const Of& l) { return l.capacity_bytes_per_s; })
          .add("mean_utilisation", Better::less, "Over the whole time, 0 to 1.",
               [](const Of& l) { return l.share; })
          .add("service_bytes", "That the service put on it.",
               [](const Of& l) { return l.service_bytes; })
          .add("training_bytes", "That trainings put on it.",
               [](const Of& l) { return l.training_bytes; });
  return fields;
}

const FieldTable<BesideTransfer>& beside_transfer_fields() {
  using Of = BesideTransfer;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("job", "Whose it is: service, or a training.", [](const Of& t) { return t.job; })
          .add("name", "What it is.", [](const Of& t) { return t.name; })
          .add("runs", "How often it ran.", [](const Of& t) { return t.runs; })
          .add("mean_s", Better::less, "Time of a run, its latency left out.",
               [](const Of& t) { return t.mean_s; })
          .add("alone_s", Better::less, "With its links to itself.",
               [](const Of& t) { return t.alone_s; })
          .add("slowdown", Better::less, "mean_s over alone_s.",
               [](const Of& t) { return t.slowdown(); })
          .add("link", "That held it back longest.", [](const Of& t) { return t.link; })
          .add("cause", "Who else put most bytes on that link meanwhile.",
               [](const Of& t) { return t.cause; });
  return fields;
}

const FieldTable<ServingBeside>& serving_beside_fields() {
  using Of = ServingBeside;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("ttft_mean_alone_s", Better::less,
               "Mean time to the first token with nothing else on the fabric.",
               [](const Of& b) { return of_spread(b.alone.ttft_s, &ServingSpread::mean); })
          .add("tpot_mean_alone_s", Better::less, "Mean time per token then.",
               [](const Of& b) { return of_spread(b.alone.tpot_s, &ServingSpread::mean); })
          .add("tpot_p99_alone_s", Better::less, "99 of 100 requests see no longer then.",
               [](const Of& b) { return of_spread(b.alone.tpot_s, &ServingSpread::p99); })
          .add("e2e_mean_alone_s", Better::less, "Mean time to the last token then.",
               [](const Of& b) { return of_spread(b.alone.e2e_s, &ServingSpread::mean); })
          .add("transfer_alone_s", Better::less,
               "That a request waited for its keys and values then, on average.",
               [](const Of& b) { return b.transfer_alone_s; })
          .list("jobs", "The trainings.", beside_job_fields(),
                [](const Of& b) -> const auto& { return b.jobs; })
          .list("links", "The fullest links that both crossed.", beside_link_fields(),
                [](const Of& b) -> const auto& { return b.links; })
          .list("transfers", "The most slowed transfers of each side that the other one held back.",
                beside_transfer_fields(), [](const Of& b) -> const auto& { return b.transfers; });
  return fields;
}

void add_serving_transfers(FieldTable<Serving>& out) {
  const auto of_pools = [](double ServingReport::* which) {
    return [which](const Serving& a) -> std::optional<double> {
      if (a.spec.pools.size() < 2) return std::nullopt;
      return a.report.*which;
    };
  };
  out.add("transfer_s", Better::less,
          "That a request waited for its keys and values between the pools, on average.",
          of_pools(&ServingReport::transfer_s))
      .add("transfer_alone_s", Better::less,
           "That it would have waited with every link on the way to itself.",
           of_pools(&ServingReport::transfer_alone_s))
      .add("transferred_bytes", "Keys and values that went from pool to pool.",
           of_pools(&ServingReport::transferred_bytes))
      .list_if_any("transfer_links", "The fullest links between switches on their way.",
                   serving_link_fields(),
                   [](const Serving& a) -> const auto& { return a.report.links; })
      .object("beside", "Trainings on the same fabric, where \"jobs\" names any.",
              serving_beside_fields(),
              [](const Serving& a) -> const auto& { return a.report.beside; });
}

void add_serving_times(FieldTable<Serving>& out) {
  out.add("ttft_mean_s", Better::less,
          "Mean time to the first token, of requests that were served.",
          [](const Serving& a) { return of_spread(a.report.figures.ttft_s, &ServingSpread::mean); })
      .add("ttft_p99_s", Better::less, "99 of 100 first tokens come no later.",
           [](const Serving& a) { return of_spread(a.report.figures.ttft_s, &ServingSpread::p99); })
      .add(
          "tpot_mean_s", Better::less,
          "Mean time per token behind the first, of requests that were served.",
          [](const Serving& a) { return of_spread(a.report.figures.tpot_s, &ServingSpread::mean); })
      .add("tpot_p99_s", Better::less, "99 of 100 requests see no longer.", [](const Serving& a) {
        return of_spread(a.report.figures.tpot_s, &ServingSpread::p99);
      });
  out.object("ttft_s",
             "Time from a request's arrival to its first token; of two pools, until the one that "
             "decodes has its keys and values and lets it in.",
             serving_spread_fields(), [](const Serving& a) { return a.report.figures.ttft_s; })
      .object("tpot_s", "Time per token behind the first one, of each request.",
              serving_spread_fields(), [](const Serving& a) { return a.report.figures.tpot_s; })
      .object("itl_s", "Time between two tokens of a request, of all tokens.",
              serving_spread_fields(), [](const Serving& a) { return a.report.figures.itl_s; })
      .object("e2e_s", "Time from a request's arrival to its last token.", serving_spread_fields(),
              [](const Serving& a) { return a.report.figures.e2e_s; });
}

void add_serving_rates(FieldTable<Serving>& out) {
  out.add("output_tokens_per_s", Better::more, "Tokens of answers a second, all GPUs.",
          [](const Serving& a) { return a.report.figures.output_per_s; })
      .add("output_tokens_per_s_per_gpu", Better::more, "Tokens of answers a second, a GPU.",
           [](const Serving& a) { return a.report.figures.output_per_s / a.spec.gpus(); })
      .add("tokens_per_s_per_user", Better::more, "Tokens a second that a user sees: 1 / TPOT.",
           [](const Serving& a) {
             const ServingFigures& f = a.report.figures;
             return OrNull<double>{f.tpot_s.any ? std::optional(f.per_user) : std::nullopt};
           })
      .add("requests_per_s", Better::more, "Requests served a second.",
           [](const Serving& a) {
             const ServingFigures& f = a.report.figures;
             return f.span_s > 0 ? static_cast<double>(f.served) / f.span_s : 0;
           })
      .add("in_system", "Requests that wait or are worked on, on average.",
           [](const Serving& a) { return a.report.figures.in_system; })
      .add("attained_share", Better::more,
           "Share of the requests that keep every objective of a single one; with such objectives "
           "only.",
           [](const Serving& a) -> std::optional<double> {
             if (!a.spec.limits_requests()) return std::nullopt;
             return a.report.attained;
           })
      .add("good_requests_per_s", Better::more,
           "Such requests a second; with such objectives only.",
           [](const Serving& a) -> std::optional<double> {
             if (!a.spec.limits_requests()) return std::nullopt;
             return a.report.goodput;
           })
      .add("objectives_kept", "Whether all objectives are kept; with any only.",
           [](const Serving& a) -> std::optional<bool> {
             if (!a.spec.asks()) return std::nullopt;
             return all_kept(a.report.objectives);
           })
      .list_if_any("objectives", "Each objective, where there are any.", objective_fields(),
                   [](const Serving& a) -> const auto& { return a.report.objectives; });
}

const FieldTable<TokenPrice>& token_price_fields() {
  using Of = TokenPrice;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("usd", Better::less, "All of it.", [](const Of& p) { return p.usd; })
          .add("usd_per_million_output_tokens", Better::less, "In a million tokens of answers.",
               [](const Of& p) { return p.per_million_output; })
          .add("usd_per_million_tokens", Better::less,
               "In a million tokens of prompts and answers.",
               [](const Of& p) { return p.per_million; });
  return fields;
}

const FieldTable<Serving>& serving_power_fields() {
  static const FieldTable<Serving> fields =
      FieldTable<Serving>()
          .add("gpu_mean_w", Better::less, "A GPU of the replicas, on average.",
               [](const Serving& a) {
                 return mean_power(a.report.power->gpus).base_units() / a.spec.gpus();
               })
          .add("gpu_limit_w", "The limit of such a card; of several kinds, on average.",
               [](const Serving& a) { return gpu_limit(a.spec).base_units(); })
          .add("pools_gpu_mean_w", Better::less, "The same, of each pool.",
               [](const Serving& a) {
                 Value::Object out;
                 for (std::size_t p = 0; p < a.spec.pools.size(); ++p) {
                   out.emplace_back(a.spec.pools[p].name, a.report.power->pools[p].base_units());
                 }
                 return Value(std::move(out));
               })
          .add("facility_mean_w", Better::less,
               "Nodes that the replicas fill, their share of the fabric, and what cools and feeds "
               "them.",
               [](const Serving& a) { return mean_power(a.report.power->facility).base_units(); })
          .add("facility_peak_w", Better::less, "The same, the highest mean of a bin of time.",
               [](const Serving& a) { return peak_power(a.report.power->facility).base_units(); })
          .add("pue", Better::less, "Facility over IT power.",
               [](const Serving& a) { return a.report.power->pue; })
          .add("energy_j", Better::less, "At the site's meter.",
               [](const Serving& a) { return energy(a.report.power->facility).base_units(); })
          .add("joules_per_output_token", Better::less, "Of it in a token of an answer.",
               [](const Serving& a) { return a.report.power->joules_per_output_token; })
          .add("joules_per_token", Better::less, "In a token of a prompt or an answer.",
               [](const Serving& a) { return a.report.power->joules_per_token; })
          .add("tonnes_co2", Better::less,
               "Carbon dioxide that the grid emits for it; where its intensity is given.",
               [](const Serving& a) { return a.report.power->cost.tonnes_co2; });
  return fields;
}

/// What owning the machines costs; nothing without their price.
std::optional<TokenPrice> owned_price(const Serving& a) {
  if (!a.spec.power || !prices_machines(a.spec.power->cost)) return std::nullopt;
  return cost_price(a.report);
}
/// What has a price where the machines have none.
std::optional<TokenPrice> partial_price(const Serving& a) {
  if (!a.spec.power || !has_prices(a.spec.power->cost)) return std::nullopt;
  if (prices_machines(a.spec.power->cost)) return std::nullopt;
  return cost_price(a.report);
}

void add_serving_lives(FieldTable<Serving>& out) {
  out.add("replica_failures", Better::less,
          "Replicas that failed; where the scenario has failures.",
          [](const Serving& a) -> std::optional<double> {
            if (!a.spec.failures) return std::nullopt;
            return a.report.failures;
          })
      .add("retried_requests", Better::less,
           "Requests that a failure or a restart sent to another replica, each time; where the "
           "scenario has any.",
           [](const Serving& a) -> std::optional<double> {
             if (!a.spec.failures && !a.spec.restarts) return std::nullopt;
             return a.report.retried;
           })
      .add("replica_restarts", "Replicas that were restarted as planned; with \"restarts\" only.",
           [](const Serving& a) -> std::optional<double> {
             if (!a.spec.restarts) return std::nullopt;
             return a.report.restarts;
           })
      .add("replica_restarts_left",
           "Replicas whose planned restart was still to come when the load was over; with "
           "\"restarts\" only.",
           [](const Serving& a) -> std::optional<double> {
             if (!a.spec.restarts) return std::nullopt;
             return a.report.restarts_left;
           });
}

void add_serving_money(FieldTable<Serving>& out) {
  out.add("usd_per_million_output_tokens", Better::less,
          "What \"billed\" says, in a million tokens of answers.",
          [](const Serving& a) -> std::optional<double> {
            const std::optional<ServingMoney> money = money_of(a.spec, a.report);
            if (!money) return std::nullopt;
            return money->price.per_million_output;
          })
      .add("billed",
           "Of what that is: owned where the machines have a price, else rent, else partial.",
           [](const Serving& a) -> std::optional<std::string_view> {
             const std::optional<ServingMoney> money = money_of(a.spec, a.report);
             if (!money) return std::nullopt;
             return kMoneyOf[static_cast<std::size_t>(money->of)];
           })
      .object("power", "What the pools draw, where the scenario says \"power\".",
              serving_power_fields(),
              [](const Serving& a) { return a.report.power ? &a : nullptr; })
      .object("owned", "What owning the machines costs, where \"cost\" has their price.",
              token_price_fields(), owned_price)
      .object("rent", "What the GPUs cost by the hour, where they have a price.",
              token_price_fields(), [](const Serving& a) { return a.report.rent; })
      .object("partial",
              "What energy, people and the like cost, where \"cost\" has prices and the machines "
              "have none.",
              token_price_fields(), partial_price);
}

std::optional<std::string> load_course_name(const Serving& a) {
  if (!comes_at_a_rate(a.spec) || a.report.stopped) return std::nullopt;
  if (a.report.course.grows) return "growing";
  return a.report.course.lasts ? "steady" : "short";
}

}  // namespace

const FieldTable<ServingAnswer>& serving_fields() {
  static const FieldTable<Serving> fields = [] {
    FieldTable<Serving> out;
    add_head(out, "serving");
    out.add("file", "The scenario's file.", [](const Serving& a) { return a.spec.file; })
        .add("model", "What is served.", [](const Serving& a) { return a.spec.model.name; })
        .add("gpus", "GPUs of all replicas.", [](const Serving& a) { return a.spec.gpus(); })
        .add("load", "What was asked, in words.", [](const Serving& a) { return a.spec.load; })
        .add("requests", "Requests.",
             [](const Serving& a) { return static_cast<double>(a.spec.requests.size()); })
        .add("served", Better::more, "Those that got their last token.",
             [](const Serving& a) { return static_cast<double>(a.report.figures.served); })
        .add("refused", Better::less, "Those that do not fit in an empty cache.",
             [](const Serving& a) { return a.report.refused; })
        .add("shed", Better::less,
             "Those that found every replica busy; where \"admission\" says when one is.",
             [](const Serving& a) -> std::optional<double> {
               if (!a.spec.admission || !a.spec.admission->limits()) return std::nullopt;
               return a.report.shed;
             })
        .add("gave_up", Better::less,
             "Those whose user hung up while they waited; with \"admission.patience\" only.",
             [](const Serving& a) -> std::optional<double> {
               if (!a.spec.admission || !a.spec.admission->patience) return std::nullopt;
               return a.report.gave_up;
             })
        .add("load_course",
             "Of requests that are drawn at a rate: steady, growing (they come faster than they "
             "are served, also where the load is short) or short (over before 40 times what a "
             "request stays).",
             load_course_name)
        .add("span_s", "From the first arrival to the last token.",
             [](const Serving& a) { return a.report.figures.span_s; })
        .add("input_tokens", "Of prompts that were served.",
             [](const Serving& a) { return a.report.figures.input_tokens; })
        .add("output_tokens", "Of their answers.",
             [](const Serving& a) { return a.report.figures.output_tokens; });
    out.add("prefix_found_share", Better::more,
            "Of the tokens of prompts those whose keys and values a replica held already; where "
            "prompts share any.",
            [](const Serving& a) -> std::optional<double> {
              if (a.spec.prefixes.empty()) return std::nullopt;
              return a.report.found_share;
            });
    out.object(
        "cache_tiers", "Memory behind the GPUs' caches, where the scenario has \"cache_tiers\".",
        serving_tiers_fields(), [](const Serving& a) -> const auto& { return a.report.tiers; });
    out.object("adapters", "What adapters took, where the scenario has \"adapters\".",
               serving_adapter_fields(),
               [](const Serving& a) -> const auto& { return a.report.adapters; });
    add_serving_lives(out);
    add_serving_times(out);
    out.object("interval", "By how far predictions of such engines and models were off.",
               serving_interval_fields(),
               [](const Serving& a) -> const auto& { return a.report.interval; });
    add_serving_rates(out);
    add_serving_money(out);
    add_serving_transfers(out);
    out.add("waterfall", "Where GPU time goes; the shares add up to 1.", serving_bucket_values)
        .list("pools", "Replicas of one layout.", serving_pool_fields(),
              [](const Serving& a) -> const auto& { return a.report.pools; })
        .list_if_any("populations", "Users of each place or kind, where the load has several.",
                     serving_population_fields(),
                     [](const Serving& a) -> const auto& { return a.report.populations; })
        .list_if_any("regions", "Replicas in each place, where the service has several.",
                     serving_region_fields(),
                     [](const Serving& a) -> const auto& { return a.report.regions; })
        .add("assumptions", "What was assumed where the scenario says nothing.",
             [](const Serving& a) { return a.spec.assumptions; });
    add_written(out, [](const Serving& a) -> const WrittenScenario& { return a.written; });
    return out;
  }();
  return fields;
}

nlohmann::ordered_json serving_json(const ServingAnswer& answer) {
  return Value(serving_fields().values(answer)).json();
}

}  // namespace lockstep
