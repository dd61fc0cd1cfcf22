/// A law: something that must hold in every answer, whatever the scenario says; and the book into
/// which it writes what it compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

class LawSubject;  // law_subject.hpp

enum class LawFamily : std::uint8_t {
  conservation,  ///< what goes in comes out: time, bytes, FLOP, tokens, energy, money, GPU hours
  exactness,     ///< the same question in other words has the same answer
  monotony,      ///< better hardware makes nothing worse
  closed_form,   ///< what can be said without a simulation
  agreement,     ///< commands say the same of the same
};
/// "conservation", "exactness", "monotony", "closed form", "agreement".
std::string_view name_of(LawFamily family);

enum class LawVerdict : std::uint8_t {
  held,
  held_with_anomalies,  ///< but for differences that the law allows, each named with its size
  broken,
  does_not_apply,  ///< nothing was compared
};
/// "held", "anomalies", "broken", "does not apply".
std::string_view name_of(LawVerdict verdict);

/// Two values of which a law says something that is not so.
struct LawBreak {
  std::string what;
  std::string found, expected;
};
/// Something that the law allows, and that is still worth a line.
struct LawAnomaly {
  std::string what;
  double size = 0;  ///< relative
};

/// Takes down what a law compares. Differences are relative to the larger of both values.
class LawBook {
 public:
  /// `found` equals `expected`, up to a difference of `within`.
  void same(std::string_view what, double found, double expected, double within);
  /// `found` equals `expected`. Both are differences of larger values: `within` is relative to
  /// `scale`.
  void same_of(std::string_view what, double found, double expected, double scale, double within);
  /// No more than `most`, but for `within` of it.
  void at_most(std::string_view what, double found, double most, double within);
  /// Both texts are equal, letter by letter.
  void same_text(std::string_view what, std::string_view found, std::string_view expected);
  void holds(std::string_view what, bool true_of_it);
  /// No more than `before`, as `at_most`; up to `largest` above it is an anomaly, beyond it a
  /// break.
  void no_worse(std::string_view what, double after, double before, double within, double largest);
  /// Why there is nothing to compare; holds where nothing was.
  void does_not_apply(std::string why);

  [[nodiscard]] LawVerdict verdict() const;
  [[nodiscard]] std::size_t comparisons() const { return comparisons_; }
  /// The largest difference against what was allowed there, and where; 0 where all was equal.
  [[nodiscard]] double largest() const { return largest_; }
  [[nodiscard]] double allowed() const { return allowed_; }
  [[nodiscard]] const std::string& largest_of() const { return largest_of_; }
  [[nodiscard]] const std::string& why() const { return why_; }
  /// The first kShownBreaks of them.
  [[nodiscard]] const std::vector<LawBreak>& breaks() const { return breaks_; }
  [[nodiscard]] std::size_t broken() const { return broken_; }
  /// The largest first, kShownBreaks of them.
  [[nodiscard]] std::vector<LawAnomaly> anomalies() const;

  static constexpr std::size_t kShownBreaks = 8;

 private:
  void differs(std::string_view what, double difference, double within);
  void breaks(std::string_view what, std::string found, std::string expected);

  std::size_t comparisons_ = 0, broken_ = 0;
  double largest_ = 0, allowed_ = 0, of_allowed_ = -1;
  std::string largest_of_, why_;
  std::vector<LawBreak> breaks_;
  std::vector<LawAnomaly> anomalies_;
};

/// A law about a subject: a scenario that `lockstep run` answers, or another document.
template <class Subject>
struct LawOf {
  std::string name;  ///< "time", "hardware.hbm_bandwidth"
  LawFamily family = LawFamily::conservation;
  std::string sentence;
  /// Compares, or says why the law does not apply. Throws InputError where the scenario itself is
  /// wrong, and LawsStopped.
  std::function<void(Subject& subject, LawBook& book)> hold;
  bool deep = false;  ///< tried with --deep alone
};
using Law = LawOf<LawSubject>;

}  // namespace lockstep
