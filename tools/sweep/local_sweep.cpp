#include "tools/sweep/local_sweep.hpp"

#include <fmt/format.h>
#include <ostream>

#include "models/base/number_text.hpp"
#include "tools/console/interrupt.hpp"
#include "tools/console/progress.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

Exit sweep_locally(const SweepRun& run) {
  const InterruptGuard guard;
  ResultsDb results(run.database, run.sweep, run.engine.manifest(),
                    ResultsDb::Journal::write_ahead);
  const std::vector<std::uint32_t> missing = run.engine.missing(run.numbers, results);
  const std::size_t before = run.numbers.size() - missing.size();
  if (before > 0 && !missing.empty() && !run.quiet) {
    run.console.err << fmt::format(
        "{}: {} of {} points are finished already\n", terminal_line(run.database),
        grouped(static_cast<double>(before)), grouped(static_cast<double>(run.numbers.size())));
  }
  {
    Progress progress(run.console.err, "points", missing.size(),
                      run.console.err_is_terminal && !run.quiet);
    run.engine.simulate(
        missing, results, [] { return !InterruptGuard::interrupted(); },
        [&] { progress.one_done(); });
  }
  return InterruptGuard::interrupted() ? Exit::interrupted : Exit::ok;
}

}  // namespace lockstep
