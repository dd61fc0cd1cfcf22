#include "sim/measured/kineto_points.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <string_view>
#include <vector>

#include "models/base/letter_case.hpp"

namespace lockstep {
namespace {

/// An operator that is a product. Source: PyTorch, aten/src/ATen/native/native_functions.yaml.
struct ProductOperator {
  std::string_view name;
  std::size_t left;               ///< which input is A; B is the next
  bool batched = false;           ///< b x m x k
  bool right_transposed = false;  ///< B is given as n x k
};
constexpr std::array kProductOperators{
    ProductOperator{"aten::mm", 0},
    ProductOperator{"aten::addmm", 1},
    ProductOperator{"aten::_addmm_activation", 1},
    ProductOperator{"aten::bmm", 0, true},
    ProductOperator{"aten::baddbmm", 1, true},
    ProductOperator{"aten::_scaled_mm", 0},
    ProductOperator{"aten::linear", 0, false, true},
};

/// An operator that is fused attention.
struct AttentionOperator {
  std::string_view name;
  AttentionKernel kernel;
  Direction direction;
  std::size_t query;         ///< which input; keys are the next
  std::size_t causal;        ///< which value
  bool heads_before_tokens;  ///< b x heads x tokens x d, else b x tokens x heads x d
};
// Source: the same, and flash_attn/flash_attn_interface.py of flash-attention 2.7.
constexpr std::array kAttentionOperators{
    AttentionOperator{"aten::_flash_attention_forward", AttentionKernel::flash2, Direction::forward,
                      0, 8, false},
    AttentionOperator{"aten::_flash_attention_backward", AttentionKernel::flash2,
                      Direction::backward, 1, 11, false},
    AttentionOperator{"aten::_scaled_dot_product_cudnn_attention", AttentionKernel::cudnn,
                      Direction::forward, 0, 6, true},
    AttentionOperator{"aten::_cudnn_attention_forward", AttentionKernel::cudnn, Direction::forward,
                      0, 10, true},
    AttentionOperator{"aten::_scaled_dot_product_cudnn_attention_backward", AttentionKernel::cudnn,
                      Direction::backward, 1, 14, true},
    AttentionOperator{"flash_attn::_flash_attn_forward", AttentionKernel::flash2,
                      Direction::forward, 0, 5, false},
    AttentionOperator{"flash_attn::_flash_attn_backward", AttentionKernel::flash2,
                      Direction::backward, 1, 11, false},
};

/// A collective of torch.distributed. Source: PyTorch, torch/csrc/distributed/c10d/
/// ProcessGroupNCCL.cpp.
struct TorchCollective {
  std::string_view name;
  CollectiveOp op;
  bool by_output = false;  ///< nccl-tests' size is the output's, else the input's
};
constexpr std::array kTorchCollectives{
    TorchCollective{"allreduce", CollectiveOp::all_reduce},
    TorchCollective{"_allgather_base", CollectiveOp::all_gather, true},
    TorchCollective{"all_gather", CollectiveOp::all_gather, true},
    TorchCollective{"allgather_into_tensor_coalesced", CollectiveOp::all_gather, true},
    TorchCollective{"_reduce_scatter_base", CollectiveOp::reduce_scatter},
    TorchCollective{"reduce_scatter", CollectiveOp::reduce_scatter},
    TorchCollective{"reduce_scatter_tensor_coalesced", CollectiveOp::reduce_scatter},
    TorchCollective{"all_to_all", CollectiveOp::all_to_all},
    TorchCollective{"all_to_allv", CollectiveOp::all_to_all},
    TorchCollective{"broadcast", CollectiveOp::broadcast},
    TorchCollective{"reduce", CollectiveOp::reduce},
};

/// 0: not known.
double bytes_of(const std::string& dtype) {
  static const std::map<std::string, double, std::less<>> kBytes{
      {"float", 4},         {"double", 8},      {"half", 2}, {"bfloat16", 2},
      {"int", 4},           {"long", 8},        {"byte", 1}, {"char", 1},
      {"float8_e4m3fn", 1}, {"float8_e5m2", 1}, {"bool", 1}, {"short", 2}};
  const auto found = kBytes.find(lowered(dtype));
  return found == kBytes.end() ? 0 : found->second;
}

std::optional<Precision> precision_of(const std::string& type) {
  if (type == "c10::BFloat16") return Precision::bf16;
  if (type == "c10::Half") return Precision::fp16;
  if (type == kTf32Type) return Precision::tf32;
  if (type.starts_with("c10::Float8_e4m3") || type.starts_with("c10::Float8_e5m2")) {
    return Precision::fp8;
  }
  return std::nullopt;
}

bool are_sizes(const std::vector<double>& sizes) {
  constexpr double kLargest = 1e9;  // of a profile
  return !sizes.empty() &&
         std::ranges::all_of(sizes, [](double n) { return n >= 1 && n <= kLargest; });
}

/// Global ranks of a group; a list that was cut goes on with its stride. Empty: not readable.
std::vector<long> ranks_of(const KinetoCollective& from) {
  std::vector<long> ranks;
  std::string_view text = from.ranks;
  const std::size_t cut = text.find("...");
  const bool whole = cut == std::string_view::npos;
  text = text.substr(0, cut);
  while (true) {
    const std::size_t digit = text.find_first_of("0123456789");
    if (digit == std::string_view::npos) break;
    text.remove_prefix(digit);
    long rank = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
    constexpr long kMostRank = 100'000'000;
    if (error != std::errc{} || rank > kMostRank) return {};
    ranks.push_back(rank);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
  const auto size = static_cast<std::size_t>(from.group_size);
  if (whole || ranks.size() < 2 || ranks.size() > size) {
    return ranks.size() == size ? ranks : std::vector<long>{};
  }
  const long stride = ranks[1] - ranks[0];
  while (ranks.size() < size) ranks.push_back(ranks.back() + stride);
  return ranks;
}

}  // namespace

std::optional<GemmPoint> product_of(const KinetoOperator& op) {
  const auto* const row = std::ranges::find(kProductOperators, op.name, &ProductOperator::name);
  if (row == kProductOperators.end()) return std::nullopt;
  if (op.dims.size() < row->left + 2 || op.types.size() < row->left + 2) return std::nullopt;
  std::vector<double> a = op.dims[row->left], b = op.dims[row->left + 1];
  const std::optional<Precision> precision = precision_of(op.types[row->left]);
  const std::size_t rank = row->batched ? 3 : 2;
  if (!precision || a.size() < rank || b.size() != rank || !are_sizes(a) || !are_sizes(b)) {
    return std::nullopt;
  }
  GemmPoint point;
  point.precision = *precision;
  point.load = Load::sustained;
  if (row->batched) point.shape.count = a.front();
  point.shape.k = a.back();
  point.shape.m = 1;
  for (std::size_t i = row->batched ? 1 : 0; i + 1 < a.size(); ++i) point.shape.m *= a[i];
  point.shape.n = row->right_transposed ? b[rank - 2] : b[rank - 1];
  const double inner = row->right_transposed ? b[rank - 1] : b[rank - 2];
  if (inner != point.shape.k || !are_sizes({point.shape.m})) return std::nullopt;
  return point;
}

std::optional<AttentionPoint> attention_of(const KinetoOperator& op) {
  const auto* const row = std::ranges::find(kAttentionOperators, op.name, &AttentionOperator::name);
  if (row == kAttentionOperators.end()) return std::nullopt;
  if (op.dims.size() < row->query + 2 || op.values.size() <= row->causal) return std::nullopt;
  const std::vector<double>&q = op.dims[row->query], &k = op.dims[row->query + 1];
  // Three dimensions: sequences of several lengths, packed.
  if (q.size() != 4 || k.size() != 4 || !are_sizes(q) || !are_sizes(k)) return std::nullopt;
  const std::size_t heads = row->heads_before_tokens ? 1 : 2, tokens = 3 - heads;
  const std::string& causal = op.values[row->causal];
  if ((causal != "True" && causal != "False") || q[tokens] != k[tokens] || q[heads] < k[heads]) {
    return std::nullopt;
  }
  AttentionPoint point;
  point.kernel = row->kernel;
  point.shape = {.sequences = q[0],
                 .tokens = q[tokens],
                 .heads = q[heads],
                 .kv_heads = k[heads],
                 .head_dim = q[3],
                 .causal = causal == "True",
                 .direction = row->direction};
  return point;
}

std::optional<CollectivePoint> collective_point(const KinetoCollective& from, int gpus_per_node,
                                                std::string& why) {
  const auto* const row = std::ranges::find(kTorchCollectives, from.name, &TorchCollective::name);
  if (row == kTorchCollectives.end()) return why = "no point for " + from.name, std::nullopt;
  if (!from.even) return why = "parts of different sizes", std::nullopt;
  CollectivePoint point;
  point.op = row->op;
  point.size =
      Bytes{bytes_of(from.dtype) * (row->by_output ? from.out_elements : from.in_elements)};
  if (point.size < Bytes{1}) return why = "no size", std::nullopt;
  if (from.group_size < 2) return why = "a group of one", std::nullopt;
  if (gpus_per_node == 0) return why = "say --node or --gpus-per-node", std::nullopt;
  std::map<long, int> members;  // by node
  for (const long rank : ranks_of(from)) ++members[rank / gpus_per_node];
  if (members.empty()) return why = "no ranks", std::nullopt;
  point.nodes = static_cast<int>(members.size());
  point.gpus_per_node = members.begin()->second;
  const auto other = [&](const auto& node) { return node.second != point.gpus_per_node; };
  if (std::ranges::any_of(members, other)) return why = "spread unevenly over nodes", std::nullopt;
  return point;
}

}  // namespace lockstep
