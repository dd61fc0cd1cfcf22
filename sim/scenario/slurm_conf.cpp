#include "sim/scenario/slurm_conf.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <chrono>
#include <fmt/format.h>

#include "models/base/input_error.hpp"
#include "models/base/trimmed.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kShownText = 60;

/// Words apart at blanks that stand outside quotes.
std::vector<std::string> slurm_words(std::string_view line) {
  std::vector<std::string> out;
  std::string word;
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == ' ' || c == '\t')) {
      if (!word.empty()) out.push_back(std::exchange(word, {}));
    } else {
      word += c;
    }
  }
  if (!word.empty()) out.push_back(word);
  return out;
}

std::optional<double> whole_slurm_number(std::string_view digits) {
  if (digits.empty()) return std::nullopt;
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
  if (error != std::errc() || end != digits.data() + digits.size() || out < 0) return std::nullopt;
  return static_cast<double>(out);
}

}  // namespace

bool same_key(std::string_view a, std::string_view b) {
  const auto small = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  return std::ranges::equal(a, b, {}, small, small);
}

std::string SlurmLine::get(std::string_view key) const {
  for (const auto& [name, value] : pairs) {
    if (same_key(name, key)) return value;
  }
  return {};
}

std::vector<SlurmLine> slurm_lines(const std::string& file, std::string_view text,
                                   std::vector<std::string>& notes) {
  std::vector<SlurmLine> out;
  std::string joined;
  std::size_t begin = 1;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t')) {
      line.remove_suffix(1);
    }
    if (joined.empty()) begin = number;
    const bool goes_on = line.ends_with('\\');
    joined += line.substr(0, line.size() - (goes_on ? 1 : 0));
    if (goes_on) continue;
    const std::string whole_line = std::exchange(joined, {});
    const std::string_view said =
        trimmed(std::string_view(whole_line).substr(0, whole_line.find('#')));
    if (said.empty()) continue;
    SlurmLine parsed{.number = begin, .pairs = {}};
    for (const std::string& word : slurm_words(said)) {
      const std::size_t equals = word.find('=');
      if (equals == std::string::npos || equals == 0) {
        notes.push_back(fmt::format("{}:{}: found {}; allowed: KEY=VALUE; left out", file, begin,
                                    in_quotes(word.substr(0, kShownText))));
        continue;
      }
      parsed.pairs.emplace_back(word.substr(0, equals), word.substr(equals + 1));
    }
    if (!parsed.pairs.empty()) out.push_back(std::move(parsed));
  }
  return out;
}

std::vector<std::string> split_list(std::string_view text, char at) {
  std::vector<std::string> out;
  std::string part;
  int depth = 0;
  for (const char c : text) {
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c == at && depth == 0) {
      out.push_back(std::exchange(part, {}));
    } else {
      part += c;
    }
  }
  if (!text.empty()) out.push_back(part);
  return out;
}

std::optional<double> slurm_duration(std::string_view text) {
  double days = 0;
  const std::size_t dash = text.find('-');
  const bool has_days = dash != std::string_view::npos;
  if (has_days) {
    const auto read = whole_slurm_number(text.substr(0, dash));
    if (!read) return std::nullopt;
    days = *read;
    text.remove_prefix(dash + 1);
  }
  text = text.substr(0, text.find('.'));  // sacct may write fractions of a second
  std::vector<double> parts;
  for (const std::string& part : split_list(text, ':')) {
    const auto read = whole_slurm_number(part);
    if (!read) return std::nullopt;
    parts.push_back(*read);
  }
  if (parts.empty() || parts.size() > 3) return std::nullopt;
  double seconds = 0;
  if (has_days) {
    parts.resize(3);
    seconds = parts[0] * 3600 + parts[1] * 60 + parts[2];
  } else if (parts.size() == 3) {
    seconds = parts[0] * 3600 + parts[1] * 60 + parts[2];
  } else {
    seconds = parts[0] * 60 + (parts.size() == 2 ? parts[1] : 0);
  }
  return days * 86400 + seconds;
}

std::optional<double> slurm_number(std::string_view text, double unit_s) {
  double out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size() || out < 0) return std::nullopt;
  return out * unit_s;
}

std::optional<double> slurm_time(std::string_view text) {
  constexpr std::size_t kLength = 19;  // 2026-11-26T03:30:00
  if (text.size() < kLength) return std::nullopt;
  constexpr std::array<std::size_t, 6> kFrom{0, 5, 8, 11, 14, 17};
  std::array<int, 6> of{};
  for (std::size_t p = 0; p < kFrom.size(); ++p) {
    const auto read = whole_slurm_number(text.substr(kFrom.at(p), p == 0 ? 4 : 2));
    if (!read) return std::nullopt;
    of.at(p) = static_cast<int>(*read);
  }
  const std::chrono::year_month_day day{std::chrono::year(of[0]),
                                        std::chrono::month(static_cast<unsigned>(of[1])),
                                        std::chrono::day(static_cast<unsigned>(of[2]))};
  if (!day.ok()) return std::nullopt;
  const auto days = std::chrono::sys_days(day).time_since_epoch().count();
  return static_cast<double>(days) * 86400.0 + of[3] * 3600.0 + of[4] * 60.0 + of[5];
}

namespace {

/// Of nodes, GPUs or licences; what no machine has is none.
constexpr int kMostAmount = 1'000'000'000;

std::optional<int> slurm_amount(std::string_view text) {
  const auto read = whole_slurm_number(text);
  if (!read || *read < 0 || *read > kMostAmount) return std::nullopt;
  return static_cast<int>(*read);
}

}  // namespace

std::optional<int> amount_in(std::string_view text, std::string_view name) {
  for (const std::string& part : split_list(text)) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos || part.substr(0, equals) != name) continue;
    if (const auto read = slurm_amount(std::string_view(part).substr(equals + 1))) return read;
  }
  return std::nullopt;
}

std::optional<int> gpus_in(std::string_view text) {
  if (const auto amount = amount_in(text, "gres/gpu")) return amount;
  std::optional<int> out;
  for (std::string part : split_list(text)) {
    part = part.substr(0, part.find('('));
    for (const std::string_view front : {"gres/gpu:", "gres:gpu:", "gpu:"}) {
      if (!part.starts_with(front)) continue;
      const std::size_t last = part.find_last_of(":=");
      const auto read = slurm_amount(std::string_view(part).substr(last + 1));
      out = std::min(kMostAmount, out.value_or(0) + read.value_or(1));
      break;
    }
    if (part == "gpu" || part == "gres/gpu") out = std::min(kMostAmount, out.value_or(0) + 1);
  }
  return out;
}

}  // namespace lockstep
