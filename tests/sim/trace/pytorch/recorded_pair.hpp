/// An execution trace and a Kineto trace of one rank, made up, in the form that PyTorch writes.
#pragma once

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::test {

struct PairTensor {
  int storage;
  std::vector<int> shape;
};

/// Both are written call by call; times are microseconds.
class RecordedPair {
 public:
  /// `old`: the schema of PyTorch 2.1, without "attrs".
  explicit RecordedPair(int rank = 0, bool old = false) : rank_(rank), old_(old) {
    node(2, "[pytorch|profiler|execution_trace|thread]", 1, 0, {}, {});
  }

  /// An operator in both; returns its number in the execution trace.
  int op(const std::string& name, double start, double took, const std::vector<PairTensor>& inputs,
         const std::vector<PairTensor>& outputs, int parent = 2, int thread = 100) {
    const int id = next_++;
    function_ = 1000 + id;
    node(id, name, parent, function_, inputs, outputs);
    event("cpu_op", name, start, took, thread,
          fmt::format(R"("External id": {}, "Record function id": {}, "Ev Idx": {})", 5000 + id,
                      function_, id));
    last_ = id;
    return id;
  }
  /// A kernel of the last operator, or copy, and its launch.
  void kernel(const std::string& name, double launch, double start, double took, int stream,
              const std::string& args = "", int thread = 100) {
    const std::string ids =
        fmt::format(R"("External id": {}, "correlation": {})", 5000 + last_, ++correlation_);
    event("cuda_runtime", "cudaLaunchKernel", launch, 3, thread, ids);
    const bool copies = name.starts_with("Memcpy");
    event(copies ? "gpu_memcpy" : "kernel", name, start, took, stream,
          fmt::format(R"({}, "device": 0, "stream": {}{})", ids, stream, args));
  }
  /// A call of the runtime that launches nothing; returns its correlation.
  int call(const std::string& name, double start, double took, int thread = 100) {
    event("cuda_runtime", name, start, took, thread,
          fmt::format(R"("correlation": {})", ++correlation_));
    return correlation_;
  }
  void event(const std::string& category, const std::string& name, double start, double took,
             int thread, const std::string& args) {
    first_ = std::min(first_, start);
    events_ += fmt::format(R"(,
  {{"ph": "X", "cat": "{}", "name": "{}", "pid": 1, "tid": {}, "ts": {:.3f}, "dur": {:.3f}, )"
                           R"("args": {{{}}}}})",
                           category, name, thread, 7e9 + start, took, args);
  }
  /// An all-reduce of a tensor: the operator, what torch.distributed records under it, and NCCL's
  /// own operator, whose kernel follows with kernel().
  void all_reduce(double start, const PairTensor& tensor, const std::string& group, int members) {
    const int whole = op("c10d::allreduce_", start, 30, {tensor}, {tensor});
    const int recorded = next_++;
    if (old_) {
      const Lists own = lists({tensor});
      nodes_ += fmt::format(
          R"(,
{{"name": "record_param_comms", "id": {}, "rf_id": {}, "parent": {},)"
          R"( "inputs": [[{}], 7,)"
          R"( ["{}", "dp"], 0, "allreduce", [], [], 0, 1, {}],)"
          R"( "input_shapes": [[{}], [], [[], []],)"
          R"( [], [], [], [], [], [], []], "input_types": ["GenericList[Tensor(c10::BFloat16)]",)"
          R"( "Int", "Tuple[String,String]", "Int", "String", "GenericList[]", "GenericList[]",)"
          R"( "Int", "Int", "Int"], "outputs": [[{}]], "output_shapes": [[{}]],)"
          R"( "output_types": ["GenericList[Tensor(c10::BFloat16)]"]}})",
          recorded, 1000 + recorded, whole, own.values, group, members, own.shapes, own.values,
          own.shapes);
    } else {
      int elements = 1;
      for (const int size : tensor.shape) elements *= size;
      const auto text = [](std::string_view key, std::string_view value) {
        return fmt::format(R"(, {{"name": "{}", "type": "string", "value": "{}"}})", key, value);
      };
      const auto number = [](std::string_view key, int value) {
        return fmt::format(R"(, {{"name": "{}", "type": "uint64", "value": {}}})", key, value);
      };
      node(recorded, "record_param_comms", whole, 1000 + recorded, {tensor}, {tensor},
           text("collective_name", "allreduce") + text("dtype", "BFloat16") +
               number("in_msg_nelems", elements) + number("out_msg_nelems", elements) +
               text("pg_name", group) + number("pg_size", members));
    }
    op("nccl:all_reduce", start + 5, 10, {tensor}, {}, recorded);
  }
  void node(int id, const std::string& name, int parent, int function,
            const std::vector<PairTensor>& inputs, const std::vector<PairTensor>& outputs,
            const std::string& attributes = "") {
    const auto [in, in_shapes, in_types] = lists(inputs);
    const auto [out, out_shapes, out_types] = lists(outputs);
    nodes_ += nodes_.empty() ? "\n" : ",\n";
    if (old_) {
      nodes_ += fmt::format(
          R"({{"name": "{}", "id": {}, "rf_id": {}, "parent": {}, "fw_parent": 0, "seq_id": -1,)"
          R"( "scope": 0, "tid": 1, "fw_tid": 0, "op_schema": "", "inputs": [{}],)"
          R"( "input_shapes": [{}], "input_types": [{}], "outputs": [{}],)"
          R"( "output_shapes": [{}], "output_types": [{}]}})",
          name, id, function, parent, in, in_shapes, in_types, out, out_shapes, out_types);
      return;
    }
    nodes_ += fmt::format(
        R"({{"id": {}, "name": "{}", "ctrl_deps": {}, "inputs": {{"values": [{}],)"
        R"( "shapes": [{}], "types": [{}], "strides": []}}, "outputs": {{"values": [{}],)"
        R"( "shapes": [{}], "types": [{}], "strides": []}}, "attrs": [{{"name": "rf_id",)"
        R"( "type": "uint64", "value": {}}},{{"name": "op_schema", "type": "string",)"
        R"( "value": ""}}{}]}})",
        id, name, parent, in, in_shapes, in_types, out, out_shapes, out_types, function,
        attributes);
  }
  /// "process_group:init", as PyTorch writes it: JSON in a text.
  void groups(const std::string& quoted) {
    nodes_ += fmt::format(R"(,
{{"id": {}, "name": "## process_group:init ##", "ctrl_deps": 2, "inputs": {{"values": ["{}"],)"
                          R"( "shapes": [[]], "types": ["String"]}}, "outputs": {{"values": [],)"
                          R"( "shapes": [], "types": []}}, "attrs": []}})",
                          next_++, quoted);
  }

  /// When the first event began.
  [[nodiscard]] double first() const { return first_; }
  [[nodiscard]] std::string operators() const {
    return fmt::format(R"({{"schema": "{}", "pid": 1, "time": "2024-04-18 09:53:29",)"
                       R"( "start_ts": 2028842, "nodes": [{}], "finish_ts": 2054197}})",
                       old_ ? "1.0.1" : "1.1.1-chakra.0.0.4", nodes_);
  }
  [[nodiscard]] std::string kineto() const {
    return fmt::format(R"({{"schemaVersion": 1, "distributedInfo": {{"rank": {}}},)"
                       R"( "traceEvents": [{{"ph": "M", "name": "process_name"}}{}]}})",
                       rank_, events_);
  }

 private:
  struct Lists {
    std::string values, shapes, types;
  };
  static Lists lists(const std::vector<PairTensor>& tensors) {
    Lists out;
    for (const PairTensor& tensor : tensors) {
      const std::string comma = out.values.empty() ? "" : ", ";
      long elements = 1;
      std::string shape;
      for (const int size : tensor.shape) {
        elements *= size;
        shape += (shape.empty() ? "" : ", ") + std::to_string(size);
      }
      out.values += comma + fmt::format(R"([{}, {}, 0, {}, 2, "cuda:0"])", tensor.storage + 500,
                                        tensor.storage, elements);
      out.shapes += comma + "[" + shape + "]";
      out.types += comma + "\"Tensor(c10::BFloat16)\"";
    }
    return out;
  }

  int rank_;
  bool old_;
  int next_ = 3, last_ = 0, function_ = 0, correlation_ = 40;
  double first_ = std::numeric_limits<double>::infinity();
  std::string nodes_, events_;
};

}  // namespace lockstep::test
