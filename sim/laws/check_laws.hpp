/// Tries laws on a scenario, and says what became of each: a certificate.
///
///     LawSubject subject({.file = "job.json", .text = text}, presets, intervals);
///     const Certificate certificate = check_laws(subject, product_laws(subject));
///     certificate.broken();
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

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
  AnswerKind kind = AnswerKind::step;
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

/// `done` is told after each law: how many, of how many. Throws InputError about the scenario.
Certificate check_laws(LawSubject& subject, const std::vector<Law>& laws,
                       const std::function<void(std::size_t, std::size_t)>& done = {});

/// The members of a certificate's JSON, and the JSON.
std::vector<FieldInfo> certificate_fields();
nlohmann::ordered_json certificate_json(const Certificate& certificate);
/// The JSON Schema of `lockstep check --format json`.
nlohmann::ordered_json certificate_schema();

}  // namespace lockstep
