#include "sim/trace/pytorch/execution_trace.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/write_json.hpp"
#include "sim/trace/pytorch/kineto_json.hpp"
#include "sim/trace/pytorch/operator_work.hpp"

namespace lockstep {
namespace {

using EtJson = nlohmann::json;

constexpr int kDeepestEt = 128;  // levels; lists of tuples of tensors have a dozen
constexpr std::string_view kEtForm =
    "an execution trace of PyTorch (torch.profiler.ExecutionTraceObserver)";
constexpr double kMostEtElements = 1e15;

const EtJson& et_nothing() {
  static const EtJson kNothing = EtJson::array();
  return kNothing;
}
const EtJson& et_member(const EtJson& object, std::string_view key) {
  if (!object.is_object()) return et_nothing();
  const auto found = object.find(key);
  return found == object.end() ? et_nothing() : *found;
}
std::string et_text(const EtJson& value) {
  return value.is_string() ? value.get<std::string>() : std::string();
}
std::optional<double> et_number(const EtJson& value) {
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

/// Values, shapes and types of an operator's inputs or outputs.
struct EtArguments {
  const EtJson *values = nullptr, *shapes = nullptr, *types = nullptr;
};

bool is_tensor_value(const EtJson& value) {
  constexpr std::size_t kTensorFields = 6;
  return value.is_array() && value.size() == kTensorFields && value[5].is_string() &&
         std::all_of(value.begin(), value.begin() + 5,
                     [](const EtJson& field) { return field.is_number(); });
}

TensorShape shape_of(const EtJson& json) {
  TensorShape out;
  for (const EtJson& size : json) {
    const std::optional<double> value = et_number(size);
    if (!value || !(*value >= 0) || *value > kMostEtElements) return {};
    out.push_back(*value);
  }
  return out;
}

void keep_once(std::vector<std::uint64_t>& storages) {
  std::ranges::sort(storages);
  const auto twice = std::ranges::unique(storages);
  storages.erase(twice.begin(), twice.end());
}

class EtReader {
 public:
  explicit EtReader(const std::string& file) { out_.file = file; }

  ExecutionTrace read(std::string_view text) {
    // Each node is used and dropped as it is complete.
    const auto use = [&](int depth, EtJson::parse_event_t what, EtJson& value) {
      if (depth > kDeepestEt) fail("too many levels");
      if (what != EtJson::parse_event_t::object_end || !is_node(value)) return true;
      read_node(value);
      return false;
    };
    try {
      if (!EtJson::parse(text, use).contains("nodes")) fail("no \"nodes\"");
    } catch (const EtJson::exception&) {
      fail(no_json_words(text));
    }
    if (out_.operators.empty()) fail("no node");
    std::ranges::stable_sort(out_.operators, {}, &ExecutionTrace::Operator::id);
    const auto twice =
        std::ranges::adjacent_find(out_.operators, {}, &ExecutionTrace::Operator::id);
    if (twice != out_.operators.end()) {
      fail_trace(out_.file, node_text(twice->id, twice->name) + " twice", "each number once");
    }
    return std::move(out_);
  }

 private:
  static bool is_node(const EtJson& value) {
    return value.contains("name") && (value.contains("inputs") || value.contains("outputs"));
  }
  [[noreturn]] void fail(std::string found) const {
    fail_trace(out_.file, std::move(found), std::string(kEtForm));
  }
  [[noreturn]] void fail_node(const ExecutionTrace::Operator& node, std::string_view found,
                              std::string allowed) const {
    fail_trace(out_.file, fmt::format("{} {}", node_text(node.id, node.name), found),
               std::move(allowed));
  }

  void read_node(const EtJson& json) {
    ExecutionTrace::Operator node;
    node.name = et_text(json["name"]);
    const EtJson& id = et_member(json, "id");
    if (!id.is_number_unsigned()) {
      fail(fmt::format("a node ({}) without a number", in_quotes(node.name)));
    }
    node.id = id.get<std::uint64_t>();
    node.parent = number_of(json, "ctrl_deps", "parent");
    node.record_function = attribute_number(json, "rf_id");
    const EtArguments inputs = arguments(node, json, "inputs", "input_shapes", "input_types");
    const EtArguments outputs = arguments(node, json, "outputs", "output_shapes", "output_types");
    std::vector<TensorShape> in, out;
    read_tensors(inputs, node.reads, in, node);
    read_tensors(outputs, node.writes, out, node);
    keep_once(node.reads);
    keep_once(node.writes);
    node.flops = operator_flops(node.name, in, out);
    if (node.name == "record_param_comms") {
      node.call = static_cast<std::uint32_t>(out_.calls.size());
      out_.calls.push_back(call_of(json, inputs, outputs));
    } else if (node.name.find("process_group:init") != std::string::npos) {
      read_groups(node, inputs);
    }
    out_.operators.push_back(std::move(node));
  }

  static std::uint64_t number_of(const EtJson& json, const char* key, const char* older) {
    for (const char* name : {key, older}) {
      const EtJson& value = et_member(json, name);
      if (value.is_number_unsigned()) return value.get<std::uint64_t>();
    }
    return 0;
  }
  /// Of "attrs", or of the node itself in older files.
  static const EtJson& attribute(const EtJson& json, std::string_view name) {
    for (const EtJson& attr : et_member(json, "attrs")) {
      if (et_text(et_member(attr, "name")) == name) return et_member(attr, "value");
    }
    return et_member(json, name);
  }
  static std::uint64_t attribute_number(const EtJson& json, std::string_view name) {
    const EtJson& value = attribute(json, name);
    return value.is_number_unsigned() ? value.get<std::uint64_t>() : 0;
  }

  EtArguments arguments(const ExecutionTrace::Operator& node, const EtJson& json, const char* key,
                        const char* shapes, const char* types) const {
    const EtJson& own = et_member(json, key);
    const EtArguments out =
        own.is_object() ? EtArguments{&et_member(own, "values"), &et_member(own, "shapes"),
                                      &et_member(own, "types")}
                        : EtArguments{&own, &et_member(json, shapes), &et_member(json, types)};
    for (const EtJson* list : {out.values, out.shapes, out.types}) {
      if (!list->is_array()) {
        fail_node(node, fmt::format("whose {} are no lists", key), "values, shapes and types");
      }
    }
    // A Triton kernel has its grid and stream behind the others, without strides.
    if (out.shapes->size() != out.values->size() || out.types->size() != out.values->size()) {
      fail_node(node,
                fmt::format("with {} values, {} shapes and {} types of its {}", out.values->size(),
                            out.shapes->size(), out.types->size(), key),
                "as many of each");
    }
    return out;
  }

  void read_tensors(const EtArguments& from, std::vector<std::uint64_t>& storages,
                    std::vector<TensorShape>& shapes, ExecutionTrace::Operator& node) const {
    for (std::size_t i = 0; i < from.values->size(); ++i) {
      const bool is_tensor = et_text((*from.types)[i]).starts_with("Tensor");
      shapes.push_back(is_tensor ? shape_of((*from.shapes)[i]) : TensorShape{});
      read_tensor((*from.values)[i], storages, node);
    }
  }
  /// Tensors may be in lists and tuples.
  void read_tensor(const EtJson& value, std::vector<std::uint64_t>& storages,
                   ExecutionTrace::Operator& node) const {
    if (!value.is_array()) return;
    if (!is_tensor_value(value)) {
      for (const EtJson& part : value) read_tensor(part, storages, node);
      return;
    }
    const std::string device = value[5].get<std::string>();
    if (!device.starts_with("cuda") && !device.starts_with("hip")) return;
    const double elements = value[3].get<double>(), width = value[4].get<double>();
    if (!(elements >= 0) || elements > kMostEtElements || !(width >= 0) || width > 64 ||
        !value[1].is_number_unsigned()) {
      fail_node(node, "with the tensor " + write_json(value),
                "[tensor, storage, offset, elements, bytes of an element, device]");
    }
    node.bytes += Bytes{elements * width};
    const auto storage = value[1].get<std::uint64_t>();
    if (storage != 0) storages.push_back(storage);
  }

  /// Attributes of schemas 1.1 and later, else the operator's arguments: tensors, sequence number,
  /// (name, description) of the group, rank, collective, splits in and out, first rank, stride,
  /// size (torch/csrc/distributed/c10d/ParamCommsUtils.hpp).
  static NcclCallText call_of(const EtJson& json, const EtArguments& inputs,
                              const EtArguments& outputs) {
    NcclCallText out;
    out.collective = et_text(attribute(json, "collective_name"));
    out.dtype = et_text(attribute(json, "dtype"));
    out.group = et_text(attribute(json, "pg_name"));
    out.in_elements = et_number(attribute(json, "in_msg_nelems"));
    out.out_elements = et_number(attribute(json, "out_msg_nelems"));
    out.group_size = et_number(attribute(json, "pg_size"));
    out.rank_start = et_number(attribute(json, "global_rank_start"));
    out.rank_stride = et_number(attribute(json, "global_rank_stride"));
    if (out.collective.empty()) read_arguments(inputs, outputs, out);
    return out;
  }

  static void read_arguments(const EtArguments& inputs, const EtArguments& outputs,
                             NcclCallText& out) {
    std::vector<double> numbers;
    std::vector<std::string> texts;  // the group's name, where it is no tuple, and the collective's
    for (std::size_t i = 0; i < inputs.values->size(); ++i) {
      const EtJson& value = (*inputs.values)[i];
      const std::string type = et_text((*inputs.types)[i]);
      if (type == "String") texts.push_back(et_text(value));
      if (type.starts_with("Tuple") && value.is_array() && !value.empty()) {
        texts.insert(texts.begin(), et_text(value[0]));
      }
      if (type == "Int") numbers.push_back(et_number(value).value_or(-1));
    }
    if (!texts.empty()) out.collective = texts.back();
    if (texts.size() > 1) out.group = texts.front();
    constexpr std::size_t kInts = 5;  // sequence number, rank; first rank, stride, size
    if (numbers.size() >= kInts) {
      out.rank_start = numbers[numbers.size() - 3];
      out.rank_stride = numbers[numbers.size() - 2];
      out.group_size = numbers[numbers.size() - 1];
    }
    out.in_elements = elements_in(inputs);
    out.out_elements = elements_in(outputs);
    if (!inputs.types->empty()) out.dtype = element_type(et_text((*inputs.types)[0]));
  }
  static double elements_in(const EtArguments& list) {
    double sum = 0;
    const auto add = [&](const auto& self, const EtJson& value) -> void {
      if (is_tensor_value(value)) {
        sum += value[3].get<double>();
      } else if (value.is_array()) {
        for (const EtJson& part : value) self(self, part);
      }
    };
    for (const EtJson& value : *list.values) add(add, value);
    return sum;
  }
  /// "GenericList[Tensor(c10::BFloat16)]" -> "c10::BFloat16".
  static std::string element_type(const std::string& type) {
    const std::size_t open = type.find("Tensor(");
    if (open == std::string::npos) return {};
    const std::size_t begin = open + std::string_view("Tensor(").size();
    return type.substr(begin, type.find(')', begin) - begin);
  }

  /// [{"pg_name": "0", "ranks": [0, 1], ...}], as a text; without ranks: all of them.
  void read_groups(const ExecutionTrace::Operator& node, const EtArguments& inputs) {
    const std::string text = inputs.values->empty() ? std::string() : et_text((*inputs.values)[0]);
    const EtJson list = EtJson::parse(text, nullptr, false);
    if (!list.is_array()) fail_node(node, "without groups", "a list of process groups as JSON");
    for (const EtJson& group : list) {
      std::vector<int> ranks;
      for (const EtJson& rank : et_member(group, "ranks")) {
        const double value = et_number(rank).value_or(-1);
        if (!(value >= 0) || value >= kMostTraceRanks) {
          fail_node(node, "with the rank " + write_json(rank), "ranks from 0");
        }
        ranks.push_back(static_cast<int>(value));
      }
      std::ranges::sort(ranks);
      const auto twice = std::ranges::unique(ranks);
      ranks.erase(twice.begin(), twice.end());
      out_.groups.insert_or_assign(et_text(et_member(group, "pg_name")), std::move(ranks));
    }
  }

  ExecutionTrace out_;
};

}  // namespace

const ExecutionTrace::Operator* ExecutionTrace::find(std::uint64_t id) const {
  const auto at = std::ranges::lower_bound(operators, id, {}, &Operator::id);
  return at == operators.end() || at->id != id ? nullptr : &*at;
}

ExecutionTrace read_execution_trace(const std::string& file, std::string_view text) {
  return EtReader(file).read(text);
}

bool is_execution_trace(std::string_view begin) {
  // {"schema": "1.1.1-chakra.0.0.4", "pid": 7, "time": "...", "start_ts": 3, "nodes": [...
  constexpr std::size_t kHead = 512;
  const std::string_view head = begin.substr(0, kHead);
  const std::size_t nodes = head.find("\"nodes\"");
  const auto has = [&](std::string_view key) {
    return head.substr(0, nodes).find(key) != head.npos;
  };
  return has("\"schema\"") && has("\"start_ts\"") && has("\"pid\"");
}

}  // namespace lockstep
