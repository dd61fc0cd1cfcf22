#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/write_json.hpp"
#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/names.hpp"
#include "sim/scenario/read_serving.hpp"
#include "sim/search/serving_plan.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 3> kPoolWays{"any", "one", "two"};
constexpr std::size_t kMostServingCandidates = 100;
constexpr int kMostWidth = 4096;
constexpr std::size_t kMostMapValues = 12;

constexpr ValueType kWidths =
    written_type(R"({"type": "array", "items": {"type": "integer", "minimum": 1}})");
constexpr ValueType kNumbers = written_type(R"({"type": "array", "minItems": 1, "maxItems": 12,
    "items": {"type": "number", "exclusiveMinimum": 0}})");

void declare_widths(const DeclaredMembers& member, std::string_view key, std::vector<int>& out,
                    std::string_view sentence) {
  member.optional(key, kWidths, sentence, [&](const JsonCursor& at) {
    for (const JsonCursor& each : at.elements(kMostMapValues)) {
      out.push_back(each.integer(1, kMostWidth));
    }
  });
}

void declare_space(const DeclaredMembers& member, ServingSpace& out) {
  declare_widths(member, "tensor", out.tensor,
                 "GPUs over which layers are cut; default: powers of two within an NVLink domain");
  declare_widths(member, "pipeline", out.pipeline, "Stages; default: as few as hold the model");
  declare_widths(member, "attention_data", out.attention_data,
                 "Groups with caches of their own; default: 1, or powers of two where attention is "
                 "latent");
  declare_widths(member, "expert", out.expert,
                 "GPUs over which whole experts are spread; default: 1, and all of a stage");
}

void declare_failures(const DeclaredMembers& member, ServingFailures& out) {
  member.required("gpu_mean_time", out.gpu_mean_time, Interval{3600, 1e10},
                  "Of a GPU between failures");
  member.required("repair", out.repair, Interval{1, 1e8}, "Until a broken replica is up again");
  member.optional("share", out.share, Dimension::share, Interval{0.5, 0.9999999},
                  "Of the time, in which enough replicas must be up; default: 99.9 %");
}

void declare_values(const DeclaredMembers& member, std::string_view key, std::vector<double>& out,
                    const Interval& allowed, std::string_view sentence) {
  member.required(key, kNumbers, sentence, [&out, allowed](const JsonCursor& at) {
    for (const JsonCursor& each : at.elements(kMostMapValues)) out.push_back(each.number(allowed));
    if (out.empty()) at.fail("at least one value");
  });
}

void declare_map(const DeclaredMembers& member, ServingMapSpec& out) {
  declare_values(member, "input", out.input, Interval{1, 1e6}, "Tokens of a prompt, on average");
  declare_values(member, "output", out.output, Interval{1, 1e6}, "Tokens of an answer, on average");
  declare_values(member, "rate", out.rate, Interval{0, 1e6, true}, "Requests a second");
  member.optional("requests", out.requests, 10, 1'000'000, "Of each cell; default: 1,000");
}

void declare_serving_plan(const DeclaredMembers& member, ServingPlanSpec& out) {
  member.optional("about", out.about, "What is to be decided, in a sentence");
  member.optional("prefer", out.goal, kServingPlanGoals,
                  "What is least in the best of those that keep the objectives; default: gpus");
  member.optional(
      "pools", choice_type(kPoolWays),
      "One pool, one for prompts and one that decodes, or whichever is better; default: "
      "any",
      [&](const JsonCursor& at) {
        const std::size_t way = at.choice(kPoolWays);
        out.one_pool = way != 2;
        out.two_pools = way != 1;
      });
  member.optional("search", out.space, "Layouts of a replica that are tried", declare_space);
  member.optional("failures", out.failures, "What spares are for; default: no spares",
                  declare_failures);
  member.optional("map", out.map,
                  "Loads for which one pool and two are compared, on the machine that is chosen",
                  declare_map);
}

/// Reads the scenario of one candidate, put together from the shared one and its own.
class ServingCandidateReader {
 public:
  ServingCandidateReader(const JsonCursor& root, const JsonCursor& from, const PresetStore& presets)
      : root_(root), from_(from), presets_(presets) {
    if (const auto shared = root.find("scenario")) shared_ = shared->json();
    if (const auto own = from.find("scenario")) own_ = own->json();
    whole_ = shared_;
    whole_.merge_patch(own_);
    if (whole_.contains("cost") && !whole_.contains("power")) whole_["power"] = Json::object();
    if (whole_.contains("serving") && whole_["serving"].is_object() &&
        !whole_["serving"].contains("pools")) {
      whole_["serving"]["pools"] = {{"both", Json::object()}};
    }
  }

