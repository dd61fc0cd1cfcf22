#include "tools/console/hash_draws.hpp"

#include <algorithm>
#include <exception>
#include <fmt/format.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <thread>
#include <utility>

#include "models/base/number_text.hpp"
#include "sim/core/thread_leave.hpp"
#include "tools/console/progress.hpp"
#include "tools/console/shared_options.hpp"

namespace lockstep {

HashDraws hash_draws_of(const ParsedOptions& options, const std::string& file,
                        const FabricSpec& fabric, int nodes, const NicPorts& ports) {
  constexpr int kMostDraws = 100'000;
  HashDraws draws{.first = fabric.hash_draw};
  if (!options.has("hash-seeds")) return draws;
  require_hashed(file, fabric, nodes, ports);
  const int left = kMostHashDraw - fabric.hash_draw + 1;
  draws.count = whole_number(options, "hash-seeds", 1, std::min(kMostDraws, left));
  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  draws.threads = whole_number(options, "jobs", cores, kMostJobs);
  return draws;
}

HashAnswer answer_of_draws(const HashDraws& draws, std::vector<double> first, Console& console,
                           const std::function<std::vector<double>(int draw)>& numbers) {
  HashAnswer answer{.draw = draws.first, .draws = draws.count};
  if (draws.count == 1) return answer;
  const auto count = static_cast<std::size_t>(draws.count);
  std::vector<std::vector<double>> of_draw(count);
  std::vector<std::exception_ptr> errors(count);
  of_draw.front() = std::move(first);
  Progress progress(console.err, "draws of the hash", count, console.err_is_terminal);
  progress.one_done();
  const ThreadLeave leave(draws.threads);
  tbb::task_arena arena(draws.threads);
  arena.execute([&] {
    tbb::parallel_for(std::size_t{1}, count, [&](std::size_t i) {
      try {
        of_draw[i] = numbers(draws.first + static_cast<int>(i));
        progress.one_done();
      } catch (...) {
        errors[i] = std::current_exception();
      }
    });
  });
  // The first draw's error, whichever thread came to its own first.
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  for (std::size_t which = 0; which < of_draw.front().size(); ++which) {
    std::vector<double> values;
    values.reserve(of_draw.size());
    for (const std::vector<double>& one : of_draw) values.push_back(one.at(which));
    answer.bands.push_back(hash_band(draws.first, values));
  }
  return answer;
}

}  // namespace lockstep
