#include "tools/lockstep/work_budget.hpp"

#include <cstdlib>
#include <fmt/format.h>
#include <ostream>
#include <utility>
#include <variant>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "models/base/quantity.hpp"
#include "tools/console/table.hpp"

namespace lockstep {
namespace {

constexpr double kWorthSaying = 30;  ///< seconds

std::string announcement(const WorkEstimate& work) {
  return terminal_text(
      fmt::format("{}: {} take about {}", work.place, work.what, duration_text(work.seconds)));
}

}  // namespace

double memory_limit() {
  constexpr double kUsual = 64e9;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): before any thread starts
  const char* const written = std::getenv("LOCKSTEP_MEMORY");
  if (written == nullptr) return kUsual;
  const auto bytes = parse_quantity(written, Dimension::data);
  const double* value = std::get_if<double>(&bytes);
  if (value != nullptr && *value > 0) return *value;
  throw InputError({.file = "LOCKSTEP_MEMORY",
                    .pointer = {},
                    .found = in_quotes(written),
                    .allowed = "an amount of data such as \"200 GB\"",
                    .nearest = {}});
}

void check_work_memory(const WorkEstimate& work, double memory) {
  constexpr double kGb = 1e9;
  if (work.bytes <= memory) return;
  const std::size_t hash = work.place.find('#');
  const bool whole = hash == std::string::npos;
  throw InputError(
      {.file = work.place.substr(0, hash),
       .pointer = whole ? std::string() : work.place.substr(hash + 1),
       .found = fmt::format("{}, which take about {} GB of memory", work.what,
                            significant(work.bytes / kGb, 2)),
       .allowed = fmt::format("at most {} GB (LOCKSTEP_MEMORY in the environment changes it)",
                              significant(memory / kGb, 2)),
       .nearest = {}});
}

void announce_work(const WorkEstimate& work, std::ostream& err) {
  if (work.seconds < kWorthSaying) return;
  err << announcement(work) << "\n";
}

std::optional<double> foreseen_seconds(double elapsed, double share) {
  constexpr double kEarliest = 3;  // seconds: less of its course says little of the rest
  if (elapsed < kEarliest || share <= 0) return std::nullopt;
  const double all = elapsed / share;
  return all < kWorthSaying ? std::nullopt : std::optional(all);
}

ForeseenWork::ForeseenWork(std::string place, std::string what, Progress& progress)
    : place_(std::move(place)),
      what_(std::move(what)),
      progress_(progress),
      start_(std::chrono::steady_clock::now()) {}

void ForeseenWork::reached(double share) {
  if (said_ || share >= 1) return;
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  const std::optional<double> seconds = foreseen_seconds(elapsed.count(), share);
  if (!seconds) return;
  said_ = true;
  progress_.say(announcement({.place = place_, .what = what_, .seconds = *seconds}));
}

}  // namespace lockstep
