#include "sim/trace/pytorch/called_ranges.hpp"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "models/base/letter_case.hpp"
#include "models/base/write_json.hpp"
#include "sim/trace/pytorch/kineto_json.hpp"

namespace lockstep {
namespace {

constexpr std::string_view kCalledPrefix = "nccl:", kCallRecord = "record_param_comms";
constexpr int kDeepest = 4;  ///< ranges inside each other that are looked at

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

NcclCallText nccl_call_text(const nlohmann::json& args) {
  NcclCallText out{.collective = kineto_text(args, "Collective name"),
                   .dtype = kineto_text(args, "dtype"),
                   .group = kineto_text(args, "Process Group Name"),
                   .ranks = kineto_text(args, "Process Group Ranks"),
                   .in_elements = kineto_number(args, "In msg nelems"),
                   .out_elements = kineto_number(args, "Out msg nelems"),
                   .group_size = kineto_number(args, "Group size"),
                   .rank_start = std::nullopt,
                   .rank_stride = std::nullopt,
                   .source = kineto_number(args, "Src Rank"),
                   .destination = kineto_number(args, "Dst Rank")};
  // Some write the list, and numbers for names, without quotes.
  const auto list = args.find("Process Group Ranks");
  if (list != args.end() && list->is_array()) out.ranks = write_json(*list);
  const auto group = args.find("Process Group Name");
  if (group != args.end() && group->is_number_integer()) out.group = write_json(*group);
  return out;
}

void CalledRanges::add(const nlohmann::json& event, const nlohmann::json& args) {
  const auto name = event.find("name");
  if (name == event.end() || !name->is_string()) return;
  const auto& text = name->get_ref<const std::string&>();
  const bool tells_all = text == kCallRecord && args.contains("Collective name");
  if (!tells_all && !text.starts_with(kCalledPrefix)) return;
  const std::optional<double> start = kineto_number(event, "ts"),
                              took = kineto_number(event, "dur");
  if (!start || !took) return;
  Range range{.start = *start, .end = *start + *took, .tells_all = tells_all, .call = {}};
  if (tells_all) {
    range.call = nccl_call_text(args);
    ranges_[kineto_id(event, "tid")].push_back(std::move(range));
    sorted_ = false;
    return;
  }
  const auto shapes = args.find("Input Dims");
  if (shapes == args.end()) return;
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
  const auto next = std::ranges::upper_bound(own->second, launch, {}, &Range::start);
  // The record of a call is around the range of its name: it says more.
  const Range* found = nullptr;
  const auto first = next - std::min<std::ptrdiff_t>(next - own->second.begin(), kDeepest);
  for (auto at = next; at != first && (found == nullptr || !found->tells_all);) {
    --at;
    if (at->end < launch || !is_kernel_of(kernel, at->call.collective)) continue;
    if (found == nullptr || at->tells_all) found = &*at;
  }
  if (found == nullptr) return std::nullopt;
  if (found->tells_all) return found->call;
  if (world < 2) return std::nullopt;
  NcclCallText out = found->call;
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
