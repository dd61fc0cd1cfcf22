#include "tools/console/failure.hpp"

#include <exception>
#include <fmt/format.h>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/extension.hpp"
#include "sim/answer/answer_fields.hpp"
#include "sim/core/clock.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

std::string place_in_file(const InputProblem& problem) {
  return problem.file + (problem.pointer.empty() ? "" : "#" + problem.pointer);
}

}  // namespace

nlohmann::ordered_json failure_json(const Failure& failure) {
  Json found, allowed, nearest;
  if (failure.problem) {
    found = failure.problem->all_found();
    allowed = failure.problem->allowed;
    if (!failure.problem->nearest.empty()) nearest = failure.problem->nearest;
  }
  if (failure.usage) {
    const auto take = [](const std::string& part, Json& out) {
      if (!part.empty()) out = part;
    };
    take(failure.usage->found, found);
    take(failure.usage->allowed, allowed);
    take(failure.usage->nearest, nearest);
  }
  Json also = Json::array();
  for (const InputProblem& other : failure.also) {
    also.push_back({{"place", place_in_file(other)},
                    {"found", other.all_found()},
                    {"allowed", other.allowed},
                    {"nearest", other.nearest.empty() ? Json() : Json(other.nearest)}});
  }
  const Json error{{"place", failure.place},        {"found", std::move(found)},
                   {"allowed", std::move(allowed)}, {"nearest", std::move(nearest)},
                   {"message", failure.line},       {"also", std::move(also)}};
  return Json{{"schema", std::string(kResultSchema)}, {"error", error}};
}

Failure current_failure() {
  try {
    throw;
  } catch (const InputError& e) {
    return {.status = Exit::bad_input,
            .line = e.what(),
            .place = place_in_file(e.problem()),
            .problem = e.problem(),
            .also = {e.also().begin(), e.also().end()}};
  } catch (const UsageError& e) {
    return {
        .status = Exit::bad_input, .line = e.what(), .place = "command line", .usage = e.parts()};
  } catch (const ClockOverflow& e) {
    return {
        .status = Exit::bad_input,
        .line = fmt::format("lockstep: {}; allowed: a smaller batch, or faster links", e.what()),
        .place = "lockstep"};
  } catch (const ExtensionError& e) {
    return {.status = Exit::bad_input, .line = e.what(), .place = "extension"};
  } catch (const std::exception& e) {
    return {.status = Exit::internal_error,
            .line = fmt::format("lockstep: an error of the program itself, please report it: {}",
                                e.what()),
            .place = "lockstep"};
  }
}

}  // namespace lockstep
