#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>

#include "models/base/number_text.hpp"
#include "sim/measured/recorded_exchange.hpp"
#include "sim/measured/recorded_host.hpp"
#include "sim/measured/stack_findings.hpp"

namespace lockstep {
namespace {

/// Shares of exchanges that computing hides: more is overlapped, less is not; between them a
/// recording does not tell (a first bucket, or a wait for others, may be either).
constexpr double kLeastHidden = 0.3, kMostExposed = 0.1;
/// Backward passes hide up to half of tensor-parallel collectives behind products by themselves
/// (async_tensor_backward).
constexpr double kTensorHidden = 0.6;
/// Of the kernels, where the launches are of graphs: of nearly all in a few, or of layers.
constexpr double kWholeStep = 0.95, kLayers = 0.5;
constexpr std::size_t kFewGraphs = 4;  // a rank

/// A value that kernels or operators of one mark tell.
struct MarkedValue {
  KernelMark mark;
  std::string_view value;  ///< JSON
};

/// That of the first mark there is; where there is none, `without` says what is missing.
template <std::size_t N>
void find_marked(std::string_view path, const std::array<MarkedValue, N>& rows,
                 const KernelMarks& marks, std::string_view without, StackFindings& out) {
  for (const MarkedValue& row : rows) {
    const MarkedKernels& marked = marks.of(row.mark);
    if (marked.all() == 0) continue;
    out.found(path, std::string(row.value), marked.all(), marked_text(marked));
    return;
  }
  out.not_told(path, std::string(without));
}

/// Additions that AccumulateGrad makes: a weight gradient that another one was there for.
std::size_t accumulations(const KinetoRecording& recording) {
  std::map<std::uint32_t, std::int64_t> until;  // by thread: of the accumulation that is open
  std::size_t out = 0;
  for (const KinetoRecording::Operator& each : recording.operators) {
    const std::string& name = recording.names[each.name];
    if (name == "torch::autograd::AccumulateGrad") {
      until[each.thread] = each.end;
    } else if (name == "aten::add_" && until.contains(each.thread) &&
               each.start < until[each.thread]) {
      ++out;
    }
  }
  return out;
}

void find_accumulation(std::span<const KinetoRecording> recordings, StackFindings& out) {
  constexpr std::string_view kPath = "features.gradient_accumulation_fusion";
  std::size_t added = 0;
  for (const KinetoRecording& recording : recordings) added += accumulations(recording);
  if (added > 0) {
    out.found(kPath, "false", added,
              fmt::format("{} of AccumulateGrad", counted(static_cast<double>(added), "addition")));
  } else {
    out.not_told(kPath, "no addition of AccumulateGrad: one micro batch, or fused");
  }
}

void find_graphs(const RecordedHost& host, std::size_t ranks, StackFindings& out) {
  constexpr std::string_view kPath = "features.cuda_graphs";
  if (host.launches == 0) return out.not_told(kPath, "no launch was recorded");
  const double share = static_cast<double>(host.graph_kernels) / static_cast<double>(host.kernels);
  const std::string from = fmt::format("{} of {} kernels are launched by {} graphs",
                                       host.graph_kernels, host.kernels, host.graphs);
  if (host.graphs == 0) {
    out.found(
        kPath, R"("none")", host.launches,
        fmt::format("{}, none of a graph", counted(static_cast<double>(host.launches), "call")));
  } else if (share >= kWholeStep && host.graphs <= kFewGraphs * ranks) {
    out.found(kPath, R"("full")", host.graph_kernels, from);
  } else if (share >= kLayers) {
    out.found(kPath, R"("layer")", host.graph_kernels, from);
  } else {
    out.not_told(kPath, from);
  }
}

void find_overlap(std::string_view path, const RecordedExchange& exchange, StackFindings& out) {
  if (exchange.calls == 0) return out.not_told(path, "no such call that says what it is");
  const std::string from =
      fmt::format("{} of NCCL take {}, of which computing hides {}",
                  counted(static_cast<double>(exchange.calls), "call"),
                  duration_text(exchange.total_s), percent_text(exchange.hidden()));
  if (exchange.hidden() >= kLeastHidden) return out.found(path, "true", exchange.calls, from);
  if (exchange.hidden() <= kMostExposed) return out.found(path, "false", exchange.calls, from);
  out.not_told(path, from);
}

void find_tensor_overlap(const KernelMarks& marks, const RecordedExchange& tensor,
                         StackFindings& out) {
  constexpr std::string_view kPath = "features.tp_overlap";
  const MarkedKernels& buffers = marks.of(KernelMark::user_buffers);
  if (buffers.kernels > 0) {
    return out.found(kPath, "true", buffers.kernels, marked_text(buffers));
  }
  if (tensor.calls == 0) return out.not_told(kPath, "no tensor-parallel call that says what it is");
  const std::string from = fmt::format("{} in forward and backward passes, of which {} is hidden",
                                       counted(static_cast<double>(tensor.calls), "call"),
                                       percent_text(tensor.hidden()));
  if (tensor.hidden() < kTensorHidden) return out.found(kPath, "false", tensor.calls, from);
  out.not_told(kPath, from);
}

void find_reduced_format(const RecordedExchanges& exchanges, StackFindings& out) {
  constexpr std::string_view kPath = "features.reduced_format";
  if (exchanges.fp32 > 0 && exchanges.half == 0) {
    out.found(kPath, R"("fp32")", exchanges.fp32,
              fmt::format("{} of 32-bit gradients",
                          counted(static_cast<double>(exchanges.fp32), "reduction")));
  } else if (exchanges.half > 0 && exchanges.fp32 == 0) {
    out.found(kPath, R"("bf16")", exchanges.half,
              fmt::format("{} of 16-bit gradients",
                          counted(static_cast<double>(exchanges.half), "reduction")));
  } else if (exchanges.fp32 > 0) {
    out.not_told(kPath, fmt::format("{} reductions in 32 bits and {} in 16", exchanges.fp32,
                                    exchanges.half));
  } else {
    out.not_told(kPath, "no reduction of gradients that says what it is");
  }
}

}  // namespace

void find_optimiser_features(std::span<const KinetoRecording> recordings, const KernelMarks& marks,
                             StackFindings& out) {
  constexpr std::array kOptimisers{MarkedValue{KernelMark::int8_states, R"("fused")"},
                                   MarkedValue{KernelMark::fused_adam, R"("fused")"},
                                   MarkedValue{KernelMark::apex_adam, R"("multi_tensor")"},
                                   MarkedValue{KernelMark::eager_adam, R"("loop")"}};
  find_marked("features.optimiser", kOptimisers, marks, "no kernel of Adam that is known", out);
  constexpr std::array kStates{MarkedValue{KernelMark::int8_states, R"("int8")"},
                               MarkedValue{KernelMark::fp32_states, R"("fp32")"},
                               MarkedValue{KernelMark::bf16_states, R"("bf16")"}};
  find_marked("features.optimiser_states", kStates, marks, "no kernel that says its types", out);
  // Weights, gradients and moments of PyTorch's fused Adam have one type.
  constexpr std::array kMasters{MarkedValue{KernelMark::bf16_states, "false"},
                                MarkedValue{KernelMark::fp32_states, "true"}};
  find_marked("features.master_weights", kMasters, marks, "no kernel that says its types", out);
  constexpr std::array kUnits{MarkedValue{KernelMark::fsdp2, R"("fsdp2")"},
                              MarkedValue{KernelMark::fsdp1, R"("fsdp1")"},
                              MarkedValue{KernelMark::ddp, R"("bucket")"}};
  find_marked("features.sharding_unit", kUnits, marks, "no operator of FSDP or DDP", out);
  constexpr std::array kExperts{MarkedValue{KernelMark::grouped_product, R"("grouped")"}};
  find_marked("features.expert_products", kExperts, marks, "no grouped product", out);
  find_accumulation(recordings, out);
}

void find_host_features(std::span<const KinetoRecording> recordings, double host_slowness,
                        StackFindings& out) {
  const RecordedHost host = recorded_host(recordings);
  find_graphs(host, recordings.size(), out);
  constexpr std::string_view kPath = "launch_interval";
  if (host.graphs > 0) {
    out.not_told(kPath, "graphs launch kernels");
  } else if (host.intervals == 0) {
    out.not_told(kPath, host.launches == 0 ? "no launch was recorded"
                                           : "too few launches of a host that runs freely");
  } else {
    const std::string from = fmt::format(
        "{} of a host that ran freely, mean without the longest fiftieth; with the profiler's own "
        "time{}",
        counted(static_cast<double>(host.intervals), "interval"),
        host_slowness == 1
            ? std::string()
            : fmt::format(", over {} for these processors", significant(host_slowness)));
    out.found(kPath, fmt::format("\"{:.2f} us\"", host.interval_s / host_slowness * 1e6),
              host.intervals, from);
  }
}

void find_exchange_features(std::span<const KinetoRecording> recordings, const KernelMarks& marks,
                            StackFindings& out) {
  const RecordedExchanges exchanges = recorded_exchanges(recordings);
  find_reduced_format(exchanges, out);
  find_overlap("communication.overlap_gradients", exchanges.gradients, out);
  find_overlap("communication.overlap_parameters", exchanges.parameters, out);
  find_tensor_overlap(marks, exchanges.tensor, out);
}

}  // namespace lockstep
