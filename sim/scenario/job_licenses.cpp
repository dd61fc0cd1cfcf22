#include "sim/scenario/job_licenses.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>

#include "models/base/trimmed.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostLicenses = 1000, kMostLicenseSets = 65'535;
constexpr int kMostOfLicense = 1'000'000'000;

/// "matlab:2", or "matlab=2" as older ones have it.
std::optional<std::pair<std::string, int>> one_license(std::string_view text) {
  const std::size_t colon = std::min(text.find_first_of(":="), text.size());
  const std::string_view name = trimmed(text.substr(0, colon));
  if (name.empty() || name.find_first_of("|; \t") != std::string_view::npos) return std::nullopt;
  if (colon == text.size()) return std::pair(std::string(name), 1);
  const std::string_view digits = trimmed(text.substr(colon + 1));
  int count = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  if (!whole || count < 0 || count > kMostOfLicense) return std::nullopt;
  return std::pair(std::string(name), count);
}

void declare_license(const DeclaredMembers& member, QueueLicense& out) {
  member.required("name", out.name, "As jobs name it");
  member.required("count", out.count, 0, kMostOfLicense, "How many running jobs have together");
}

}  // namespace

std::optional<LicenseAmounts> license_amounts(std::string_view text) {
  LicenseAmounts out;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const auto one = one_license(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
    if (!one) return std::nullopt;
    const auto same = std::ranges::find(out, one->first, &std::pair<std::string, int>::first);
    if (same == out.end()) {
      out.push_back(*one);
    } else if (same->second > kMostOfLicense - one->second) {
      return std::nullopt;
    } else {
      same->second += one->second;
    }
  }
  return out;
}

void declare_licenses(const DeclaredMembers& member, QueueSpec& out) {
  member.optional(
      "licenses", kMostLicenses, "A licence",
      "Licences that jobs hold while they run; one that lacks some waits, and nobody behind it has "
      "to, but under easy those that would take them before it: Licenses",
      [](const DeclaredMembers& one) {
        QueueLicense license;
        declare_license(one, license);
      },
      [&](const JsonCursor& list) {
        for (const JsonCursor& at : list.elements(kMostLicenses)) {
          QueueLicense license;
          declare_license({at, Extent::whole}, license);
          at.finish();
          const auto plain = license_amounts(license.name);
          if (!plain || plain->size() != 1 || plain->front().first != license.name) {
            at.at("name").fail("a name without : = , | ; and blanks");
          }
          if (std::ranges::count(out.licenses, license.name, &QueueLicense::name) > 0) {
            at.at("name").fail("a name that no other licence has");
          }
          out.licenses.push_back(std::move(license));
        }
      });
}

std::optional<std::uint16_t> license_set(std::string_view text, QueueSpec& out) {
  const std::optional<LicenseAmounts> asks = license_amounts(text);
  if (!asks) return std::nullopt;
  LicenseSet set;
  for (const auto& [name, count] : *asks) {
    const auto found = std::ranges::find(out.licenses, name, &QueueLicense::name);
    if (found == out.licenses.end() || count > found->count) return std::nullopt;
    if (count > 0) {
      set.push_back({static_cast<std::uint16_t>(found - out.licenses.begin()), count});
    }
  }
  std::ranges::sort(set, {}, &LicenseNeed::license);
  const auto known = std::ranges::find(out.license_sets, set);
  if (known == out.license_sets.end() && out.license_sets.size() >= kMostLicenseSets) {
    return std::nullopt;
  }
  const auto number = known - out.license_sets.begin();
  if (known == out.license_sets.end()) out.license_sets.push_back(std::move(set));
  return static_cast<std::uint16_t>(number);
}

std::string allowed_licenses(const QueueSpec& spec) {
  std::string out;
  for (const QueueLicense& of : spec.licenses) {
    out += fmt::format("{}{}:{}", out.empty() ? "" : ",", of.name, of.count);
  }
  if (out.empty()) return "no licences: the queue declares none";
  return fmt::format("names with how many of each, as \"a:2,b\"; there are {}", out);
}

}  // namespace lockstep
