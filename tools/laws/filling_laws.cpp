#include "tools/laws/filling_laws.hpp"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <iterator>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/json_cursor.hpp"
#include "models/base/write_json.hpp"
#include "sim/answer/filling_answer.hpp"
#include "sim/cluster/fill_cluster.hpp"
#include "sim/laws/law_subject.hpp"
#include "sim/scenario/read_filling.hpp"
#include "tools/laws/said.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

double part_of(const Json& policy, const char* name) { return policy.at(name).get<double>(); }

std::string without_version(Json answer) {
  answer.erase("lockstep_version");
  return write_json(answer);
}

// --- conservation ------------------------------------------------------------------------------

/// Nothing is allocated that nobody asked for, nor free GPUs that are not there; means are those of
/// what they are of.
void hold_filling_books(DocumentSubject& subject, LawBook& book) {
  const Json& answer = subject.answer();
  for (const auto& [name, policy] : answer.at("policies").items()) {
    const Json& seeds = policy.at("allocated_by_seed");
    double sum = 0;
    for (const Json& of : seeds) {
      sum += of.get<double>();
      book.at_most(name + ": least of all orders", part_of(policy, "least_allocated"),
                   of.get<double>(), kPrinted);
      book.at_most(name + ": of an order", of.get<double>(), part_of(policy, "most_allocated"),
                   kPrinted);
    }
    const double allocated = part_of(policy, "allocated");
    book.same(name + ": mean of all orders", allocated, sum / static_cast<double>(seeds.size()),
              kPrinted);
    // Means over arrivals within half a percent of the GPUs of each step of what is asked for; what
    // is of no use is counted once.
    constexpr double kAround = 0.005;
    book.at_most(name + ": allocated and of no use", allocated + part_of(policy, "fragmented"),
                 1 + kAround, kPrinted);
    const Json& series = policy.at("allocated_by_asked");
    for (std::size_t i = 0; i < series.size(); ++i) {
      const double asked = static_cast<double>(i + 1) * kFillingStep + kAround;
      book.at_most(fmt::format("{}: allocated where {:.3g} is asked for", name, asked),
                   series[i].get<double>(), std::min(1.0, asked), kPrinted);
      if (i == 0) continue;
      book.at_most(name + ": pods do not leave", series[i - 1].get<double>(),
                   series[i].get<double>(), kPrinted);
    }
  }
}

/// Every policy meets the same pods: each is placed or refused.
void hold_filling_pods(DocumentSubject& subject, LawBook& book) {
  const Json& policies = subject.answer().at("policies");
  const auto came = [](const Json& policy) {
    return part_of(policy, "placed_pods") + part_of(policy, "refused_pods");
  };
  for (const auto& [name, policy] : policies.items()) {
    book.same(name + ": pods that came", came(policy), came(policies.front()), kPrinted);
  }
}

// --- exactness ---------------------------------------------------------------------------------

void hold_filling_asked_twice(DocumentSubject& subject, LawBook& book) {
  book.same_text("the answer", write_json(subject.ask(subject.document())),
                 write_json(subject.answer()));
}

/// Nodes and pods in the opposite order, and each that stands for several in two parts.
void hold_filling_lists(DocumentSubject& subject, LawBook& book) {
  Json turned = subject.document(), parted = subject.document();
  bool lists = false;
  for (const char* key : {"nodes", "pods"}) {
    Json& list = turned.at("filling").at(key);
    if (!list.is_array()) continue;
    lists = true;
    std::ranges::reverse(list);
    Json parts = Json::array();
    for (const Json& each : parted.at("filling").at(key)) {
      const bool several = each.contains("count") && each.at("count").is_number_integer() &&
                           each.at("count").get<std::int64_t>() > 1;
      if (several) {
        Json first = each;
        first["count"] = 1;
        parts.push_back(std::move(first));
      }
      parts.push_back(each);
      if (several) parts.back()["count"] = each.at("count").get<std::int64_t>() - 1;
    }
    parted["filling"][key] = std::move(parts);
  }
  if (!lists) return book.does_not_apply("its nodes and pods stand in files of their own");
  const std::string own = write_json(subject.answer());
  book.same_text("lists in the opposite order", write_json(subject.ask(turned)), own);
  book.same_text("lists with one of each apart", write_json(subject.ask(parted)), own);
}

/// Each order of arrival has its own seed: from the next seed on the same ones come, but the first.
void hold_filling_seeds(DocumentSubject& subject, LawBook& book) {
  Json next = subject.document();
  Json& filling = next.at("filling");
  const Json seed = filling.value("seed", Json(1));
  if (!seed.is_number_integer()) return book.does_not_apply("its seed is no whole number");
  filling["seed"] = seed.get<std::int64_t>() + 1;
  const Json answer = subject.ask(next);
  for (const auto& [name, policy] : subject.answer().at("policies").items()) {
    const Json &before = policy.at("allocated_by_seed"),
               &after = answer.at("policies").at(name).at("allocated_by_seed");
    for (std::size_t i = 0; i + 1 < before.size(); ++i) {
      book.same(fmt::format("{}: order {} from the next seed on", name, i), after[i].get<double>(),
                before[i + 1].get<double>(), 0);
    }
  }
  if (book.comparisons() == 0) book.does_not_apply("one order alone");
}

void hold_policy_alone(DocumentSubject& subject, LawBook& book) {
  const Json& policies = subject.answer().at("policies");
  for (const auto& [name, policy] : policies.items()) {
    Json alone = subject.document();
    alone["filling"]["policies"] = Json::array({name});
    book.same_text(name + " alone", write_json(subject.ask(alone).at("policies").at(name)),
                   write_json(policy));
  }
}

// --- agreement ---------------------------------------------------------------------------------

void hold_filling_command(DocumentSubject& subject, LawBook& book,
                          const std::vector<std::string>& presets) {
  const Commands commands(subject, presets);
  const Said said = commands.run({"queue", "fill", commands.file(), "--format", "json"});
  if (!answered("queue fill", said, book)) return;
  book.same_text("the answer of queue fill and of the library", without_version(said.json()),
                 without_version(subject.answer()));
}

}  // namespace

Json filling_answer(const std::string& file, const std::string& text,
                    const std::function<bool()>& go_on) {
  const FillingSpec spec = read_filling(JsonCursor::parse(file, text));
  const FillingResult result =
      fill_cluster(spec, [&](std::size_t, std::size_t) { return !go_on || go_on(); });
  if (result.stopped) throw LawsStopped();
  return filling_json(spec, result);
}

std::vector<DocumentLaw> filling_laws(const std::vector<std::string>& presets) {
  using enum LawFamily;
  return {
      {"books", conservation,
       "No more is allocated than was asked for and is there; pods do not leave.",
       hold_filling_books},
      {"pods", conservation, "Every policy places or refuses the same pods.", hold_filling_pods},
      {"asked_twice", exactness, "The same question has the same answer, byte for byte.",
       hold_filling_asked_twice},
      {"lists", exactness, "How nodes and pods are listed changes nothing.", hold_filling_lists},
      {"seeds", exactness, "An order of arrival goes by its own seed alone.", hold_filling_seeds},
      {"policy_alone", exactness, "A policy alone is what it is among others.", hold_policy_alone},
      {"fill", agreement, "lockstep queue fill says what the library answers.",
       [presets](DocumentSubject& subject, LawBook& book) {
         hold_filling_command(subject, book, presets);
       }},
  };
}

}  // namespace lockstep
