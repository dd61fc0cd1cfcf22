#include "sim/measured/queue_outcomes.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <set>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/text_file.hpp"
#include "models/base/write_json.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostOutcomes = 10'000;
constexpr Interval kOutcomeValue{0, 1e30, true};
constexpr Interval kPromise{0, 10};

std::optional<double> promise(const JsonCursor& of, std::string_view key) {
  const std::optional<JsonCursor> within = of.find(key);
  if (!within) return std::nullopt;
  return within->quantity(Dimension::share, kPromise);
}

OutcomeFigure read_outcome_figure(const JsonCursor& at) {
  OutcomeFigure out{.at = at,
                    .name = at.at("figure").string(),
                    .value = at.at("value").number(kOutcomeValue),
                    .within = promise(at, "within")};
  at.finish();
  return out;
}

OutcomeSchedule read_outcome_schedule(const JsonCursor& at) {
  constexpr Interval kGap{0, 86'400};
  OutcomeSchedule out{.at = at, .file = at.at("file").string(), .gap = at.at("gap").seconds(kGap)};
  if (const std::optional<JsonCursor> within = at.find("within")) {
    for (std::size_t f = 0; f < kScheduleFigures.size(); ++f) {
      out.within[f] = promise(*within, kScheduleFigures[f]);
    }
    within->finish();
  }
  at.finish();
  return out;
}

QueueOutcome read_outcome(const JsonCursor& at) {
  QueueOutcome out{.at = at, .id = at.at("id").string(), .source = at.at("source").string()};
  out.basis = static_cast<OutcomeBasis>(at.at("basis").choice(kOutcomeBasisNames));
  const JsonCursor scenario = at.at("scenario");
  if (!scenario.is_object()) out.scenario = scenario.string();
  if (const std::optional<JsonCursor> set = at.find("set")) {
    for (const std::string& path : set->keys()) {
      out.set.push_back(fmt::format("{}={}", path, write_json(set->at(path).json())));
    }
  }
  if (const std::optional<JsonCursor> figures = at.find("figures")) {
    for (const JsonCursor& figure : figures->elements(kMostOutcomes)) {
      out.figures.push_back(read_outcome_figure(figure));
    }
  }
  if (const std::optional<JsonCursor> schedule = at.find("schedule")) {
    out.schedule = read_outcome_schedule(*schedule);
  }
  at.finish();
  if (out.figures.empty() && !out.schedule) {
    at.fail(R"("figures" or a "schedule" to hold predictions against)");
  }
  return out;
}

std::vector<QueueOutcome> read_document(const std::string& file) {
  const JsonCursor root = JsonCursor::parse(file, read_text_file(file));
  return root.read_whole([&] {
    std::vector<QueueOutcome> out;
    if (const std::optional<JsonCursor> about = root.find("about")) (void)about->string();
    for (const JsonCursor& at : root.at("queues").elements(kMostOutcomes)) {
      out.push_back(read_outcome(at));
    }
    root.finish();
    return out;
  });
}

std::vector<std::string> outcome_documents(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return {path};
  std::vector<std::string> files;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ".json") files.push_back(entry->path().string());
  }
  if (files.empty()) {
    throw InputError({.file = path,
                      .pointer = {},
                      .found = "a folder without documents of queues",
                      .allowed = "files that end in .json (tests/reference/queue/README.md)",
                      .nearest = {}});
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

std::vector<QueueOutcome> read_queue_outcomes(const std::string& path) {
  std::vector<QueueOutcome> out;
  std::set<std::string> ids;
  for (const std::string& file : outcome_documents(path)) {
    for (QueueOutcome& outcome : read_document(file)) {
      if (!ids.insert(outcome.id).second) outcome.at.at("id").fail("an id of its own");
      out.push_back(std::move(outcome));
    }
  }
  return out;
}

}  // namespace lockstep
