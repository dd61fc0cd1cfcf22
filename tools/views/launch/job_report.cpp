#include "tools/views/launch/job_report.hpp"

#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "tools/console/shared_options.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLongestJobValue = 60;

constexpr std::array<std::string_view, 4> kJobFateNames{"used", "harmless", "not_modelled",
                                                        "unknown"};

std::string_view job_fate_name(KeyFate fate) {
  return kJobFateNames[static_cast<std::size_t>(fate)];
}

std::string job_key_value(const Setting& setting) {
  if (setting.values.empty()) return {};
  std::string text = setting.text();
  if (text.size() > kLongestJobValue) text = text.substr(0, kLongestJobValue) + "...";
  return text;
}

/// A line below a title; what does not fit is wrapped with a deeper indent.
std::string job_line(std::string_view text) { return "  " + wrap(text, kTextColumns, 6, 2) + "\n"; }

/// A line for each key with this fate.
std::string job_key_lines(const JobImport& imported, KeyFate fate, std::string_view title,
                          const TextStyle& style) {
  std::string lines;
  std::size_t count = 0;
  for (const KeyFinding& key : imported.keys) {
    if (key.fate != fate) continue;
    ++count;
    std::string line = fmt::format("{} {}", key.setting.key, job_key_value(key.setting));
    while (line.ends_with(' ')) line.pop_back();
    if (!key.note.empty()) line += ": " + key.note;
    lines += job_line(line);
  }
  if (count == 0) return {};
  return style.bold(fmt::format("{} ({})", title, count)) + "\n" + lines;
}

std::string job_harmless_lines(const JobImport& imported, const TextStyle& style) {
  std::vector<std::string> names;
  for (const KeyFinding& key : imported.keys) {
    if (key.fate == KeyFate::harmless) names.push_back(key.setting.key);
  }
  if (names.empty()) return {};
  return style.bold(fmt::format("Ignored, harmless ({})", names.size())) + "\n" +
         job_line(fmt::format("{}", fmt::join(names, ", ")));
}

}  // namespace

Json job_report_json(const JobImport& imported) {
  Json keys = Json::array(), assumptions = Json::array();
  for (const KeyFinding& key : imported.keys) {
    keys.push_back({{"key", key.setting.key},
                    {"value", key.setting.text()},
                    {"file", key.setting.file},
                    {"fate", job_fate_name(key.fate)},
                    {"note", key.note.empty() ? Json() : Json(key.note)}});
  }
  for (const JobAssumption& one : imported.assumptions) {
    assumptions.push_back({{"path", one.path},
                           {"value", one.value},
                           {"why", one.why},
                           {"option", one.option.empty() ? Json() : Json(one.option)}});
  }
  return {{"sources", imported.sources},
          {"keys", std::move(keys)},
          {"assumptions", std::move(assumptions)},
          {"remarks", imported.remarks},
          {"scenario", Json::parse(imported.scenario)}};
}

std::string job_report(const JobImport& imported, const TextStyle& style) {
  std::string out;
  for (const std::string& source : imported.sources) out += style.bold(source) + "\n";
  out += job_key_lines(imported, KeyFate::used, "Used", style);
  out += job_key_lines(imported, KeyFate::unmodelled, "Not modelled, matters", style);
  out += job_key_lines(imported, KeyFate::unknown, "Unknown", style);
  out += job_harmless_lines(imported, style);
  if (!imported.assumptions.empty()) out += style.bold("Assumed") + "\n";
  for (const JobAssumption& one : imported.assumptions) {
    const std::string how = one.option.empty() ? "" : fmt::format(" ({})", one.option);
    out += job_line(fmt::format("{} {}: {}{}", one.path, one.value, one.why, how));
  }
  if (!imported.remarks.empty()) out += style.bold("Remarks") + "\n";
  for (const std::string& remark : imported.remarks) {
    out += job_line(remark);
  }
  return out;
}

}  // namespace lockstep
