/// Queues of which somebody published or recorded what became of them, as `lockstep validate
/// --queue` reads them (tests/reference/queue/README.md).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/json_cursor.hpp"
#include "models/base/units.hpp"

namespace lockstep {

/// A number of the answer to the queue, as `lockstep run --assert` names it.
struct OutcomeFigure {
  JsonCursor at;
  std::string name;
  double value = 0;                ///< above 0
  std::optional<double> within{};  ///< how far off a prediction is promised to be at most; a share
};

/// What is asked of a recorded schedule; ScheduleMatch has what each of them is.
constexpr std::array<std::string_view, 6> kScheduleFigures{"runs",  "starts", "ends",
                                                           "nodes", "order",  "wait_mean_s"};
struct OutcomeSchedule {
  JsonCursor at;
  std::string file;  ///< as written
  Seconds gap{};     ///< by which a start may differ and be the same
  std::array<std::optional<double>, kScheduleFigures.size()> within{};
};

enum class OutcomeBasis : std::uint8_t {
  published,  ///< figures that somebody printed
  recorded,   ///< what a real scheduler did, job by job
};
constexpr std::array<std::string_view, 2> kOutcomeBasisNames{"published", "recorded"};

struct QueueOutcome {
  JsonCursor at;
  std::string id, source;
  OutcomeBasis basis = OutcomeBasis::published;
  std::string scenario{};          ///< a path, or a shipped scenario's name; empty: it is inline
  std::vector<std::string> set{};  ///< what it changes, as `--set` takes it
  std::vector<OutcomeFigure> figures{};
  std::optional<OutcomeSchedule> schedule{};
};

/// Of a file, or of all in a folder that end in ".json", by their names. Throws InputError.
std::vector<QueueOutcome> read_queue_outcomes(const std::string& path);

}  // namespace lockstep
