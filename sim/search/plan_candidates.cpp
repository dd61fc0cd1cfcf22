#include "sim/search/plan_candidates.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/write_json.hpp"
#include "sim/scenario/read_cluster.hpp"
#include "sim/scenario/read_residuals.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/search/read_regions.hpp"
#include "sim/search/search_base.hpp"
#include "sim/site/fleet.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 2> kPayments{"own", "rent"};
constexpr std::array<std::string_view, 2> kLayouts{"given", "tuned"};
constexpr std::array<std::string_view, 1> kMachines{"kept"};
constexpr std::size_t kMostCandidates = 100;
constexpr std::size_t kMostSizes = 32;
constexpr std::size_t kMostPhases = 8;
constexpr double kUsualReserve = 0.05;  // assumed: of the nodes that train

/// A part of a plan that is shaped like a scenario.
Json scenario_part(const std::optional<JsonCursor>& from) {
  if (!from) return Json::object();
  if (const auto excess = from->find("training")) {
    excess->fail("no such key: the plan's own \"training\" holds for all candidates");
  }
  if (const auto expect = from->find("expect")) {
    expect->fail("no such key in a plan: \"limits\" say what its candidates keep");
  }
  for (const char* key : {"jobs", "rl"}) {
    if (const auto other = from->find(key)) other->fail("no such key: a plan is for one training");
  }
  const auto run = from->find("run");
  if (run && run->is_object()) {
    if (const auto seed = run->find("seed")) {
      seed->fail("no such key: the plan's own \"seed\" is that of all candidates");
    }
  }
  return from->json();
}

/// The name of the cluster preset that a scenario names; empty: none.
std::string cluster_name(const Json& scenario) {
  const auto cluster = scenario.find("cluster");
  if (cluster == scenario.end()) return {};
  if (cluster->is_string()) return cluster->get<std::string>();
  const auto name = cluster->is_object() ? cluster->find("preset") : cluster->end();
  if (!cluster->is_object() || name == cluster->end() || !name->is_string()) return {};
  return name->get<std::string>();
}

/// What all candidates share gives way to what is known about the site of a candidate's cluster.
void drop_what_site_knows(const ClusterSite& site, Json& shared) {
  const auto drop = [&](const char* part, const char* key) {
    const auto found = shared.find(part);
    if (found != shared.end() && found->is_object()) found->erase(key);
  };
  drop("power", "facility");
  if (!site.reliability.empty()) drop("run", "reliability");
}

void set_nodes(Json& scenario, int nodes) {
  if (!scenario.contains("cluster")) return;
  Json& cluster = scenario["cluster"];
  if (cluster.is_string()) cluster = {{"preset", cluster}};
  if (cluster.is_object()) cluster["nodes"] = nodes;
}

/// Reads one candidate of one size.
class CandidateReader {
 public:
  /// `region` is the element of the plan's "regions"; none: it has no regions.
  CandidateReader(const JsonCursor& root, const JsonCursor& from, const PresetStore& presets,
                  std::optional<JsonCursor> region)
      : root_(root), from_(from), presets_(presets), region_(std::move(region)) {
    shared_ = scenario_part(root.find("scenario"));
    own_ = scenario_part(from.find("scenario"));
    whole_ = shared_;
    Json named = shared_;
    named.merge_patch(own_);
    const std::string name = cluster_name(named);
    if (!name.empty() && presets.has("clusters", name)) {
      drop_what_site_knows(presets.cluster(name), whole_);
    }
    whole_.merge_patch(own_);
    if (region_) regional_ = scenario_part(region_->find("scenario"));
    whole_.merge_patch(regional_);
    if (!whole_.contains("power")) whole_["power"] = Json::object();
  }

  /// `nodes` 0: as the scenario says.
  [[nodiscard]] PlanCandidate read(double tokens, int nodes, bool tuned) const {
    Json scenario = whole_;
    scenario["training"] = {{"tokens", tokens}};
    if (nodes > 0) set_nodes(scenario, nodes);
    PlanCandidate out;
    try {
      JobFile job = read_job(scenario);
      out.scenario = tuned ? search_base_of(job.draft, presets_).scenario
                           : complete_measured(job.draft, presets_, {});
      out.run = *std::move(job.run);
    } catch (const MissingKeys& error) {
      retell_missing(error);
    } catch (const InputError& error) {
      throw retold(error, [&](InputProblem& problem) { place_in_plan(problem); });
    }
    check(out);
    out.tuned = tuned;
    out.power_limit = out.scenario.power->site_limit;
    return out;
  }