  [[nodiscard]] ServingSpec read() const {
    try {
      const JsonCursor root = root_.made_of(write_json(whole_), [this](const std::string& pointer) {
        return in_plan(pointer, is_shared(pointer));
      });
      if (const auto expect = root.find("expect")) {
        expect->fail("no such key in a plan: \"objectives\" say what its machines keep");
      }
      if (const auto cluster = root.find("cluster"); cluster && cluster->is_object()) {
        if (const auto kinds = cluster->find("pools")) {
          kinds->fail(R"("node" and "nodes": the machines of a candidate are of one kind)");
        }
      }
      ServingSpec spec = read_serving(root, presets_, ServingLayouts::searched);
      check(spec);
      return spec;
    } catch (const MissingKeys& error) {
      if (error.problem().file != root_.file()) throw;
      std::vector<MissingKey> keys = error.keys();
      for (MissingKey& key : keys) key.object = in_plan(key.object, lacks_in_shared(key));
      throw MissingKeys(root_.file(), std::move(keys));
    } catch (const InputError& error) {
      throw retold(error, [&](InputProblem& problem) {
        if (problem.file != root_.file()) return;
        problem.pointer = in_plan(problem.pointer, is_shared(problem.pointer));
      });
    }
  }

 private:
  [[nodiscard]] std::string in_plan(const std::string& pointer, bool shared) const {
    return (shared ? "/scenario" : from_.pointer() + "/scenario") + pointer;
  }
  [[nodiscard]] bool is_shared(const std::string& pointer) const {
    const Json::json_pointer place(pointer);
    return !own_.contains(place) && shared_.contains(place);
  }
  /// Whether what lacks a key is said by all candidates together: the nearest object around it that
  /// anything says is not the candidate's own.
  [[nodiscard]] bool lacks_in_shared(const MissingKey& key) const {
    if (key.object.empty()) return !own_.contains(key.key);
    for (Json::json_pointer place(key.object); !place.empty(); place.pop_back()) {
      if (own_.contains(place)) return false;
      if (shared_.contains(place)) return true;
    }
    return true;
  }
  [[noreturn]] void refuse(const char* pointer, std::string found, std::string allowed) const {
    throw InputError({.file = root_.file(),
                      .pointer = pointer,
                      .found = std::move(found),
                      .allowed = std::move(allowed),
                      .nearest = {}});
  }
  /// What a search over numbers of replicas needs.
  void check(const ServingSpec& spec) const {
    if (spec.clients > 0) {
      refuse("/serving/load/clients", "clients in a closed loop",
             R"(requests that come by themselves: "rate" or "trace")");
    }
    if (spec.pools.size() > 1) {
      refuse("/serving/pools", "two pools", "\"both\" with the engine: the plan lays pools out");
    }
    if (!spec.objectives.any()) {
      refuse("/serving", "no \"objectives\"", "what requests should keep, as ttft_p99");
    }
    if (!limits_first_token(spec.objectives)) {
      refuse("/serving/objectives", "nothing about the time to the first or the last token",
             "ttft, e2e, or one of their quantiles: without, prompts could wait for ever");
    }
  }
  static bool limits_first_token(const ServingObjectives& o) {
    const auto any_of = [&](ServedTime time) {
      const auto begin =
          o.quantiles.begin() +
          static_cast<std::ptrdiff_t>(time) * static_cast<std::ptrdiff_t>(kLimitedPercents.size());
      return std::any_of(begin, begin + kLimitedPercents.size(), [](const auto& q) { return !!q; });
    };
    return o.ttft || o.e2e || any_of(ServedTime::ttft) || any_of(ServedTime::e2e);
  }

  const JsonCursor& root_;
  const JsonCursor& from_;
  const PresetStore& presets_;
  Json shared_ = Json::object(), own_ = Json::object(), whole_;
};

std::optional<MoneyOf> priced_part(const ServingSpec& spec) {
  return money_of(spec.power ? &spec.power->cost : nullptr, spec.usd_per_gpu_hour.has_value());
}

/// Money decides between machines that all have a price, or between the rest of the money of such
/// that all have none: energy alone always beats a rent.
void check_money(const JsonCursor& root, const ServingPlanSpec& plan) {
  if (plan.goal != ServingPlanGoal::money) return;
  const auto has_only_part = [](const ServingCandidate& candidate) {
    return priced_part(candidate.base) == MoneyOf::partial;
  };
  const auto part = std::ranges::find_if(plan.candidates, has_only_part);
  if (part == plan.candidates.end() || std::ranges::all_of(plan.candidates, has_only_part)) return;
  root.at("prefer").fail(fmt::format(
      "gpus; of {} only a part of the money has a price ({}): it takes cost.usd_per_gpu, "
      "price.usd_per_gpu_hour or the like, as others have them",
      part->name, words_of(MoneyOf::partial, &part->base.power->cost)));
}

