// Laws on traffic and collectives: those that are about them hold, and a planted mistake breaks the
// one that is about it.
#include "tools/laws/comm_laws.hpp"

#include <doctest/doctest.h>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/write_json.hpp"
#include "sim/laws/check_laws.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/slow_build.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"
#include "tools/laws/random_comm.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
using test::lockstep_with;
using test::Ran;

constexpr const char* kIncast =
    R"({"cluster": {"node": {"preset": "dgx_h100", "gpus": 1, "nvlink_domain": 1, "nics": 1},
          "nodes": 8, "fabric": {"kind": "fat_tree", "routing": "spray", "leaf_ports_down": 4,
            "leaf_oversubscription": 2}},
        "efficiency": 1,
        "traffic": [{"name": "in", "kind": "incast", "size": "8 MiB"},
                    {"name": "round", "kind": "shift", "by": 4, "size": "64 MiB"}]})";
constexpr const char* kShift =
    R"({"cluster": {"node": {"preset": "dgx_h100", "gpus": 1, "nvlink_domain": 1, "nics": 1},
          "nodes": 8, "fabric": {"kind": "fat_tree", "routing": "spray", "leaf_ports_down": 4}},
        "efficiency": 1, "traffic": [{"kind": "shift", "by": 4, "size": "64 MiB"}]})";
constexpr const char* kReduced =
    R"({"cluster": {"node": "dgx_h100", "nodes": 4, "fabric": "rail_optimised"},
        "traffic": [{"kind": "all_reduce", "size": "64 MiB"}]})";
constexpr const char* kCollective =
    R"({"cluster": {"node": "dgx_h100", "nodes": 4, "fabric": "rail_optimised"},
        "collective": {"op": ["all_gather", "all_to_all"], "sizes": ["1 MiB", "1 GiB", "4 GiB"]}})";

Certificate certificate_of(const std::string& text, const std::string& about,
                           const std::string& law = {},
                           std::function<void(Json&, std::size_t)> plant = {}) {
  DocumentQuestion question;
  question.file = "comm.json";
  question.text = text;
  question.about = about;
  question.answer = [](const std::string& file, const std::string& of) {
    return comm_answer(file, of, test::presets());
  };
  question.plant = std::move(plant);
  DocumentSubject subject(std::move(question), test::presets());
  std::vector<DocumentLaw> laws = comm_laws({});
  if (!law.empty()) {
    std::erase_if(laws, [&](const DocumentLaw& each) { return each.name != law; });
    REQUIRE(laws.size() == 1);
  }
  return check_laws(subject, laws);
}

void check_held(const Certificate& certificate, const std::set<std::string>& names) {
  std::map<std::string, LawVerdict> verdicts;
  for (const LawResult& law : certificate.laws) {
    for (const LawBreak& each : law.book.breaks()) {
      FAIL_CHECK(law.name << ": " << each.what << ": " << each.found << ", expected "
                          << each.expected);
    }
    verdicts[law.name] = law.book.verdict();
  }
  for (const std::string& name : names) {
    CAPTURE(name);
    REQUIRE(verdicts.contains(name));
    const LawVerdict verdict = verdicts.at(name);
    CHECK((verdict == LawVerdict::held || verdict == LawVerdict::held_with_anomalies));
  }
}

TEST_CASE("comm laws: of traffic and of collectives those that are about them hold") {
  const std::set<std::string> any{"asked_twice", "key_order", "comm", "hardware.network_bandwidth"};
  const Certificate incast = certificate_of(kIncast, "traffic");
  check_held(incast, any);
  check_held(incast, {"bytes", "payload", "times", "entry_order", "link_bound", "twice_the_size",
                      "hardware.oversubscription"});
  check_held(certificate_of(kShift, "traffic"), {"bytes", "link_bound", "symmetric"});
  check_held(certificate_of(kReduced, "traffic"),
             {"bytes", "link_bound", "symmetric", "traffic_and_collective"});
  const Certificate collective = certificate_of(kCollective, "collective");
  check_held(collective, any);
  check_held(collective, {"rows", "rows_alone", "sizes", "port_bound", "traffic_and_collective"});
}

TEST_CASE("comm laws: links of one name are not taken for each other") {
  const char* const paces =
      R"({"cluster": {"node": "dgx_a100_80gb", "nodes": 1},
          "traffic": [{"kind": "all_to_all", "size": "64 KiB"},
                      {"kind": "all_reduce", "size": "3000000 B"}]})";
  check_held(certificate_of(paces, "traffic", "bytes"), {"bytes"});
}

TEST_CASE("comm laws: each has a name of its own and a sentence") {
  std::set<std::string> names;
  for (const DocumentLaw& law : comm_laws({})) {
    CAPTURE(law.name);
    CHECK(names.insert(law.name).second);
    CHECK(law.sentence.ends_with('.'));
    CHECK(law.sentence.size() <= 100);
  }
}

struct Mistake {
  const char* law;
  const char* text;
  const char* about;
  void (*plant)(Json& answer, std::size_t number);
};

double number_of(const Json& json) { return json.get<double>(); }