  /// Whether the scenario says what is in reserve.
  [[nodiscard]] bool says_spares() const {
    return whole_.contains(Json::json_pointer("/run/spares"));
  }

 private:
  /// The scenario with its "run", which a plan cannot do without.
  [[nodiscard]] JobFile read_job(const Json& scenario) const {
    const JsonCursor root = root_.made_of(write_json(scenario), [this](const std::string& pointer) {
      return in_plan(pointer, is_shared_only(pointer));
    });
    return root.read_whole([&] {
      JobFile out = read_job_file(root, presets_);
      if (!out.run) out.run = read_run_spec(root.at("run"), presets_, out.draft.site);
      return out;
    });
  }

  /// Where in the plan a place of the scenario is that was put together.
  [[nodiscard]] std::string in_plan(const std::string& pointer, bool shared) const {
    const bool regional = !pointer.empty() && regional_.contains(Json::json_pointer(pointer));
    if (regional) return region_->pointer() + "/scenario" + pointer;
    return (shared ? "/scenario" : from_.pointer() + "/scenario") + pointer;
  }
  [[nodiscard]] bool is_shared_only(const std::string& pointer) const {
    const Json::json_pointer place(pointer);
    return !own_.contains(place) && shared_.contains(place);
  }

  /// Whether another candidate says it in a scenario of its own.
  [[nodiscard]] bool is_own_elsewhere(const std::string& key) const {
    const Json::json_pointer place = Json::json_pointer("/scenario") / key;
    const auto all = root_.json().find("candidates");
    return all != root_.json().end() &&
           std::ranges::any_of(*all, [&](const Json& of) { return of.contains(place); });
  }

  /// A mistake in the scenario that was put together, at its place in the plan.
  [[noreturn]] void retell(InputProblem problem) const {
    place_in_plan(problem);
    throw InputError(std::move(problem));
  }
  /// Of a mistake in the scenario that was put together: tells where in the plan it is.
  void place_in_plan(InputProblem& problem) const {
    if (problem.file != root_.file()) return;
    const bool shared = !problem.pointer.empty() && is_shared_only(problem.pointer);
    problem.pointer = in_plan(problem.pointer, shared);
  }

  /// What no candidate has is missing from what all of them share.
  [[noreturn]] void retell_missing(const MissingKeys& error) const {
    if (error.problem().file != root_.file()) throw MissingKeys(error);
    std::vector<MissingKey> keys = error.keys();
    for (MissingKey& key : keys) {
      const bool whole = key.object.empty() && !is_own_elsewhere(key.key);
      key.object = in_plan(key.object, whole || is_shared_only(key.object));
    }
    throw MissingKeys(root_.file(), std::move(keys));
  }

  [[noreturn]] void refuse(const char* pointer, std::string found, std::string allowed) const {
    retell({.file = root_.file(),
            .pointer = pointer,
            .found = std::move(found),
            .allowed = std::move(allowed),
            .nearest = {}});
  }

  void check(const PlanCandidate& out) const {
    if (out.run.duration) refuse("/run/duration", "a duration", "none: a plan trains its tokens");
    if (!out.run.reliability.log.empty()) {
      refuse("/run/reliability", "a log of failures", "rates, which a plan can vary");
    }
    if (!out.run.purchase) return;
    if (std::optional<InputProblem> excess = excess_price(out.scenario)) retell(*std::move(excess));
  }

  const JsonCursor& root_;
  const JsonCursor& from_;
  const PresetStore& presets_;
  std::optional<JsonCursor> region_;
  Json shared_, own_, whole_;
  Json regional_ = Json::object();
};

/// Sizes in nodes; {0}: the scenario's own.
std::vector<int> read_sizes(const JsonCursor& from) {
  const auto nodes = from.find("nodes");
  if (!nodes) return {0};
  std::vector<int> sizes;
  for (const JsonCursor& size : nodes->elements(kMostSizes)) {
    sizes.push_back(size.integer(1, kMaxNodes));
  }
  if (sizes.empty()) nodes->fail("at least one size, or no such key");
  return sizes;
}

