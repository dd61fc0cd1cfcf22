#include "sim/trace/formats/read_chakra.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/util/json_util.h>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/json_cursor.hpp"
#include "sim/trace/formats/chakra.pb.h"
#include "sim/trace/formats/chakra_rank.hpp"

namespace lockstep {
namespace {

[[noreturn]] void fail_bytes(const std::string& file, std::size_t at, std::string_view what) {
  fail_trace(file, fmt::format("{} at byte {}", what, at),
             "a Chakra trace: GlobalMetadata and Nodes, each behind its length");
}

/// Calls use(begin, length) for the JSON objects that are nodes or metadata.
template <class Use>
void for_each_object(const std::string& file, std::string_view text, Use use) {
  int depth = 0, wanted = 1;
  bool in_string = false;
  std::size_t string_start = 0, object_start = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
        const std::string_view key = text.substr(string_start, i - string_start);
        const bool lists = key == "nodes" || key == "workload_graph";
        if (depth != 1 || wanted != 1 || !lists) continue;
        std::size_t next = text.find_first_not_of(" \t\r\n", i + 1);
        if (next == std::string_view::npos || text[next] != ':') continue;
        next = text.find_first_not_of(" \t\r\n", next + 1);
        if (next != std::string_view::npos && text[next] == '[') wanted = 2;
      }
    } else if (c == '"') {
      in_string = true;
      string_start = i + 1;
    } else if (c == '{') {
      if (++depth == wanted) object_start = i;
    } else if (c == '}') {
      if (depth == 0) fail_trace(file, fmt::format("a '}}' too many at byte {}", i), "JSON");
      if (depth-- == wanted) use(text.substr(object_start, i + 1 - object_start));
    }
  }
  if (depth != 0 || in_string) {
    fail_trace(file, "a text that ends within an object", "a whole Chakra trace in JSON");
  }
}

/// A node as Chakra's converters of 2023 wrote it: {"Id": 1, "Name": "a", "NodeType": 4, "runtime":
/// 318 (microseconds), "data_deps": [], "is_cpu_op": true}. False: it has another form.
bool read_older_node(std::string_view object, chakra::Node& node) {
  const auto json = nlohmann::json::parse(object, nullptr, false);
  if (!json.is_object()) return false;
  const auto number = [&](const char* key) -> std::uint64_t {
    const auto found = json.find(key);
    return found != json.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
  };
  const auto name = json.find("Name");
  const auto type = static_cast<int>(std::min<std::uint64_t>(number("NodeType"), 1000));
  if (name == json.end() || !name->is_string() || type == 0) return false;
  node.set_id(number("Id"));
  node.set_name(name->get<std::string>());
  node.set_type(static_cast<chakra::NodeType>(type));
  node.set_duration_micros(number("runtime"));
  for (const char* key : {"data_deps", "ctrl_deps"}) {
    const auto list = json.find(key);
    if (list == json.end() || !list->is_array()) continue;
    for (const auto& before : *list) {
      if (before.is_number_unsigned()) node.add_data_deps(before.get<std::uint64_t>());
    }
  }
  chakra::Attribute& host = *node.add_attr();
  host.set_name("is_cpu_op");
  const auto on_host = json.find("is_cpu_op");
  host.set_bool_val(on_host != json.end() && on_host->is_boolean() && on_host->get<bool>());
  return true;
}

}  // namespace

RankTrace read_chakra(const std::string& file, int rank, std::string_view bytes,
                      const TraceReadOptions& options) {
  const google::protobuf::LogSilencer silencer;  // a mistake is one line, and it is ours
  ChakraRank out(file, rank, options);
  const auto* const data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  std::size_t at = 0;
  bool metadata = true;
  chakra::Node node;  // one for all: it keeps its memory
  chakra::GlobalMetadata head;
  while (at < bytes.size()) {
    // A length is at most five bytes; the stream never looks further.
    constexpr std::size_t kLongestVarint = 10;
    const auto ahead = static_cast<int>(std::min(bytes.size() - at, kLongestVarint));
    google::protobuf::io::CodedInputStream stream(data + at, ahead);
    std::uint32_t length = 0;
    if (!stream.ReadVarint32(&length)) fail_bytes(file, at, "no length of a message");
    const std::size_t begin = at + static_cast<std::size_t>(stream.CurrentPosition());
    if (length > bytes.size() - begin) {
      fail_bytes(file, at, fmt::format("a message of {} bytes, more than are left,", length));
    }
    google::protobuf::MessageLite& message =
        metadata ? static_cast<google::protobuf::MessageLite&>(head) : node;
    if (!message.ParseFromArray(data + begin, static_cast<int>(length))) {
      fail_bytes(file, at,
                 metadata ? std::string("no GlobalMetadata")
                          : fmt::format("no Node after {} of them", out.nodes()));
    }
    if (!metadata) out.add(node);
    metadata = false;
    at = begin + length;
  }
  if (out.nodes() == 0) fail_bytes(file, at, "no Node");
  return out.finish();
}

RankTrace read_chakra_json(const std::string& file, int rank, std::string_view text,
                           const TraceReadOptions& options) {
  const google::protobuf::LogSilencer silencer;
  ChakraRank out(file, rank, options);
  google::protobuf::util::JsonParseOptions lenient;
  lenient.ignore_unknown_fields = true;
  chakra::Node node;
  bool first = true;
  for_each_object(file, text, [&](std::string_view object) {
    const bool metadata = first && object.find("\"type\"") == std::string_view::npos &&
                          object.find("\"NodeType\"") == std::string_view::npos;
    first = false;
    if (metadata) return;
    node.Clear();
    if (object.find("\"NodeType\"") != std::string_view::npos && read_older_node(object, node)) {
      return out.add(node);
    }
    const auto status =
        google::protobuf::util::JsonStringToMessage({object.data(), object.size()}, &node, lenient);
    if (!status.ok()) {
      fail_trace(file, fmt::format("no Node after {} of them", out.nodes()),
                 "a Node of et_def.proto in protobuf's JSON mapping");
    }
    out.add(node);
  });
  if (out.nodes() == 0) fail_trace(file, "no Node", "a Chakra trace in JSON");
  return out.finish();
}

std::map<std::string, std::vector<int>> read_trace_groups(const std::string& file,
                                                          std::string_view text) {
  std::map<std::string, std::vector<int>> out;
  const JsonCursor root = JsonCursor::parse(file, text);
  for (const std::string& name : root.keys()) {
    std::vector<int>& ranks = out[name];
    for (const JsonCursor& rank : root.at(name).elements(kMostTraceRanks)) {
      ranks.push_back(rank.integer(0, kMostTraceRanks - 1));
    }
    std::ranges::sort(ranks);
    const auto twice = std::ranges::unique(ranks);
    ranks.erase(twice.begin(), twice.end());
  }
  return out;
}

}  // namespace lockstep
