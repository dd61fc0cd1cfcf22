// The members of a certificate: text, JSON and schema come from these rows.
#include <fmt/format.h>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "sim/laws/check_laws.hpp"
#include "sim/laws/check_random.hpp"

namespace lockstep {
namespace {

const FieldTable<LawBreak>& break_fields() {
  static const FieldTable<LawBreak> fields = [] {
    FieldTable<LawBreak> out;
    out.add("what", "What was compared.", [](const LawBreak& b) { return b.what; })
        .add("found", "What was found.", [](const LawBreak& b) { return b.found; })
        .add("expected", "What the law says.", [](const LawBreak& b) { return b.expected; });
    return out;
  }();
  return fields;
}

const FieldTable<LawAnomaly>& anomaly_fields() {
  static const FieldTable<LawAnomaly> fields = [] {
    FieldTable<LawAnomaly> out;
    out.add("what", "What became worse.", [](const LawAnomaly& a) { return a.what; })
        .add("size", "By which share.", [](const LawAnomaly& a) { return a.size; });
    return out;
  }();
  return fields;
}

/// Of laws that were compared with something.
template <class Get>
auto where_tried(Get get) {
  return [get](const LawResult& law) {
    using Got = decltype(get(law.book));
    return law.book.comparisons() > 0 ? std::optional<Got>(get(law.book)) : std::nullopt;
  };
}

const FieldTable<LawResult>& law_fields() {
  static const FieldTable<LawResult> fields = [] {
    FieldTable<LawResult> out;
    out.add("law", "Its name.", [](const LawResult& law) { return law.name; })
        .add("family", "What kind of law it is.",
             [](const LawResult& law) { return name_of(law.family); })
        .add("sentence", "What it says.", [](const LawResult& law) { return law.sentence; })
        .add("verdict", "held, anomalies, broken or does not apply.",
             [](const LawResult& law) { return name_of(law.book.verdict()); })
        .add("comparisons", "How many values were compared.",
             [](const LawResult& law) { return law.book.comparisons(); })
        .add("largest_difference", "The relative difference that is nearest to what is allowed.",
             where_tried([](const LawBook& book) { return book.largest(); }))
        .add("allowed_difference", "How much is allowed there.",
             where_tried([](const LawBook& book) { return book.allowed(); }))
        .add("largest_of", "What was compared there.",
             where_tried([](const LawBook& book) { return book.largest_of(); }))
        .add("why", "Why it does not apply.",
             [](const LawResult& law) {
               return law.book.verdict() == LawVerdict::does_not_apply
                          ? std::optional(law.book.why())
                          : std::nullopt;
             })
        .add("breaks", "How many comparisons broke it.",
             where_tried([](const LawBook& book) { return book.broken(); }))
        .list_if_any("broken", "The first of them.", break_fields(),
                     [](const LawResult& law) { return law.book.breaks(); })
        .list_if_any("anomalies", "Differences that the law allows and names, largest first.",
                     anomaly_fields(), [](const LawResult& law) { return law.book.anomalies(); });
    return out;
  }();
  return fields;
}

const FieldTable<Certificate>& certificate_table() {
  static const FieldTable<Certificate> fields = [] {
    FieldTable<Certificate> out;
    const auto of = [](LawVerdict verdict) {
      return [verdict](const Certificate& c) { return c.count(verdict); };
    };
    out.constant("schema", "Version of the names in this certificate.", "lockstep-certificate/1")
        .add("file", "The scenario's file.", [](const Certificate& c) { return c.file; })
        .add("answer_to", "What the scenario is about.",
             [](const Certificate& c) { return c.about; })
        .add("deep", "Whether large jobs and more values were tried.",
             [](const Certificate& c) { return c.deep; })
        .add("stopped", "Whether it was stopped before all laws were tried.",
             [](const Certificate& c) { return c.stopped; })
        .add("tried", "Laws that were tried.", [](const Certificate& c) { return c.laws.size(); })
        .add("held", "Of them held.", of(LawVerdict::held))
        .add("held_with_anomalies", "Held but for anomalies that are named.",
             of(LawVerdict::held_with_anomalies))
        .add("broken", "Broken.", of(LawVerdict::broken))
        .add("do_not_apply", "Without anything to compare.", of(LawVerdict::does_not_apply))
        .add("simulations", "Simulations that it took.",
             [](const Certificate& c) { return c.simulations; })
        .list("laws", "Each law.", law_fields(), [](const Certificate& c) { return c.laws; });
    return out;
  }();
  return fields;
}

// --- many scenarios ----------------------------------------------------------------------------

const FieldTable<LawTally>& tally_fields() {
  static const FieldTable<LawTally> fields = [] {
    FieldTable<LawTally> out;
    const auto if_any = [](auto get) {
      return [get](const LawTally& t) {
        return t.largest.size > 0 ? std::optional(get(t)) : std::nullopt;
      };
    };
    out.add("law", "Its name.", [](const LawTally& t) { return t.name; })
        .add("family", "What kind of law it is.",
             [](const LawTally& t) { return name_of(t.family); })
        .add("sentence", "What it says.", [](const LawTally& t) { return t.sentence; })
        .add("held", "Scenarios in which it held.", [](const LawTally& t) { return t.held; })
        .add("held_with_anomalies", "In which it held but for anomalies.",
             [](const LawTally& t) { return t.anomalies; })
        .add("broken", "In which it did not hold.", [](const LawTally& t) { return t.broken; })
        .add("do_not_apply", "In which there was nothing to compare.",
             [](const LawTally& t) { return t.does_not_apply; })
        .add("comparisons", "How many values were compared.",
             [](const LawTally& t) { return t.comparisons; })
        .add("largest_anomaly", "The largest anomaly, as a share.",
             if_any([](const LawTally& t) { return t.largest.size; }))
        .add("largest_anomaly_of", "What became worse.",
             if_any([](const LawTally& t) { return t.largest.what; }))
        .add("largest_anomaly_in", "In which scenario.",
             if_any([](const LawTally& t) { return t.largest_in; }));
    return out;
  }();
  return fields;
}

const FieldTable<BrokenScenario>& broken_fields() {
  static const FieldTable<BrokenScenario> fields = [] {
    FieldTable<BrokenScenario> out;
    out.add("number", "Which scenario of the seed.",
            [](const BrokenScenario& b) { return b.number; })
        .add("law", "Which law.", [](const BrokenScenario& b) { return b.law; })
        .add("what", "What was compared.", [](const BrokenScenario& b) { return b.first.what; })
        .add("found", "What was found.", [](const BrokenScenario& b) { return b.first.found; })
        .add("expected", "What the law says.",
             [](const BrokenScenario& b) { return b.first.expected; })
        .add("scenario", "The smallest scenario that was found to break it.",
             [](const BrokenScenario& b) { return Value::document(*b.scenario); });
    return out;
  }();
  return fields;
}

const FieldTable<RefusedScenario>& refused_fields() {
  static const FieldTable<RefusedScenario> fields = [] {
    FieldTable<RefusedScenario> out;
    out.add("number", "Which scenario of the seed.",
            [](const RefusedScenario& r) { return r.number; })
        .add("why", "What the program says.", [](const RefusedScenario& r) { return r.why; });
    return out;
  }();
  return fields;
}

const FieldTable<RandomCertificate>& random_certificate_table() {
  static const FieldTable<RandomCertificate> fields = [] {
    using Of = RandomCertificate;
    FieldTable<Of> out;
    out.constant("schema", "Version of the names in this certificate.",
                 "lockstep-random-certificate/1")
        .add("seed", "Of all draws.", [](const Of& c) { return c.seed; })
        .add("first", "Number of the first scenario.", [](const Of& c) { return c.first; })
        .add("scenarios", "Scenarios that were tried.", [](const Of& c) { return c.scenarios; })
        .add("deep", "Whether large jobs and more values were tried.",
             [](const Of& c) { return c.deep; })
        .add("stopped", "Whether it was stopped before all were tried.",
             [](const Of& c) { return c.stopped; })
        .add("simulations", "Simulations that it took.", [](const Of& c) { return c.simulations; })
        .add("kinds", "How many scenarios were of each kind.",
             [](const Of& c) {
               NamedNumbers counts;
               for (const auto& [kind, count] : c.kinds) {
                 counts.emplace_back(kind, static_cast<double>(count));
               }
               return counts;
             })
        .list("laws", "Each law.", tally_fields(), [](const Of& c) { return c.laws; })
        .list("broken", "What broke a law.", broken_fields(), [](const Of& c) { return c.broken; })
        .list("refused", "Scenarios without an answer.", refused_fields(),
              [](const Of& c) { return c.refused; });
    return out;
  }();
  return fields;
}

}  // namespace

std::vector<FieldInfo> certificate_fields() { return certificate_table().infos(); }

nlohmann::ordered_json certificate_json(const Certificate& certificate) {
  return Value(certificate_table().values(certificate)).json();
}

std::vector<FieldInfo> random_certificate_fields() { return random_certificate_table().infos(); }

nlohmann::ordered_json random_certificate_json(const RandomCertificate& certificate) {
  return Value(random_certificate_table().values(certificate)).json();
}

nlohmann::ordered_json certificate_schema() {
  using Json = nlohmann::ordered_json;
  const auto printed = [](const std::vector<FieldInfo>& fields) {
    Json out = object_schema(fields);
    out["properties"]["lockstep_version"] = {{"type", "string"},
                                             {"description", "Version of the program."}};
    return out;
  };
  return {
      {"$schema", "https://json-schema.org/draft/2020-12/schema"},
      {"title", "lockstep-certificate/1"},
      {"description",
       "What `lockstep check --format json` prints: which laws held for the answer to a "
       "scenario, or with --random for many. Generated from the tables in "
       "sim/laws/certificate.cpp."},
      {"oneOf", Json::array({{{"$ref", "#/$defs/one"}}, {{"$ref", "#/$defs/many"}}})},
      {"$defs",
       {{"one", printed(certificate_fields())}, {"many", printed(random_certificate_fields())}}}};
}

}  // namespace lockstep
