#include "sim/trace/pytorch/called_ranges.hpp"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "models/base/letter_case.hpp"
#include "sim/trace/pytorch/kineto_json.hpp"

namespace lockstep {
namespace {

constexpr std::string_view kCalledPrefix = "nccl:";

/// Elements of tensors: [[6144]], [[8, 32], []], and lists of tensors: [[[9600]]].
double elements_in(const nlohmann::json& shape) {
  if (!shape.is_array() || shape.empty()) return 0;
  const bool sides = std::ranges::all_of(shape, [](const auto& s) { return s.is_number(); });
  double out = sides ? 1 : 0;
  for (const nlohmann::json& each : shape) {
    if (sides) {
      out *= each.get<double>();
    } else {
      out += elements_in(each);
    }
  }
  return out;
}

std::string first_type(const nlohmann::json& args) {
  const auto types = args.find("Input type");
  const bool some = types != args.end() && types->is_array() && !types->empty();
  return some && types->front().is_string() ? types->front().get<std::string>() : std::string();
}

/// "all_reduce", of kernels such as "ncclDevKernel_AllReduce_Sum_bf16_RING_LL" alone. Newer RCCL
/// names no kind ("ncclDevKernel_Generic"), and all-to-alls are sends and receives.
bool is_kernel_of(std::string_view kernel, std::string_view collective) {
  const std::string name = lowered(kernel);
  std::string op = lowered(collective);
  std::erase(op, '_');
  constexpr std::array<std::string_view, 6> kKinds{"allreduce", "allgather", "reducescatter",
                                                   "broadcast", "sendrecv",  "reduce"};
  for (const std::string_view kind : kKinds) {
    if (name.find(kind) == std::string::npos) continue;
    return op.find(kind == "sendrecv" ? "alltoall" : kind) != std::string::npos;
  }
  return true;
}

}  // namespace

void CalledRanges::add(const nlohmann::json& event, const nlohmann::json& args) {
  const auto name = event.find("name");
  if (name == event.end() || !name->is_string()) return;
  const auto& text = name->get_ref<const std::string&>();
  if (!text.starts_with(kCalledPrefix)) return;
  const std::optional<double> start = kineto_number(event, "ts"),
                              took = kineto_number(event, "dur");
  const auto shapes = args.find("Input Dims");
  if (!start || !took || shapes == args.end()) return;
  Range range{.start = *start, .end = *start + *took, .call = {}};
  range.call.collective = text.substr(kCalledPrefix.size());
  range.call.dtype = first_type(args);
  range.call.in_elements = elements_in(*shapes);
  if (!(*range.call.in_elements > 0) || torch_element_size(range.call.dtype) == Bytes{}) return;
  ranges_[kineto_id(event, "tid")].push_back(std::move(range));
  sorted_ = false;
}

std::optional<NcclCallText> CalledRanges::call_of(std::string_view kernel, double launch,
                                                  std::int64_t thread, int world) {
  if (!sorted_) sort();
  const auto own = ranges_.find(thread);
  if (own == ranges_.end()) return std::nullopt;
  auto at = std::ranges::upper_bound(own->second, launch, {}, &Range::start);
  if (at == own->second.begin()) return std::nullopt;
  --at;
  if (at->end < launch || !is_kernel_of(kernel, at->call.collective)) return std::nullopt;
  NcclCallText out = at->call;
  out.group_size = world;
  // All-gathers are as large as what comes out, and the range has what goes in.
  out.out_elements = *out.in_elements * world;
  return out;
}

void CalledRanges::sort() {
  for (auto& [thread, ranges] : ranges_) std::ranges::stable_sort(ranges, {}, &Range::start);
  sorted_ = true;
}

}  // namespace lockstep
