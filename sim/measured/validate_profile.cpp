#include "sim/measured/validate_profile.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <optional>

#include "models/base/input_error.hpp"
#include "models/kernels/memory_bound.hpp"
#include "sim/scenario/names.hpp"
#include "sim/scenario/read_profile.hpp"

namespace lockstep {
namespace {

constexpr double kMicrosecondsPerSecond = 1e6;
constexpr double kLargeProduct = 1024;
constexpr std::string_view kByLaw = "law", kByOthers = "others";

std::string size_text(double number) { return fmt::format("{:.12g}", number); }

/// A point of any kind.
struct Probe {
  std::string kind;   ///< "product bf16", "attention cudnn forward", "all_reduce, 2 nodes of 8"
  std::string shape;  ///< "8192 x 4096 x 4096"
  double measured_s = 0, law_s = 0;
  const RatioField* field = nullptr;
  RatioPlace place{};
  std::size_t number = 0;  ///< in its field
  std::string group{};     ///< another group that it counts in; empty: none
};

class Probes {
 public:
  Probes(const Profile& profile, const GpuSpec& gpu)
      : corrected_({&profile, 1}, {&gpu, 1}, profile.network) {
    for (const GemmPoint& p : profile.gemm) add(p, gpu);
    for (const AttentionPoint& p : profile.attention) add(p, gpu);
    for (const MemoryPoint& p : profile.memory) add(p, gpu);
    for (const CollectivePoint& p : profile.collectives) add(p, gpu, profile.network);
  }

  [[nodiscard]] PointTable table() const {
    PointTable out;
    out.what = "kernels of the profile";
    std::map<std::string, std::vector<ValidationPoint>> groups;
    for (const Probe& probe : probes_) {
      const double others = probe.law_s * probe.field->at(probe.place, probe.number);
      for (const auto& [by, predicted] :
           {std::pair{kByLaw, probe.law_s}, std::pair{kByOthers, others}}) {
        ValidationPoint point{
            {{"kind", probe.kind}, {"shape", probe.shape}, {"by", std::string(by)}},
            probe.measured_s * kMicrosecondsPerSecond,
            predicted * kMicrosecondsPerSecond,
            predicted / probe.measured_s - 1};
        groups[fmt::format("{}, by {}", probe.kind, by)].push_back(point);
        groups[fmt::format("all, by {}", by)].push_back(point);
        if (!probe.group.empty()) {
          groups[fmt::format("{}, by {}", probe.group, by)].push_back(point);
        }
        out.points.push_back(std::move(point));
      }
    }
    for (const auto& [name, points] : groups) out.summary.push_back(summarise(name, points));
    return out;
  }

 private:
  void add(const GemmPoint& p, const GpuSpec& gpu) {
    const GemmShape& s = p.shape;
    std::string shape = fmt::format("{} x {} x {}", size_text(s.m), size_text(s.n), size_text(s.k));
    if (s.count > 1) shape += fmt::format(", {} of them", size_text(s.count));
    const std::string kind = fmt::format("product {}{}", name_of(p.precision),
                                         p.load == Load::sustained ? " sustained" : "");
    const bool large = std::min({s.m, s.n, s.k}) >= kLargeProduct;
    push({.kind = kind,
          .shape = shape,
          .measured_s = p.time.base_units(),
          .law_s = gemm_time(s, p.precision, gpu, p.load).base_units(),
          .field = corrected_.gemm_field(p.precision, p.load),
          .place = place_of(s),
          .group = large ? fmt::format("{}, m, n, k >= {}", kind, kLargeProduct) : ""});
  }
  void add(const AttentionPoint& p, const GpuSpec& gpu) {
    const AttentionShape& s = p.shape;
    const bool forward = s.direction == Direction::forward;
    push({.kind = fmt::format("attention {} {}",
                              attention_kernels()[static_cast<std::size_t>(p.kernel)].name,
                              forward ? "forward" : "backward"),
          .shape = fmt::format("{} x {} tokens, {}/{} heads of {}{}", size_text(s.sequences),
                               size_text(s.tokens), size_text(s.heads), size_text(s.kv_heads),
                               size_text(s.head_dim), s.causal ? "" : ", no mask"),
          .measured_s = p.time.base_units(),
          .law_s = attention_time(s, p.kernel, gpu, ElementwiseTraffic{}).base_units(),
          .field = corrected_.attention_field(s, p.kernel),
          .place = place_of(s)});
  }
  void add(const MemoryPoint& p, const GpuSpec& gpu) {
    push({.kind = "memory " + p.kernel,
          .shape = fmt::format("{} MB", size_text(p.traffic.base_units() / 1e6)),
          .measured_s = p.time.base_units(),
          .law_s = memory_bound_time(p.traffic, gpu).base_units(),
          .field = corrected_.memory_field(p.kernel),
          .place = place_of_bytes(p.traffic)});
  }
  void add(const CollectivePoint& p, const GpuSpec& gpu,
           const std::optional<NodeNetwork>& network) {
    const NodeNetwork net = network.value_or(NodeNetwork{{}, gigabits_per_second(1)});
    const bool one = p.nodes == 1;
    push({.kind = fmt::format("{}, {} {} of {}", kNcclTestsNames[static_cast<std::size_t>(p.op)],
                              p.nodes, one ? "node" : "nodes", p.gpus_per_node),
          .shape = fmt::format("{} bytes", size_text(p.size.base_units())),
          .measured_s = p.time.base_units(),
          .law_s = collective_time(p.call(), gpu, net.transport, net.nic_bandwidth).base_units(),
          .field = corrected_.collective_field(p),
          .place = place_of_bytes(p.size),
          .group = one ? "collectives in one node" : "collectives over several nodes"});
  }
  void push(Probe probe) {
    probe.number = counts_[probe.field]++;
    probes_.push_back(std::move(probe));
  }

  KernelProfile corrected_;
  std::vector<Probe> probes_;
  std::map<const RatioField*, std::size_t> counts_;
};

}  // namespace

PointTable validate_profile(const std::string& file, const PresetStore& presets) {
  const Profile profile = load_profile(file, presets);
  if (profile.spans_nodes() && !profile.network) {
    throw InputError(
        {.file = file,
         .pointer = {},
         .found = "collectives over several nodes without \"network\"",
         .allowed = "\"network\" with the node's preset, or transport and nic_bandwidth",
         .nearest = {}});
  }
  return Probes(profile, measured_card(profile, presets.gpu(profile.gpu))).table();
}

}  // namespace lockstep
