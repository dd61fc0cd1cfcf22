/// Tries laws on a scenario, and says what became of each: a certificate.
///
///     LawSubject subject({.file = "job.json", .text = text}, presets, intervals);
///     const Certificate certificate = check_laws(subject, product_laws(subject));
///     certificate.broken();
#pragma once

#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "models/base/input_error.hpp"
#include "sim/answer/fields.hpp"
#include "sim/laws/law.hpp"
#include "sim/laws/law_subject.hpp"

namespace lockstep {

/// What became of a law.
struct LawResult {
  std::string name;
  LawFamily family = LawFamily::conservation;
  std::string sentence;
  LawBook book;
};

struct Certificate {
  std::string file;
  std::string about;  ///< what the scenario is about: "step", "serving", "traffic"
  bool deep = false;
  bool stopped = false;  ///< by whoever asked; laws that were not tried are missing
  std::size_t simulations = 0;
  std::vector<LawResult> laws;

  [[nodiscard]] std::size_t count(LawVerdict verdict) const;
  [[nodiscard]] bool broken() const { return count(LawVerdict::broken) > 0; }
};

/// All laws that the library knows; those of a kind of answer say themselves that they do not apply
/// to another. `lockstep check` adds those between commands.
std::vector<Law> product_laws();

/// Tries one law; false where somebody stopped it. Throws InputError about the scenario.
template <class Subject>
bool try_law(Subject& subject, const LawOf<Subject>& law, LawBook& book) {
  try {
    if (law.deep && !subject.deep()) {
      book.does_not_apply("tried with --deep alone");
    } else {
      law.hold(subject, book);
    }
  } catch (const LawsStopped&) {
    return false;
  } catch (const InputError&) {
    throw;
  } catch (const std::logic_error& error) {
    // No scenario may lead to one, whatever the law was about.
    book.same_text("an error of the program itself", error.what(), "none");
  }
  return true;
}

/// `done` is told after each law: how many, of how many. Throws InputError about the scenario. A
/// subject has file(), about(), deep() and simulations(), as LawSubject.
template <class Subject>
Certificate check_laws(Subject& subject, const std::vector<LawOf<Subject>>& laws,
                       const std::function<void(std::size_t, std::size_t)>& done = {}) {
  Certificate out;
  out.file = subject.file();
  out.about = subject.about();
  out.deep = subject.deep();
  for (const LawOf<Subject>& law : laws) {
    LawResult result{law.name, law.family, law.sentence, {}};
    if (!try_law(subject, law, result.book)) {
      out.stopped = true;
      break;
    }
    out.laws.push_back(std::move(result));
    if (done) done(out.laws.size(), laws.size());
  }
  out.simulations = subject.simulations();
  return out;
}

/// The members of a certificate's JSON, and the JSON.
std::vector<FieldInfo> certificate_fields();
nlohmann::ordered_json certificate_json(const Certificate& certificate);
/// The JSON Schema of `lockstep check --format json`.
nlohmann::ordered_json certificate_schema();

}  // namespace lockstep
