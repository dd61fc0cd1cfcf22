#include "tools/lockstep/work_budget.hpp"

#include <fmt/format.h>
#include <ostream>
#include <unistd.h>

#include "models/input/input_error.hpp"
#include "tools/lockstep/table.hpp"

namespace lockstep {
namespace {

constexpr double kWorthSaying = 30;  ///< seconds

}  // namespace

double machine_memory() {
  return static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<double>(::sysconf(_SC_PAGESIZE));
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
       .allowed = fmt::format("less than this machine's {} GB", significant(memory / kGb, 2)),
       .nearest = {}});
}

void announce_work(const WorkEstimate& work, std::ostream& err) {
  if (work.seconds < kWorthSaying) return;
  err << terminal_text(
      fmt::format("{}: {} take about {}\n", work.place, work.what, duration_text(work.seconds)));
}

}  // namespace lockstep
