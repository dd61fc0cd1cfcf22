/// The JSON of a Kineto trace, event by event: traces have millions, and none is kept.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace lockstep {

/// Calls `use` for each event (an object with "ph" in "traceEvents") and returns what is said of
/// all of them: "distributedInfo" and "deviceProperties". Nothing for a text that is no JSON; the
/// numbers that JSON lacks (quote_non_finite()) are for the caller. Throws InputError for more
/// than 64 levels.
std::optional<nlohmann::json> read_kineto_json(
    const std::string& file, std::string_view text,
    const std::function<void(const nlohmann::json& event)>& use);

/// The first card of "deviceProperties", as its driver names it; empty where none is named.
std::string kineto_device(const nlohmann::json& head);

}  // namespace lockstep
