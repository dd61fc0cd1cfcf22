#include "sim/laws/law.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <utility>

#include "models/base/number_text.hpp"

namespace lockstep {
namespace {

std::string digits(double value) { return fmt::format("{:.15g}", value); }

/// Texts as a line shows them: around the first letter that differs.
std::string around(std::string_view text, std::size_t at) {
  constexpr std::size_t kBefore = 40, kShown = 90;
  const std::size_t from = at > kBefore ? at - kBefore : 0;
  return std::string(text.substr(std::min(from, text.size()), kShown));
}

}  // namespace

std::string_view name_of(LawFamily family) {
  constexpr std::array<std::string_view, 5> kNames{"conservation", "exactness", "monotony",
                                                   "closed form", "agreement"};
  return kNames[static_cast<std::size_t>(family)];
}

std::string_view name_of(LawVerdict verdict) {
  constexpr std::array<std::string_view, 4> kNames{"held", "anomalies", "broken", "does not apply"};
  return kNames[static_cast<std::size_t>(verdict)];
}

void LawBook::differs(std::string_view what, double difference, double within) {
  ++comparisons_;
  const double share = within > 0 ? difference / within : difference > 0 ? 2.0 : 0.0;
  if (!(share > of_allowed_)) return;
  of_allowed_ = share;
  largest_ = difference;
  allowed_ = within;
  largest_of_ = what;
}

void LawBook::breaks(std::string_view what, std::string found, std::string expected) {
  ++broken_;
  if (breaks_.size() >= kShownBreaks) return;
  breaks_.push_back({std::string(what), std::move(found), std::move(expected)});
}

void LawBook::same(std::string_view what, double found, double expected, double within) {
  same_of(what, found, expected, std::max(std::abs(found), std::abs(expected)), within);
}

void LawBook::same_of(std::string_view what, double found, double expected, double scale,
                      double within) {
  const double difference = found == expected ? 0.0 : std::abs(found - expected) / scale;
  differs(what, difference, within);
  // Not a number is no difference that is allowed.
  if (!(difference <= within)) breaks(what, digits(found), digits(expected));
}

void LawBook::at_most(std::string_view what, double found, double most, double within) {
  const double above =
      found <= most ? 0.0 : (found - most) / std::max(std::abs(found), std::abs(most));
  differs(what, above, within);
  if (!(above <= within)) breaks(what, digits(found), "at most " + digits(most));
}

void LawBook::same_text(std::string_view what, std::string_view found, std::string_view expected) {
  const bool same = found == expected;
  differs(what, same ? 0 : 1, 0);
  if (same) return;
  const auto at =
      static_cast<std::size_t>(std::ranges::mismatch(found, expected).in1 - found.begin());
  breaks(what, around(found, at), around(expected, at));
}

void LawBook::holds(std::string_view what, bool true_of_it) {
  differs(what, true_of_it ? 0 : 1, 0);
  if (!true_of_it) breaks(what, "not so", "so");
}

void LawBook::no_worse(std::string_view what, double after, double before, double within,
                       double largest) {
  const double above = after <= before ? 0.0 : (after - before) / std::abs(before);
  const bool anomaly = above > within && above <= largest;
  differs(what, anomaly ? 0 : above, within);
  if (anomaly) {
    anomalies_.push_back({std::string(what), above});
  } else if (!(above <= within)) {
    breaks(what, digits(after), "at most " + digits(before));
  }
}

void LawBook::does_not_apply(std::string why) { why_ = std::move(why); }

LawVerdict LawBook::verdict() const {
  if (broken_ > 0) return LawVerdict::broken;
  if (comparisons_ == 0) return LawVerdict::does_not_apply;
  return anomalies_.empty() ? LawVerdict::held : LawVerdict::held_with_anomalies;
}

std::vector<LawAnomaly> LawBook::anomalies() const {
  std::vector<LawAnomaly> out = anomalies_;
  std::ranges::stable_sort(out, std::greater{}, &LawAnomaly::size);
  if (out.size() > kShownBreaks) out.resize(kShownBreaks);
  return out;
}

}  // namespace lockstep