/// Nodes in reserve as a share of the job's: the candidate's, else the plan's.
std::optional<double> read_spares(const JsonCursor& from, const JsonCursor& root) {
  const auto own = from.find("spares"), shared = root.find("spares");
  if (!own && !shared) return std::nullopt;
  return (own ? *own : *shared).quantity(Dimension::share, {0, 1});
}

/// Sets how many nodes are in reserve: a share of those that train, or what the run says.
void reserve(PlanCandidate& candidate, const std::optional<double>& share, bool said) {
  if (!share && said) return;
  RunSpec& run = candidate.run;
  run.spares.hot =
      static_cast<int>(std::ceil(share.value_or(kUsualReserve) * candidate.scenario.nodes));
  candidate.spares_by_share = true;
  // A run that says nothing has one at hand always, which nobody could pay for.
  std::erase_if(run.assumptions, [](const std::string& text) {
    return text.starts_with("run.spares: always") || text.starts_with("run.spares.hot: ");
  });
  if (!share) {
    run.assumptions.push_back(
        fmt::format("spares: {:.0f} % of the nodes in reserve (not given)", 100 * kUsualReserve));
  }
}

bool says_efficiency(const std::optional<JsonCursor>& uncertain) {
  return uncertain && uncertain->find("efficiency").has_value();
}

Distribution read_distribution(const JsonCursor& from) {
  constexpr Interval kFactor{0, 1e3, true};
  if (from.is_number()) {
    const double value = from.number(kFactor);
    return {.law = DistributionLaw::fixed, .low = value, .likely = value, .high = value};
  }
  constexpr std::array<std::string_view, 3> kSpread{"uniform", "triangular", "lognormal"};
  Distribution out{.law = DistributionLaw::lognormal,
                   .low = from.at("low").number(kFactor),
                   .likely = 0,
                   .high = from.at("high").number(kFactor)};
  if (out.high < out.low) from.at("high").fail(fmt::format("at least \"low\", {}", out.low));
  if (const auto law = from.find("law")) {
    out.law = static_cast<DistributionLaw>(law->choice(kSpread) + 1);
  }
  // Of a spread that says no more, the middle in the logarithm.
  out.likely = std::sqrt(out.low * out.high);
  const auto likely = from.find("likely");
  if (out.law == DistributionLaw::triangular) {
    out.likely = from.at("likely").number(Interval{out.low, out.high});
  } else if (likely) {
    likely->fail(R"(only beside "law": "triangular")");
  }
  from.finish();
  return out;
}

}  // namespace

void read_uncertain(const JsonCursor& from, std::array<Distribution, kPlanInputs>& out) {
  for (const PlanInputInfo& info : plan_inputs()) {
    if (const auto given = from.find(info.name)) {
      out[static_cast<std::size_t>(info.input)] = read_distribution(*given);
    }
  }
  from.finish();
}

bool is_priced(const PlanCandidate& candidate) {
  const std::optional<PowerSpec>& power = candidate.scenario.power;
  const bool own =
      candidate.rented || candidate.run.purchase || (power && prices_machines(power->cost));
  return own && std::ranges::all_of(candidate.then,
                                    [](const auto& phase) { return is_priced(phase->of); });
}

