#include "tools/console/work_budget.hpp"

#include <cstdlib>
#include <fmt/format.h>
#include <ostream>
#include <variant>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "models/base/quantity.hpp"
#include "tools/console/foreseen_work.hpp"

namespace lockstep {

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
  err << work_announcement(work.place, work.what, work.seconds) << "\n";
}

}  // namespace lockstep