void read_serving_candidates(const JsonCursor& root, const PresetStore& presets,
                             ServingPlanSpec& out) {
  const JsonCursor list = root.at("candidates");
  const std::vector<JsonCursor> elements = list.elements(kMostServingCandidates);
  if (elements.empty()) list.fail("at least one candidate");
  for (const JsonCursor& from : elements) {
    ServingCandidate candidate;
    candidate.pointer = from.pointer();
    candidate.name = from.at("name").string();
    if (const auto about = from.find("about")) candidate.about = about->string();
    try {
      candidate.base = ServingCandidateReader(root, from, presets).read();
    } catch (const MissingKeys& error) {
      if (error.problem().file != root.file()) throw;
      root.also_missing(error.keys());
      continue;
    }
    from.finish();
    if (out.goal == ServingPlanGoal::money && !priced_part(candidate.base)) {
      root.at("prefer").fail("gpus; money is no such thing without prices: " + candidate.name +
                             " has none of cost.usd_per_gpu, price.usd_per_gpu_hour and the like");
    }
    out.candidates.push_back(std::move(candidate));
  }
}

void check_names(const ServingPlanSpec& plan) {
  for (std::size_t i = 0; i < plan.candidates.size(); ++i) {
    const ServingCandidate& own = plan.candidates[i];
    const auto first = std::ranges::find(plan.candidates, own.name, &ServingCandidate::name);
    if (&*first == &own) continue;
    throw InputError({.file = plan.file,
                      .pointer = own.pointer + "/name",
                      .found = in_quotes(own.name),
                      .allowed = "a name that no other candidate has",
                      .nearest = {}});
  }
}

ServingPlanSpec serving_plan_of(const JsonCursor& root, const PresetStore& presets) {
  ServingPlanSpec out;
  out.file = root.file();
  (void)root.find("$schema");
  declare_serving_plan({root, Extent::whole}, out);
  (void)root.find("scenario");
  read_serving_candidates(root, presets, out);
  check_money(root, out);
  root.finish();
  root.tell_unitless_sets(out.assumptions);
  check_names(out);
  return out;
}

}  // namespace

bool is_serving_plan(const JsonCursor& root) {
  if (!root.is_object()) return false;
  const Json& json = root.json();
  const auto serves = [](const Json& of) {
    const auto scenario = of.is_object() ? of.find("scenario") : of.end();
    return of.is_object() && scenario != of.end() && scenario->is_object() &&
           scenario->contains("serving");
  };
  const auto candidates = json.find("candidates");
  return serves(json) || (candidates != json.end() && candidates->is_array() &&
                          std::ranges::any_of(*candidates, serves));
}

ServingPlanSpec read_serving_plan(const JsonCursor& root, const PresetStore& presets) {
  return root.read_whole([&] { return serving_plan_of(root, presets); });
}

Json serving_plan_schema() {
  Json described = Json::object();
  const DeclaredMembers member(described, Extent::whole);
  ServingPlanSpec spec;
  std::string text;
  const auto elsewhere = [](const JsonCursor&) {};
  member.optional("$schema", text, "Path to this schema, for editors");
  declare_serving_plan(member, spec);
  member.optional("scenario", written_type(R"({"type": "object"})"),
                  "What all candidates share, as a scenario with \"serving\" has it; its pools are "
                  "left out, or say the engine",
                  elsewhere);
  member.required("candidates",
                  written_type(R"({"type": "array", "minItems": 1, "items": {"type": "object",
    "required": ["name"], "properties": {"name": {"type": "string"}, "about": {"type": "string"},
    "scenario": {"type": "object"}}, "additionalProperties": false}})"),
                  "Machines: a name, and what of the scenario differs; cluster.nodes is the most "
                  "that may be taken",
                  elsewhere);
  // Types of quantities are those of a job's schema.
  std::string written = write_json(described);
  for (std::size_t at = 0; (at = written.find("\"#/", at)) != std::string::npos; at += 3) {
    written.insert(at + 1, "scenario.schema.json");
  }
  Json schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
              {"title", "Machines for a service, for `lockstep plan`"},
              {"description", "Generated from the declarations of the reader."}};
  schema.update(Json::parse(written));
  return schema;
}

}  // namespace lockstep