namespace {

/// The regions that a candidate trains in: all, where it names none.
std::vector<std::size_t> read_candidate_regions(const JsonCursor& from, const PlanSpec& plan) {
  const auto named = from.find("regions");
  if (named && plan.regions.empty()) named->fail("only beside the plan's \"regions\"");
  if (named) {
    std::vector<std::size_t> out = read_region_names(*named, plan.regions);
    if (out.empty()) named->fail("at least one region, or no such key");
    return out;
  }
  std::vector<std::size_t> out(plan.regions.size());
  std::iota(out.begin(), out.end(), std::size_t{0});
  return out;
}

/// Where the candidate's phases are: each in a region of its own, or where the one before it is.
std::optional<std::size_t> read_phase_region(const JsonCursor& from, const PlanSpec& plan,
                                             std::optional<std::size_t> before) {
  const auto named = from.find("region");
  if (!named) return before;
  if (plan.regions.empty()) named->fail("only beside the plan's \"regions\"");
  return read_region_name(*named, plan.regions);
}

/// Machines of lots are those of one phase, unless the next one says that it keeps them.
void check_machines(const JsonCursor& at, const std::optional<JsonCursor>& kept,
                    const PlanCandidate& last, bool same_region, const PlanCandidate& of) {
  if (!kept) {
    const auto scenario = at.find("scenario");
    const auto run = scenario ? scenario->find("run") : std::nullopt;
    if (of.run.purchase && last.run.purchase && !(run && run->find("purchase"))) {
      at.fail(
          R"("machines": "kept", or a "purchase" of its own: the plan's was the phase before's)");
    }
    return;
  }
  if (!last.run.purchase)
    kept->fail("no such key, unless machines of the phase before come in lots");
  if (!same_region) kept->fail("no such key in another region: machines stay where they are");
  if (of.scenario.node.name != last.scenario.node.name) {
    kept->fail(fmt::format("the phase before's kind of node, {}, beside it: this phase has {}",
                           last.scenario.node.name, of.scenario.node.name));
  }
  const auto scenario = at.find("scenario");
  const auto run = scenario ? scenario->find("run") : std::nullopt;
  const auto purchase = run ? run->find("purchase") : std::nullopt;
  if (purchase) purchase->fail(R"(no purchase beside "machines": "kept")");
}

/// What comes after a candidate's training, each phase on its own machines. Its name says where.
void read_phases(const JsonCursor& root, const JsonCursor& from, const PresetStore& presets,
                 const PlanSpec& plan, const std::shared_ptr<const StepIntervals>& intervals,
                 PlanCandidate& candidate) {
  const auto list = from.find("then");
  if (!list) return;
  std::optional<std::size_t> region;
  if (candidate.place) region = candidate.place->region;
  const std::vector<JsonCursor> regions =
      plan.regions.empty() ? std::vector<JsonCursor>{} : root.at("regions").elements(kMostRegions);
  const std::vector<JsonCursor> elements = list->elements(kMostPhases);
  if (elements.empty()) list->fail("at least one phase, or no such key");
  std::string moves;
  for (const JsonCursor& at : elements) {
    auto phase = std::make_shared<PlanPhase>();
    const std::optional<std::size_t> before = region;
    region = read_phase_region(at, plan, before);
    const std::string name = at.at("name").string();
    const double tokens = at.at("tokens").quantity(Dimension::count, {1e6, 1e18});
    const auto pays = at.find("pay");
    const auto machines = at.find("machines");
    if (machines) (void)machines->choice(kMachines);
    phase->kept = machines.has_value();
    const CandidateReader reader(root, at, presets,
                                 region ? std::optional(regions[*region]) : std::nullopt);
    PlanCandidate& of = phase->of;
    const auto layout = at.find("layout");
    of = reader.read(tokens, 0, layout && layout->choice(kLayouts) == 1);
    const PlanCandidate& last = candidate.then.empty() ? candidate : candidate.then.back()->of;
    check_machines(at, machines, last, region == before, of);
    if (phase->kept) of.run.purchase = last.run.purchase;
    if (region) place_candidate(plan, *region, of);
    of.refused = {};  // its weights may go where its data may not
    of.place = {};
    of.name = name;
    of.rented = pays ? pays->choice(kPayments) == 1 : candidate.rented && !of.run.purchase;
    if (of.rented && of.run.purchase) {
      pays->fail(R"("own" beside "purchase", whose lots say what is rented, at what price)");
    }
    if (of.rented && !of.scenario.usd_per_gpu_hour) {
      at.fail(R"(a price of what is rented: "scenario": {"price": {"usd_per_gpu_hour": ...}})");
    }
    of.inputs = candidate.inputs;
    of.intervals = candidate.intervals ? intervals : nullptr;
    of.pointer = at.pointer();
    of.run.seed = plan.seed;
    reserve(of, read_spares(at, root), reader.says_spares());
    if (region && region != before) moves += ", then " + plan.regions[*region].name;
    if (region && before && *region != *before) {
      const PlanRegion &away = plan.regions[*before], &there = plan.regions[*region];
      for (const PlanRegion* end : {&away, &there}) {
        if (end->bandwidth && (end == &there || end->egress_usd_per_gb)) continue;
        throw InputError({.file = root.file(),
                          .pointer = end->pointer,
                          .found = fmt::format("no way for the weights of {}", candidate.name),
                          .allowed = R"("bandwidth" and "egress_usd_per_gb")",
                          .nearest = {}});
      }
      phase->way = link_between(away, there);
    }
    at.finish();
    candidate.then.push_back(std::move(phase));
  }
  if (moves.empty()) return;
  // "own, then rented: Stockholm, then Frankfurt": its name, and where each of its phases is.
  const std::string first = candidate.place ? " in " + candidate.place->name : std::string();
  const std::size_t at = first.empty() ? std::string::npos : candidate.name.rfind(first);
  if (at != std::string::npos) candidate.name.replace(at, 4, ": ");
  candidate.name += moves;
}

/// Adds one for each region and size of the candidate `from`.
void read_candidate(const JsonCursor& root, const JsonCursor& from, const PresetStore& presets,
                    const PlanSpec& plan, const std::array<Distribution, kPlanInputs>& inputs,
                    const std::shared_ptr<const StepIntervals>& intervals,
                    std::vector<PlanCandidate>& out) {
  const std::string name = from.at("name").string();
  const auto about = from.find("about");
  const std::size_t payment = from.at("pay").choice(kPayments);
  std::array<Distribution, kPlanInputs> own = inputs;
  const auto uncertain = from.find("uncertain");
  if (uncertain) read_uncertain(*uncertain, own);
  const bool validated = !says_efficiency(uncertain) && !says_efficiency(root.find("uncertain"));
  const auto layout = from.find("layout");
  const bool tuned = layout && layout->choice(kLayouts) == 1;
  const std::optional<double> spares = read_spares(from, root);
  const std::vector<int> sizes = read_sizes(from);
  const std::vector<std::size_t> regions = read_candidate_regions(from, plan);
  (void)from.find("then");  // read_phases()
  const auto add = [&](const CandidateReader& reader, int nodes,
                       std::optional<std::size_t> region) {
    PlanCandidate candidate = reader.read(plan.training.tokens, nodes, tuned);
    const int gpus = candidate.scenario.gpus();
    const std::string size =
        sizes.size() > 1 ? fmt::format(", {} {}", gpus, gpus == 1 ? "GPU" : "GPUs") : std::string();
    candidate.name = name + size;
    if (region) {
      candidate.family = candidate.name;
      candidate.name = fmt::format("{} in {}{}", name, plan.regions[*region].name, size);
      place_candidate(plan, *region, candidate);
    }
    candidate.about = about ? about->string() : std::string{};
    candidate.rented = payment == 1;
    candidate.inputs = own;
    reserve(candidate, spares, reader.says_spares());
    candidate.pointer = from.pointer();
    if (validated) candidate.intervals = intervals;
    if (candidate.rented && candidate.run.purchase) {
      from.at("pay").fail(
          R"("own" beside "purchase", whose lots say what is rented, at what price)");
    }
    if (candidate.rented && !candidate.scenario.usd_per_gpu_hour) {
      from.at("pay").fail(R"(own, or a price: "scenario": {"price": {"usd_per_gpu_hour": ...}})");
    }
    read_phases(root, from, presets, plan, intervals, candidate);
    out.push_back(std::move(candidate));
  };
  if (regions.empty()) {
    const CandidateReader reader(root, from, presets, std::nullopt);
    from.finish();
    for (const int nodes : sizes) add(reader, nodes, std::nullopt);
    return;
  }
  const std::vector<JsonCursor> list = root.at("regions").elements(kMostRegions);
  for (const std::size_t region : regions) {
    const CandidateReader reader(root, from, presets, list[region]);
    from.finish();
    for (const int nodes : sizes) add(reader, nodes, region);
  }
}

}  // namespace

std::vector<PlanCandidate> read_candidates(const JsonCursor& root, const PresetStore& presets,
                                           const PlanSpec& plan,
                                           const std::array<Distribution, kPlanInputs>& inputs) {
  std::vector<PlanCandidate> out;
  const JsonCursor list = root.at("candidates");
  const std::vector<JsonCursor> elements = list.elements(kMostCandidates);
  if (elements.empty()) list.fail("at least one candidate");
  const auto intervals = std::make_shared<const StepIntervals>(presets);
  for (const JsonCursor& from : elements) {
    try {
      read_candidate(root, from, presets, plan, inputs, intervals, out);
    } catch (const MissingKeys& error) {
      if (error.problem().file != root.file()) throw;
      root.also_missing(error.keys());
    }
  }
  return out;
}

}  // namespace lockstep
