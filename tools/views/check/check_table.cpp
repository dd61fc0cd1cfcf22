#include "tools/views/check/check_table.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "models/base/write_json.hpp"

namespace lockstep {
namespace {

using Align = TextTable::Align;

std::string verdict_line(const Certificate& c) {
  const std::size_t applied = c.laws.size() - c.count(LawVerdict::does_not_apply);
  const std::size_t held = applied - c.count(LawVerdict::broken);
  std::string out = fmt::format("{} of {} laws held", held, applied);
  if (const std::size_t broken = c.count(LawVerdict::broken); broken > 0) {
    out += fmt::format(", {} BROKEN", broken);
  }
  if (c.stopped) out += ", stopped before all were tried";
  return out;
}

std::string closeness(const LawBook& book) {
  if (book.comparisons() == 0) return "-";
  if (book.largest() == 0) return "exact";
  return fmt::format("{:.1e} of {:.1e}", book.largest(), book.allowed());
}

std::string laws_table(const Certificate& c, const TextStyle& style) {
  TextTable table({{"law", Align::left},
                   {"verdict", Align::left},
                   {"compared"},
                   {"off by, of allowed"},
                   {"what it says", Align::left, true}});
  for (const LawResult& law : c.laws) {
    if (law.book.verdict() == LawVerdict::does_not_apply) continue;
    table.add({law.name, std::string(name_of(law.book.verdict())),
               grouped(static_cast<double>(law.book.comparisons())), closeness(law.book),
               law.sentence});
  }
  return table.text(style);
}

std::string hanging_line(std::string_view text) {
  return "  " + wrap(text, kTextColumns, 4, 2) + "\n";
}

std::string break_line(const LawBreak& each) {
  return hanging_line(
      fmt::format("{}: found {}; expected {}", each.what, each.found, each.expected));
}

std::string broken_text(const LawResult& law) {
  std::string out = fmt::format("\n{} is broken: {}\n", law.name, law.sentence);
  for (const LawBreak& each : law.book.breaks()) {
    out += break_line(each);
  }
  const std::size_t more = law.book.broken() - law.book.breaks().size();
  if (more > 0) out += fmt::format("  and {} more\n", more);
  return out;
}

std::string tallies_table(const RandomCertificate& c, const TextStyle& style) {
  TextTable table({{"law", Align::left},
                   {"held"},
                   {"anomalies"},
                   {"broken"},
                   {"do not apply"},
                   {"compared"},
                   {"largest anomaly"},
                   {"what it says", Align::left, true}});
  const auto number = [](std::size_t count) { return grouped(static_cast<double>(count)); };
  for (const LawTally& law : c.laws) {
    table.add({law.name, number(law.held), number(law.anomalies), number(law.broken),
               number(law.does_not_apply), number(law.comparisons),
               law.largest.size > 0 ? fmt::format("{:+.4f} %", 100 * law.largest.size) : "-",
               law.sentence});
  }
  return table.text(style);
}

}  // namespace

std::string random_table(const RandomCertificate& c, const TextStyle& style) {
  std::string kinds;
  for (const auto& [kind, count] : c.kinds) {
    if (count > 0) kinds += fmt::format("{}{} of {}", kinds.empty() ? "" : ", ", count, kind);
  }
  std::string out =
      style.bold(fmt::format(
          "{} of seed {}, {}{}", counted(static_cast<double>(c.scenarios), "random scenario"),
          c.seed, c.broken.empty() ? "no law broken" : fmt::format("{} BROKEN", c.broken.size()),
          c.stopped ? ", stopped before all were tried" : "")) +
      fmt::format("\n{}; {} simulations\n\n", kinds, grouped(static_cast<double>(c.simulations))) +
      tallies_table(c, style);
  for (const BrokenScenario& each : c.broken) {
    out += fmt::format("\nScenario {} breaks {}\n", each.number, each.law) +
           break_line(each.first) + write_json(*each.scenario, 2) + "\n";
  }
  for (const RefusedScenario& each : c.refused) {
    out +=
        wrap(fmt::format("scenario {} has no answer: {}", each.number, each.why), kTextColumns, 2) +
        "\n";
  }
  return out;
}

std::string certificate_table(const Certificate& c, const TextStyle& style) {
  std::string out = style.bold(fmt::format("{}: {}", c.file, verdict_line(c))) + "\n" +
                    fmt::format("{} simulations\n\n", grouped(static_cast<double>(c.simulations))) +
                    laws_table(c, style);
  for (const LawResult& law : c.laws) {
    if (law.book.verdict() == LawVerdict::broken) out += broken_text(law);
  }
  bool first = true;
  for (const LawResult& law : c.laws) {
    for (const LawAnomaly& anomaly : law.book.anomalies()) {
      if (first) out += "\nAnomalies of scheduling and of fair shares, which no law forbids\n";
      first = false;
      out += hanging_line(fmt::format("{}: {:+.4f} %", anomaly.what, 100 * anomaly.size));
    }
  }
  first = true;
  for (const LawResult& law : c.laws) {
    if (law.book.verdict() != LawVerdict::does_not_apply) continue;
    if (first) out += "\nDo not apply\n";
    first = false;
    out += hanging_line(fmt::format("{}: {}", law.name, law.book.why()));
  }
  return out;
}

}  // namespace lockstep
