/// The JSON of a Kineto trace, event by event: traces have millions, and none is kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/trace/pytorch/operator_work.hpp"

namespace lockstep {

/// Whether the events are the whole text, in brackets (the array form of Chrome's traces).
bool is_event_list(std::string_view text);

/// Calls `use` for each event (an object with "ph" in "traceEvents", or in the list that the text
/// is, and its index there) and returns what is said of all of them: "distributedInfo" and
/// "deviceProperties"; of a list nothing, whose closing bracket may be missing. Nothing for a
/// text that is no JSON; the numbers that JSON lacks (quote_non_finite()) are for the caller.
/// Throws InputError for more than 64 levels.
std::optional<nlohmann::json> read_kineto_json(
    const std::string& file, std::string_view text,
    const std::function<void(const nlohmann::json& event, std::size_t index)>& use);

/// Strings as JSON has them: names of files and ranges go into traces as they are, with backslashes
/// that begin no escape, control characters, and bytes that are no UTF-8.
std::string mend_strings(std::string_view given);

/// What is wrong with such a text: "a text that is no JSON from line 3, column 9".
std::string no_json_words(std::string_view text);

/// Members of an event or its "args": text, or nothing; a number, also one in quotes; a number that
/// names something, or kNoKinetoId.
constexpr std::int64_t kNoKinetoId = -1;
std::string kineto_text(const nlohmann::json& object, const char* key);
std::optional<double> kineto_number(const nlohmann::json& object, const char* key);
std::int64_t kineto_id(const nlohmann::json& args, const char* key);

/// Of "Input Dims", a list of lists: a shape for each argument, empty for what is no tensor.
std::vector<TensorShape> kineto_shapes(const nlohmann::json& dims);

/// The first card of "deviceProperties", as its driver names it; empty where none is named.
std::string kineto_device(const nlohmann::json& head);

}  // namespace lockstep
