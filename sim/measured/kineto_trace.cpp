#include "sim/measured/kineto_trace.hpp"

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/json_text.hpp"
#include "models/base/letter_case.hpp"
#include "sim/trace/pytorch/kineto_json.hpp"

namespace lockstep {
namespace {

using TraceJson = nlohmann::json;

std::string text_of(const TraceJson& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

double number_of(const TraceJson& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

/// Of the operator; the key's spelling changed in 2021.
std::optional<std::int64_t> external_id(const TraceJson& args) {
  for (const char* key : {"External id", "external id"}) {
    const auto found = args.find(key);
    if (found != args.end() && found->is_number_integer()) return found->get<std::int64_t>();
  }
  return std::nullopt;
}

bool is_even(const TraceJson& args, const char* key) {
  const std::string split = text_of(args, key);
  return split.empty() || split == "[]";
}

std::optional<KinetoCollective> collective_of(const TraceJson& args) {
  KinetoCollective out;
  out.name = text_of(args, "Collective name");
  if (out.name.empty()) return std::nullopt;
  out.dtype = text_of(args, "dtype");
  out.in_elements = number_of(args, "In msg nelems");
  out.out_elements = number_of(args, "Out msg nelems");
  const double size = number_of(args, "Group size");
  constexpr double kMostMembers = 1e6;
  if (size >= 1 && size <= kMostMembers) out.group_size = static_cast<int>(size);
  out.ranks = text_of(args, "Process Group Ranks");
  out.even = is_even(args, "In split size") && is_even(args, "Out split size");
  return out;
}

std::vector<std::string> texts_of(const TraceJson& args, const char* key) {
  std::vector<std::string> out;
  const auto found = args.find(key);
  if (found == args.end() || !found->is_array()) return out;
  for (const TraceJson& text : *found) {
    out.push_back(text.is_string() ? text.get<std::string>() : std::string());
  }
  return out;
}

KinetoOperator read_operator(const TraceJson& event, const TraceJson& args) {
  KinetoOperator out{
      text_of(event, "name"), {}, texts_of(args, "Input type"), texts_of(args, "Concrete Inputs")};
  const auto dims = args.find("Input Dims");
  if (dims == args.end() || !dims->is_array()) return out;
  for (const TraceJson& shape : *dims) {
    std::vector<double> sizes;
    for (const TraceJson& size : shape) {
      if (size.is_number()) sizes.push_back(size.get<double>());
    }
    out.dims.push_back(std::move(sizes));
  }
  return out;
}

void read_event(const TraceJson& event, KinetoTrace& out) {
  if (text_of(event, "ph") != "X") return;
  // "Kernel", "Memcpy" and "Operator" until 2021.
  const std::string category = lowered(text_of(event, "cat"));
  const bool of_gpu =
      category == "kernel" || category.ends_with("memcpy") || category.ends_with("memset");
  const bool of_cpu = category == "cpu_op" || category == "operator";
  if (!of_gpu && !of_cpu) return;
  static const TraceJson kNothing = TraceJson::object();
  const auto found = event.find("args");
  const TraceJson& args = found != event.end() && found->is_object() ? *found : kNothing;
  const std::optional<std::int64_t> id = external_id(args);
  if (of_gpu) {
    const double duration = number_of(event, "dur");
    if (duration > 0) {
      out.kernels.push_back({text_of(event, "name"), duration, id, collective_of(args)});
    }
  } else if (id && args.contains("Input Dims")) {
    out.operators.insert_or_assign(*id, read_operator(event, args));
  }
}

[[noreturn]] void fail_kineto(const std::string& file, std::string found) {
  throw InputError({.file = file,
                    .pointer = {},
                    .found = std::move(found),
                    .allowed = "a trace of the PyTorch profiler (export_chrome_trace) with GPU "
                               "kernels",
                    .nearest = {}});
}

}  // namespace

KinetoTrace parse_kineto(const std::string& file, std::string_view text) {
  KinetoTrace out;
  const auto use = [&](const TraceJson& event, std::size_t) { read_event(event, out); };
  std::optional<TraceJson> head = read_kineto_json(file, text, use);
  if (!head) {
    out = {};  // once more, with the numbers that JSON lacks
    const std::string quoted = quote_non_finite(text);
    head = read_kineto_json(file, quoted, use);
    if (!head) fail_kineto(file, no_json_words(quoted));
  }
  if (out.kernels.empty()) fail_kineto(file, "no kernel");
  out.device = kineto_device(*head);
  return out;
}

}  // namespace lockstep