TEST_CASE("comm laws: a mistake that is planted in an answer breaks the law that is about it") {
  const Mistake mistakes[] = {
      {"bytes", kShift, "traffic",
       [](Json& a, std::size_t) {
         a["links"][0]["bytes"] = 1.001 * number_of(a["links"][0]["bytes"]);
       }},
      {"payload", kShift, "traffic", [](Json& a, std::size_t) { a["traffic"][0]["bytes"] = 1.0; }},
      {"times", kIncast, "traffic",
       [](Json& a, std::size_t) { a["end_s"] = 2 * number_of(a["end_s"]); }},
      // Above what NICs carry of payload, and below their line rate.
      {"times", kReduced, "traffic",
       [](Json& a, std::size_t) { a["traffic"][0]["line_rate_share"] = 0.99; }},
      {"link_bound", kShift, "traffic",
       [](Json& a, std::size_t) { a["end_s"] = 0.999 * number_of(a["end_s"]); }},
      {"symmetric", kShift, "traffic",
       [](Json& a, std::size_t) { a["end_s"] = 1.001 * number_of(a["end_s"]); }},
      {"twice_the_size", kShift, "traffic",
       [](Json& a, std::size_t number) {
         if (number == 1) a["traffic"][0]["time_s"] = 1.0;
       }},
      {"entry_order", kIncast, "traffic",
       [](Json& a, std::size_t) { a["traffic"][0]["time_s"] = 1.0; }},
      {"hardware.network_bandwidth", kShift, "traffic",
       [](Json& a, std::size_t number) {
         if (number == 1) a["traffic"][0]["time_s"] = 1.0;
       }},
      {"hardware.oversubscription", kIncast, "traffic",
       [](Json& a, std::size_t number) {
         if (number == 1) a["traffic"][1]["alone_s"] = 1.0;
       }},
      {"traffic_and_collective", kReduced, "traffic",
       [](Json& a, std::size_t number) {
         if (number == 0) a["traffic"][0]["time_s"] = 1.0;
       }},
      {"asked_twice", kShift, "traffic",
       [](Json& a, std::size_t number) { a["end_s"] = static_cast<double>(number); }},
      {"key_order", kShift, "traffic",
       [](Json& a, std::size_t number) { a["end_s"] = static_cast<double>(number); }},
      {"comm", kShift, "traffic", [](Json& a, std::size_t) { a["end_s"] = 1.0; }},
      {"rows", kCollective, "collective",
       [](Json& a, std::size_t) { a["rows"][1]["busbw_bytes_per_s"] = 1.0; }},
      {"rows_alone", kCollective, "collective",
       [](Json& a, std::size_t number) {
         if (number == 1) a["rows"][0]["time_s"] = 1.0;
       }},
      {"sizes", kCollective, "collective",
       [](Json& a, std::size_t) { a["rows"][1]["time_s"] = 10.0; }},
      {"port_bound", kCollective, "collective",
       [](Json& a, std::size_t) { a["rows"][5]["time_s"] = 1e-3; }},
  };
  for (const Mistake& mistake : mistakes) {
    CAPTURE(mistake.law);
    CHECK(certificate_of(mistake.text, mistake.about, mistake.law, mistake.plant).broken());
    CHECK_FALSE(certificate_of(mistake.text, mistake.about, mistake.law).broken());
  }
}

TEST_CASE("traffic: NICs that send in later rounds alone are among those that send") {
  // Partners of the first round are next door for some, over NVLink; not those of all rounds.
  const Json answer =
      comm_answer("rounds.json",
                  R"({"cluster": {"node": "dgx_a100_80gb", "nodes": 2, "fabric": "fat_tree"},
          "traffic": [{"kind": "permutation", "size": "1 MiB", "repeat": 30}]})",
                  test::presets());
  const Json& entry = answer.at("traffic").at(0);
  CHECK(number_of(entry.at("line_rate_share")) <= 1);
  CHECK(number_of(entry.at("nic_bytes_per_s")) ==
        doctest::Approx(number_of(entry.at("nic_bytes")) / 16 / number_of(entry.at("time_s"))));
}

TEST_CASE("random comm: a function of seed and number, of both kinds, and hardly twice alike") {
  std::set<std::string> texts;
  int traffic = 0;
  for (std::uint32_t number = 0; number < 20; ++number) {
    const std::string text = random_comm(5, number, test::presets());
    CHECK(text == random_comm(5, number, test::presets()));
    texts.insert(text);
    traffic += Json::parse(text).contains("traffic") ? 1 : 0;
  }
  CHECK(texts.size() >= 18);
  CHECK(traffic > 0);
  CHECK(traffic < 20);
  CHECK(random_comm(5, 0, test::presets()) != random_comm(6, 0, test::presets()));
}

TEST_CASE("random comm: no law is broken" * doctest::skip(test::kSlowBuild)) {
  const Ran ran = lockstep_with(
      {"check", "--random", "40", "--seed", "3", "--kind", "comm", "--format", "json"});
  CHECK_MESSAGE(ran.exit == Exit::ok, ran.out);
  const Json certificate = Json::parse(ran.out);
  CHECK(certificate.at("scenarios") == 40);
  CHECK(certificate.at("broken").empty());
  CHECK(certificate.at("refused").empty());
  CHECK(number_of(certificate.at("kinds").at("traffic")) +
            number_of(certificate.at("kinds").at("collective")) ==
        40);
  for (const Json& law : certificate.at("laws")) {
    CAPTURE(law.at("law"));
    CHECK(number_of(law.at("held")) + number_of(law.at("held_with_anomalies")) > 0);
  }
}

TEST_CASE("check: traffic has a certificate as a step has, and names its own laws") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("comm.json", kShift);
  const Ran ran = lockstep_with(
      {"check", file, "--format", "json", "--law", "symmetric", "--set", "traffic.0.size=1 MiB"});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  const Json certificate = Json::parse(ran.out);
  CHECK(certificate.at("answer_to") == "traffic");
  CHECK(certificate.at("held") == 1);
  const Ran wrong = lockstep_with({"check", file, "--law", "symetric"});
  CHECK(wrong.exit == Exit::bad_input);
  CHECK(wrong.err.find("Did you mean symmetric?") != std::string::npos);
}

}  // namespace
}  // namespace lockstep
