#include "sim/trace/pytorch/kineto_json.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/base/json_text.hpp"
#include "models/base/printable.hpp"
#include "sim/trace/trace_builder.hpp"

namespace lockstep {
namespace {

constexpr int kDeepestEvent = 64;  // levels; a trace has five
/// Values of the head that are kept: some per card and process group.
constexpr std::size_t kMostHeadValues = 1'000'000;

constexpr std::string_view kJsonSpace = " \t\r\n";

[[noreturn]] void fail_deep(const std::string& file) {
  fail_trace(file, fmt::format("more than {} levels", kDeepestEvent),
             "a trace of the PyTorch profiler (export_chrome_trace) with GPU kernels");
}

/// The list of events alone; its end may be missing, as where a writer was stopped.
std::optional<nlohmann::json> read_event_list(
    const std::string& file, std::string_view text,
    const std::function<void(const nlohmann::json&, std::size_t)>& use) {
  using Json = nlohmann::json;
  std::string closed;
  text = text.substr(0, text.find_last_not_of(kJsonSpace) + 1);
  if (text.ends_with(',')) text.remove_suffix(1);
  if (text.ends_with('}')) {
    closed = std::string(text) + "]";
    text = closed;
  }
  std::size_t events = 0;
  const auto keep = [&](int depth, Json::parse_event_t what, Json& value) {
    if (depth > kDeepestEvent) fail_deep(file);
    // Elements of the list are at its first level.
    if (depth != 1 || what == Json::parse_event_t::object_start ||
        what == Json::parse_event_t::array_start) {
      return true;
    }
    if (what == Json::parse_event_t::object_end && value.contains("ph")) use(value, events);
    ++events;
    return false;
  };
  if (Json::parse(text, keep, false).is_discarded()) return std::nullopt;
  return Json::object();
}

}  // namespace

bool is_event_list(std::string_view text) {
  constexpr std::string_view kByteOrder = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrder)) text.remove_prefix(kByteOrder.size());
  const std::size_t first = text.find_first_not_of(kJsonSpace);
  return first != std::string_view::npos && text[first] == '[';
}

std::optional<nlohmann::json> read_kineto_json(
    const std::string& file, std::string_view text,
    const std::function<void(const nlohmann::json&, std::size_t)>& use) {
  using Json = nlohmann::json;
  if (is_event_list(text)) return read_event_list(file, text, use);
  bool in_events = false;
  std::size_t in_head = 0, events = 0;
  const auto keep = [&](int depth, Json::parse_event_t what, Json& value) {
    if (depth > kDeepestEvent) fail_deep(file);
    if (depth == 1 && what == Json::parse_event_t::key) {
      in_events = value == "traceEvents";
      return in_events || value == "distributedInfo" || value == "deviceProperties";
    }
    if (!in_events && depth > 1 && ++in_head > kMostHeadValues) return false;
    // Elements of the list are at its second level.
    if (!in_events || depth != 2 || what == Json::parse_event_t::object_start ||
        what == Json::parse_event_t::array_start) {
      return true;
    }
    if (what == Json::parse_event_t::object_end && value.contains("ph")) use(value, events);
    ++events;
    return false;
  };
  Json head = Json::parse(text, keep, false);
  if (head.is_discarded()) return std::nullopt;
  return head;
}

std::string mend_strings(std::string_view given) {
  constexpr std::string_view kEscapes = "\"\\/bfnrtu";
  std::string out;
  out.reserve(given.size());
  bool in_string = false;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const char c = given[i];
    if (in_string && c == '\\') {
      const bool known = i + 1 < given.size() && kEscapes.find(given[i + 1]) != std::string::npos;
      out += known ? "\\" : "\\\\";  // the path of a Windows file
      if (known) out += given[++i];
    } else if (in_string && static_cast<unsigned char>(c) < ' ') {
      out += ' ';
    } else {
      if (c == '"') in_string = !in_string;
      out += c;
    }
  }
  return valid_utf8(out);
}

std::string no_json_words(std::string_view text) {
  using Json = nlohmann::json;
  try {
    [[maybe_unused]] const Json kept =
        Json::parse(text, [](int, Json::parse_event_t, const Json&) { return false; });
  } catch (const Json::parse_error& error) {
    // Its bytes are counted from 1.
    return "a text that is no JSON from " +
           place_in_text(text, std::max<std::size_t>(error.byte, 1) - 1);
  } catch (const Json::exception&) {
    return "a number beyond the range of JSON's";
  }
  return "a text that is no JSON";
}

std::string kineto_device(const nlohmann::json& head) {
  if (!head.is_object()) return {};
  const auto list = head.find("deviceProperties");
  if (list == head.end() || !list->is_array()) return {};
  for (const auto& device : *list) {
    if (!device.is_object()) continue;
    const auto name = device.find("name");
    if (name != device.end() && name->is_string() && !name->get_ref<const std::string&>().empty()) {
      return name->get<std::string>();
    }
  }
  return {};
}

std::string kineto_text(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}
std::optional<double> kineto_number(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return std::nullopt;
  if (found->is_number()) return found->get<double>();
  if (!found->is_string()) return std::nullopt;
  const auto& text = found->get_ref<const std::string&>();
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}
std::int64_t kineto_id(const nlohmann::json& args, const char* key) {
  constexpr double kMostId = 9e15;  // exact as a double
  const auto value = kineto_number(args, key);
  return value && *value >= 0 && *value <= kMostId ? static_cast<std::int64_t>(*value)
                                                   : kNoKinetoId;
}

std::vector<TensorShape> kineto_shapes(const nlohmann::json& dims) {
  std::vector<TensorShape> out;
  for (const nlohmann::json& argument : dims) {
    TensorShape& shape = out.emplace_back();
    if (!argument.is_array()) continue;
    for (const nlohmann::json& size : argument) {
      if (size.is_number()) shape.push_back(size.get<double>());
    }
  }
  return out;
}

}  // namespace lockstep
